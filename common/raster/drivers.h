// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

class GDALDriver;

namespace hsi::raster {

/// Registers GDAL's drivers where that was not done: a program that has loaded us may have left some out
/// since. By one thread, while others wait for it.
void register_drivers();

/// True when the driver declares the capability (GDAL_DCAP_...).
bool has_capability(GDALDriver* driver, const char* capability);

/// "tif" of "a/b.c.tif"; empty if the file's name has no extension (a leading dot does not begin one).
std::string extension_of(const std::string& path);

/// Which drivers qualify.
using DriverTest = std::function<bool(GDALDriver*)>;

/// The driver of -of. Registers GDAL's drivers.
/// \throws UsageError when GDAL has no such driver, or when it does not qualify: the message then says that
/// the driver cannot do `what`, with `advice`.
GDALDriver* driver_by_name(const std::string& name, const DriverTest& qualifies, const std::string& what,
                           const std::string& advice);

/// The first driver that qualifies and claims the extension, in GDAL's order; null when none does.
GDALDriver* driver_by_extension(const std::string& extension, const DriverTest& qualifies);

/// False for drivers whose datasets are in a database or a service.
bool keeps_files(GDALDriver* driver);

/// True for drivers whose datasets may lie in a file of HDF5.
bool reads_hdf5(const std::string& driver);

/// The settings of GDAL, PROJ and these tools that may change what a run reads, computes or writes, as
/// "NAME=value" in the order of their names: from the environment, GDAL's configuration file, --config or the
/// calling program. Settings of access, speed and messages are left out.
std::vector<std::string> settings_of_results();

/// A setting of GDAL ("GDAL_NUM_THREADS") from any place where it looks; `otherwise` if it is not set.
std::string setting(const char* name, const char* otherwise);
/// Names of the types that readers take and writers make with this GDAL.
std::vector<std::string> pixel_types();
/// GDAL's version ("3.6.2"); "none" where the program has no GDAL.
std::string gdal_version();

/// \throws UsageError when an output's name is not a file's but a connection's (PG:dbname=x) or a part of a
/// file (NETCDF:a.nc:cube). Registers GDAL's drivers.
void check_is_file(const std::string& path);

} // namespace hsi::raster
