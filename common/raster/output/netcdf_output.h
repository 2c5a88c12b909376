// SPDX-License-Identifier: MIT
// netCDF files of rasters without an SRS, or with a local one: GDAL's driver always calls their coordinates
// latitude and longitude.
#pragma once

#include <cpl_string.h>
#include <gdal_priv.h>

#include <cstdint>
#include <string>

namespace hsi::raster {

/// Creation options by which the driver writes no latitudes and longitudes, if `like` has no projected or
/// geographic SRS; none otherwise. `bytes`: of all pixels.
void add_netcdf_options(GDALDataset& like, uint64_t bytes, CPLStringList& list);
/// Leaves room in the header of a file that is copied from `stage`: without it, all pixels would be moved
/// when finish_netcdf() adds to the header.
void reserve_netcdf_header(GDALDataset& stage);
/// Mends a complete file at `path`: x and y get coordinates where add_netcdf_options() has left them out, and
/// the history names `destination` instead of the place where the file was made.
void finish_netcdf(const std::string& path, const std::string& destination, GDALDataset& like);

} // namespace hsi::raster
