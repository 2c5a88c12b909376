// SPDX-License-Identifier: MIT
// Morphological, attribute and extinction profiles of the components of a
// scene: copies of a component without the structures that are small by some
// measure.
//
// emp: openings and closings by reconstruction with disks.
//   J. A. Benediktsson, J. A. Palmason, J. R. Sveinsson, "Classification of hyperspectral data from urban
//   areas based on extended morphological profiles", IEEE TGRS 43(3), 2005.
// eap, emap: attribute thinnings and thickenings.
//   M. Dalla Mura, J. A. Benediktsson, B. Waske, L. Bruzzone, "Extended profiles with morphological
//   attribute filters for the analysis of hyperspectral data", Int. J. of Remote Sensing 31(22), 2010.
// eep, emep: only the extrema of greatest extinction value, as defined by C.
// Vachier.
//   P. Ghamisi, R. Souza, J. A. Benediktsson, X. X. Zhu, L. Rittner, R. Lotufo, "Extinction profiles for
//   the classification of remote sensing data", IEEE TGRS 54(10), 2016.
//
// All except emp use levels 0..65535 of a component (Levels) in a tree of its
// connected components (MaxTree); emp compares values.
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
/// Returns the attributes that a kind supports, in the order of its default.
std::vector<Attribute> attributes_of(Kind kind);
bool of_extinction(Kind kind); ///< eep, emep: thresholds count extrema that are kept

/// The removals by one attribute: one band per threshold and side.
struct AttributeSet {
    Attribute attribute = Attribute::area;
    /// In pixels (radius, area, diagonal), per cent of the mean level (std), without a unit (inertia); for
    /// extinction profiles the number of extrema that are kept.
    std::vector<double> thresholds;
};

struct Options {
    Kind kind = Kind::eap;
    std::vector<AttributeSet> sets;
    bool eight = false; ///< pixels that share a corner are also connected
    /// Returns the bands of one component: itself, then the bright side of each set, then its dark side.
    int bands() const;
};

/// Returns default thresholds: 1000 / v times 1, 3 .. 13 pixels of area, with v the size of a pixel in
/// metres, and similarly for each attribute.
std::vector<double> default_thresholds(Kind kind, Attribute attribute, double pixel_metres);

/// Returns the names of the bands of a component in their order: "", "opening r=2", "thickening std=2.5",
/// "maxima area n=729".
std::vector<std::string> band_names(const Options& options);

/// Returns the bytes for computing one side of a component with this number of pixels.
uint64_t side_bytes(const Options& options, int64_t pixels);

/// Computes all bands of one side of one component, without the component itself. plane: lines x samples, NaN
/// if invalid; whole: its values are whole numbers (an integer source). emit(k, band) receives the bands as
/// they are finished, k counted from 0 in the order of the sets' thresholds; it may change the band.
void profile_side(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole, bool dark,
                  const Options& options, const std::function<void(int k, std::vector<float>& band)>& emit);

struct ProfileRun {
    int workers = 1; ///< sides that are computed at once
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
};

/// Takes a whole band of the profile, and may change it. Called from several threads at once.
using TakeBand = std::function<void(int band, std::vector<float>& values)>;

/// Computes the profile of all planes of `components` (NaN: invalid), with options.bands() bands per plane.
/// One thread of one rank computes each side, so results do not depend on threads and ranks. The ranks of a
/// job call it together; each passes its bands to `take`, and returns when all have ended. \throws Cancelled,
/// and Error from the store and from `take`.
void make_profile(stream::PlaneStore& components, bool whole, const Options& options, const TakeBand& take,
                  const ProfileRun& run);

} // namespace hsi::profile
