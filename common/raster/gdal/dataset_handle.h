// SPDX-License-Identifier: MIT
// An owner of a GDAL dataset.
#pragma once

#include <gdal_priv.h>

#include <memory>

namespace hsi::raster {

/// Closes a dataset. A dataset that was opened as shared is released once.
struct DatasetCloser {
    void operator()(GDALDataset* dataset) const { GDALClose(GDALDataset::ToHandle(dataset)); }
};
using DatasetHandle = std::unique_ptr<GDALDataset, DatasetCloser>;

} // namespace hsi::raster
