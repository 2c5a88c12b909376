// SPDX-License-Identifier: MIT
// An owner of a GDAL dataset.
#pragma once

#include <gdal_priv.h>

#include <memory>

namespace hsi::raster {

/// Closes a dataset that was opened in any way, and releases a shared dataset.
struct DatasetCloser {
    void operator()(GDALDataset* dataset) const { GDALClose(GDALDataset::ToHandle(dataset)); }
};
using DatasetHandle = std::unique_ptr<GDALDataset, DatasetCloser>;

} // namespace hsi::raster
