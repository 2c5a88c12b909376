// SPDX-License-Identifier: MIT
#include "raster/raster_sink.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "core/process_limits.h"
#include "raster/atomic_file.h"
#include "raster/block_writer.h"
#include "raster/creation_options.h"
#include "raster/drivers.h"
#include "raster/format_trial.h"
#include "raster/gdal_errors.h"
#include "raster/made_scene.h"
#include "raster/output_format.h"
#include "raster/raw_writer.h"
#include "raster/run_files.h"
#include "raster/scene_metadata.h"
#include "raster/side_files.h"
#include "raster/source_impl.h"
#include "raster/staged_output.h"
#include "raster/store_convert.h"
#include "raster/text_output.h"
#include "raster/virtual_bands.h"
#include "raster/written_raster.h"

#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal_rat.h>

#include <stdio_ext.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace hsi::raster {
namespace {

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

/// The place of an output: its folder, what is there already, what else it would fall on.
void check_place(const OutputOptions& options, GDALDriver* driver) {
    const std::string& path = options.path;
    if (path == standard_output) {
        if (!is(driver, "GTiff") && !is(driver, "PNG") && !is(driver, "JPEG"))
            throw UsageError("a file of the " + std::string(driver->GetDescription()) +
                                 " driver cannot be written to standard output",
                             "GTiff, PNG and JPEG can.");
        return;
    }
    // A link stays, and side files lie beside what it leads to.
    const std::string end = is_local(path) ? follow_links(path) : path, folder = folder_of(end);
    const auto sides = side_file_names(driver->GetDescription(), end, options.creation_options);
    if (options.run) options.run->writes(options.role, path, sides);
    if (is_local(path)) {
        struct stat info {};
        if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
            throw Error("cannot write '" + path + "': there is no folder '" + folder + "'");
        if (::access(folder.c_str(), W_OK | X_OK) != 0)
            throw Error("cannot write '" + path + "': no permission to write in the folder '" + folder + "'");
    }
    const auto exists = [](const std::string& name, VSIStatBufL& info) {
        return VSIStatExL(name.c_str(), &info, VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG) == 0;
    };
    VSIStatBufL info;
    if (exists(path, info)) {
        if (!VSI_ISREG(info.st_mode) && !VSI_ISDIR(info.st_mode))
            throw Error("'" + path + "' exists and is no regular file");
        if (VSI_ISDIR(info.st_mode) && !is(driver, "Zarr")) throw Error("'" + path + "' is a folder");
        if (!options.overwrite)
            throw Error("File '" + path + "' already exists.", "Specify -overwrite to replace it.");
    }
    for (const std::string& side : sides) {
        const bool header = EQUAL(CPLGetExtension(side.c_str()), "hdr");
        // out.tif.aux.xml is nothing without out.tif, and goes with it.
        if ((side.rfind(end + ".", 0) == 0 && !header) || !exists(side, info)) continue;
        if (!options.overwrite)
            throw Error("File '" + side + "' already exists.", "Specify -overwrite to replace it.");
        if (!header) continue;
        if (const std::string owner = other_owner_of_header(side, end); !owner.empty())
            throw Error("'" + side + "' is the header of '" + owner + "', and '" + path +
                            "' would need it too",
                        "Choose a name that differs before the extension.");
    }
}

/// is_virtual: the caller writes a VRT whose pixels other rasters hold.
/// scene: where the output lies; null: not known yet.
Target check_all(const OutputOptions& options, const OutputSpec& spec, bool is_virtual = false,
                 const SceneMetadata* scene = nullptr) {
    Target target = choose_target(options, spec, is_virtual);
    check_place(options, target.driver);
    if (!is_virtual) try_target(target, options, spec, scene);
    return target;
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
    std::string stage;    ///< the GTiff that a driver without Create copies from
    std::string streamed; ///< the file that goes to standard output byte by byte
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
        for (const std::string& path : {stage, streamed}) {
            if (path.empty()) continue;
            VSIUnlink(path.c_str());
            VSIUnlink((path + ".aux.xml").c_str());
        }
    }

