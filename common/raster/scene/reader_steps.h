// SPDX-License-Identifier: MIT
// Processes a scene's stored values after they were read, for any storage: applies their scale, and detects
// values that single precision cannot represent. Does not call GDAL.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"

#include <atomic>
#include <memory>
#include <vector>

namespace hsi::raster {

/// Returns a reader of scaled values, number * scale + offset, if there are scales. A pixel whose numbers are
/// all 0 is invalid and becomes NaN.
std::unique_ptr<stream::CubeReader> reader_of_meanings(std::unique_ptr<stream::CubeReader> reader,
                                                       BandValues values);

/// Returns a reader that sets `infinity` if it reads an infinite value in a band of `doubles` (one per band);
/// `reader` itself without such bands.
std::unique_ptr<stream::CubeReader> reader_that_watches(std::unique_ptr<stream::CubeReader> reader,
                                                        std::vector<bool> doubles,
                                                        std::shared_ptr<std::atomic<bool>> infinity);

/// Returns RasterSource::coarse_bands() of a source whose bands are the bits of doubles (sample_convert.h),
/// three for each of `numbers`.
std::vector<CoarseBand> coarse_among(const stream::CubeSource& bits, const std::vector<int>& numbers);

} // namespace hsi::raster
