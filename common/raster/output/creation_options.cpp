// SPDX-License-Identifier: MIT
#include "raster/output/creation_options.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "core/text.h"
#include "raster/codec/lerc_codec.h"
#include "raster/drivers.h"
#include "raster/gdal_type.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

namespace hsi::raster {
namespace {

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

/// Adds default options for files with computed values.
void add_defaults(Target& target, const OutputOptions& options) {
    CPLStringList& list = target.options;
    const auto given = [&](const char* name) { return list.FetchNameValue(name) != nullptr; };
    if (is(target.driver, "ENVI") && !given("INTERLEAVE")) {
        const std::string extension = extension_of(options.path);
        if (is_any(extension, "bil bip")) list.SetNameValue("INTERLEAVE", CPLString(extension).toupper());
    }
    // By default, these codecs are lossy.
    if (is(target.driver, "JP2OpenJPEG") && !given("QUALITY") && !given("REVERSIBLE")) {
        list.SetNameValue("QUALITY", "100");
        list.SetNameValue("REVERSIBLE", "YES");
    }
    if (is(target.driver, "WEBP") && !given("QUALITY") && !given("LOSSLESS"))
        list.SetNameValue("LOSSLESS", "TRUE");
    if (is(target.driver, "GPKG") && target.type == GDT_Byte && !given("TILE_FORMAT"))
        list.SetNameValue("TILE_FORMAT", "PNG");
}

/// Returns the default block side of a COG. The side is limited because a COG interleaves bands: a block of
/// 512x512 pixels with 224 bands of floats would use 235 MB in the writer and in every reader.
int64_t cog_block_side(const stream::CubeShape& shape, GDALDataType type) {
    constexpr int64_t largest = 512, least = 128, limit = int64_t{16} << 20;
    const int64_t pixel = shape.bands * GDALGetDataTypeSizeBytes(type);
    int64_t side = largest;
    while (side > least && side * side * pixel > limit)
        side /= 2;
    return side;
}

/// Limits the memory and the threads with which GDAL creates a COG. A block contains all bands. Without
/// threads, three blocks are in memory: one in transfer, one being filled and one being compressed. Each of
/// several threads needs two more blocks, and so do two waiting jobs; GDAL needs the same amount again for
/// data between them. \throws Error if even three blocks do not fit into -memory.
void fit_cog(const OutputOptions& options, CPLStringList& list, const stream::CubeShape& shape,
             GDALDataType type) {
    const auto side =
        static_cast<uint64_t>(std::max(1, std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512"))));
    const char* const interleave = list.FetchNameValue("INTERLEAVE"); // GDAL supports INTERLEAVE since 3.11
    const bool together = interleave == nullptr || !EQUAL(interleave, "BAND");
    const uint64_t block = side * side * static_cast<uint64_t>(together ? shape.bands : 1) *
                           static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    if (options.memory == 0) return;
    const uint64_t blocks = 4 * options.memory / block; // `memory` is a quarter of -memory
    const std::string threads =
        list.FetchNameValueDef("NUM_THREADS", CPLGetConfigOption("GDAL_NUM_THREADS", "1"));
    if (blocks >= 3) {
        const auto most = static_cast<uint64_t>(
            EQUAL(threads.c_str(), "ALL_CPUS") ? usable_processors() : std::atoi(threads.c_str()));
        // The block cache uses a quarter of -memory, which is not available here.
        const uint64_t left = blocks - blocks / 4, fitting = left > 13 ? (left - 11) / 2 : 1;
        if (most > fitting) list.SetNameValue("NUM_THREADS", std::to_string(fitting).c_str());
        return;
    }
    throw Error("a COG with " + counted(shape.bands, "band") + " of " + GDALGetDataTypeName(type) +
                    " in blocks of " + std::to_string(side) + "x" + std::to_string(side) + " needs " +
                    format_byte_size(3 * block) + ", more than -memory",
                "Use a larger -memory, -co BLOCKSIZE=128, or -of GTiff, which stores the bands separately.");
}

/// Limits a GeoTIFF whose blocks contain all bands. The dataset keeps one block in memory in addition to the
/// block cache. The block cache has a quarter of -memory, and the block has another quarter, so that half is
/// left for tiles. \throws Error if a block does not fit.
void fit_geotiff(const OutputOptions& options, CPLStringList& list, const stream::CubeShape& shape,
                 GDALDataType type) {
    const char* const interleave = list.FetchNameValue("INTERLEAVE");
    const bool together = interleave == nullptr || EQUAL(interleave, "PIXEL"); // PIXEL is the default
    if (options.memory == 0 || shape.bands == 1 || !together ||
        !CPLTestBool(list.FetchNameValueDef("TILED", "NO")))
        return;
    const int w = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKXSIZE", "256")));
    const int h = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKYSIZE", "256")));
    const uint64_t block = static_cast<uint64_t>(w) * static_cast<uint64_t>(h) *
                           static_cast<uint64_t>(shape.bands) *
                           static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    if (block > options.memory) // `memory` is a quarter of -memory
        throw Error("a GeoTIFF with " + std::to_string(shape.bands) + " bands of " +
                        GDALGetDataTypeName(type) + " together in blocks of " + std::to_string(w) + "x" +
                        std::to_string(h) + " needs -memory " + format_byte_size(4 * block),
                    "Use a larger -memory, smaller blocks (-co BLOCKXSIZE=128 -co BLOCKYSIZE=128), or "
                    "-co INTERLEAVE=BAND.");
    const auto most = static_cast<int>(std::min<uint64_t>(options.memory / block, 1024));
    if (const char* const threads = list.FetchNameValue("NUM_THREADS");
        threads != nullptr && !EQUAL(threads, "ALL_CPUS") && std::atoi(threads) > most)
        list.SetNameValue("NUM_THREADS", std::to_string(most).c_str());
}

/// Makes GDAL compress blocks on all threads, unless the user has set NUM_THREADS.
void add_threads(Target& target, const OutputOptions& options) {
    if (options.threads > 1 && target.options.FetchNameValue("NUM_THREADS") == nullptr)
        target.options.SetNameValue("NUM_THREADS", std::to_string(options.threads).c_str());
}

bool uncompressed(const CPLStringList& list) {
    return EQUAL(list.FetchNameValueDef("COMPRESS", "NONE"), "NONE");
}

/// Makes a check that GDAL would make only when it creates the file.
void check_classic_tiff(const CPLStringList& list, const stream::CubeShape& shape, GDALDataType type) {
    constexpr uint64_t most = uint64_t{1} << 32;
    const auto bytes = static_cast<uint64_t>(shape.pixels()) * static_cast<uint64_t>(shape.bands) *
                       static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    if (EQUAL(list.FetchNameValueDef("BIGTIFF", ""), "NO") && uncompressed(list) &&
        list.FetchNameValue("NBITS") == nullptr && !list.FetchBool("SPARSE_OK", false) && bytes >= most)
        throw Error("a TIFF with -co BIGTIFF=NO must be smaller than 4 GiB, but these pixels take " +
                        format_byte_size(bytes),
                    "Leave -co BIGTIFF=NO out, or compress (-co COMPRESS=DEFLATE).");
}

/// Returns true if the blocks of a GeoTIFF can be written without GDAL, by any thread, after GDAL has created
/// the file. No creation option may require GDAL.
bool takes_blocks_from_us(const Target& target, const std::string& path) {
    const CPLStringList& list = target.options;
    if (target.copies || !is(target.driver, "GTiff") || path == standard_output || !is_local(path) ||
        !convertible(sample_type(target.type)))
        return false;
    const char* const bits = list.FetchNameValue("NBITS");
    return (bits == nullptr || std::atoi(bits) == GDALGetDataTypeSizeBits(target.type)) &&
           !list.FetchBool("SPARSE_OK", false) && !list.FetchBool("STREAMABLE_OUTPUT", false) &&
           list.FetchNameValue("DISCARD_LSB") == nullptr;
}

/// Returns the LERC coding if blocks contain single bands; nullopt otherwise. For interleaved bands of
/// floats, libtiff 4.5 cannot read its own files if one value is NaN.
std::optional<BlockCoding::Lerc> lerc_coding(const Target& target) {
    const CPLStringList& list = target.options;
    auto lerc = lerc_of(target.type);
    if (!lerc || !EQUAL(list.FetchNameValueDef("INTERLEAVE", "PIXEL"), "BAND") ||
        list.FetchNameValue("ENDIANNESS") != nullptr || list.FetchNameValue("PREDICTOR") != nullptr)
        return std::nullopt;
    lerc->max_error = CPLAtof(list.FetchNameValueDef("MAX_Z_ERROR", "0"));
    return lerc->max_error >= 0 ? lerc : std::nullopt;
}

/// A creation option that only some codecs of GTiff and COG use, and its range. An option with different
/// ranges has one row for each group of codecs.
struct CodecOption {
    const char* name;
    const char* codecs;
    double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
};

constexpr const char* lerc_codecs = "LERC LERC_DEFLATE LERC_ZSTD";
constexpr const char* predicting_codecs = "LZW DEFLATE ZSTD";

constexpr CodecOption codec_options[] = {
    {"ZLEVEL", "DEFLATE LERC_DEFLATE", 1, 12},
    {"ZSTD_LEVEL", "ZSTD LERC_ZSTD", 1, 22},
    {"LZMA_PRESET", "LZMA", 0, 9},
    {"LEVEL", "DEFLATE LERC_DEFLATE", 1, 12},
    {"LEVEL", "ZSTD LERC_ZSTD", 1, 22},
    {"LEVEL", "LZMA", 0, 9},
    {"JPEG_QUALITY", "JPEG", 1, 100},
    {"JPEGTABLESMODE", "JPEG", 0, 3},
    {"WEBP_LEVEL", "WEBP", 1, 100},
    {"WEBP_LOSSLESS", "WEBP"},
    {"QUALITY", "JPEG WEBP", 1, 100},
    {"OVERVIEW_QUALITY", "JPEG WEBP", 1, 100},
    {"JXL_LOSSLESS", "JXL"},
    {"JXL_EFFORT", "JXL"},
    {"JXL_DISTANCE", "JXL"},
    {"JXL_ALPHA_DISTANCE", "JXL"},
    {"MAX_Z_ERROR", lerc_codecs, 0},
    {"MAX_Z_ERROR_OVERVIEW", lerc_codecs, 0},
    {"PREDICTOR", predicting_codecs},
    {"OVERVIEW_PREDICTOR", predicting_codecs},
};

/// One option -co NAME=VALUE as the user wrote it, and its parts.
struct GivenOption {
    std::string text, name, value;
    explicit GivenOption(const std::string& item)
        : text("-co " + item), name(CPLString(item.substr(0, item.find('='))).toupper()),
          value(item.substr(item.find('=') + 1)) {}
};

/// Returns a list for messages: "A, B or C".
std::string alternatives(const std::vector<std::string>& words) {
    if (words.size() == 1) return words.front();
    return joined(std::vector<std::string>(words.begin(), words.end() - 1), ", ") + " or " + words.back();
}

void check_range(const GivenOption& option, double least, double most, bool whole) {
    const auto number = to_number(option.value);
    if (number && *number >= least && *number <= most && (!whole || *number == std::floor(*number))) return;
    const bool bounded = most < std::numeric_limits<double>::max();
    throw UsageError(option.text + " is not a " + (whole ? "whole " : "") + "number " +
                     (bounded ? "from " + number_text(least) + " to " + number_text(most)
                              : "of at least " + number_text(least)));
}

[[noreturn]] void refuse_without_effect(const GivenOption& option, const std::string& why,
                                        const std::string& otherwise) {
    throw UsageError(option.text + " has no effect: " + why, "Leave it out, or " + otherwise + ".");
}

/// Returns the codec of the image, or of the overviews of a COG, in upper case.
std::string codec_of(const Target& target, const CPLStringList& list, bool overviews) {
    std::string codec = compression_of(target.driver, list);
    if (overviews) codec = list.FetchNameValueDef("OVERVIEW_COMPRESS", codec.c_str());
    return CPLString(codec).toupper();
}

/// Checks that the codec in use supports the option, and that the value is within its range. \throws
/// UsageError.
void check_codec_option(const GivenOption& option, const Target& target, const CPLStringList& list) {
    const bool overviews = option.name.find("OVERVIEW") != std::string::npos;
    const bool predictor = option.name.find("PREDICTOR") != std::string::npos;
    // These values switch the predictor off, which is the default.
    if (predictor && is_any(option.value, "1 NO FALSE OFF")) return;
    const std::string codec = codec_of(target, list, overviews);
    std::vector<std::string> others;
    for (const CodecOption& row : codec_options) {
        if (option.name != row.name) continue;
        if (is_any(codec, row.codecs)) {
            const bool limits = row.least > std::numeric_limits<double>::lowest();
            const bool whole = row.most < std::numeric_limits<double>::max();
            if (limits) check_range(option, row.least, row.most, whole);
            return;
        }
        const CPLStringList words(CSLTokenizeString2(row.codecs, " ", 0));
        for (int i = 0; i < words.size(); ++i)
            others.emplace_back(words[i]);
    }
    if (others.empty()) return;
    const std::string name =
        overviews && list.FetchNameValue("OVERVIEW_COMPRESS") ? "OVERVIEW_COMPRESS" : "COMPRESS";
    refuse_without_effect(option, "the codec is " + codec, "give -co " + name + "=" + alternatives(others));
}

/// Checks NBITS, because GDAL ignores values that the sample type does not support.
void check_bits(const GivenOption& option, GDALDataType type) {
    const int all = GDALGetDataTypeSizeBits(type);
    const int least = type == GDT_Byte ? 1 : type == GDT_UInt16 ? 9 : type == GDT_UInt32 ? 17 : all;
    const auto bits = to_number(option.value);
    if (bits && ((*bits >= least && *bits <= all && *bits == std::floor(*bits)) ||
                 (type == GDT_Float32 && *bits == 16)))
        return;
    const std::string range = type == GDT_Float32 ? "16 or "
                              : least < all       ? std::to_string(least) + " to "
                                                  : "";
    throw UsageError(option.text + ": samples of " + GDALGetDataTypeName(type) + " have " + range +
                     std::to_string(all) + " bits");
}

/// Checks options of a GeoTIFF for layout and values that do not depend on the codec.
void check_geotiff_option(const GivenOption& option, const Target& target, const CPLStringList& list,
                          const stream::CubeShape& shape) {
    if (is_any(option.name, "BLOCKXSIZE BLOCKYSIZE"))
        check_range(option, 1, std::numeric_limits<int>::max(), true);
    if (option.name == "BLOCKXSIZE" && !list.FetchBool("TILED", true) &&
        to_number(option.value) != static_cast<double>(shape.samples))
        refuse_without_effect(option, "with TILED=NO blocks are strips, as wide as the raster",
                              "give -co TILED=YES");
    if (option.name == "NBITS") check_bits(option, target.type);
    if (option.name == "DISCARD_LSB") {
        const CPLStringList words(CSLTokenizeString2(option.value.c_str(), ",", 0));
        for (int i = 0; i < words.size(); ++i)
            check_range(GivenOption("DISCARD_LSB=" + std::string(words[i])), 0,
                        GDALGetDataTypeSizeBits(target.type), true);
    }
}

/// Checks options of a COG for overviews or for another grid. \throws UsageError if the output has no
/// overviews or keeps its grid.
void check_cog_option(const GivenOption& option, const CPLStringList& list) {
    const bool overviews =
        STARTS_WITH(option.name.c_str(), "OVERVIEW_") || option.name == "MAX_Z_ERROR_OVERVIEW";
    if (overviews && EQUAL(list.FetchNameValueDef("OVERVIEWS", "AUTO"), "NONE"))
        refuse_without_effect(option, "OVERVIEWS=NONE makes no overviews", "leave OVERVIEWS=NONE out");
    const bool tiling = !EQUAL(list.FetchNameValueDef("TILING_SCHEME", "CUSTOM"), "CUSTOM");
    if (is_any(option.name, "ZOOM_LEVEL ZOOM_LEVEL_STRATEGY ALIGNED_LEVELS") && !tiling)
        refuse_without_effect(option, "the output has no tiling scheme", "give one with -co TILING_SCHEME");
    if (is_any(option.name, "RES EXTENT WARP_RESAMPLING ADD_ALPHA") && !tiling &&
        list.FetchNameValue("TARGET_SRS") == nullptr)
        refuse_without_effect(option, "the raster keeps its grid",
                              "set another grid with -co TARGET_SRS or TILING_SCHEME");
}

} // namespace

bool is_any(const std::string& word, const char* words) {
    return CPLStringList(CSLTokenizeString2(words, " ", 0)).FindString(word.c_str()) >= 0;
}

CPLStringList creation_options(const OutputOptions& options) {
    CPLStringList list;
    for (const std::string& item : options.creation_options)
        list.AddString(item.c_str());
    return list;
}

std::string compression_of(GDALDriver* driver, const CPLStringList& list) {
    const bool cog = is(driver, "COG");
    if (!cog && !is(driver, "GTiff")) return "NONE";
    return list.FetchNameValueDef("COMPRESS", cog ? "LZW" : "NONE"); // GDAL's default codecs
}

void check_creation_options(const Target& target, const OutputOptions& options,
                            const stream::CubeShape& shape) {
    const CPLStringList list = creation_options(options);
    for (const std::string& item : options.creation_options) {
        const GivenOption option(item);
        // GDAL uses the first of two options with the same name.
        if (const char* const first = list.FetchNameValue(option.name.c_str());
            first != nullptr && option.value != first)
            throw UsageError("-co " + option.name + "=" + first + " and " + option.text +
                                 " contradict each other",
                             "Leave one of them out.");
        if (option.name == "NUM_THREADS" && !EQUAL(option.value.c_str(), "ALL_CPUS")) {
            const auto number = to_number(option.value);
            if (!number || *number < 1 || *number > std::numeric_limits<int>::max() ||
                *number != std::floor(*number))
                throw UsageError(option.text + " is not ALL_CPUS or a whole number of at least 1");
        }
        const bool cog = is(target.driver, "COG");
        if (!cog && !is(target.driver, "GTiff")) continue;
        if (cog)
            check_cog_option(option, list);
        else
            check_geotiff_option(option, target, list, shape);
        if (option.name == "STREAMABLE_OUTPUT" && CPLTestBool(option.value.c_str()) &&
            options.path != standard_output && is_local(options.path))
            throw UsageError(option.text + ": '" + options.path +
                                 "' is a file, which is not written as a stream",
                             "Leave it out, or write to " + std::string(standard_output) + ".");
        check_codec_option(option, target, list);
    }
}

void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type) {
    const auto given = [&](const char* name) { return list.FetchNameValue(name) != nullptr; };
    if (!given("TILED")) list.SetNameValue("TILED", "YES");
    if (!given("BIGTIFF")) list.SetNameValue("BIGTIFF", "IF_SAFER");
    const char* compress = list.FetchNameValueDef("COMPRESS", "NONE");
    const bool wants_pixels = EQUAL(compress, "JPEG") || EQUAL(compress, "WEBP") || EQUAL(compress, "JXL");
    // By default, GDAL interleaves bands. Reading one band would then read all bands, and a block of 256x256
    // pixels with 224 floats would use 59 MB.
    if (shape.bands > 1 && !given("INTERLEAVE") && !given("PHOTOMETRIC") && !wants_pixels)
        list.SetNameValue("INTERLEAVE", "BAND");
    // The block height is limited because a whole row of blocks is in memory while it is filled. The block
    // width is chosen so that the last block of a row contains little padding, which every line of every band
    // would include.
    if (CPLTestBool(list.FetchNameValue("TILED")) && !given("BLOCKXSIZE") && !given("BLOCKYSIZE")) {
        constexpr int64_t row_limit = int64_t{64} << 20, unit = 16, largest = 256;
        const int64_t across = (shape.samples + largest - 1) / largest;
        const int64_t width = round_up((shape.samples + across - 1) / across, unit);
        int64_t height = std::min(largest, round_up(shape.lines, unit));
        const int64_t line = round_up(shape.samples, width) * shape.bands * GDALGetDataTypeSizeBytes(type);
        while (height > unit && line * height > row_limit)
            height = round_up(height / 2, unit);
        list.SetNameValue("BLOCKXSIZE", std::to_string(width).c_str());
        list.SetNameValue("BLOCKYSIZE", std::to_string(height).c_str());
    }
}

bool takes_blocks_in_place(const Target& target, const std::string& path) {
    return takes_blocks_from_us(target, path) && uncompressed(target.options);
}

std::optional<BlockCoding> block_coding(const Target& target, const std::string& path) {
    if (!takes_blocks_from_us(target, path)) return std::nullopt;
    const CPLStringList& list = target.options;
    std::string codec = list.FetchNameValueDef("COMPRESS", "NONE");
    BlockCoding coding;
    if (STARTS_WITH_CI(codec.c_str(), "LERC")) {
        coding.lerc = lerc_coding(target);
        if (!coding.lerc) return std::nullopt;
        // `codec` becomes the codec that compresses LERC's output.
        codec.erase(0, codec.size() > 5 && codec[4] == '_' ? 5 : 4);
    }
    coding.by_default =
        list.FetchNameValue("ZLEVEL") == nullptr && list.FetchNameValue("ZSTD_LEVEL") == nullptr;
    if (EQUAL(codec.c_str(), "DEFLATE")) {
        coding.level = std::atoi(list.FetchNameValueDef("ZLEVEL", "6"));
        if (coding.level < 1 || coding.level > 12) return std::nullopt;
    } else if (EQUAL(codec.c_str(), "ZSTD")) {
        coding.codec = BlockCoding::Codec::zstd;
        coding.level = std::atoi(list.FetchNameValueDef("ZSTD_LEVEL", "9"));
        if (coding.level < 1 || coding.level > 22) return std::nullopt;
    } else if (EQUAL(codec.c_str(), "LZW") && !coding.lerc) {
        coding.codec = BlockCoding::Codec::lzw;
    } else if (coding.lerc && codec.empty()) {
        coding.codec = BlockCoding::Codec::none;
    } else {
        return std::nullopt;
    }
    const std::string predictor = list.FetchNameValueDef("PREDICTOR", "1");
    const bool floats = target.type == GDT_Float32 || target.type == GDT_Float64;
    if (predictor == "2")
        coding.predictor = BlockCoding::Predictor::differences;
    else if (predictor == "3" && floats)
        coding.predictor = BlockCoding::Predictor::floats;
    else if (predictor != "1")
        return std::nullopt;
    return coding;
}

int coding_threads(const Target& target, const OutputOptions& options) {
    const char* const given = target.options.FetchNameValue("NUM_THREADS");
    if (given == nullptr) return std::max(1, options.threads);
    return EQUAL(given, "ALL_CPUS") ? usable_processors() : std::max(1, std::atoi(given));
}

bool keeps_bands_apart(const Target& target, const OutputOptions& options) {
    const char* const interleave = target.options.FetchNameValueDef("INTERLEAVE", "");
    if (takes_blocks_in_place(target, options.path)) return EQUAL(interleave, "BAND");
    return !target.copies && is(target.driver, "ENVI") && options.path != standard_output &&
           is_local(options.path) && convertible(sample_type(target.type)) &&
           (*interleave == 0 || EQUAL(interleave, "BSQ"));
}

void complete_options(Target& target, const OutputOptions& options, const stream::CubeShape& shape) {
    if (is(target.driver, "GTiff")) {
        check_classic_tiff(target.options, shape, target.type);
        add_geotiff_defaults(target.options, shape, target.type);
        if (takes_blocks_in_place(target, options.path)) return;
        if (!uncompressed(target.options)) add_threads(target, options);
        fit_geotiff(options, target.options, shape, target.type);
    }
    if (is(target.driver, "COG")) {
        if (target.options.FetchNameValue("BLOCKSIZE") == nullptr)
            target.options.SetNameValue("BLOCKSIZE",
                                        std::to_string(cog_block_side(shape, target.type)).c_str());
        add_threads(target, options);
        fit_cog(options, target.options, shape, target.type);
    }
    add_defaults(target, options);
}

} // namespace hsi::raster