    /// Sends a finished file to standard output.
    void stream(const std::string& path) const {
        const auto close = [](VSILFILE* handle) { VSIFCloseL(handle); };
        std::unique_ptr<VSILFILE, decltype(close)> from(VSIFOpenL(path.c_str(), "rb"), close);
        std::unique_ptr<VSILFILE, decltype(close)> to(VSIFOpenL(standard_output, "wb"), close);
        if (!from || !to) throw failure(std::strerror(errno));
        std::vector<char> buffer(size_t{1} << 20);
        for (;;) {
            const size_t got = VSIFReadL(buffer.data(), 1, buffer.size(), from.get());
            if (VSIFWriteL(buffer.data(), 1, got, to.get()) != got) throw failure(std::strerror(errno));
            if (got < buffer.size()) break;
        }
        if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw failure(std::strerror(errno));
        VSIStatBufL facts;
        if (VSIStatL(path.c_str(), &facts) != 0 ||
            VSIFTellL(from.get()) != static_cast<vsi_l_offset>(facts.st_size))
            throw failure("'" + path + "' could not be read back");
    }

    Error failure(const std::string& reason) const {
        return Error("cannot write '" + options.path + "': " + reason);
    }

    /// GDAL's local files are streams of stdio, and GDAL does not look at what closing one returns: the last
    /// kilobytes of a file could be lost on a full disk, unseen. Flushed before, they are seen.
    void flush() const {
        // What the standard output does not take is nothing to the image: its error mark stays for who looks
        // after it.
        if (std::fflush(stdout) != 0) __fpurge(stdout);
        if (std::fflush(nullptr) != 0) throw failure(std::strerror(errno));
    }

