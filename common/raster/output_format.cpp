// SPDX-License-Identifier: MIT
#include "raster/output_format.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "core/process_limits.h"
#include "raster/atomic_file.h"
#include "raster/block_writer.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/sample_convert.h"
#include "raster/store_convert.h"

#include <cpl_vsi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace hsi::raster {
namespace {

/// words: with a blank between them; case does not count.
bool is_any(const std::string& word, const char* words) {
    return CPLStringList(CSLTokenizeString2(words, " ", 0)).FindString(word.c_str()) >= 0;
}

/// GDAL's ZMap claims .dat, its EHdr .bil, and no driver the others; who works with spectra means ENVI.
constexpr const char* envi_extensions = "dat raw bsq bil bip envi";

bool writes_rasters(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_RASTER) && keeps_files(driver) &&
           (has_capability(driver, GDAL_DCAP_CREATE) || has_capability(driver, GDAL_DCAP_CREATECOPY));
}

GDALDataType output_type(const OutputOptions& options, const OutputSpec& spec) {
    const std::string& name = options.type.empty() ? spec.type : options.type;
    const GDALDataType type = GDALGetDataTypeByName(name.c_str());
    if (type == GDT_Unknown) throw UsageError("-ot " + name + ": GDAL has no such type");
    if (!convertible(type))
        throw UsageError("-ot " + name + ": only real types of up to 8 bytes can be written");
    return type;
}

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

bool lists_type(GDALDriver* driver, GDALDataType type) {
    const CPLStringList types(
        CSLTokenizeString2(driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES), " ", 0));
    return types.empty() || types.FindString(GDALGetDataTypeName(type)) >= 0;
}

std::string types_advice(GDALDriver* driver) {
    return "It takes the types " + std::string(driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES)) +
           "; see -ot.";
}

std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type) {
    return std::string(driver->GetDescription()) + " cannot hold " + std::to_string(spec.shape.bands) +
           (spec.shape.bands == 1 ? " band of " : " bands of ") + GDALGetDataTypeName(type);
}

/// Options that the user did not give, for files that hold what was computed.
void add_defaults(Target& target, const OutputOptions& options) {
    CPLStringList& list = target.options;
    const auto given = [&](const char* name) { return list.FetchNameValue(name) != nullptr; };
    if (is(target.driver, "ENVI") && !given("INTERLEAVE")) {
        const std::string extension = extension_of(options.path);
        if (is_any(extension, "bil bip")) list.SetNameValue("INTERLEAVE", CPLString(extension).toupper());
    }
    // These lose values unless they are told not to.
    if (is(target.driver, "JP2OpenJPEG") && !given("QUALITY") && !given("REVERSIBLE")) {
        list.SetNameValue("QUALITY", "100");
        list.SetNameValue("REVERSIBLE", "YES");
    }
    if (is(target.driver, "WEBP") && !given("QUALITY") && !given("LOSSLESS"))
        list.SetNameValue("LOSSLESS", "TRUE");
    if (is(target.driver, "GPKG") && target.type == GDT_Byte && !given("TILE_FORMAT"))
        list.SetNameValue("TILE_FORMAT", "PNG");
}

/// True when the format, or an option that the user gave, is made to lose something of the values.
bool may_lose(const Target& target, const OutputOptions& options) {
    if (is(target.driver, "JPEG")) return true;
    const CPLStringList given = creation_options(options);
    for (int i = 0; i < given.size(); ++i) {
        char* key = nullptr;
        const std::string value = CPLParseNameValue(given[i], &key);
        const std::string name = key ? key : "";
        CPLFree(key);
        if (is_any(name, "QUALITY JPEG_QUALITY WEBP_LEVEL JXL_DISTANCE DISTANCE MAX_Z_ERROR "
                         "NBITS DISCARD_LSB RATE PSNR TARGET YCBCR420 VERTICAL_PRECISION "
                         "DECIMAL_PRECISION SIGNIFICANT_DIGITS DATA_ENCODING"))
            return true;
        if (is_any(name, "LOSSLESS REVERSIBLE JXL_LOSSLESS") && !CPLTestBool(value.c_str())) return true;
        if (is_any(name, "COMPRESS COMPRESSION TILE_FORMAT IC DRIVER") &&
            (is_any(value, "JPEG WEBP JPEG2000 C3 C8 M3 M8 PNG_JPEG PNG8 AUTO") ||
             STARTS_WITH_CI(value.c_str(), "JPEG") || STARTS_WITH_CI(value.c_str(), "CCITT")))
            return true;
    }
    return false;
}

