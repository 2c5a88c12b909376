// SPDX-License-Identifier: MIT
// The creation options of an output: the user's options, and further ones for a file that holds computed
// values.
#pragma once

#include "raster/codec/block_codec.h"
#include "raster/output_format.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>
#include <string>

namespace hsi::raster {

/// words: with a blank between them; case does not count.
bool is_any(const std::string& word, const char* words);

/// -co as GDAL takes it, nothing added.
CPLStringList creation_options(const OutputOptions& options);
/// The codec of a GTiff or COG with these options, in the words of -co COMPRESS; "NONE" for other formats.
std::string compression_of(GDALDriver* driver, const CPLStringList& list);
/// Throws UsageError for options that GDAL would silently ignore: a number out of range, one that another
/// option leaves without effect, two that contradict each other.
void check_creation_options(const Target& target, const OutputOptions& options,
                            const stream::CubeShape& shape);
/// Adds the default options of a GTiff.
void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type);
/// True for an uncompressed GeoTIFF of whole bytes on a local disk without options that need GDAL: its blocks
/// have their places before they are written, so that any thread may write them in any order.
bool takes_blocks_in_place(const Target& target, const std::string& path);
/// The coding of the blocks of a compressed GeoTIFF of whole samples on a local disk without options that
/// need GDAL. Empty: GDAL writes the blocks.
std::optional<BlockCoding> block_coding(const Target& target, const std::string& path);
/// Threads that compress: of -co NUM_THREADS, else options.threads.
int coding_threads(const Target& target, const OutputOptions& options);
/// True where the file's bands are stretches by themselves, and are written past GDAL.
bool keeps_bands_apart(const Target& target, const OutputOptions& options);
/// Adds the driver's defaults to target.options, which holds the user's options. Throws Error when the
/// resulting blocks do not fit into options.memory.
void complete_options(Target& target, const OutputOptions& options, const stream::CubeShape& shape);

} // namespace hsi::raster
