// SPDX-License-Identifier: MIT
// Handles bands without any value. Such a band makes every pixel invalid. No pass searches for such bands in
// advance. If a pass finds no valid pixel, the bands are searched for and left out with one warning, and the
// pass is repeated.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"
#include "tool/run.h"

#include <functional>
#include <memory>
#include <vector>

namespace hsi::tool {

/// One of the scenes of a computation. Usually there is only one scene; there are two, src and other, if band
/// 1 of src is compared with band 1 of other, and so on.
struct BandedSource {
    std::shared_ptr<const stream::CubeSource> cube; ///< the cube to examine
    std::vector<int> bands; ///< band numbers in the scene's file (1-based), for messages
    std::function<void(const std::vector<int>&)> leave_out; ///< leaves out bands by their indices, rising
};
/// Returns a BandedSource for `source`. Its leave_out() replaces `source` by a scene without the bands.
BandedSource banded(std::shared_ptr<raster::RasterSource>& source);

/// Returns the indices, rising, of the bands without any value in one of the scenes. Makes one pass per
/// scene.
std::vector<int> empty_bands(Run& run, const std::vector<BandedSource>& scenes);
/// Leaves the `empty` bands (indices, rising) out of all scenes, with a warning, and adds
/// bands_without_values (of the first scene) to the report. Returns false if there are no empty bands, or no
/// other bands.
bool leave_out_bands(Run& run, const std::vector<BandedSource>& scenes, const std::vector<int>& empty);
/// Calls `work(again)`, which returns whether it has found a valid pixel. If not, leaves out the bands of
/// `scenes` without values and repeats `work`. \return the last result of `work`
template <class Work>
bool attempt(Run& run, const std::vector<BandedSource>& scenes, Work work) {
    return work(false) || (leave_out_bands(run, scenes, empty_bands(run, scenes)) && work(true));
}

/// Leaves out the bands without any value for an output that no pass computes (a VRT), as a pass without
/// valid pixels would. A few windows suffice for most scenes; otherwise reads the whole scene. \return true
/// if bands were left out.
bool leave_out_unseen_bands(Run& run, std::shared_ptr<raster::RasterSource>& source);

/// Returns the scene with only the listed bands (0-based indices, rising), or the source itself if all are
/// listed.
std::shared_ptr<raster::RasterSource> only_bands(const std::shared_ptr<raster::RasterSource>& source,
                                                 const std::vector<int>& wanted);

} // namespace hsi::tool
