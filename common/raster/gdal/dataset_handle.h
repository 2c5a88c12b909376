// SPDX-License-Identifier: MIT
// An owner of a GDAL dataset.
#pragma once

#include <gdal_priv.h>

#include <memory>

namespace hsi::raster {

/// Closes a dataset. If GDAL has opened it as a shared dataset, only one reference is released.
struct DatasetCloser {
    void operator()(GDALDataset* dataset) const { GDALClose(GDALDataset::ToHandle(dataset)); }
};
using DatasetHandle = std::unique_ptr<GDALDataset, DatasetCloser>;

} // namespace hsi::raster
