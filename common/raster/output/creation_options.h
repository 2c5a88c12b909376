// SPDX-License-Identifier: MIT
// The creation options of an output: the options that the user gave, and default options for files with
// computed values.
#pragma once

#include "raster/codec/block_codec.h"
#include "raster/output_format.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>
#include <string>

namespace hsi::raster {

/// Returns whether `word` is one of the words in `words`, which are separated by blanks. Case is ignored.
bool is_any(const std::string& word, const char* words);

/// Returns the user's options -co in the form that GDAL requires, without default options.
CPLStringList creation_options(const OutputOptions& options);
/// Returns the codec of a GTiff or COG with these creation options, as a value of -co COMPRESS; "NONE" for
/// other formats.
std::string compression_of(GDALDriver* driver, const CPLStringList& list);
/// Throws UsageError for options that GDAL would silently ignore: values out of range, options that have no
/// effect because of another option, and options that contradict each other.
void check_creation_options(const Target& target, const OutputOptions& options,
                            const stream::CubeShape& shape);
/// Adds the default options of a GTiff: tiles, their size, the interleaving of bands, and BIGTIFF.
void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type);
/// Returns true for an uncompressed local GeoTIFF whose samples are whole bytes, if no option requires that
/// GDAL writes its blocks. The positions of these blocks are known in advance, so any thread may write them
/// in any order.
bool takes_blocks_in_place(const Target& target, const std::string& path);
/// Returns how to encode the blocks of a compressed local GeoTIFF. nullopt if GDAL must write the blocks,
/// because samples are not whole bytes or an option requires it.
std::optional<BlockCoding> block_coding(const Target& target, const std::string& path);
/// Returns the number of threads for compression: -co NUM_THREADS, or else options.threads.
int coding_threads(const Target& target, const OutputOptions& options);
/// Returns true if the file stores each band in one contiguous part, and the pixels are written without GDAL.
bool keeps_bands_apart(const Target& target, const OutputOptions& options);
/// Adds default options to target.options, which contains the options that the user gave. \throws Error if
/// the resulting blocks do not fit into options.memory.
void complete_options(Target& target, const OutputOptions& options, const stream::CubeShape& shape);

} // namespace hsi::raster
