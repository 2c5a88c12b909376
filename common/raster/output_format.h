// SPDX-License-Identifier: MIT
// The driver, type and options of an output, as far as they can be determined in advance: format_trial.h
// verifies them. Also checks whether the output may be at its path.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/raster_sink.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>
#include <string>

namespace hsi::raster {

/// The path that means standard output.
inline constexpr const char* standard_output = "/vsistdout/";

/// True when the driver has this name.
bool is(GDALDriver* driver, const char* name);
/// Call it before a driver makes or closes a file: GDAL's Zarr builds its JSON with a library that ends the
/// process when memory is short. Throws Error where little is left.
void check_memory_left(GDALDriver* driver);

/// True for a driver that takes pixels block by block; others copy a dataset that is complete.
bool takes_blocks(GDALDriver* driver);

/// The driver, type and options that make the file of an output.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
    /// The driver takes only whole rasters, or holds the output only when it gets it as one: a GTiff is made
    /// first.
    bool copies = false;
    int largest_class = 0; ///< of a class map, whose numbers must come back in any type; 0 for other outputs
};

/// The driver of -of, or of the extension: .dat, .raw, .bsq, .bil, .bip and .envi mean ENVI, even if other
/// drivers claim them. Throws UsageError when no driver writes such files.
GDALDriver* choose_driver(const OutputOptions& options);

/// Driver, type and creation options of an output, as far as they can be checked without making a file:
/// throws UsageError for options that the driver declares unsupported. is_virtual: the caller writes a VRT
/// whose pixels are in other rasters.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);

/// True when the driver declares that it supports the type.
bool lists_type(GDALDriver* driver, GDALDataType type);
/// Raw files, and GeoTIFFs that only leave their layout to the user: nothing in them depends on a value.
/// Others must be tried (format_trial.h).
bool surely_holds(const Target& target, const OutputSpec& spec);
/// For messages: "ENVI cannot hold 3 bands of Int64", and the types that the driver takes.
std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type);
std::string types_advice(GDALDriver* driver);

/// Checks the path of an output: its folder, an existing file, other files that it would replace. Throws
/// Error or UsageError.
void check_place(const OutputOptions& options, GDALDriver* driver);

} // namespace hsi::raster
