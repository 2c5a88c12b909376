// SPDX-License-Identifier: MIT
#include "raster/raster_sink.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "raster/atomic_file.h"
#include "raster/block_writer.h"
#include "raster/drivers.h"
#include "raster/gdal_errors.h"
#include "raster/made_scene.h"
#include "raster/raw_writer.h"
#include "raster/scene_metadata.h"
#include "raster/source_impl.h"
#include "raster/store_convert.h"
#include "raster/virtual_bands.h"

#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal_rat.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace hsi::raster {
namespace {

constexpr const char* standard_output = "/vsistdout/";

bool is(GDALDriver* driver, const char* name) { return EQUAL(driver->GetDescription(), name); }

bool writes_rasters(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_RASTER) &&
           (has_capability(driver, GDAL_DCAP_CREATE) || has_capability(driver, GDAL_DCAP_CREATECOPY));
}

/// A driver that takes pixels block by block. COG says so from GDAL 3.13 on, but only collects them, and
/// makes its file when it is closed, where errors have no way back: it copies, as ever.
bool takes_blocks(GDALDriver* driver) {
    return has_capability(driver, GDAL_DCAP_CREATE) && !is(driver, "COG");
}

GDALDriver* choose_driver(const OutputOptions& options) {
    if (!options.format.empty())
        return driver_by_name(options.format, writes_rasters, "write rasters",
                              "--formats lists the drivers; those with w can write.");
    register_drivers();
    GDALDriverManager* manager = GetGDALDriverManager();
    const std::string extension = extension_of(options.path);
    if (extension.empty() || EQUAL(extension.c_str(), "tif")) return manager->GetDriverByName("GTiff");
    if (GDALDriver* driver = driver_by_extension(extension, writes_rasters)) return driver;
    // The driver has no extension of its own; these two say what is inside.
    if (EQUAL(extension.c_str(), "bsq") || EQUAL(extension.c_str(), "bip"))
        return manager->GetDriverByName("ENVI");
    throw UsageError("no driver writes files with the extension '." + extension + "' of '" + options.path +
                         "'",
                     "Name one with -of.");
}

GDALDataType output_type(const OutputOptions& options, const OutputSpec& spec) {
    const std::string& name = options.type.empty() ? spec.type : options.type;
    const GDALDataType type = GDALGetDataTypeByName(name.c_str());
    if (type == GDT_Unknown) throw UsageError("-ot " + name + ": GDAL has no such type");
    if (!convertible(type))
        throw UsageError("-ot " + name + ": only real types of up to 8 bytes can be written");
    return type;
}

CPLStringList creation_options(const OutputOptions& options) {
    CPLStringList list;
    for (const std::string& item : options.creation_options)
        list.AddString(item.c_str());
    return list;
}

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

/// What a GTiff gets when the user says nothing.
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

/// The value of -dstnodata in the output's type; none when it does not fit.
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

/// The lowest value of a signed type, 0 of an unsigned one, NaN of floats.
NodataValue invented_nodata(GDALDataType type) {
    NodataValue nodata;
    switch (type) {
    case GDT_Float32:
    case GDT_Float64:
        nodata.real = std::numeric_limits<double>::quiet_NaN();
        break;
    case GDT_Int16:
        nodata.real = std::numeric_limits<int16_t>::min();
        break;
    case GDT_Int32:
        nodata.real = std::numeric_limits<int32_t>::min();
        break;
    case GDT_Int64:
        nodata.kind = GDT_Int64;
        nodata.whole = std::numeric_limits<int64_t>::min();
        break;
    case GDT_UInt64:
        nodata.kind = GDT_UInt64;
        break;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    case GDT_Int8:
        nodata.real = std::numeric_limits<int8_t>::min();
        break;
#endif
    default:
        break;
    }
    return nodata;
}

