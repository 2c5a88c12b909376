// SPDX-License-Identifier: MIT
// GDAL's drivers: registration, capabilities, and the driver of an extension.
#pragma once

#include <functional>
#include <string>
#include <vector>

class GDALDriver;

namespace hsi::raster {

/// Registers all of GDAL's drivers if no driver is registered. A program that has loaded this library may
/// have registered only some drivers; these are kept. One thread registers the drivers while other threads
/// wait.
void register_drivers();

/// Returns true if the driver declares the capability (GDAL_DCAP_...).
bool has_capability(GDALDriver* driver, const char* capability);

/// Returns the extension of a file's name: "tif" for "a/b.c.tif". Empty if the name has no extension, as in
/// ".tif".
std::string extension_of(const std::string& path);

/// A condition that a driver must meet, for example that it can write rasters.
using DriverTest = std::function<bool(GDALDriver*)>;

/// Returns the driver that -of names. Registers GDAL's drivers. \throws UsageError if GDAL has no such
/// driver, or if the driver does not qualify. In the second case, the message is "this driver cannot "
/// followed by `what`, with the advice `advice`.
GDALDriver* driver_by_name(const std::string& name, const DriverTest& qualifies, const std::string& what,
                           const std::string& advice);

/// Returns the first driver, in GDAL's order, that qualifies and declares the extension for its files; null
/// if there is no such driver.
GDALDriver* driver_by_extension(const std::string& extension, const DriverTest& qualifies);

/// Returns false for drivers whose datasets are always in a database or a service, and never files.
bool keeps_files(GDALDriver* driver);

/// Returns true for drivers whose datasets may be in an HDF5 file.
bool reads_hdf5(const std::string& driver);

/// Returns the settings of GDAL, PROJ and these tools that may change what a run reads, computes or writes,
/// as "NAME=value", sorted by name. The settings come from the environment, GDAL's configuration file,
/// --config or the calling program. Settings that affect only access, speed or messages are left out.
std::vector<std::string> settings_of_results();

/// Returns the value of a setting of GDAL, such as "GDAL_NUM_THREADS", from any place that GDAL searches;
/// `otherwise` if it is not set anywhere.
std::string setting(const char* name, const char* otherwise);
/// Returns the names of the types that readers and writers support with this GDAL.
std::vector<std::string> pixel_types();
/// Returns GDAL's version ("3.6.2"); "none" if the program has no GDAL.
std::string gdal_version();

/// Checks the name of an output. \throws UsageError if GDAL would not interpret the name as a file, but as a
/// database connection (PG:dbname=x) or a part of a file (NETCDF:a.nc:cube). Registers GDAL's drivers.
void check_is_file(const std::string& path);

} // namespace hsi::raster
