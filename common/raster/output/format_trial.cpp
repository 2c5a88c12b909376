// SPDX-License-Identifier: MIT
#include "raster/output/format_trial.h"

#include "core/counted.h"
#include "core/error.h"
#include "raster/drivers.h"
#include "raster/files/atomic_file.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/output/block_writer.h"
#include "raster/output/creation_options.h"
#include "raster/output/staged_output.h"
#include "raster/output/written_raster.h"
#include "raster/sample_convert.h"
#include "raster/scene/source_impl.h"

#include <cpl_vsi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace hsi::raster {
namespace {

/// Returns true if the format, or an option that the user gave, is lossy. Class maps must never change,
/// because a changed value is another class.
bool may_lose(const Target& target, const OutputOptions& options) {
    if (target.largest_class > 0) return false;
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

/// A folder for the files of one trial, including side files. The destructor removes the folder.
class TrialFolder {
  public:
    /// Creates the folder in memory.
    TrialFolder() {
        static std::atomic<unsigned> count{0};
        m_path = CPLSPrintf("/vsimem/hsi-try-%d-%u", static_cast<int>(getpid()), count.fetch_add(1));
        VSIMkdir(m_path.c_str(), 0700);
    }
    /// Creates the folder next to the destination. If the destination is not a local file, creates the folder
    /// in the system's folder for temporary files.
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
    std::unique_ptr<AtomicFile> m_file; ///< provides an unused name
    std::string m_path;
};

/// Returns the value of a pixel in a trial. Values differ between bands, lines and samples, and reveal
/// typical faults of a type: a lost sign, a lost fraction, a limited range, a lost byte. For a class map, the
/// value is a class of the map.
float trial_value(const Target& target, int band, int64_t line, int64_t sample) {
    const int64_t at = 7 * band + 31 * line + 3 * sample;
    if (target.largest_class > 0)
        return static_cast<float>(target.largest_class - at % (int64_t{target.largest_class} + 1));
    switch (target.type) {
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
    default: // Int8, for which older versions of GDAL have no constant
        return static_cast<float>(at % 253 - 125);
    }
}

/// Returns the creation options of a trial. Blocks are small, because large blocks would take long to
/// compress.
CPLStringList trial_options(const Target& target) {
    CPLStringList list = target.options;
    list.SetNameValue("NUM_THREADS", nullptr);
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
    const GdalErrors quiet; // errors are ignored, as they are when the output itself is written
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

/// Makes one trial. Returns a description of the fault; empty if the trial succeeds.
std::string trial(const Target& target, const CPLStringList& options, const stream::CubeShape& shape,
                  bool values, const SceneMetadata* scene, const std::string& path) {
    const auto w = static_cast<int>(shape.samples), h = static_cast<int>(shape.lines);
    GDALDriver* const memory = GetGDALDriverManager()->GetDriverByName("MEM");
    GdalErrors errors;
    check_memory_left(target.driver);
    {
        DatasetHandle made = target.copies ? make_raster(memory, "", shape, target.type, CPLStringList())
                                           : make_raster(target.driver, path, shape, target.type, options);
        if (!made) return errors.text();
        if (errors.any()) return errors.text();
        // Some drivers create the nearest shape that they support, and do not report a difference.
        if (made->GetRasterCount() != shape.bands)
            return "it makes a file of " + counted(made->GetRasterCount(), "band");
        if (made->GetRasterXSize() != w || made->GetRasterYSize() != h)
            return "it makes a file of another size";
        place(*made, scene);
        std::vector<float> cube(static_cast<size_t>(shape.bands * shape.lines * shape.samples));
        const auto view = CubeView<float>::packed(cube.data(), shape.bands, shape.lines, shape.samples);
        for (int b = 0; b < shape.bands; ++b)
            for (int64_t y = 0; y < shape.lines; ++y)
                for (int64_t x = 0; x < shape.samples; ++x)
                    view.row(b, y)[x] = trial_value(target, b, y, x);
        try {
            BlockWriter writer(*made, StoreRule(sample_type(target.type), std::nullopt), uint64_t{1} << 30);
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
    if (std::string fault = written.fault(shape, target.type); !fault.empty()) return "read back, " + fault;
    if (!values) return {};
    std::vector<float> row(static_cast<size_t>(w));
    const auto turned_over = [&] {
        for (int y = 0; y < h; ++y) {
            if (written.band(0)->RasterIO(GF_Read, 0, h - 1 - y, w, 1, row.data(), w, 1, GDT_Float32, 0, 0,
                                          nullptr) != CE_None)
                return false;
            for (int x = 0; x < w; ++x)
                if (row[static_cast<size_t>(x)] != trial_value(target, 0, y, x)) return false;
        }
        return h > 1;
    };
    for (int b = 0; b < shape.bands; ++b)
        for (int y = 0; y < h; ++y) {
            if (written.band(b)->RasterIO(GF_Read, 0, y, w, 1, row.data(), w, 1, GDT_Float32, 0, 0,
                                          nullptr) != CE_None)
                return errors.text("it cannot be read back");
            for (int x = 0; x < w; ++x) {
                const float wanted = trial_value(target, b, y, x);
                if (row[static_cast<size_t>(x)] == wanted) continue;
                if (double gt[6];
                    turned_over() && scene != nullptr && scene->window_geotransform(gt) && gt[5] > 0)
                    return "it stores lines only from north to south, but here they run from south to north "
                           "(gdalwarp turns them over)";
                return "read back, values differ: " + std::string(CPLSPrintf("%.9g", wanted)) + " became " +
                       CPLSPrintf("%.9g", row[static_cast<size_t>(x)]) +
                       (shape.bands > 1 ? " in band " + std::to_string(b + 1) : std::string());
            }
        }
    return {};
}

/// Makes a trial in `folder`. In the returned text, the name of the destination replaces the name of the
/// trial file.
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

/// Throws Error if the disk is full, because a failed trial then does not show that the format is unsuitable.
void check_room(const TrialFolder& folder, const OutputOptions& options) {
    const std::string path = folder.path() + "/room";
    // One megabyte is more than any trial or small output needs.
    const std::string bytes(size_t{1} << 20, '\1');
    errno = 0;
    VSILFILE* const file = VSIFOpenL(path.c_str(), "wb");
    int reason = file ? 0 : errno;
    if (file && VSIFWriteL(bytes.data(), 1, bytes.size(), file) != bytes.size()) reason = errno;
    if (file && VSIFCloseL(file) != 0 && reason == 0) reason = errno;
    VSIUnlink(path.c_str());
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        throw Error("cannot write '" + options.path + "': " + std::strerror(reason));
}

/// Makes the trial in memory if the driver supports this. If this is not possible or fails, makes the trial
/// next to the destination.
std::string trial_anywhere(const Target& target, const OutputOptions& options, const CPLStringList& list,
                           const stream::CubeShape& shape, const SceneMetadata* scene) {
    if (has_capability(target.driver, GDAL_DCAP_VIRTUALIO) &&
        trial_in(TrialFolder(), target, options, list, shape, scene).empty())
        return {};
    const TrialFolder folder(options.path);
    std::string reason = trial_in(folder, target, options, list, shape, scene);
    if (!reason.empty()) check_room(folder, options);
    return reason;
}

/// Returns a text that identifies all inputs of a trial.
std::string trial_key(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                      const SceneMetadata* scene) {
    const stream::CubeShape shape = trial_shape(spec, false);
    std::string key = std::string(target.driver->GetDescription()) + "\n" + GDALGetDataTypeName(target.type) +
                      "\n" + std::to_string(shape.samples) + " " + std::to_string(shape.lines) + " " +
                      std::to_string(shape.bands) + "\n" + options.path + "\n" +
                      std::to_string(target.copies) + " " + std::to_string(target.largest_class) + "\n";
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

/// Returns the reason why the target cannot be written. If it can be written, the text is empty and
/// target.copies is set.
std::string why_not(Target& target, const OutputOptions& options, const OutputSpec& spec,
                    const SceneMetadata* scene) {
    const CPLStringList list = trial_options(target);
    std::vector<bool> ways{target.copies};
    if (!target.copies && has_capability(target.driver, GDAL_DCAP_CREATECOPY)) ways.push_back(true);
    // With Create, each band would become a separate variable of the netCDF file.
    if (is(target.driver, "netCDF") && spec.shape.bands > 1) ways = {true};
    std::string reason;
    for (const bool copies : ways) {
        Target way = target;
        way.copies = copies;
        reason = trial_anywhere(way, options, list, trial_shape(spec, false), scene);
        if (reason.empty()) {
            // A second trial, with a single band, tests the block size that the user has set.
            const CPLStringList own = creation_options(options);
            const bool blocks = own.FetchNameValue("BLOCKXSIZE") || own.FetchNameValue("BLOCKYSIZE") ||
                                own.FetchNameValue("BLOCKSIZE");
            if (blocks) reason = trial_anywhere(way, options, target.options, trial_shape(spec, true), scene);
        }
        if (reason.empty()) {
            target.copies = copies;
            return {};
        }
    }
    return reason;
}

/// Returns creation options that prevent the output, although the format supports it. If the output can be
/// written without one option, this option is returned. If it can be written only without any options, all
/// options are returned. The text is empty if the options are not the reason.
std::string refused_options(const OutputOptions& options, const OutputSpec& spec,
                            const SceneMetadata* scene) {
    const auto works_with = [&](const std::vector<std::string>& items) {
        OutputOptions fewer = options;
        fewer.creation_options = items;
        try {
            Target target = choose_target(fewer, spec, false);
            return surely_holds(target, spec) || why_not(target, fewer, spec, scene).empty();
        } catch (const Error&) {
            return false;
        }
    };
    const auto& given = options.creation_options;
    std::string one, all;
    for (size_t k = 0; k < given.size(); ++k) {
        auto others = given;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
        if (works_with(others)) one += " -co " + given[k];
        all += " -co " + given[k];
    }
    return !one.empty() ? one : !all.empty() && works_with({}) ? all : std::string();
}

/// Returns whether LERC restores two bands interleaved by pixel, if some pixels are NaN in one band and some
/// in both.
bool lerc_keeps_nan() {
    constexpr int side = 16, bands = 2;
    constexpr size_t size = side * side;
    const TrialFolder folder;
    const std::string path = folder.path() + "/t.tif";
    CPLStringList list;
    for (const char* option :
         {"COMPRESS=LERC", "INTERLEAVE=PIXEL", "TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16"})
        list.AddString(option);
    std::vector<float> values(bands * size), again(bands * size);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 37 + 1);
    for (const size_t at : {size_t{20}, size_t{40}, size + 40})
        values[at] = std::numeric_limits<float>::quiet_NaN();
    const auto transfer = [&](GDALDataset& dataset, GDALRWFlag flag, std::vector<float>& of) {
        return dataset.RasterIO(flag, 0, 0, side, side, of.data(), side, side, GDT_Float32, bands, nullptr, 0,
                                0, 0, nullptr) == CE_None;
    };
    const GdalErrors errors;
    {
        GDALDriver* const driver = GetGDALDriverManager()->GetDriverByName("GTiff");
        const DatasetHandle made = make_raster(driver, path, {side, side, bands}, GDT_Float32, list);
        if (!made || !transfer(*made, GF_Write, values)) return false;
    }
    const DatasetHandle written(GDALDataset::Open(path.c_str(), GDAL_OF_RASTER));
    return written && transfer(*written, GF_Read, again) && !errors.any() &&
           std::equal(values.begin(), values.end(), again.begin(),
                      [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

/// Returns true if LERC compresses blocks with all bands, in the image or in the overviews of a COG.
bool has_lerc_of_bands_together(const Target& target) {
    const bool cog = is(target.driver, "COG");
    if (!cog && !is(target.driver, "GTiff")) return false;
    const CPLStringList& list = target.options;
    // PIXEL is GDAL's default.
    if (!EQUAL(list.FetchNameValueDef("INTERLEAVE", "PIXEL"), "PIXEL")) return false;
    const std::string codec = compression_of(target.driver, list);
    const bool reduced = cog && !EQUAL(list.FetchNameValueDef("OVERVIEWS", "AUTO"), "NONE");
    return STARTS_WITH_CI(codec.c_str(), "LERC") ||
           (reduced && STARTS_WITH_CI(list.FetchNameValueDef("OVERVIEW_COMPRESS", ""), "LERC"));
}

} // namespace

void check_lerc_of_nan(const Target& target, const OutputOptions& options, const OutputSpec& spec,
                       const std::optional<NodataValue>& nodata) {
    const bool floats = target.type == GDT_Float32 || target.type == GDT_Float64;
    const bool numbers_alone = nodata && !std::isnan(nodata->as_double()) && !spec.keep_nan;
    if (!floats || numbers_alone || spec.shape.bands == 1 || !has_lerc_of_bands_together(target)) return;
    static const bool kept = lerc_keeps_nan();
    if (kept) return;
    const std::string apart =
        is(target.driver, "COG") ? "-of GTiff, which keeps the bands apart" : "-co INTERLEAVE=BAND";
    throw UsageError("'" + options.path +
                         "': this GDAL cannot read NaN from LERC if bands are interleaved by pixel",
                     "Use " + apart + ", another codec (-co COMPRESS=ZSTD)" +
                         (spec.keep_nan ? "." : ", or a nodata value that is a number (-dstnodata)."));
}

void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene) {
    // Results are kept, because this function is called when the options are checked, and again when the
    // output is created.
    static std::mutex mutex;
    static std::map<std::string, bool> known;
    const std::lock_guard lock(mutex);
    const std::string key = trial_key(target, options, spec, scene);
    if (const auto at = known.find(key); at != known.end()) {
        target.copies = at->second;
        return;
    }
    const std::string reason = why_not(target, options, spec, scene);
    if (reason.empty()) {
        known[key] = target.copies;
        return;
    }
    if (const std::string refused = refused_options(options, spec, scene); !refused.empty())
        throw UsageError(std::string(target.driver->GetDescription()) + " does not support" + refused +
                             " for " + counted(spec.shape.bands, "band") + " of " +
                             GDALGetDataTypeName(target.type) + ": " + reason,
                         "Leave these options out, or give other values (gdalinfo --format " +
                             std::string(target.driver->GetDescription()) + " lists them).");
    throw UsageError(holds_text(target.driver, spec, target.type) + ": " + reason,
                     lists_type(target.driver, target.type) ? "Choose another format with -of."
                                                            : types_advice(target.driver));
}

} // namespace hsi::raster
