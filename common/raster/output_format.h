// SPDX-License-Identifier: MIT
// Which driver writes an output, and with what type and options, as far as that can be judged beforehand:
// format_trial.h makes sure. And whether it may lie where it is to lie.
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
/// Before a driver makes or closes a file: GDAL's Zarr builds its JSON with a library that ends the process
/// where there is no memory for it. Throws Error where little is left.
void check_memory_left(GDALDriver* driver);

/// True for a driver that takes pixels block by block; others copy a dataset that is complete.
bool takes_blocks(GDALDriver* driver);

/// What makes the file of an output, and how.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
    /// The driver takes only whole rasters, or holds the output only when it gets it as one: a GTiff is made
    /// first.
    bool copies = false;
    int largest_class = 0; ///< of a class map, whose numbers must come back whatever is asked for; 0: none
};

/// The driver that -of names, or that the extension means: .dat, .raw, .bsq, .bil, .bip and .envi are ENVI's
/// habit, whatever else claims them. Throws UsageError when there is none that writes rasters into files.
GDALDriver* choose_driver(const OutputOptions& options);

/// Driver, type and creation options of an output, as far as they can be judged without making a file: throws
/// UsageError for what the driver says that it does not take. is_virtual: the caller writes a VRT whose
/// pixels other rasters hold.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);

/// True when the driver says that it takes the type.
bool lists_type(GDALDriver* driver, GDALDataType type);
/// Raw files, and GeoTIFFs that only leave their layout to the user: nothing in them depends on a value.
/// Others must be tried (format_trial.h).
bool surely_holds(const Target& target, const OutputSpec& spec);
/// For messages: "ENVI cannot hold 3 bands of Int64", and the types that the driver takes.
std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type);
std::string types_advice(GDALDriver* driver);

/// The place of an output: its folder, what is there already, what else it would fall on. Throws Error or
/// UsageError.
void check_place(const OutputOptions& options, GDALDriver* driver);

} // namespace hsi::raster
