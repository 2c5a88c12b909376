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
/// Throws Error if little memory is left for the Zarr driver; other drivers are not checked. Call it before
/// the driver creates or closes a file: the driver builds JSON with a library that ends the process if memory
/// is short.
void check_memory_left(GDALDriver* driver);

/// Returns true for drivers that accept pixels block by block. The other drivers can only copy a complete
/// dataset.
bool takes_blocks(GDALDriver* driver);

/// The driver, type and options that make the file of an output.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
    /// True: a temporary GTiff is written first, and the driver then copies it. This is needed if the driver
    /// accepts only whole rasters, or if it stores the output correctly only as a copy.
    bool copies = false;
    /// Largest class of a class map, which the output's type must preserve; 0 for other outputs.
    int largest_class = 0;
};

/// Returns the driver of -of. Without -of, the extension decides: .dat, .raw, .bsq, .bil, .bip and .envi mean
/// ENVI, even if other drivers claim them; a name without an extension means GTiff. For a virtual scene
/// (.hsi), returns the VRT driver. Throws UsageError if no driver writes such files.
GDALDriver* choose_driver(const OutputOptions& options);

/// Returns driver, type and creation options of an output. Checks them as far as possible without creating a
/// file. Throws UsageError, for example for options that the driver does not declare. `is_virtual` must be
/// true if the output is a VRT or a virtual scene, which has no pixels of its own; otherwise false.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);

/// Returns true if the driver declares that it supports the type, or does not declare any types.
bool lists_type(GDALDriver* driver, GDALDataType type);
/// Returns true if the output certainly stores every value: an ENVI file or a GeoTIFF whose options change
/// only the layout. For other outputs, try_target() finds out (format_trial.h).
bool surely_holds(const Target& target, const OutputSpec& spec);
/// Return the parts of an error message: "ENVI cannot store 3 bands of Int64", and the advice that lists the
/// types of the driver.
std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type);
std::string types_advice(GDALDriver* driver);

/// Checks the path of an output: its folder, an existing file, and other files that the output would replace.
/// Also checks the STAC Item of the output, and registers the output in OutputOptions::run. Throws Error or
/// UsageError.
void check_place(const OutputOptions& options, GDALDriver* driver);

} // namespace hsi::raster