/// Raw files, and GeoTIFFs that only leave their layout to the user: nothing in them depends on a value.
bool surely_holds(const Target& target, const OutputSpec& spec) {
    const bool tiff = is(target.driver, "GTiff");
    if (!tiff && !is(target.driver, "ENVI")) return false;
    if (target.copies || (tiff && spec.shape.bands > 65535)) return false;
    for (int i = 0; i < target.options.size(); ++i) {
        char* key = nullptr;
        const std::string value = CPLParseNameValue(target.options[i], &key);
        const std::string name = key ? key : "";
        CPLFree(key);
        if (name == "INTERLEAVE" || (!tiff && name == "SUFFIX")) continue;
        if (tiff && is_any(name, "TILED BIGTIFF SPARSE_OK")) continue;
        if (tiff && name == "COMPRESS" && EQUAL(value.c_str(), "NONE")) continue;
        const int size = std::atoi(value.c_str());
        if (tiff && is_any(name, "BLOCKXSIZE BLOCKYSIZE") && size > 0 && size % 16 == 0) continue;
        return false;
    }
    return true;
}

/// A folder for one trial, with whatever a driver makes beside the file; gone when the trial is over.
class TrialFolder {
  public:
    /// In memory.
    TrialFolder() {
        static std::atomic<unsigned> count{0};
        m_path = CPLSPrintf("/vsimem/hsi-try-%d-%u", static_cast<int>(getpid()), count.fetch_add(1));
        VSIMkdir(m_path.c_str(), 0700);
    }
    /// Beside the destination or, where that is no local file, in the system's folder for such things.
    explicit TrialFolder(const std::string& destination)
        : m_file(std::make_unique<AtomicFile>(is_local(destination) ? destination
                                                                    : CPLGenerateTempFilename("hsi-try"))),
          m_path(m_file->path()) {
        if (VSIMkdir(m_path.c_str(), 0700) != 0)
            throw Error("cannot make the folder '" + m_path + "': " + std::strerror(errno));
    }
    TrialFolder(const TrialFolder&) = delete;
    TrialFolder& operator=(const TrialFolder&) = delete;
    ~TrialFolder() { VSIRmdirRecursive(m_path.c_str()); }
    const std::string& path() const { return m_path; }

  private:
    std::unique_ptr<AtomicFile> m_file; ///< for its name
    std::string m_path;
};

/// A value for a trial: bands, lines and samples differ, and the type's ways to be wrong show (a sign, a
/// fraction, a size far from 1, a byte too few).
float trial_value(GDALDataType type, int band, int64_t line, int64_t sample) {
    const int64_t at = 7 * band + 31 * line + 3 * sample;
    switch (type) {
    case GDT_Byte:
        return static_cast<float>(at % 253 + 1);
    case GDT_UInt16:
        return static_cast<float>(257 * at % 64999 + 1);
    case GDT_UInt32:
    case GDT_UInt64:
        return static_cast<float>(65539 * at % 4999999 + 1);
    case GDT_Int16:
        return static_cast<float>(257 * at % 64001 - 32000);
    case GDT_Int32:
    case GDT_Int64:
        return static_cast<float>(65539 * at % 9999991 - 4999995);
    case GDT_Float32:
    case GDT_Float64: {
        constexpr float sizes[] = {1.0F, 1e-6F, 1e6F, 1.0F, 1e3F};
        return (static_cast<float>(at % 1999) - 999.37F) * 1.3701F * sizes[at % 5];
    }
    default: // Int8, which older versions of GDAL do not have
        return static_cast<float>(at % 253 - 125);
    }
}