std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SceneMetadata* scene, GDALDataType type) {
    if (options.nodata) return fitting(*options.nodata, type);
    if (spec.nodata) return fitting(*spec.nodata, type);
    bool holes = spec.holes;
    if (scene != nullptr) {
        holes |= scene->masked;
        for (const BandMetadata& b : scene->bands) {
            if (!b.nodata) continue;
            holes = true;
            if (b.nodata->kind == GDT_Float64) {
                if (const auto nodata = fitting(b.nodata->real, type)) return nodata;
            } else if (match_in_type(*b.nodata, type).active) {
                return b.nodata;
            }
        }
    }
    return holes ? std::optional<NodataValue>(invented_nodata(type)) : std::nullopt;
}

void set_nodata(GDALRasterBand& band, const NodataValue& nodata, GDALDataType type) {
    if (type == GDT_Int64)
        band.SetNoDataValueAsInt64(nodata.kind == GDT_Int64 ? nodata.whole
                                                            : static_cast<int64_t>(nodata.as_double()));
    else if (type == GDT_UInt64)
        band.SetNoDataValueAsUInt64(nodata.kind == GDT_UInt64 ? nodata.natural
                                                              : static_cast<uint64_t>(nodata.as_double()));
    else
        band.SetNoDataValue(nodata.as_double());
}

std::string holds_text(GDALDriver* driver, const OutputSpec& spec, GDALDataType type) {
    return std::string(driver->GetDescription()) + " cannot hold " + std::to_string(spec.shape.bands) +
           (spec.shape.bands == 1 ? " band of " : " bands of ") + GDALGetDataTypeName(type);
}

/// Makes a tiny file of the same kind, which asks the driver itself whether it takes the bands, type and
/// options.
void try_driver(GDALDriver* driver, const OutputOptions& options, const OutputSpec& spec, GDALDataType type,
                const CPLStringList& list) {
    constexpr int side = 16;
    const std::string extension = extension_of(options.path);
    const std::string suffix = extension.empty() ? "" : "." + extension;
    const bool memory = has_capability(driver, GDAL_DCAP_VIRTUALIO);
    const std::string in_memory = CPLSPrintf("/vsimem/hsi-try-%d-%p/t", static_cast<int>(getpid()),
                                             static_cast<const void*>(&extension)) +
                                  suffix;
    const std::string beside = (options.path.rfind("/vsi", 0) == 0 ? std::string("t") : options.path);
    const AtomicFile file(memory ? in_memory : beside);
    const GdalErrors errors;
    bool made = false;
    if (takes_blocks(driver)) {
        const DatasetHandle dataset(driver->Create(file.path().c_str(), side, side, spec.shape.bands, type,
                                                   const_cast<char**>(list.List())));
        made = dataset != nullptr;
    } else {
        const DatasetHandle from(GetGDALDriverManager()->GetDriverByName("MEM")->Create(
            "", side, side, spec.shape.bands, type, nullptr));
        const DatasetHandle dataset(from ? driver->CreateCopy(file.path().c_str(), from.get(), FALSE,
                                                              const_cast<char**>(list.List()), nullptr,
                                                              nullptr)
                                         : nullptr);
        made = dataset != nullptr;
    }
    if (!made || errors.any()) throw UsageError(holds_text(driver, spec, type) + ": " + errors.text());
}

struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
};

void check_place(const OutputOptions& options, GDALDriver* driver) {
    const std::string& path = options.path;
    if (path == standard_output) {
        if (!is(driver, "GTiff") && !is(driver, "PNG") && !is(driver, "JPEG"))
            throw UsageError("a file of the " + std::string(driver->GetDescription()) +
                                 " driver cannot be written to standard output",
                             "GTiff, PNG and JPEG can.");
        return;
    }
    const std::string folder = folder_of(path);
    if (is_local(path)) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
            throw Error("cannot write '" + path + "': there is no folder '" + folder + "'");
        if (::access(folder.c_str(), W_OK | X_OK) != 0)
            throw Error("cannot write '" + path + "': no permission to write in the folder '" + folder + "'");
    }
    const auto refuse_existing = [&](const std::string& existing) {
        VSIStatBufL info;
        if (VSIStatExL(existing.c_str(), &info, VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG) != 0) return;
        if (!VSI_ISREG(info.st_mode) && !VSI_ISDIR(info.st_mode))
            throw Error("'" + existing + "' exists and is no regular file");
        if (VSI_ISDIR(info.st_mode) && existing == path && !is(driver, "Zarr"))
            throw Error("'" + existing + "' is a folder");
        if (!options.overwrite)
            throw Error("File '" + existing + "' already exists.", "Specify -overwrite to replace it.");
    };
    refuse_existing(path);
    if (is(driver, "ENVI")) {
        const bool added = EQUAL(creation_options(options).FetchNameValueDef("SUFFIX", "REPLACE"), "ADD");
        refuse_existing(added ? path + ".hdr" : std::string(CPLResetExtension(path.c_str(), "hdr")));
    }
}

