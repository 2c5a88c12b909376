// SPDX-License-Identifier: MIT
// Converts between SampleType and GDALDataType.
#pragma once

#include "core/sample_type.h"

#include <gdal.h>

namespace hsi::raster {

// SampleType and GDALDataType use the same number for the same type.
inline SampleType sample_type(GDALDataType type) { return static_cast<SampleType>(type); }
inline GDALDataType gdal_type(SampleType type) { return static_cast<GDALDataType>(type); }

} // namespace hsi::raster