/// The options of a trial. Blocks are small: of a large one every band would have to be compressed.
CPLStringList trial_options(const Target& target) {
    CPLStringList list = target.options;
    const bool strips = !CPLTestBool(list.FetchNameValueDef("TILED", "YES"));
    if (is(target.driver, "GTiff") && list.FetchNameValue("BLOCKYSIZE") != nullptr) {
        if (!strips) list.SetNameValue("BLOCKXSIZE", "16");
        list.SetNameValue("BLOCKYSIZE", "16");
    } else if (is(target.driver, "COG")) {
        list.SetNameValue("BLOCKSIZE", "128");
    } else if (is(target.driver, "MRF")) {
        list.SetNameValue("BLOCKSIZE", "64");
    }
    return list;
}

stream::CubeShape trial_shape(const OutputSpec& spec, bool blocks) {
    constexpr int64_t side = 16;
    return {std::min(side, spec.shape.samples), std::min(side, spec.shape.lines),
            blocks ? 1 : spec.shape.bands};
}

DatasetHandle make_raster(GDALDriver* driver, const std::string& path, const stream::CubeShape& shape,
                          GDALDataType type, const CPLStringList& options) {
    return DatasetHandle(driver->Create(path.c_str(), static_cast<int>(shape.samples),
                                        static_cast<int>(shape.lines), shape.bands, type,
                                        const_cast<char**>(options.List())));
}

void place(GDALDataset& dataset, const SceneMetadata* scene) {
    const GdalErrors quiet; // as in the output itself
    double gt[6] = {500000, 20, 0, 4480000, 0, -20};
    OGRSpatialReference srs;
    srs.SetWellKnownGeogCS("WGS84");
    srs.SetProjCS("UTM 32 (WGS84)");
    srs.SetUTM(32, TRUE);
    if (scene != nullptr) {
        if (scene->window_geotransform(gt)) dataset.SetGeoTransform(gt);
        if (scene->srs) dataset.SetSpatialRef(scene->srs.get());
    } else {
        dataset.SetGeoTransform(gt);
        dataset.SetSpatialRef(&srs);
    }
}

/// One trial. Returns what went wrong; empty: nothing.
std::string trial(const Target& target, const CPLStringList& options, const stream::CubeShape& shape,
                  bool values, const SceneMetadata* scene, const std::string& path) {
    const auto w = static_cast<int>(shape.samples), h = static_cast<int>(shape.lines);
    GDALDriver* const memory = GetGDALDriverManager()->GetDriverByName("MEM");
    GdalErrors errors;
    {
        DatasetHandle made = target.copies ? make_raster(memory, "", shape, target.type, CPLStringList())
                                           : make_raster(target.driver, path, shape, target.type, options);
        if (!made) return errors.text();
        if (errors.any()) return errors.text();
        // Some drivers make what they can hold, whatever they are asked for.
        if (made->GetRasterCount() != shape.bands)
            return "it makes " + std::to_string(made->GetRasterCount()) + " of them";
        if (made->GetRasterXSize() != w || made->GetRasterYSize() != h) return "it makes another size";
        place(*made, scene);
        std::vector<float> cube(static_cast<size_t>(shape.bands * shape.lines * shape.samples));
        const auto view = CubeView<float>::packed(cube.data(), shape.bands, shape.lines, shape.samples);
        for (int b = 0; b < shape.bands; ++b)
            for (int64_t y = 0; y < shape.lines; ++y)
                for (int64_t x = 0; x < shape.samples; ++x)
                    view.row(b, y)[x] = trial_value(target.type, b, y, x);
        try {
            BlockWriter writer(*made, StoreRule(target.type, std::nullopt), uint64_t{1} << 30);
            writer.write(Rect{0, 0, shape.samples, shape.lines}, view);
            writer.finish();
        } catch (const Error& e) {
            return e.what();
        }
        if (target.copies) {
            prepare_stage(target, *made);
            const DatasetHandle copy(target.driver->CreateCopy(
                path.c_str(), made.get(), FALSE, const_cast<char**>(options.List()), nullptr, nullptr));
            if (!copy) return errors.text();
        }
    }
    if (errors.any()) return errors.text();
    const WrittenRaster written(path);
    if (std::string fault = written.fault(shape, target.type); !fault.empty()) return "read again, " + fault;
    if (!values) return {};
    std::vector<float> row(static_cast<size_t>(w));
    for (int b = 0; b < shape.bands; ++b)
        for (int y = 0; y < h; ++y) {
            if (written.band(b)->RasterIO(GF_Read, 0, y, w, 1, row.data(), w, 1, GDT_Float32, 0, 0,
                                          nullptr) != CE_None)
                return errors.text("it cannot be read again");
            for (int x = 0; x < w; ++x) {
                const float wanted = trial_value(target.type, b, y, x);
                if (row[static_cast<size_t>(x)] == wanted) continue;
                return "read again, values differ: " + std::string(CPLSPrintf("%.9g", wanted)) + " became " +
                       CPLSPrintf("%.9g", row[static_cast<size_t>(x)]) +
                       (shape.bands > 1 ? " in band " + std::to_string(b + 1) : std::string());
            }
        }
    return {};
}

