// SPDX-License-Identifier: MIT
// Bands without a single value. Such a band spoils every pixel. No pass looks for them in advance: when a
// pass has not met a valid pixel, they are found and left out, with one warning, and the pass is repeated.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"
#include "tool/run.h"

#include <functional>
#include <memory>
#include <vector>

namespace hsi::tool {

/// One of the scenes of a work that takes them band by band, first with first; mostly it is the only one.
struct BandedSource {
    std::shared_ptr<const stream::CubeSource> cube;         ///< the cube to examine
    std::vector<int> bands;                                 ///< of its file (1-based), for the user
    std::function<void(const std::vector<int>&)> leave_out; ///< bands by their indices, rising
};
/// A scene that is replaced by one without the bands.
BandedSource banded(std::shared_ptr<raster::RasterSource>& source);

/// Indices, rising, of the bands without a single value in one of the scenes; a pass over each.
std::vector<int> empty_bands(Run& run, const std::vector<BandedSource>& scenes);
/// Leaves `empty` bands (indices, rising) out of all scenes, with a warning, and puts bands_without_values
/// (of the first scene) into the report. Returns false if there are no empty bands, or no other bands.
bool leave_out_bands(Run& run, const std::vector<BandedSource>& scenes, const std::vector<int>& empty);
/// Does `work(again)`, which returns whether it has met a valid pixel. If not, leaves out the bands of
/// `scenes` without values and repeats it. \return the last result of `work`.
template <class Work>
bool attempt(Run& run, const std::vector<BandedSource>& scenes, Work work) {
    return work(false) || (leave_out_bands(run, scenes, empty_bands(run, scenes)) && work(true));
}

/// For an output that no pass computes (a VRT): leaves out the bands without a single value, as a pass that
/// finds no valid pixel would. A few windows are enough for most scenes; otherwise all of it is read. \return
/// true when some were left out.
bool leave_out_unseen_bands(Run& run, std::shared_ptr<raster::RasterSource>& source);

/// The same scene with only the bands whose indices (0-based, rising) are listed; the source itself when
/// these are all.
std::shared_ptr<raster::RasterSource> only_bands(const std::shared_ptr<raster::RasterSource>& source,
                                                 const std::vector<int>& wanted);

} // namespace hsi::tool
