// SPDX-License-Identifier: MIT
// netCDF files of rasters without an SRS, or with a local SRS: GDAL's driver always calls their coordinates
// latitude and longitude.
#pragma once

#include <cpl_string.h>
#include <gdal_priv.h>

#include <cstdint>
#include <string>

namespace hsi::raster {

/// Adds creation options that keep the driver from writing latitudes and longitudes, if `like` has no
/// projected or geographic SRS. `bytes`: bytes of all pixels.
void add_netcdf_options(GDALDataset& like, uint64_t bytes, CPLStringList& list);
/// Reserves room in the header of a file that is copied from `stage`. Otherwise all pixels would be moved
/// when finish_netcdf() extends the header.
void reserve_netcdf_header(GDALDataset& stage);
/// Corrects a complete file at `path`: x and y get coordinates if add_netcdf_options() has left them out, and
/// the history names `destination` instead of the temporary path.
void finish_netcdf(const std::string& path, const std::string& destination, GDALDataset& like);

} // namespace hsi::raster