/// The trial in a folder of its own; the texts name the destination.
std::string trial_in(const TrialFolder& folder, const Target& target, const OutputOptions& options,
                     const CPLStringList& list, const stream::CubeShape& shape, const SceneMetadata* scene) {
    const std::string name = options.path.substr(options.path.rfind('/') + 1);
    const std::string path = folder.path() + "/" + (name.empty() ? "t" : name);
    std::string reason = trial(target, list, shape, !may_lose(target, options), scene, path);
    for (const std::string& hidden : {path, folder.path()})
        for (size_t at = reason.find(hidden); at != std::string::npos; at = reason.find(hidden))
            reason.replace(at, hidden.size(), hidden == path ? name : folder_of(options.path));
    return reason;
}

/// In memory where the driver can, else or when that fails beside the destination.
std::string trial_anywhere(const Target& target, const OutputOptions& options, const CPLStringList& list,
                           const stream::CubeShape& shape, const SceneMetadata* scene) {
    if (has_capability(target.driver, GDAL_DCAP_VIRTUALIO) &&
        trial_in(TrialFolder(), target, options, list, shape, scene).empty())
        return {};
    return trial_in(TrialFolder(options.path), target, options, list, shape, scene);
}

/// What a trial depends on.
std::string trial_key(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                      const SceneMetadata* scene) {
    const stream::CubeShape shape = trial_shape(spec, false);
    std::string key = std::string(target.driver->GetDescription()) + "\n" + GDALGetDataTypeName(target.type) +
                      "\n" + std::to_string(shape.samples) + " " + std::to_string(shape.lines) + " " +
                      std::to_string(shape.bands) + "\n" + options.path + "\n" +
                      std::to_string(target.copies) + "\n";
    for (int i = 0; i < target.options.size(); ++i)
        key += std::string(target.options[i]) + "\n";
    if (scene == nullptr) return key;
    double gt[6];
    key += scene->window_geotransform(gt)
               ? CPLSPrintf("%.17g %.17g %.17g %.17g %.17g %.17g", gt[0], gt[1], gt[2], gt[3], gt[4], gt[5])
               : "nowhere";
    char* wkt = nullptr;
    if (scene->srs && scene->srs->exportToWkt(&wkt) == OGRERR_NONE) key += wkt;
    CPLFree(wkt);
    return key;
}

/// The side of a COG's blocks that an output gets when the user says nothing. GDAL keeps the bands of a pixel
/// together, so that a block of its own default, 512x512 with 224 bands of floats, is 235 MB: to write, and
/// for everyone who reads.
int64_t cog_block_side(const stream::CubeShape& shape, GDALDataType type) {
    constexpr int64_t largest = 512, least = 128, limit = int64_t{16} << 20;
    const int64_t pixel = shape.bands * GDALGetDataTypeSizeBytes(type);
    int64_t side = largest;
    while (side > least && side * side * pixel > limit)
        side /= 2;
    return side;
}