/// is_virtual: the caller writes a VRT whose pixels other rasters hold.
Target check_all(const OutputOptions& options, const OutputSpec& spec, bool is_virtual = false) {
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
    const CPLStringList types(
        CSLTokenizeString2(target.driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES), " ", 0));
    if (!types.empty() && types.FindString(GDALGetDataTypeName(target.type)) < 0)
        throw UsageError(holds_text(target.driver, spec, target.type),
                         "It takes the types " +
                             std::string(target.driver->GetMetadataItem(GDAL_DMD_CREATIONDATATYPES)) +
                             "; see -ot.");
    if (options.nodata && !fitting(*options.nodata, target.type))
        throw UsageError("-dstnodata " + std::string(CPLSPrintf("%.17g", *options.nodata)) +
                         " is no value of the type " + GDALGetDataTypeName(target.type));
    {
        const GdalErrors errors;
        if (!GDALValidateCreationOptions(target.driver, target.options.List()))
            throw UsageError("-co: " + (errors.any() ? errors.text() : errors.warnings()));
    }
    check_place(options, target.driver);
    if (is_virtual) return target;
    if (is(target.driver, "GTiff")) add_geotiff_defaults(target.options, spec.shape, target.type);
    try_driver(target.driver, options, spec, target.type, target.options);
    return target;
}

