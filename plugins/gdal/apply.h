// SPDX-License-Identifier: MIT
// A function over the pixels that GDAL hands over, slice by slice: in addition to GDAL's own buffers it needs
// only the memory of a slice for each thread, for any size of the request.
#pragma once

#include "gdal/function.h"

#include <gdal.h>

#include <memory>

namespace hsi::plugin {

/// A pixel function's buffers, as GDAL describes them.
struct PixelBuffers {
    void** sources = nullptr; ///< each width x height values, packed
    GDALDataType source_type = GDT_Unknown;
    int width = 0, height = 0;
    void* out = nullptr;
    GDALDataType out_type = GDT_Unknown;
    int pixel_space = 0; ///< bytes
    int64_t line_space = 0;
};
/// Throws Error.
void apply(const std::shared_ptr<const Function>& function, const PixelBuffers& buffers);

/// All bands of a pixel next to each other, in and out, single precision. in_nodata: one value per band, NaN
/// without one; out_nodata: likewise, the value of pixels without a result.
void apply_interleaved(const std::shared_ptr<const Function>& function, const float* in, int64_t pixels,
                       const double* in_nodata, float* out, int out_bands, const double* out_nodata);

} // namespace hsi::plugin