/// Blocks (of all bands) and their threads that making a COG may hold. Without threads: a block on its way,
/// one being filled and one compressed; a thread has two more. Throws Error when not even that fits into
/// -memory.
void fit_cog(const OutputOptions& options, CPLStringList& list, const stream::CubeShape& shape,
             GDALDataType type) {
    const auto side =
        static_cast<uint64_t>(std::max(1, std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512"))));
    const char* const interleave = list.FetchNameValue("INTERLEAVE"); // since GDAL 3.11
    const bool together = interleave == nullptr || !EQUAL(interleave, "BAND");
    const uint64_t block = side * side * static_cast<uint64_t>(together ? shape.bands : 1) *
                           static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    if (options.memory == 0) return;
    const uint64_t blocks = 4 * options.memory / block; // options.memory is a quarter of -memory
    const std::string threads =
        list.FetchNameValueDef("NUM_THREADS", CPLGetConfigOption("GDAL_NUM_THREADS", "1"));
    if (blocks >= 3) {
        const auto most = static_cast<uint64_t>(
            EQUAL(threads.c_str(), "ALL_CPUS") ? usable_processors() : std::atoi(threads.c_str()));
        if (most > 1 && 3 + 2 * most > blocks)
            list.SetNameValue("NUM_THREADS", std::to_string(std::max<uint64_t>(1, (blocks - 3) / 2)).c_str());
        return;
    }
    throw Error("a COG with " + std::to_string(shape.bands) + " bands of " + GDALGetDataTypeName(type) +
                    " in blocks of " + std::to_string(side) + "x" + std::to_string(side) + " needs " +
                    format_byte_size(3 * block) + ", more than -memory",
                "Use a larger -memory, -co BLOCKSIZE=128, or -of GTiff, which keeps the bands apart.");
}

/// A GeoTIFF whose blocks hold all bands: the dataset keeps one, beside the block cache, which has a quarter
/// of -memory. Another quarter is left for that, so that the tiles have half. Throws Error when it is not
/// enough.
void fit_geotiff(const OutputOptions& options, const CPLStringList& list, const stream::CubeShape& shape,
                 GDALDataType type) {
    const char* const interleave = list.FetchNameValue("INTERLEAVE");
    const bool together = interleave == nullptr || EQUAL(interleave, "PIXEL"); // GDAL's default
    if (options.memory == 0 || shape.bands == 1 || !together ||
        !CPLTestBool(list.FetchNameValueDef("TILED", "NO")))
        return;
    const int w = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKXSIZE", "256")));
    const int h = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKYSIZE", "256")));
    const uint64_t block = static_cast<uint64_t>(w) * static_cast<uint64_t>(h) *
                           static_cast<uint64_t>(shape.bands) *
                           static_cast<uint64_t>(GDALGetDataTypeSizeBytes(type));
    if (block > options.memory) // which is a quarter of -memory
        throw Error("a GeoTIFF with " + std::to_string(shape.bands) + " bands of " +
                        GDALGetDataTypeName(type) + " together in blocks of " + std::to_string(w) + "x" +
                        std::to_string(h) + " needs -memory " + format_byte_size(4 * block),
                    "Use a larger -memory, smaller blocks (-co BLOCKXSIZE=128 -co BLOCKYSIZE=128), or "
                    "-co INTERLEAVE=BAND.");
}

} // namespace

bool is(GDALDriver* driver, const char* name) { return EQUAL(driver->GetDescription(), name); }

bool takes_blocks(GDALDriver* driver) {
    // COG has a Create from GDAL 3.13 on, which only collects the pixels and makes the file when it is
    // closed, where errors have no way back; and what its blocks were given did not arrive.
    return has_capability(driver, GDAL_DCAP_CREATE) && !is(driver, "COG");
}

GDALDriver* choose_driver(const OutputOptions& options) {
    check_is_file(options.path);
    if (!options.format.empty())
        return driver_by_name(options.format, writes_rasters, "write rasters into files",
                              "--formats lists the drivers; those with w can write.");
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    const std::string extension = extension_of(options.path);
    if (extension.empty() || EQUAL(extension.c_str(), "tif")) return manager->GetDriverByName("GTiff");
    if (is_any(extension, envi_extensions)) return manager->GetDriverByName("ENVI");
    GDALDriver* const zarr = manager->GetDriverByName("Zarr"); // which in older versions claims no extension
    if (zarr != nullptr && EQUAL(extension.c_str(), "zarr") && writes_rasters(zarr)) return zarr;
    if (EQUAL(extension.c_str(), "hdr"))
        throw UsageError("'" + options.path + "' is the name of a header",
                         "Name the data file, such as .dat or .img; -of MFF writes that format's .hdr.");
    if (GDALDriver* driver = driver_by_extension(extension, writes_rasters)) return driver;
    throw UsageError("no driver writes files with the extension '." + extension + "' of '" + options.path +
                         "'",
                     "Name one with -of.");
}

CPLStringList creation_options(const OutputOptions& options) {
    CPLStringList list;
    for (const std::string& item : options.creation_options)
        list.AddString(item.c_str());
    return list;
}

void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type) {
    const auto given = [&](const char* name) { return list.FetchNameValue(name) != nullptr; };
    if (!given("TILED")) list.SetNameValue("TILED", "YES");
    if (!given("BIGTIFF")) list.SetNameValue("BIGTIFF", "IF_SAFER");
    const char* compress = list.FetchNameValueDef("COMPRESS", "NONE");
    const bool wants_pixels = EQUAL(compress, "JPEG") || EQUAL(compress, "WEBP") || EQUAL(compress, "JXL");
    // GDAL's own default keeps the bands of a pixel together: one band of a cube then costs reading all of
    // them, and a 256x256 block of 224 floats is 59 MB.
    if (shape.bands > 1 && !given("INTERLEAVE") && !given("PHOTOMETRIC") && !wants_pixels)
        list.SetNameValue("INTERLEAVE", "BAND");
    // Blocks low enough that one row of them, which is in memory while it is filled, stays small; and no
    // larger than a small scene, since every band pays for the padding.
    if (CPLTestBool(list.FetchNameValue("TILED")) && !given("BLOCKXSIZE") && !given("BLOCKYSIZE")) {
        constexpr int64_t row_limit = int64_t{64} << 20, unit = 16, largest = 256;
        const int64_t width = std::min(largest, round_up(shape.samples, unit));
        int64_t height = std::min(largest, round_up(shape.lines, unit));
        const int64_t line = round_up(shape.samples, width) * shape.bands * GDALGetDataTypeSizeBytes(type);
        while (height > unit && line * height > row_limit)
            height = round_up(height / 2, unit);
        list.SetNameValue("BLOCKXSIZE", std::to_string(width).c_str());
        list.SetNameValue("BLOCKYSIZE", std::to_string(height).c_str());
    }
}

