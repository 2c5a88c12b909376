// SPDX-License-Identifier: MIT
// The driver, type and options of an output, if they can be determined in advance; format_trial.h verifies
// them. Also checks whether the output may have its path.
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

/// Returns true if the driver has this name.
bool is(GDALDriver* driver, const char* name);
/// Throws Error if little memory is left. Call it before a driver creates or closes a file: GDAL's Zarr
/// builds its JSON with a library that ends the process if memory is short.
void check_memory_left(GDALDriver* driver);

/// Returns true for a driver that takes pixels block by block; others copy a complete dataset.
bool takes_blocks(GDALDriver* driver);

/// The driver, type and options that make the file of an output.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
    /// A temporary GTiff is written first, and the driver then copies it. The driver accepts only whole
    /// rasters, or stores the output correctly only as a copy.
    bool copies = false;
    /// Largest class of a class map, which the output's type must preserve; 0 for other outputs.
    int largest_class = 0;
};

/// Returns the driver of -of, or of the extension: .dat, .raw, .bsq, .bil, .bip and .envi mean ENVI, even if
/// other drivers claim them. Throws UsageError if no driver writes such files.
GDALDriver* choose_driver(const OutputOptions& options);

/// Returns driver, type and creation options of an output, checked without creating a file. Throws UsageError
/// for options that the driver declares unsupported. is_virtual: the caller writes a VRT whose pixels are in
/// other rasters.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);

/// Returns true if the driver declares that it supports the type.
bool lists_type(GDALDriver* driver, GDALDataType type);
/// Returns true for raw files, and for GeoTIFFs whose options change only the layout: they store every value.
/// Other outputs must be tried (format_trial.h).
bool surely_holds(const Target& target, const OutputSpec& spec);
/// Returns, for messages, "ENVI cannot hold 3 bands of Int64" and the types that the driver supports.
std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type);
std::string types_advice(GDALDriver* driver);

/// Checks the path of an output: its folder, an existing file, other files that it would replace. Throws
/// Error or UsageError.
void check_place(const OutputOptions& options, GDALDriver* driver);

} // namespace hsi::raster