    void make() {
        GDALDriver* maker = target.driver;
        CPLStringList list = target.options;
        std::string path = file->path();
        if (target.copies || options.path == standard_output) {
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
        if (copies()) prepare_stage(target, *dataset);
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

    bool cancelled() const { return options.cancel != nullptr && options.cancel->requested(); }

    /// GDAL asks it several times a second whether to go on.
    static int CPL_STDCALL go_on(double, const char*, void* sink) {
        return static_cast<Impl*>(sink)->cancelled() ? 0 : 1;
    }

    /// A COG's overviews, of the stage: made band by band there, in little memory. Left to the COG driver
    /// they are made of all bands at once, through the block cache again and again.
    void add_overviews(const CPLStringList& list) {
        const char* const wanted = list.FetchNameValueDef("OVERVIEWS", "AUTO");
        const char* const scheme = list.FetchNameValueDef("TILING_SCHEME", "CUSTOM");
        if (!EQUAL(wanted, "AUTO") || !EQUAL(scheme, "CUSTOM")) return;
        const DatasetHandle dataset_to_reduce(GDALDataset::FromHandle(
            GDALOpenEx(stage.c_str(), GDAL_OF_RASTER | GDAL_OF_UPDATE, nullptr, nullptr, nullptr)));
        if (!dataset_to_reduce) return;
        const int side = std::max(1, std::atoi(list.FetchNameValueDef("BLOCKSIZE", "512")));
        const char* const count = list.FetchNameValue("OVERVIEW_COUNT");
        std::vector<int> levels;
        int64_t w = spec.shape.samples, h = spec.shape.lines;
        for (int level = 2;
             count != nullptr ? static_cast<int>(levels.size()) < std::atoi(count) && (w > 1 || h > 1)
                              : w > side || h > side;
             level *= 2) {
            levels.push_back(level);
            w = (w + 1) / 2;
            h = (h + 1) / 2;
        }
        const char* const method = list.FetchNameValueDef(
            "OVERVIEW_RESAMPLING",
            list.FetchNameValueDef(
                "RESAMPLING", dataset_to_reduce->GetRasterBand(1)->GetColorTable() ? "NEAREST" : "CUBIC"));
        if (!levels.empty())
            dataset_to_reduce->BuildOverviews(method, static_cast<int>(levels.size()), levels.data(), 0,
                                              nullptr, go_on, this, nullptr);
    }

    /// The stage's pixels into the destination's format. Throws Error and Cancelled.
    void copy_stage(const GdalErrors& errors) {
        CPLStringList list = target.options;
        // What the GTiff driver streams by itself is wrong from GDAL 3.10 on when the directory's texts end
        // at an odd byte: the directory comes twice, and the pixels lie where nobody looks.
        if (options.path == standard_output && (is(target.driver, "GTiff") || is(target.driver, "COG")))
            streamed = file->scratch_path("out.tif");
        const std::string path = streamed.empty() ? file->path() : streamed;
        if (is(target.driver, "COG")) add_overviews(list);
        if (cancelled()) throw Cancelled();
        if (errors.any()) throw failure(errors.text());
        const DatasetHandle from(GDALDataset::FromHandle(
            GDALOpenEx(stage.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
        if (!from) throw failure(errors.text());
        DatasetHandle copy(
            target.driver->CreateCopy(path.c_str(), from.get(), FALSE, list.List(), go_on, this));
        if (cancelled()) throw Cancelled();
        if (!copy) throw failure(errors.text());
        copy.reset();
        if (errors.any()) throw failure(errors.text());
        if (streamed.empty()) return;
        check_written(streamed);
        stream(streamed);
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
        replace_file(header, text);
        if (!changed) return;
        if (root->psChild == nullptr) {
            VSIUnlink(side.c_str());
            return;
        }
        char* const serialised = CPLSerializeXMLTree(root);
        const std::string xml = serialised;
        CPLFree(serialised);
        replace_file(side, xml);
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
        {
            // Its relative names hold at the destination only: a twin that names the same files from where it
            // lies, outputs that wait for their names among them, shows that it opens.
            auto at_hand = bands;
            for (VirtualBand& band : at_hand)
                if (options.run && !band.further.empty())
                    band.further = options.run->pending_path(band.further);
            const std::string twin = file->scratch_path("vrt");
            write_all(twin, with_derived_bands(text, twin, like, at_hand, no_value));
            check_written(twin);
            VSIUnlink(twin.c_str());
        }
        hand_over();
    }

    void replace_file(const std::string& path, const std::string& text) const {
        VSIUnlink(path.c_str());
        write_file({options.role, options.path, true, nullptr}, path, text);
    }

    /// GDAL writes its side file without looking whether it got to the disk.
    void check_side_files() const {
        const GdalErrors errors;
        for (const std::string& path : file->made()) {
            if (!EQUAL(CPLGetExtension(path.c_str()), "xml")) continue;
            const CPLXMLTreeCloser tree(CPLParseXMLFile(path.c_str()));
            if (!tree) throw failure("'" + name_of(path) + "' is incomplete after writing: " + errors.text());
        }
    }

    /// What is complete and verified goes to the run, which gives all its outputs their names together;
    /// alone, it gets its own at once.
    void hand_over() {
        if (options.path != standard_output) file->set_stale(old_side_files(file->destination()));
        if (options.run) {
            options.run->add(std::move(file));
            return;
        }
        file->publish();
        file->conclude();
    }

    /// GDAL closes without a return value: what was written must open again as it was made.
    void check_written(const std::string& path) const {
        const std::string fault = WrittenRaster(path).fault(spec.shape, target.type);
        if (!fault.empty()) throw failure("read again, " + fault);
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
    impl.file = std::make_unique<AtomicFile>(options.path, options.overwrite);
    impl.make_virtual(like, bands);
}

std::unique_ptr<RasterSink> RasterSink::create(const OutputOptions& options, const OutputSpec& spec,
                                               const RasterSource* like) {
    auto impl = std::make_unique<Impl>();
    const auto scene = like != nullptr ? std::optional<SceneMetadata>(like->metadata()) : made_scene(spec);
    const SceneMetadata nowhere;
    impl->target = check_all(options, spec, false, scene ? &*scene : &nowhere);
    impl->options = options;
    impl->spec = spec;
    if (like != nullptr) {
        if (same_file(like->path(), options.path))
            throw UsageError("the destination '" + options.path + "' is the source");
        impl->scene = scene;
        double gt[6];
        if (is(impl->target.driver, "ENVI") && like->geotransform(gt))
            check_envi_geotransform(gt, "'" + like->path() + "'");
        if (spec.same_bands && impl->scene->bands.size() != static_cast<size_t>(spec.shape.bands))
            throw Error("internal: an output with the bands of its source has another number of them");
    }
    impl->spec.same_bands = spec.same_bands && like != nullptr;
    if (like == nullptr) {
        impl->scene = scene;
        impl->spec.same_bands = impl->scene.has_value(); // the bands are those that the spec describes
    }
    impl->nodata = choose_nodata(options, spec, impl->scene ? &*impl->scene : nullptr, impl->target.type);
    impl->rule = StoreRule(impl->target.type, spec.keep_nan ? std::nullopt : impl->nodata);
    impl->file = std::make_unique<AtomicFile>(options.path, options.overwrite);
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
        if (errors.any()) throw s.failure(errors.text());
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
    s.flush();
    s.dataset.reset();
    check();
    if (s.copies()) {
        s.check_written(s.stage);
        s.copy_stage(errors);
        check();
        s.remove_stage();
    }
    if (is(s.target.driver, "ENVI")) {
        s.finish_envi();
        check();
    }
    if (!to_stdout) {
        s.check_written(s.file->path());
        s.check_side_files();
    }
    try {
        s.hand_over();
    } catch (const Error& e) {
        throw s.failure(e.what());
    }
}

} // namespace hsi::raster
