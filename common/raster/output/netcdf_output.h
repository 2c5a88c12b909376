// SPDX-License-Identifier: MIT
// Corrects netCDF files of rasters with a local SRS or without an SRS. GDAL's driver always names their
// coordinates latitude and longitude.
#pragma once

#include <cpl_string.h>
#include <gdal_priv.h>

#include <cstdint>
#include <string>

namespace hsi::raster {

/// Adds creation options that prevent the driver from writing latitudes and longitudes, if `like` has neither
/// a projected nor a geographic SRS. `bytes`: total bytes of all pixels.
void add_netcdf_options(GDALDataset& like, uint64_t bytes, CPLStringList& list);
/// Reserves space in the header of a file that is copied from `stage`. Without this space, finish_netcdf()
/// would have to move all pixels to extend the header.
void reserve_netcdf_header(GDALDataset& stage);
/// Corrects the complete file `path`. Adds coordinates x and y if add_netcdf_options() has suppressed them,
/// and replaces the temporary path in the history by `destination`.
void finish_netcdf(const std::string& path, const std::string& destination, GDALDataset& like);

} // namespace hsi::raster
