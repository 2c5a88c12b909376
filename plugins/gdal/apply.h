// SPDX-License-Identifier: MIT
// Applies a function to the pixels that GDAL passes, slice by slice. In addition to GDAL's own buffers, each
// thread needs only the memory of one slice, whatever the size of the request.
#pragma once

#include "gdal/function.h"

#include <gdal.h>

#include <memory>

namespace hsi::plugin {

/// The buffers of a pixel function, as GDAL describes them.
struct PixelBuffers {
    void** sources = nullptr; ///< one buffer per source, each with width x height packed values
    GDALDataType source_type = GDT_Unknown;
    int width = 0, height = 0;
    void* out = nullptr;
    GDALDataType out_type = GDT_Unknown;
    int pixel_space = 0; ///< distance between pixels in bytes
    int64_t line_space = 0;
};
/// Applies the function to buffers.sources and writes the results to buffers.out. Throws Error if this fails.
void apply(const std::shared_ptr<const Function>& function, const PixelBuffers& buffers);

/// Applies the function to pixels in single precision. Input and output are interleaved by pixel. `in_nodata`
/// has the nodata value of each input band; NaN: the band has none. `out_nodata` has one value per output
/// band, which is stored for pixels without a result. Throws Error if this fails.
void apply_interleaved(const std::shared_ptr<const Function>& function, const float* in, int64_t pixels,
                       const double* in_nodata, float* out, int out_bands, const double* out_nodata);

} // namespace hsi::plugin
