// SPDX-License-Identifier: MIT
#include "raster/sink/close_written.h"

#include <gdal_priv.h>

#include <cstdio>
#include <utility>

namespace hsi::raster {

bool close_written(DatasetHandle dataset, bool pixels) {
    bool good = true;
    // Before GDAL 3.7 neither function returns anything.
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    good = dataset->FlushCache(true) == CE_None;
#else
    dataset->FlushCache(true);
#endif
    float pixel[2]; // of a complex type, too
    if (pixels && dataset->GetRasterCount() > 0 &&
        dataset->GetRasterBand(1)->RasterIO(GF_Read, 0, 0, 1, 1, pixel, 1, 1, GDT_CFloat32, 0, 0, nullptr) !=
            CE_None)
        good = false;
    // Before, files were streams of stdio; GDAL does not look at what closing one returns.
    if (std::fflush(nullptr) != 0) good = false;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    return GDALClose(GDALDataset::ToHandle(dataset.release())) == CE_None && good;
#else
    return good;
#endif
}

} // namespace hsi::raster