/// Where a symbolic link leads, so that the link stays and its target is replaced.
std::string real_destination(const std::string& path) {
    struct stat info {};
    if (!is_local(path) || ::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return path;
    const std::string out = resolved;
    std::free(resolved);
    return out;
}

/// Files that belong to the raster that stands at `path` now.
std::vector<std::string> old_side_files(const std::string& path) {
    VSIStatBufL info;
    if (VSIStatExL(path.c_str(), &info, VSI_STAT_EXISTS_FLAG) != 0) return {};
    std::vector<std::string> out;
    for (const char* suffix : {".aux.xml", ".ovr", ".msk"})
        out.push_back(path + suffix);
    const GdalErrors quiet;
    const DatasetHandle old(GDALDataset::FromHandle(
        GDALOpenEx(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!old) return out;
    const CPLStringList files(old->GetFileList());
    const std::string stem = CPLResetExtension(path.c_str(), "");
    const std::string start = stem.empty() || stem.back() != '.' ? stem : stem.substr(0, stem.size() - 1);
    for (int i = 0; i < files.size(); ++i) {
        const std::string file = files[i];
        // A VRT lists its sources, too: only what shares the name is a part of it.
        const std::string name = file.substr(0, file.rfind('.'));
        if (file != path && (file.rfind(path + ".", 0) == 0 || name == start)) out.push_back(file);
    }
    return out;
}

bool same_geotransform(const double* a, const double* b) {
    for (int i = 0; i < 6; ++i)
        if (std::abs(a[i] - b[i]) > 1e-9 * std::max({1e-3, std::abs(a[i]), std::abs(b[i])})) return false;
    return true;
}

/// "map info" of an ENVI header knows rotation, but neither shear nor lines that run upwards: GDAL writes
/// something near, which would put the scene elsewhere.
void check_envi_geotransform(const double (&wanted)[6], const std::string& name) {
    const AtomicFile file(CPLSPrintf("/vsimem/hsi-try-%d-%p/g.img", static_cast<int>(getpid()),
                                     static_cast<const void*>(wanted)));
    double got[6] = {};
    const GdalErrors quiet;
    {
        const DatasetHandle made(GetGDALDriverManager()->GetDriverByName("ENVI")->Create(
            file.path().c_str(), 2, 2, 1, GDT_Byte, nullptr));
        if (!made) return;
        double copy[6];
        std::copy(wanted, wanted + 6, copy);
        made->SetGeoTransform(copy);
    }
    const DatasetHandle read(GDALDataset::FromHandle(
        GDALOpenEx(file.path().c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!read || read->GetGeoTransform(got) != CE_None || !same_geotransform(wanted, got))
        throw Error("an ENVI header cannot hold the geotransform of " + name +
                        ", whose axes are sheared or run the other way",
                    "Write a GTiff (-of GTiff), or warp the source first.");
}

std::string read_all(const std::string& path) {
    GByte* bytes = nullptr;
    vsi_l_offset size = 0;
    if (!VSIIngestFile(nullptr, path.c_str(), &bytes, &size, -1)) throw Error("cannot read '" + path + "'");
    std::string text(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
    CPLFree(bytes);
    return text;
}

void write_all(const std::string& path, const std::string& text) {
    VSILFILE* file = VSIFOpenL(path.c_str(), "wb");
    const bool written = file && VSIFWriteL(text.data(), 1, text.size(), file) == text.size();
    if ((file && VSIFCloseL(file) != 0) || !written)
        throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

} // namespace

struct RasterSink::Impl {
    OutputOptions options;
    OutputSpec spec;
    Target target;
    std::optional<SceneMetadata> scene; ///< of the like source
    StoreRule rule;
    std::optional<NodataValue> nodata;
    std::unique_ptr<AtomicFile> file;
    std::string stage; ///< the GTiff that a driver without Create copies from
    DatasetHandle dataset;
    std::unique_ptr<RawWriter> raw;
    std::unique_ptr<BlockWriter> blocks;

    ~Impl() {
        const GdalErrors quiet; // an unfinished file is of no interest, nor are its errors
        blocks.reset();
        raw.reset();
        dataset.reset();
        remove_stage();
    }

    bool copies() const { return !stage.empty(); }

    void remove_stage() {
        if (stage.empty()) return;
        VSIUnlink(stage.c_str());
        VSIUnlink((stage + ".aux.xml").c_str());
    }

    Error failure(const std::string& reason) const {
        return Error("cannot write '" + options.path + "': " + reason);
    }

    void make() {
        GDALDriver* maker = target.driver;
        CPLStringList list = target.options;
        std::string path = file->path();
        if (!takes_blocks(maker) || options.path == standard_output) {
            stage = path = file->scratch_path("tif");
            maker = GetGDALDriverManager()->GetDriverByName("GTiff");
            list = CPLStringList();
            list.SetNameValue("BIGTIFF", "YES");
            add_geotiff_defaults(list, spec.shape, target.type);
        }
        const GdalErrors errors;
        dataset.reset(maker->Create(path.c_str(), static_cast<int>(spec.shape.samples),
                                    static_cast<int>(spec.shape.lines), spec.shape.bands, target.type,
                                    list.List()));
        if (!dataset) throw failure(errors.text());
        describe();
        open_writer();
    }

    void describe() {
        // What a driver has no place for goes to GDAL's .aux.xml; what even that does not take is told to
        // nobody.
        const GdalErrors quiet;
        if (nodata)
            for (int b = 1; b <= spec.shape.bands; ++b)
                set_nodata(*dataset->GetRasterBand(b), *nodata, target.type);
        if (scene) write_scene(*scene, spec.same_bands, *dataset);
        for (size_t k = 0;
             !spec.same_bands && k < spec.bands.size() && k < static_cast<size_t>(spec.shape.bands); ++k) {
            GDALRasterBand* band = dataset->GetRasterBand(static_cast<int>(k) + 1);
            if (!spec.bands[k].description.empty()) band->SetDescription(spec.bands[k].description.c_str());
            for (const auto& [key, value] : spec.bands[k].metadata)
                band->SetMetadataItem(key.c_str(), value.c_str());
        }
        for (const auto& [key, value] : spec.metadata)
            dataset->SetMetadataItem(key.c_str(), value.c_str());
        if (!options.history.empty()) {
            const char* before = dataset->GetMetadataItem("HSI_HISTORY");
            const std::string all =
                (before && *before ? std::string(before) + "\n" : std::string()) + options.history;
            dataset->SetMetadataItem("HSI_HISTORY", all.c_str());
        }
        GDALRasterBand* first = dataset->GetRasterBand(1);
        if (!spec.categories.empty()) {
            CPLStringList names;
            for (const std::string& name : spec.categories)
                names.AddString(name.c_str());
            first->SetCategoryNames(names.List());
        }
        if (!spec.colours.empty()) {
            GDALColorTable table;
            for (size_t i = 0; i < spec.colours.size(); ++i) {
                const auto& c = spec.colours[i];
                const GDALColorEntry entry{c[0], c[1], c[2], c[3]};
                table.SetColorEntry(static_cast<int>(i), &entry);
            }
            first->SetColorTable(&table);
        }
        if (!spec.categories.empty() && !spec.colours.empty()) write_attribute_table(*first);
    }

    /// The legend once more as an attribute table, which keeps names and colours of single values together:
    /// some programs read nothing else.
    void write_attribute_table(GDALRasterBand& band) {
        GDALDefaultRasterAttributeTable table;
        table.CreateColumn("Value", GFT_Integer, GFU_MinMax);
        table.CreateColumn("Class_name", GFT_String, GFU_Name);
        table.CreateColumn("Red", GFT_Integer, GFU_Red);
        table.CreateColumn("Green", GFT_Integer, GFU_Green);
        table.CreateColumn("Blue", GFT_Integer, GFU_Blue);
        table.CreateColumn("Alpha", GFT_Integer, GFU_Alpha);
        table.SetTableType(GRTT_THEMATIC);
        int row = 0;
        for (size_t value = 0; value < std::min(spec.categories.size(), spec.colours.size()); ++value) {
            if (spec.categories[value].empty()) continue; // a number that no class has
            table.SetValue(row, 0, static_cast<int>(value));
            table.SetValue(row, 1, spec.categories[value].c_str());
            for (int part = 0; part < 4; ++part)
                table.SetValue(row, 2 + part, spec.colours[value][static_cast<size_t>(part)]);
            ++row;
        }
        band.SetDefaultRAT(&table);
    }

    void open_writer() {
        // Drivers that are known to leave the data to whoever has the layout, and only write a header at the
        // end.
        if (!copies() && (is(target.driver, "ENVI") || is(target.driver, "EHdr"))) {
            {
                const GdalErrors errors;
                dataset->FlushCache(false);
                if (errors.any()) throw failure(errors.text());
            }
            const auto layout = raw_layout(*dataset);
            const bool usable = layout && (layout->packed_rows() ||
                                           (layout->band_step == layout->sample_bytes &&
                                            layout->pixel_step == spec.shape.bands * layout->sample_bytes));
            if (usable) {
                try {
                    raw = std::make_unique<RawWriter>(*layout, spec.shape.bands, spec.shape.lines,
                                                      spec.shape.samples, rule);
                } catch (const Error& e) {
                    throw failure(e.what());
                }
                return;
            }
        }
        blocks =
            std::make_unique<BlockWriter>(*dataset, rule, options.memory ? options.memory : usable_ram() / 4);
    }

    /// The ENVI driver's header lacks most of what the source told, and its side file repeats the rest.
    void finish_envi() {
        std::string header;
        for (const std::string& path : file->made())
            if (EQUAL(CPLGetExtension(path.c_str()), "hdr")) header = path;
        if (header.empty()) return;
        std::string text = read_all(header);
        if (scene) text = finish_envi_header(text, *scene, spec.same_bands);
        const std::string side = file->path() + ".aux.xml";
        CPLXMLNode* root = nullptr;
        VSIStatBufL info;
        if (VSIStatL(side.c_str(), &info) == 0) root = CPLParseXMLFile(side.c_str());
        CPLXMLTreeCloser closer(root);
        bool changed = false;
        if (root != nullptr) {
            for (CPLXMLNode* node = root->psChild; node != nullptr;) {
                CPLXMLNode* next = node->psNext;
                if (EQUAL(node->pszValue, "Metadata") && EQUAL(CPLGetXMLValue(node, "domain", ""), "ENVI")) {
                    CPLRemoveXMLChild(root, node);
                    CPLDestroyXMLNode(node);
                    changed = true;
                }
                node = next;
            }
        }
        write_all(header, text);
        if (changed) {
            if (root->psChild == nullptr)
                VSIUnlink(side.c_str());
            else
                CPLSerializeXMLTreeToFile(root, side.c_str());
        }
    }

    /// The same description as any output's, in a VRT in memory, completed by the derived bands.
    void make_virtual(const RasterSource& like, const std::vector<VirtualBand>& bands) {
        std::string text;
        {
            const GdalErrors errors;
            dataset.reset(target.driver->Create("", static_cast<int>(spec.shape.samples),
                                                static_cast<int>(spec.shape.lines), spec.shape.bands,
                                                target.type, nullptr));
            if (!dataset) throw failure(errors.text());
            describe();
            CSLConstList const xml = dataset->GetMetadata("xml:VRT");
            if (xml == nullptr || xml[0] == nullptr) throw failure(errors.text());
            text = xml[0];
            dataset.reset();
        }
        const std::optional<double> no_value =
            nodata ? std::optional<double>(nodata->as_double()) : std::nullopt;
        write_all(file->path(), with_derived_bands(text, file->destination(), like, bands, no_value));
        check_written(file->path());
        file->commit(old_side_files(file->destination()));
    }

    /// GDAL closes without a return value: what was written must open again and be as large as it was made.
    void check_written(const std::string& path) const {
        const GdalErrors errors;
        const DatasetHandle written(GDALDataset::FromHandle(
            GDALOpenEx(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, nullptr,
                       nullptr, nullptr)));
        if (!written || written->GetRasterXSize() != spec.shape.samples ||
            written->GetRasterYSize() != spec.shape.lines || written->GetRasterCount() < 1)
            throw failure("the file does not open after writing: " + errors.text("it has another size"));
    }
};

RasterSink::RasterSink(std::unique_ptr<Impl> impl) : m(std::move(impl)) {}
RasterSink::~RasterSink() = default;

void RasterSink::check(const OutputOptions& options, const OutputSpec& spec) { check_all(options, spec); }

bool RasterSink::is_virtual(const OutputOptions& options) { return is(choose_driver(options), "VRT"); }

void RasterSink::check_virtual(const OutputOptions& options, const OutputSpec& spec,
                               const RasterSource& like) {
    check_all(options, spec, true);
    if (!options.creation_options.empty())
        throw UsageError("-co " + options.creation_options.front() + ": a VRT has no creation options");
    if (same_file(like.path(), options.path))
        throw UsageError("the destination '" + options.path + "' is the source");
    check_virtual_source(like);
}

void RasterSink::write_virtual(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like,
                               const std::vector<VirtualBand>& bands) {
    check_virtual(options, spec, like);
    if (bands.size() != static_cast<size_t>(spec.shape.bands))
        throw Error("internal: a virtual output needs a function a band");
    Impl impl;
    impl.target = check_all(options, spec, true);
    impl.options = options;
    impl.spec = spec;
    impl.scene = like.metadata();
    impl.nodata = choose_nodata(options, spec, &*impl.scene, impl.target.type);
    impl.file = std::make_unique<AtomicFile>(real_destination(options.path));
    impl.make_virtual(like, bands);
}

std::unique_ptr<RasterSink> RasterSink::create(const OutputOptions& options, const OutputSpec& spec,
                                               const RasterSource* like) {
    auto impl = std::make_unique<Impl>();
    impl->target = check_all(options, spec);
    impl->options = options;
    impl->spec = spec;
    if (like != nullptr) {
        if (same_file(like->path(), options.path))
            throw UsageError("the destination '" + options.path + "' is the source");
        impl->scene = like->metadata();
        double gt[6];
        if (is(impl->target.driver, "ENVI") && like->geotransform(gt))
            check_envi_geotransform(gt, "'" + like->path() + "'");
        if (spec.same_bands && impl->scene->bands.size() != static_cast<size_t>(spec.shape.bands))
            throw Error("internal: an output with the bands of its source has another number of them");
    }
    impl->spec.same_bands = spec.same_bands && like != nullptr;
    if (like == nullptr) {
        impl->scene = made_scene(spec);
        impl->spec.same_bands = impl->scene.has_value(); // the bands are those that the spec describes
    }
    impl->nodata = choose_nodata(options, spec, impl->scene ? &*impl->scene : nullptr, impl->target.type);
    impl->rule = StoreRule(impl->target.type, spec.keep_nan ? std::nullopt : impl->nodata);
    impl->file = std::make_unique<AtomicFile>(real_destination(options.path));
    impl->make();
    return std::unique_ptr<RasterSink>(new RasterSink(std::move(impl)));
}

stream::CubeShape RasterSink::shape() const { return m->spec.shape; }
bool RasterSink::concurrent() const { return m->raw != nullptr; }

void RasterSink::write(const Rect& core, const CubeView<float>& src) {
    try {
        if (m->raw)
            m->raw->write(core, src);
        else
            m->blocks->write(core, src);
    } catch (const Error& e) {
        throw m->failure(e.what());
    }
}

uint64_t RasterSink::stored_bytes_per_pixel() const {
    return static_cast<uint64_t>(m->spec.shape.bands) * m->rule.sample_bytes();
}

bool RasterSink::raw_access() const { return m->raw != nullptr; }

uint64_t RasterSink::cache_bytes() const { return m->raw ? 0 : m->blocks->wanted_bytes(); }

stream::BlockLayout RasterSink::layout() const {
    return m->raw ? stream::BlockLayout{} : m->blocks->layout();
}

std::string RasterSink::driver() const { return m->target.driver->GetDescription(); }

std::optional<double> RasterSink::nodata() const {
    return m->nodata ? std::optional<double>(m->nodata->as_double()) : std::nullopt;
}

void RasterSink::commit() {
    Impl& s = *m;
    const GdalErrors errors;
    const bool to_stdout = s.options.path == standard_output;
    const auto check = [&] {
        // The GTiff driver tries to open again what it has streamed, and complains although all went well.
        const bool spurious = to_stdout && errors.text() == "Read or update mode not supported on /vsistdout";
        if (errors.any() && !spurious) throw s.failure(errors.text());
    };
    try {
        if (s.blocks) s.blocks->finish();
        if (s.raw) s.raw->close();
    } catch (const Error& e) {
        throw s.failure(e.what());
    }
    s.blocks.reset();
    s.dataset->FlushCache(true);
    check();
    s.dataset.reset();
    check();
    if (s.copies()) {
        s.check_written(s.stage);
        {
            const DatasetHandle from(GDALDataset::FromHandle(
                GDALOpenEx(s.stage.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
            CPLStringList list = s.target.options;
            if (to_stdout && is(s.target.driver, "GTiff")) list.SetNameValue("STREAMABLE_OUTPUT", "YES");
            DatasetHandle copy(s.target.driver->CreateCopy(s.file->path().c_str(), from.get(), FALSE,
                                                           list.List(), nullptr, nullptr));
            if (!copy) throw s.failure(errors.text());
            copy.reset();
            check();
        }
        s.remove_stage();
    }
    if (is(s.target.driver, "ENVI")) {
        s.finish_envi();
        check();
    }
    if (!to_stdout) s.check_written(s.file->path());
    const auto stale = to_stdout ? std::vector<std::string>() : old_side_files(s.file->destination());
    try {
        s.file->commit(stale);
    } catch (const Error& e) {
        throw s.failure(e.what());
    }
}

} // namespace hsi::raster
