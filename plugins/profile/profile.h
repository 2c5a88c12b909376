// SPDX-License-Identifier: MIT
// Morphological, attribute and extinction profiles of the components of a scene: copies of a component from
// which structures that are small, in one sense or another, were removed.
//
// emp: openings and closings by reconstruction with disks. J. A. Benediktsson, J. A. Palmason, J. R.
// Sveinsson,
//   "Classification of hyperspectral data from urban areas based on extended morphological profiles", IEEE
//   TGRS 43(3), 2005.
// eap, emap: attribute thinnings and thickenings. M. Dalla Mura, J. A. Benediktsson, B. Waske, L. Bruzzone,
//   "Extended profiles with morphological attribute filters for the analysis of hyperspectral data", Int. J.
//   of Remote Sensing 31(22), 2010.
// eep, emep: the extrema of greatest extinction value alone. P. Ghamisi, R. Souza, J. A. Benediktsson, X. X.
// Zhu,
//   L. Rittner, R. Lotufo, "Extinction profiles for the classification of remote sensing data", IEEE TGRS
//   54(10), 2016; extinction values as C. Vachier defines them.
//
// All of them but emp work on levels 0..65535 of a component (Levels) in a tree of its connected components
// (MaxTree); emp compares values.
#pragma once

#include "core/cancel.h"
#include "stream/plane_store.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::profile {

enum class Kind { emp, eap, eep, emap, emep };
enum class Attribute { radius, area, std, inertia, diagonal, volume, height };

const char* name_of(Kind kind);           ///< "emap"
const char* name_of(Attribute attribute); ///< "area"
/// Those that a kind knows, in the order of its default.
std::vector<Attribute> attributes_of(Kind kind);
bool of_extinction(Kind kind); ///< eep, emep: thresholds count extrema that are kept

/// The removals by one attribute: one band per threshold and side.
struct AttributeSet {
    Attribute attribute = Attribute::area;
    /// Pixels (radius, area, diagonal), per cent of the mean level (std), no unit (inertia); of extinction
    /// profiles the number of extrema that stay.
    std::vector<double> thresholds;
};

struct Options {
    Kind kind = Kind::eap;
    std::vector<AttributeSet> sets;
    bool eight = false; ///< pixels that share a corner are connected, too
    /// Bands of one component: itself, then the bright side of each set, then its dark side.
    int bands() const;
};

/// 1000 / v times 1, 3 .. 13 pixels of area, v the size of a pixel in metres, and the like for each
/// attribute.
std::vector<double> default_thresholds(Kind kind, Attribute attribute, double pixel_metres);

/// "", "opening r=2", "thickening std=2.5", "maxima area n=729": the bands of a component in their order.
std::vector<std::string> band_names(const Options& options);

/// Bytes for one side of a component of so many pixels while it is computed.
uint64_t side_bytes(const Options& options, int64_t pixels);

/// All bands of one component but the first, of one side. plane: lines x samples, NaN where invalid; whole:
/// its values are whole numbers (an integer source). emit(k, band) takes them as they are made, k counted
/// from 0 in the order of the sets' thresholds; the band is emit's to change.
void profile_side(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole, bool dark,
                  const Options& options, const std::function<void(int k, std::vector<float>& band)>& emit);

struct ProfileRun {
    int workers = 1; ///< sides that are computed at once
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< share of the work done; called by one thread at a time
};

/// Takes a whole band of the profile, and may change it; called from several threads at once.
using TakeBand = std::function<void(int band, std::vector<float>& values)>;

/// The profile of all planes of `components` (NaN: invalid), options.bands() bands of each. Each side is
/// computed by one thread of one rank, so that neither changes anything. The ranks of a job call it together;
/// each passes its bands to `take`, and returns when all have ended. \throws Cancelled, and Error from the
/// store and from `take`.
void make_profile(stream::PlaneStore& components, bool whole, const Options& options, const TakeBand& take,
                  const ProfileRun& run);

} // namespace hsi::profile
