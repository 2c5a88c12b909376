// SPDX-License-Identifier: MIT
// Readers that process the values of another reader, for any storage: they apply scales, or detect values
// that single precision cannot represent. This code does not call GDAL.
#pragma once

#include "raster/raster_source.h"
#include "stream/cube_source.h"

#include <atomic>
#include <memory>
#include <vector>

namespace hsi::raster {

/// Returns a reader of scaled values (stored value * scale + offset), or `reader` itself if `values` has no
/// scales. A pixel whose stored values are all 0 is invalid and becomes NaN.
std::unique_ptr<stream::CubeReader> reader_of_meanings(std::unique_ptr<stream::CubeReader> reader,
                                                       BandValues values);

/// Returns a reader that sets `infinity` if it reads an infinite value in a band whose entry in `doubles` is
/// true. Returns `reader` itself if all entries are false.
std::unique_ptr<stream::CubeReader> reader_that_watches(std::unique_ptr<stream::CubeReader> reader,
                                                        std::vector<bool> doubles,
                                                        std::shared_ptr<std::atomic<bool>> infinity);

/// Returns the result of RasterSource::coarse_bands() for bands of doubles. `numbers` has the number of each
/// band in the file. `bits` has three bands for each of these bands, which contain the bits of its doubles
/// (sample_convert.h).
std::vector<CoarseBand> coarse_among(const stream::CubeSource& bits, const std::vector<int>& numbers);

} // namespace hsi::raster
