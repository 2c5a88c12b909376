// SPDX-License-Identifier: MIT
// Which driver writes an output, how, and whether it can hold it.
#pragma once

#include "raster/raster_sink.h"
#include "raster/scene_metadata.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>

namespace hsi::raster {

/// The path that means standard output.
inline constexpr const char* standard_output = "/vsistdout/";

/// True when the driver has this name.
bool is(GDALDriver* driver, const char* name);

/// True for a driver that takes pixels block by block; others copy a dataset that is complete.
bool takes_blocks(GDALDriver* driver);

/// What makes the file of an output.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
};

/// The driver that -of names, or that the extension means. Throws UsageError when there is none that writes
/// rasters.
GDALDriver* choose_driver(const OutputOptions& options);
/// -co as GDAL takes it, nothing added.
CPLStringList creation_options(const OutputOptions& options);
/// What a GTiff gets when the user says nothing.
void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type);
/// The value of -dstnodata in the output's type; none when it does not fit.
std::optional<NodataValue> fitting(double value, GDALDataType type);

/// Driver, type and creation options of an output, as far as they can be judged without making a file: throws
/// UsageError for what the driver says that it does not take. is_virtual: the caller writes a VRT whose
/// pixels other rasters hold.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);
/// Makes a tiny file of the same kind, which asks the driver itself whether it takes the bands, type and
/// options. Throws UsageError when it does not.
void try_target(const Target& target, const OutputOptions& options, const OutputSpec& spec);

} // namespace hsi::raster