std::optional<NodataValue> fitting(double value, GDALDataType type) {
    NodataValue nodata;
    nodata.real = value;
    if (std::isnan(value)) {
        if (type == GDT_Float32 || type == GDT_Float64) return nodata;
        return std::nullopt;
    }
    if (!match_in_type(nodata, type).active) return std::nullopt;
    return nodata;
}

Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual) {
    if (options.path.empty()) throw UsageError("the destination has no name");
    Target target;
    target.driver = choose_driver(options);
    if (is(target.driver, "VRT") != is_virtual)
        throw UsageError("-of VRT: '" + options.path + "' needs pixels of its own, which a VRT does not hold",
                         "Name another format with -of.");
    target.type = output_type(options, spec);
    target.options = creation_options(options);
    if (spec.shape.samples > INT_MAX || spec.shape.lines > INT_MAX)
        throw Error("GDAL rasters end at " + std::to_string(INT_MAX) + " samples and lines");
    for (const std::string& item : options.creation_options)
        if (item.find('=') == std::string::npos || item.front() == '=')
            throw UsageError("-co " + item + ": NAME=VALUE is needed");
    target.copies = !takes_blocks(target.driver);
    if (!lists_type(target.driver, target.type)) {
        if (!has_capability(target.driver, GDAL_DCAP_CREATECOPY))
            throw UsageError(holds_text(target.driver, spec, target.type), types_advice(target.driver));
        target.copies = true; // which may well widen the type
    }
    if (options.nodata && !fitting(*options.nodata, target.type))
        throw UsageError("-dstnodata " + std::string(CPLSPrintf("%.17g", *options.nodata)) +
                         " is no value of the type " + GDALGetDataTypeName(target.type));
    {
        const GdalErrors errors;
        if (!GDALValidateCreationOptions(target.driver, target.options.List()))
            throw UsageError("-co: " + (errors.any() ? errors.text() : errors.warnings()));
    }
    if (is_virtual) return target;
    if (is(target.driver, "GTiff")) {
        add_geotiff_defaults(target.options, spec.shape, target.type);
        fit_geotiff(options, target.options, spec.shape, target.type);
    }
    if (is(target.driver, "COG")) {
        if (target.options.FetchNameValue("BLOCKSIZE") == nullptr)
            target.options.SetNameValue("BLOCKSIZE",
                                        std::to_string(cog_block_side(spec.shape, target.type)).c_str());
        fit_cog(options, target.options, spec.shape, target.type);
    }
    add_defaults(target, options);
    return target;
}

