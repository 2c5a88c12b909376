// SPDX-License-Identifier: MIT
// Corrects netCDF files of rasters with a local SRS or without an SRS. GDAL's driver always names their
// coordinates latitude and longitude.
#pragma once

#include <cpl_string.h>
#include <gdal_priv.h>

#include <cstdint>
#include <string>

namespace hsi::raster {

/// If `like` has neither a projected nor a geographic SRS, adds a creation option that prevents the driver
/// from writing latitudes and longitudes. For large files, also selects a format that can store other
/// coordinates after the pixels. `bytes`: total bytes of all pixels.
void add_netcdf_options(GDALDataset& like, uint64_t bytes, CPLStringList& list);
/// Makes the driver reserve space in the header of the file that it copies from `stage`, by adding blanks to
/// the history of `stage`. Without this space, finish_netcdf() would have to move all pixels to extend the
/// header. Does nothing if the SRS is projected or geographic.
void reserve_netcdf_header(GDALDataset& stage);
/// Corrects the complete file `path`; `like` describes the raster. Replaces the temporary path in the history
/// by `destination`. Adds the coordinates x and y if the SRS is neither projected nor geographic and the
/// raster is not rotated. Ignores errors, because the file is already complete.
void finish_netcdf(const std::string& path, const std::string& destination, GDALDataset& like);

} // namespace hsi::raster
