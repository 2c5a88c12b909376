// SPDX-License-Identifier: MIT
// The creation options of an output: the user's options, and further options for a file of computed
// values.
#pragma once

#include "raster/codec/block_codec.h"
#include "raster/output_format.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>
#include <string>

namespace hsi::raster {

/// Returns whether `word` is one of `words`, which have blanks between them; case is ignored.
bool is_any(const std::string& word, const char* words);

/// Returns -co as GDAL takes it, without additions.
CPLStringList creation_options(const OutputOptions& options);
/// Returns the codec of a GTiff or COG with these options, as a value of -co COMPRESS; "NONE" for other
/// formats.
std::string compression_of(GDALDriver* driver, const CPLStringList& list);
/// Throws UsageError for options that GDAL would silently ignore: a number out of range, an option without
/// effect because of another option, two options that contradict each other.
void check_creation_options(const Target& target, const OutputOptions& options,
                            const stream::CubeShape& shape);
/// Adds the default options of a GTiff.
void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type);
/// Returns true for an uncompressed GeoTIFF of whole bytes on a local disk without options that require GDAL.
/// The positions of its blocks are known before they are written, so any thread may write them in any order.
bool takes_blocks_in_place(const Target& target, const std::string& path);
/// Returns the coding of the blocks of a compressed GeoTIFF of whole samples on a local disk without options
/// that require GDAL. nullopt: GDAL writes the blocks.
std::optional<BlockCoding> block_coding(const Target& target, const std::string& path);
/// Returns the number of threads that compress: -co NUM_THREADS, else options.threads.
int coding_threads(const Target& target, const OutputOptions& options);
/// Returns true if each of the file's bands is contiguous and is written without GDAL.
bool keeps_bands_apart(const Target& target, const OutputOptions& options);
/// Adds the driver's defaults to target.options, which contains the user's options. Throws Error if the
/// resulting blocks do not fit into options.memory.
void complete_options(Target& target, const OutputOptions& options, const stream::CubeShape& shape);

} // namespace hsi::raster