void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene) {
    if (surely_holds(target, spec)) return;
    // A run asks when it checks its options and again when it makes its outputs.
    static std::mutex mutex;
    static std::map<std::string, bool> known;
    const std::lock_guard lock(mutex);
    const std::string key = trial_key(target, options, spec, scene);
    if (const auto at = known.find(key); at != known.end()) {
        target.copies = at->second;
        return;
    }
    const CPLStringList list = trial_options(target);
    std::vector<bool> ways{target.copies};
    if (!target.copies && has_capability(target.driver, GDAL_DCAP_CREATECOPY)) ways.push_back(true);
    // Bands would become variables of their own.
    if (is(target.driver, "netCDF") && spec.shape.bands > 1) ways = {true};
    std::string reason;
    for (const bool copies : ways) {
        Target way = target;
        way.copies = copies;
        reason = trial_anywhere(way, options, list, trial_shape(spec, false), scene);
        if (reason.empty()) {
            // The blocks that the user wants, in a file of one band.
            const CPLStringList own = creation_options(options);
            const bool blocks = own.FetchNameValue("BLOCKXSIZE") || own.FetchNameValue("BLOCKYSIZE") ||
                                own.FetchNameValue("BLOCKSIZE");
            if (blocks) reason = trial_anywhere(way, options, target.options, trial_shape(spec, true), scene);
        }
        if (reason.empty()) {
            target.copies = known[key] = copies;
            return;
        }
    }
    throw UsageError(holds_text(target.driver, spec, target.type) + ": " + reason,
                     lists_type(target.driver, target.type) ? "Choose another format with -of."
                                                            : types_advice(target.driver));
}

