// SPDX-License-Identifier: MIT
// Morphological, attribute and extinction profiles of the components of a scene: copies of a component
// without the structures that are small by some measure.
//
// emp: openings and closings by reconstruction with disks.
//   J. A. Benediktsson, J. A. Palmason, J. R. Sveinsson, "Classification of hyperspectral data from urban
//   areas based on extended morphological profiles", IEEE TGRS 43(3), 2005.
// eap, emap: attribute thinnings and thickenings.
//   M. Dalla Mura, J. A. Benediktsson, B. Waske, L. Bruzzone, "Extended profiles with morphological
//   attribute filters for the analysis of hyperspectral data", Int. J. of Remote Sensing 31(22), 2010.
// eep, emep: profiles that keep only the extrema with the greatest extinction values, as defined by C.
// Vachier.
//   P. Ghamisi, R. Souza, J. A. Benediktsson, X. X. Zhu, L. Rittner, R. Lotufo, "Extinction profiles for
//   the classification of remote sensing data", IEEE TGRS 54(10), 2016.
//
// All kinds except emp use the levels 0..65535 of a component (Levels) in a tree of its connected components
// (MaxTree). emp compares the values themselves.
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

const char* name_of(Kind kind);           ///< such as "emap"
const char* name_of(Attribute attribute); ///< such as "area"
/// Returns the attributes that a kind supports, in the order that is used by default.
std::vector<Attribute> attributes_of(Kind kind);
/// Returns true for eep and emep, whose thresholds are numbers of extrema to keep.
bool of_extinction(Kind kind);

/// The thresholds of one attribute. Each threshold gives one band on the bright side and one on the dark
/// side.
struct AttributeSet {
    Attribute attribute = Attribute::area;
    /// Units: pixels (radius, area, diagonal), per cent of the mean level (std), none (inertia). For
    /// extinction profiles, a threshold is the number of extrema to keep.
    std::vector<double> thresholds;
};

struct Options {
    Kind kind = Kind::eap;
    std::vector<AttributeSet> sets;
    bool eight = false; ///< true: pixels that share a corner are also connected
    /// Returns the number of bands per component: the component itself, and the bright and the dark side of
    /// each set.
    int bands() const;
};

/// Returns the default thresholds. Extinction profiles keep 729, 243 .. 1 extrema. In the other profiles, the
/// thresholds of area are 1000 / `pixel_metres` times 1, 3 .. 13 pixels, and all other attributes have fixed
/// thresholds.
std::vector<double> default_thresholds(Kind kind, Attribute attribute, double pixel_metres);

/// Returns the names of the bands of a component in order, such as "", "opening r=2", "thickening std=2.5",
/// "maxima area n=729".
std::vector<std::string> band_names(const Options& options);

/// Returns the memory in bytes that one side of a component with this number of pixels needs.
uint64_t side_bytes(const Options& options, int64_t pixels);

/// Computes all bands of the bright side of a component, or of the dark side if `dark` is true. `plane` is
/// the component, lines x samples; NaN marks invalid pixels. `whole` is true if the source has integers.
/// emit(k, band) receives each band when it is finished, and may change it. k counts the thresholds of all
/// sets, from 0 in their order.
void profile_side(const std::vector<float>& plane, int64_t lines, int64_t samples, bool whole, bool dark,
                  const Options& options, const std::function<void(int k, std::vector<float>& band)>& emit);

struct ProfileRun {
    int workers = 1; ///< number of sides that are computed at the same time
    const CancelFlag* cancel = nullptr;
    std::function<void(double)> progress; ///< fraction of the work done; called by one thread at a time
};

/// A function that receives a whole band of the profile, and may change it. Several threads may call it at
/// the same time.
using TakeBand = std::function<void(int band, std::vector<float>& values)>;

/// Computes the profile of all planes of `components` (NaN: invalid), with options.bands() bands per plane.
/// Each side is computed by one thread of one rank, so results do not depend on threads and ranks. All ranks
/// of a job must call this function together. Each rank passes its bands to `take`, and returns when all
/// ranks have finished. \throws Cancelled, and errors from the store and from `take`.
void make_profile(stream::PlaneStore& components, bool whole, const Options& options, const TakeBand& take,
                  const ProfileRun& run);

} // namespace hsi::profile