void prepare_stage(const Target& target, GDALDataset& stage) {
    if (!is(target.driver, "netCDF")) return;
    const CPLStringList items(CSLDuplicate(stage.GetMetadata()));
    for (int i = 0; i < items.size(); ++i) // of a source that has further dimensions
        if (STARTS_WITH(items[i], "NETCDF_DIM_"))
            stage.SetMetadataItem(std::string(items[i]).substr(0, std::strcspn(items[i], "=")).c_str(),
                                  nullptr);
    const int bands = stage.GetRasterCount();
    if (bands < 2) return;
    // Without positions this driver takes columns for lines; these are where QGIS draws a raster that has
    // none.
    double gt[6] = {0, 1, 0, 0, 0, -1};
    if (stage.GetGeoTransform(gt) != CE_None) {
        double pixels[6] = {0, 1, 0, 0, 0, -1};
        stage.SetGeoTransform(pixels);
    }
    // One variable with the bands as its third dimension. What its bands do not share would become that of
    // all.
    std::string numbers, lengths, units;
    bool all = true;
    for (int b = 1; b <= bands; ++b) {
        GDALRasterBand* band = stage.GetRasterBand(b);
        const char* length = band->GetMetadataItem("wavelength");
        const char* unit = band->GetMetadataItem("wavelength_units");
        if (b == 1) units = unit ? unit : "";
        all = all && length != nullptr && CPLGetValueType(length) != CPL_VALUE_STRING &&
              units == (unit ? unit : "");
        const char* comma = b == 1 ? "" : ",";
        numbers += comma + std::to_string(b);
        lengths += comma + std::string(length ? length : "");
        band->SetMetadata(nullptr);
        band->SetDescription("");
    }
    const std::string name = all ? "wavelength" : "band";
    stage.SetMetadataItem("NETCDF_DIM_EXTRA", ("{" + name + "}").c_str());
    // 6 and 4: netCDF's numbers for double and int.
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_DEF").c_str(),
                          ("{" + std::to_string(bands) + (all ? ",6}" : ",4}")).c_str());
    stage.SetMetadataItem(("NETCDF_DIM_" + name + "_VALUES").c_str(),
                          ("{" + (all ? lengths : numbers) + "}").c_str());
    if (all && !units.empty()) stage.SetMetadataItem("wavelength#units", units.c_str());
}

WrittenRaster::WrittenRaster(const std::string& path) {
    const GdalErrors errors;
    const auto open = [](const char* name) {
        return DatasetHandle(GDALDataset::FromHandle(GDALOpenEx(
            name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, nullptr, nullptr, nullptr)));
    };
    DatasetHandle whole = open(path.c_str());
    m_reason = errors.text("it does not open");
    if (!whole) return;
    if (whole->GetRasterCount() > 0) {
        m_parts.push_back(std::move(whole));
        return;
    }
    // Arrays of single bands, among others for coordinates.
    const CPLStringList items(CSLDuplicate(whole->GetMetadata("SUBDATASETS")));
    for (int b = 1;; ++b) {
        const std::string ending = "Band" + std::to_string(b);
        DatasetHandle part;
        for (int i = 0; i < items.size() && !part; ++i) {
            const std::string item = items[i];
            const size_t equals = item.find("_NAME=");
            if (equals == std::string::npos || item.size() <= ending.size() ||
                item.compare(item.size() - ending.size(), ending.size(), ending) != 0 ||
                std::isalnum(static_cast<unsigned char>(item[item.size() - ending.size() - 1])))
                continue;
            part = open(item.c_str() + equals + 6);
        }
        if (!part) return;
        m_parts.push_back(std::move(part));
    }
}

std::string WrittenRaster::fault(const stream::CubeShape& shape, GDALDataType type) const {
    if (m_parts.empty()) return "it does not open: " + m_reason;
    const int bands =
        m_parts.size() == 1 ? m_parts.front()->GetRasterCount() : static_cast<int>(m_parts.size());
    if (bands != shape.bands) return "it has " + std::to_string(bands) + (bands == 1 ? " band" : " bands");
    for (const DatasetHandle& part : m_parts)
        if (part->GetRasterXSize() != shape.samples || part->GetRasterYSize() != shape.lines)
            return "it has " + std::to_string(part->GetRasterXSize()) + "x" +
                   std::to_string(part->GetRasterYSize()) + " pixels";
    for (int b = 0; b < bands; ++b) {
        const GDALDataType got = band(b)->GetRasterDataType();
        // Formats with a type of their own may hold more than they were given.
        if (GDALDataTypeUnion(type, got) != got)
            return "its type is " + std::string(GDALGetDataTypeName(got));
    }
    return {};
}

GDALRasterBand* WrittenRaster::band(int index) const {
    return m_parts.size() == 1 ? m_parts.front()->GetRasterBand(index + 1)
                               : m_parts[static_cast<size_t>(index)]->GetRasterBand(1);
}

} // namespace hsi::raster
