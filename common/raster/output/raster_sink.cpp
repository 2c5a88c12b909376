// SPDX-License-Identifier: MIT
// The sink of an output file, from create_sink() to commit(). If the positions of pixels in the file are
// known, the sink writes the pixels itself; otherwise GDAL writes them. Outputs that are copied from a
// finished raster are in staged_output.cpp. Outputs without pixels are in virtual_output.cpp.
#include "raster/raster_sink.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/process_limits.h"
#include "core/text_file.h"
#include "parallel/group.h"
#include "raster/drivers.h"
#include "raster/files/file_register.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/output/creation_options.h"
#include "raster/output/envi_output.h"
#include "raster/output/format_trial.h"
#include "raster/output/netcdf_output.h"
#include "raster/output/output_description.h"
#include "raster/output/pending_output.h"
#include "raster/output/stac_item.h"
#include "raster/output/staged_output.h"
#include "raster/output/written_raster.h"
#include "raster/output_format.h"
#include "raster/regular_file.h"
#include "raster/side_files.h"
#include "raster/text_output.h"
#include "raster/tiff/tiff_blocks.h"

#include <cpl_minixml.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <stdio_ext.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

namespace hsi::raster {
namespace {

/// Makes all checks of an output. `scene`: metadata with the position of the output; null if the position is
/// not known yet.
Target check_all(const OutputOptions& options, const OutputSpec& spec, const SceneMetadata* scene = nullptr) {
    Target target = choose_target(options, spec, false);
    check_place(options, target.driver);
    if (!surely_holds(target, spec)) try_target(target, options, spec, scene);
    return target;
}

} // namespace

PendingOutput::~PendingOutput() {
    const GdalErrors quiet; // errors of an unfinished file are irrelevant
    blocks.reset();
    compressed.reset();
    raw.reset();
    dataset.reset();
    if (!stage.empty() || !streamed.empty()) remove_stage();
    if (shown && file) file->withdraw();
}

uint64_t PendingOutput::memory() const { return options.memory ? options.memory : usable_ram() / 4; }

Error PendingOutput::failure(const std::string& reason, const std::string& advice) const {
    return Error("cannot write '" + options.path + "': " + reason, advice);
}

/// Opens the file of the root process, which must be visible on this rank.
void PendingOutput::open_elsewhere() {
    constexpr int attempts = 20; // a network file system may show a new file with a delay
    for (int attempt = 1;; ++attempt) {
        try {
            raw = std::make_unique<RawWriter>(*raw_place, spec.shape.bands, rule, true);
            return;
        } catch (const Error& e) {
            if (attempt < attempts) {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                continue;
            }
            throw Error("the temporary file of '" + options.path + "' (" + options.role +
                            ") of rank 0 cannot be opened here: " + e.what(),
                        "Write to a file system that all ranks share.");
        }
    }
}

/// Prepares a TIFF whose blocks are written without GDAL. GDAL has created the file and its directory; the
/// positions of the blocks are entered afterwards.
void PendingOutput::open_tiff_writer(const Target& made, const std::string& path,
                                     const std::optional<BlockCoding>& coding) {
    WriteLayout layout;
    layout.path = path;
    layout.type = target.type;
    layout.sample_bytes = GDALGetDataTypeSizeBytes(target.type);
    int w = 0, h = 0;
    dataset->GetRasterBand(1)->GetBlockSize(&w, &h);
    const char* const interleave = dataset->GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    TiffShape shape{spec.shape.bands, spec.shape.lines, spec.shape.samples, h, w};
    shape.tiled = made.options.FetchBool("TILED", false);
    shape.apart = shape.bands == 1 || (interleave != nullptr && EQUAL(interleave, "BAND"));
    const GdalErrors errors;
    const bool closed = close_written(std::move(dataset), false);
    check(errors);
    if (!closed) throw failure("it was not completely written to the disk");
    try {
        if (coding) {
            compressed = std::make_unique<CompressedWriter>(
                CompressedWriter::Options{path, file->scratch_path("rows"), shape, *coding, memory(),
                                          coding_threads(target, options), parallel::group().several(),
                                          options.cancel},
                rule);
            return;
        }
        raw_place = place_tiff_blocks(std::move(layout), shape);
        raw = std::make_unique<RawWriter>(*raw_place, spec.shape.bands, rule);
    } catch (const Error& e) {
        throw failure(e.what(), e.advice());
    }
}

void PendingOutput::open_writer() {
    // The layout of these formats is known, so the pixels are written without GDAL. The driver only writes
    // the header, when the dataset is closed.
    if (!copies() && (is(target.driver, "ENVI") || is(target.driver, "EHdr"))) {
        {
            const GdalErrors errors;
            dataset->FlushCache(false);
            check(errors);
        }
        const auto layout = raw_layout(*dataset);
        const bool usable = layout && (layout->packed_rows() ||
                                       (layout->band_step == layout->sample_bytes &&
                                        layout->pixel_step == spec.shape.bands * layout->sample_bytes));
        if (usable) {
            try {
                WriteLayout& place = raw_place.emplace(WriteLayout{*layout, {}, 0});
                place.bytes = place.at(spec.shape.bands - 1, spec.shape.lines - 1, spec.shape.samples - 1) +
                              place.sample_bytes;
                raw = std::make_unique<RawWriter>(place, spec.shape.bands, rule);
            } catch (const Error& e) {
                throw failure(e.what());
            }
            return;
        }
    }
    blocks = std::make_unique<BlockWriter>(*dataset, rule, memory());
}

void PendingOutput::make() {
    Target made = target;
    std::string path = file->path();
    if (target.copies || options.path == standard_output) {
        stage = path = file->scratch_path("tif");
        made.driver = GetGDALDriverManager()->GetDriverByName("GTiff");
        made.copies = false;
        made.options = CPLStringList();
        made.options.SetNameValue("BIGTIFF", "YES");
        add_geotiff_defaults(made.options, spec.shape, target.type);
    }
    const bool in_place = takes_blocks_in_place(made, path);
    const auto coding = block_coding(made, path);
    CPLStringList list = made.options;
    if (in_place || coding) list.SetNameValue("SPARSE_OK", "TRUE");
    if (coding) list.SetNameValue("NUM_THREADS", nullptr); // GDAL would start threads that have no work
    if (is(made.driver, "netCDF")) add_netcdf_options(*described(), pixel_bytes(), list);
    check_memory_left(made.driver);
    const GdalErrors errors;
    dataset.reset(made.driver->Create(path.c_str(), static_cast<int>(spec.shape.samples),
                                      static_cast<int>(spec.shape.lines), spec.shape.bands, target.type,
                                      list.List()));
    if (!dataset) throw failure(errors.text());
    describe();
    if (copies()) prepare_stage(target, *dataset);
    if (in_place || coding)
        open_tiff_writer(made, path, coding);
    else
        open_writer();
}

uint64_t PendingOutput::cache_bytes() const {
    if (elsewhere) return elsewhere->cache_bytes;
    if (compressed) return compressed->wanted_bytes();
    return blocks ? blocks->wanted_bytes() : 0;
}

stream::BlockLayout PendingOutput::layout() const {
    if (elsewhere) return elsewhere->layout;
    return blocks ? blocks->layout() : stream::BlockLayout{};
}

void PendingOutput::make_together() {
    parallel::Group& ranks = parallel::group();
    if (!ranks.several()) {
        file = std::make_unique<AtomicFile>(options.path, options.overwrite);
        return make();
    }
    BytePacker out;
    if (ranks.root()) {
        file = std::make_unique<AtomicFile>(options.path, options.overwrite);
        make();
        out.put(cache_bytes()).put(layout()).put(raw_place.has_value());
        if (const auto& r = raw_place)
            out.put(std::filesystem::absolute(r->path).string())
                .put(r->type)
                .put(r->swapped)
                .put(r->origin)
                .put(r->pixel_step)
                .put(r->line_step)
                .put(r->band_step)
                .put(r->sample_bytes)
                .put(r->blocks)
                .put(r->bytes);
    }
    const std::string bytes = ranks.broadcast("output " + options.role, out.take());
    if (!ranks.root()) {
        ByteUnpacker in(bytes);
        elsewhere.emplace();
        in.get(elsewhere->cache_bytes);
        in.get(elsewhere->layout);
        if (in.one<bool>()) {
            WriteLayout& r = raw_place.emplace();
            in.get(r.path);
            in.get(r.type);
            in.get(r.swapped);
            in.get(r.origin);
            in.get(r.pixel_step);
            in.get(r.line_step);
            in.get(r.band_step);
            in.get(r.sample_bytes);
            in.get(r.blocks);
            in.get(r.bytes);
            open_elsewhere();
        }
    }
    ranks.any("output " + options.role + " is open", false); // waits until all ranks have opened the file
}

void PendingOutput::describe() {
    describe_output(options, spec, scene ? &*scene : nullptr, nodata, target.type, *dataset);
}

/// Discards buffered output that standard output does not accept; it is unrelated to the image. The error
/// state of `stdout` is kept for the code that checks it.
void PendingOutput::discard_unwritable_stdout() const {
    if (std::fflush(stdout) != 0) __fpurge(stdout);
}

void PendingOutput::check(const GdalErrors& errors) const {
    if (errors.any()) throw failure(errors.text());
    if (errors.side_file_lost()) throw failure(errors.warnings());
}

/// Opens the file again and checks it, because closing a GDAL dataset does not return errors.
void PendingOutput::check_written(const std::string& path) const {
    const WrittenRaster written(path);
    std::string fault = written.fault(spec.shape, target.type);
    // With SPARSE_OK, missing blocks are intended.
    if (fault.empty() && !target.options.FetchBool("SPARSE_OK", false) && written.lacks_blocks())
        fault = "blocks are missing";
    if (!fault.empty()) throw failure("read back, " + fault);
}

/// Checks that a side file is complete XML, because GDAL does not check whether a side file was written to
/// the disk.
void PendingOutput::check_xml(const std::string& path) const {
    if (!is_there(path)) return;
    const GdalErrors errors;
    const CPLXMLTreeCloser tree(CPLParseXMLFile(path.c_str()));
    if (!tree)
        throw failure("'" + name_of(path) + "' is incomplete after writing: " + errors.text("it is empty"));
}

void PendingOutput::check_side_files() const {
    for (const std::string& path : file->made())
        if (EQUAL(CPLGetExtension(path.c_str()), "xml")) check_xml(path);
}

void PendingOutput::warn_of_lost_values(const StoreRule::Lost& lost) const {
    if (!options.run) return;
    for (const std::string& text : rule.tell(lost))
        options.run->warn("'" + options.path + "': " + text);
}

void PendingOutput::warn_of_lost_nodata(const WrittenRaster& written) const {
    if (const auto made = written.number_for_nodata();
        !nodata && options.run && made && spec.categories.empty())
        options.run->warn("'" + options.path + "': the format " + target.driver->GetDescription() + " uses " +
                          CPLSPrintf("%.17g", made->as_double()) +
                          " as the default nodata value, so pixels with this value become invalid; set "
                          "another with -dstnodata");
    // NaN is always read as missing, and the value 0 of a class map never is a class.
    if (!nodata || !options.run || std::isnan(nodata->as_double()) ||
        (!spec.categories.empty() && nodata->as_double() == 0) || written.keeps(*nodata))
        return;
    options.run->warn("'" + options.path + "': the format " + target.driver->GetDescription() +
                      " does not store the nodata value " + CPLSPrintf("%.17g", nodata->as_double()) +
                      ": nodata pixels may be read as valid values");
}

namespace {

void warn_of_lost(const std::string& place, const OutputOptions& options, const Target& target) {
    if (options.run)
        options.run->warn("'" + options.path + "': the format " + target.driver->GetDescription() +
                          " does not store " + place);
}

} // namespace

void PendingOutput::warn_of_lost_place(const WrittenRaster& written) const {
    if (!scene) return;
    if (const std::string lost = written.lost_place(*scene); !lost.empty())
        warn_of_lost(lost, options, target);
}

DatasetHandle PendingOutput::described() const {
    DatasetHandle whole(GetGDALDriverManager()->GetDriverByName("VRT")->Create(
        "", static_cast<int>(spec.shape.samples), static_cast<int>(spec.shape.lines), spec.shape.bands,
        target.type, nullptr));
    if (!whole) throw failure("GDAL cannot make a VRT in memory");
    describe_output(options, spec, scene ? &*scene : nullptr, nodata, target.type, *whole);
    return whole;
}

bool PendingOutput::keep_metadata(const std::string& path) const {
    if (!is_local(path) && path.rfind("/vsimem/", 0) != 0)
        return false; // GDAL can write only one file at a time into an archive
    VSIStatBufL facts;
    if (VSIStatL(path.c_str(), &facts) == 0 && VSI_ISDIR(facts.st_mode))
        return false; // GDAL does not read side files of folders
    if (!CPLTestBool(CPLGetConfigOption("GDAL_PAM_ENABLED", "YES"))) return false;
    const SceneMetadata wanted = read_metadata(*described());
    std::vector<std::string> lost;
    const std::string side = path + ".aux.xml";
    std::string before, after;
    {
        const WrittenRaster written(path);
        // check_finished() reports the fault.
        if (!written.fault(spec.shape, target.type).empty()) return false;
        lost = written.lost(wanted);
        if (lost.empty()) return true;
        if (VSIStatL(side.c_str(), &facts) == 0)
            before = read_text_file(side, largest_file::options, FileHolds::bytes);
        after = written.with_lost(wanted, before);
    }
    const auto put = [&](const std::string& text) {
        VSILFILE* const to = VSIFOpenL(side.c_str(), "wb");
        const bool all = to && VSIFWriteL(text.data(), 1, text.size(), to) == text.size();
        if ((to && VSIFCloseL(to) != 0) || !all)
            throw failure("'" + name_of(side) + "': " + std::strerror(errno));
    };
    put(after);
    if (WrittenRaster(path).lost(wanted) != lost) return false;
    if (before.empty()) // the driver does not read the side file
        VSIUnlink(side.c_str());
    else
        put(before);
    return false;
}

void PendingOutput::warn_of_lost_metadata(const WrittenRaster& written) const {
    if (!options.run) return;
    const auto lost = written.lost(read_metadata(*described()));
    std::string all;
    for (size_t k = 0; k < lost.size(); ++k)
        all += (k == 0 ? "" : k + 1 == lost.size() ? " and " : ", ") + lost[k];
    if (!all.empty())
        options.run->warn("'" + options.path + "': the format " + target.driver->GetDescription() +
                          " cannot store " + all);
}

void PendingOutput::set_stale_files() const {
    if (options.path != standard_output) {
        std::vector<std::string> names = file->links(), stale; // each name may have its own side files
        names.push_back(file->destination());
        for (const std::string& name : names) {
            for (std::string& side : old_side_files(name))
                stale.push_back(std::move(side));
            // These side files may be left over from a file that no longer exists.
            for (const char* suffix : {".aux.xml", ".ovr", ".msk"})
                if (const std::string side = name + suffix;
                    std::find(stale.begin(), stale.end(), side) == stale.end() && is_there(side))
                    stale.push_back(side);
        }
        file->set_stale(std::move(stale));
    }
}

void PendingOutput::hand_over() {
    set_stale_files();
    write_stac_item(file->targets());
    if (options.run) {
        register_of(*options.run).add(std::move(file));
        return;
    }
    file->publish();
    file->conclude();
}

bool PendingOutput::complete_file(const GdalErrors& errors) {
    check_memory_left(target.driver);
    // GDAL writes an archive sequentially, and cannot read pixels from it before it is closed.
    const bool closed =
        !dataset || close_written(std::move(dataset), !raw && (copies() || is_local(options.path)));
    check(errors);
    if (!closed) throw failure("it was not completely written to the disk");
    if (copies()) {
        check_written(stage);
        check_xml(stage + ".aux.xml");
        copy_stage(errors);
        check(errors);
        remove_stage();
    }
    if (is(target.driver, "netCDF") && !copies())
        finish_netcdf(file->path(), file->destination(), *described());
    if (is(target.driver, "ENVI")) {
        finish_envi_output(*file, options, spec, scene ? &*scene : nullptr);
        check(errors);
    }
    if (options.path == standard_output) return false;
    const bool keeps_all = keep_metadata(file->path());
    check(errors);
    return keeps_all;
}

void PendingOutput::check_finished(bool keeps_metadata) const {
    check_written(file->path());
    check_side_files();
    const WrittenRaster written(file->path());
    warn_of_lost_nodata(written);
    warn_of_lost_place(written);
    if (!keeps_metadata) warn_of_lost_metadata(written);
}

void PendingOutput::show() {
    const GdalErrors errors;
    complete_file(errors);
    const auto pixel_bytes = static_cast<int64_t>(rule.sample_bytes()) * spec.shape.bands;
    Shown one{file->destination(),
              {},
              file->scratch_path("hdr"),
              {},
              {},
              file->targets(),
              file.get(),
              GrownLines(spec.shape.samples * pixel_bytes)};
    std::string made;
    for (const std::string& path : file->made())
        if (EQUAL(CPLGetExtension(path.c_str()), "hdr")) made = path;
    one.header = join_path(folder_of(one.path), name_of(made));
    const std::string text = with_final_names(read_text_file(made, largest_file::options, FileHolds::bytes));
    const std::string key = "\nlines";
    const size_t begin = text.find('=', text.find(key)), end = text.find('\n', begin);
    if (text.find(key) == std::string::npos || end == std::string::npos)
        throw failure("its header does not state the count of lines");
    one.before_lines = text.substr(0, begin + 2);
    one.after_lines = text.substr(end);
    one.lines.add(file->path(), spec.shape.lines); // recorded before other processes can write into the file
    shown = std::move(one);
    write_shown_header(made);
    check_finished(false);
    set_stale_files();
    file->watch();
    if (options.run)
        shown->made = &register_of(*options.run).show(std::move(file));
    else
        file->publish();
}

/// Writes the header without flushing it to the disk, because a flush would wait for all pixels each time.
void PendingOutput::write_shown_header(const std::string& path) const {
    const std::string text = shown->header_text(spec.shape.lines);
    std::FILE* const to = std::fopen(path.c_str(), "we");
    const bool written = to != nullptr && std::fwrite(text.data(), 1, text.size(), to) == text.size();
    const int reason = errno;
    if ((to == nullptr || std::fclose(to) == 0) && written) return;
    throw failure("its header: " + std::string(std::strerror(written ? errno : reason)));
}

void PendingOutput::conclude_shown(const StoreRule::Lost& lost) {
    for (const std::string& path : {shown->path, shown->header})
        shown->made->check_name(path);
    shown->lines.check(shown->path);
    if (read_text_file(shown->header, largest_file::options, FileHolds::bytes) !=
        shown->header_text(spec.shape.lines))
        throw Error("another process changed '" + shown->header + "' during this run",
                    "Run it again while no other program writes the output.");
    check_written(shown->path);
    write_stac_item(shown->files);
    warn_of_lost_values(lost);
    if (file) file->conclude(); // otherwise the run owns the file and concludes all its outputs
}

/// Writes a STAC Item that describes the output. The metadata comes from a dataset that can store all
/// metadata, even if the format of the output cannot.
void PendingOutput::write_stac_item(const std::vector<std::string>& files) {
    if (options.stac.path.empty()) return;
    const DatasetHandle whole = described();
    write_text_output({"-stac", options.stac.path, options.overwrite, options.run},
                      stac_item(options, *target.driver, files, *whole, scene ? &*scene : nullptr));
}

void PendingOutput::grow(int64_t lines) {
    spec.shape.lines = lines;
    if (!shown) return show();
    shown->made->check_name(shown->path);
    shown->lines.add(shown->path, lines);
    // The header is replaced in one step, so that other processes never read an incomplete header.
    write_shown_header(shown->scratch);
    shown->made->renew(shown->scratch, shown->header);
}

void PendingOutput::commit() {
    const GdalErrors errors;
    try {
        if (blocks) blocks->finish();
        if (compressed) compressed->finish();
        // The file is flushed to the disk only if ranks run on several hosts. Ranks on the same host share
        // its page cache.
        if (raw) raw->close(parallel::group().several_hosts());
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& e) {
        throw failure(e.what(), e.advice());
    }
    // The sum also synchronises all ranks, so the file is complete afterwards.
    auto lost = rule.lost();
    for (int64_t* const count : {&lost.moved, &lost.vanished, &lost.clamped, &lost.stored})
        *count = parallel::group().sum("output " + options.role + " is written", *count);
    if (elsewhere) return;
    blocks.reset();
    discard_unwritable_stdout();
    if (shown) return conclude_shown(lost);
    const bool keeps_metadata = complete_file(errors);
    if (options.path != standard_output) check_finished(keeps_metadata);
    try {
        hand_over();
        warn_of_lost_values(lost);
    } catch (const Error& e) {
        throw failure(e.what());
    }
}

namespace {

/// Returns the WKT format that the driver requires; null if any format is accepted. With another format, GDAL
/// fails when it closes the file (ENVI) or ends the process (FITS).
const char* wkt_for(const Target& target) {
    return is(target.driver, "ENVI")   ? "FORMAT=WKT1_ESRI"
           : is(target.driver, "FITS") ? "FORMAT=WKT1_GDAL"
                                       : nullptr;
}

/// Throws Error before the computation if the format cannot store the position of the scene. Warns if the
/// format would change the position of the pixels.
void check_position(const Target& target, const OutputOptions& options, const RasterSource& like) {
    const std::string name = "'" + like.path() + "'";
    double gt[6];
    const bool placed = is(target.driver, "ENVI") && like.facts().copy_geotransform(gt);
    if (placed) check_envi_geotransform(gt, name);
    const auto& srs = metadata_of(like).srs;
    const char* const format[] = {wkt_for(target), nullptr};
    if (!srs || format[0] == nullptr) return;
    const GdalErrors errors;
    char* wkt = nullptr;
    const bool good = srs->exportToWkt(&wkt, format) == OGRERR_NONE && !errors.any();
    OGRSpatialReference kept; // the SRS read from WKT, which has lost a shift to WGS 84, for example
    kept.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    const bool read = good && kept.importFromWkt(wkt) == OGRERR_NONE;
    CPLFree(wkt);
    if (!good)
        throw Error(std::string(target.driver->GetDescription()) + " cannot store the SRS of " + name +
                        " ('" + like.facts().srs->name() + "')",
                    "Write a GTiff (-of GTiff), or warp the source first.");
    const auto shape = like.shape();
    if (placed && read && !same_place(gt, gt, shape.samples, shape.lines, srs.get(), &kept))
        warn_of_lost("the position of its pixels", options, target);
}

} // namespace

void check_output(const OutputOptions& options, const OutputSpec& spec) {
    const Target target = check_all(options, spec);
    if (options.nodata || spec.nodata) // otherwise create_sink() makes this check
        check_lerc_of_nan(target, options, spec, choose_nodata(options, spec, nullptr, target.type));
}

void check_output(const OutputOptions& options, const OutputSpec& spec, const RasterSource& like) {
    const Target target = check_all(options, spec);
    check_position(target, options, like);
    check_lerc_of_nan(target, options, spec, choose_nodata(options, spec, &metadata_of(like), target.type));
}

bool will_take_bands(const OutputOptions& options, const OutputSpec& spec) {
    return spec.shape.bands > 1 && keeps_bands_apart(choose_target(options, spec, false), options);
}

namespace {

class FileSink final : public RasterSink {
  public:
    explicit FileSink(std::unique_ptr<PendingOutput> output) : m(std::move(output)) {}

    stream::CubeShape shape() const override;
    bool concurrent() const override { return m->raw || (m->compressed && !parallel::group().several()); }
    stream::BlockLayout layout() const override { return m->layout(); }
    void write(const Rect& core, const CubeView<float>& src) override;
    bool takes_bands() const override {
        return m->raw && !m->copies() && m->raw->bands_apart() && m->rule.parts() == 1;
    }
    void write_band(int band, const Rect& core, const CubeView<float>& src) override;
    uint64_t stored_bytes_per_pixel() const override {
        return static_cast<uint64_t>(m->spec.shape.bands) * m->rule.sample_bytes();
    }
    void grow(int64_t lines) override { m->grow(lines); }
    bool raw_access() const override { return m->raw != nullptr; }
    uint64_t cache_bytes() const override { return m->cache_bytes(); }
    std::string driver() const override { return m->target.driver->GetDescription(); }
    std::optional<double> nodata() const override {
        return m->nodata ? std::optional<double>(m->nodata->as_double()) : std::nullopt;
    }
    void commit() override { m->commit(); }

  private:
    std::unique_ptr<PendingOutput> m;
};

stream::CubeShape FileSink::shape() const {
    stream::CubeShape shape = m->spec.shape;
    shape.bands *= m->rule.parts();
    return shape;
}
void FileSink::write(const Rect& core, const CubeView<float>& src) {
    try {
        if (m->raw)
            m->raw->write(core, src);
        else if (m->compressed)
            m->compressed->write(core, src);
        else if (!m->elsewhere) // on ranks with `elsewhere`, the root writes the same tile
            m->blocks->write(core, src);
    } catch (const Error& e) {
        throw m->failure(e.what(), e.advice());
    }
}

void FileSink::write_band(int band, const Rect& core, const CubeView<float>& src) {
    try {
        m->raw->write_band(band, core, src);
    } catch (const Error& e) {
        throw m->failure(e.what());
    }
}

} // namespace

std::unique_ptr<RasterSink> create_sink(const OutputOptions& options, const OutputSpec& spec,
                                        const RasterSource* like) {
    auto impl = std::make_unique<PendingOutput>();
    const auto scene = like == nullptr ? metadata_of(spec)
                       : spec.spectral ? std::optional<SceneMetadata>(metadata_of(spec, metadata_of(*like)))
                                       : std::optional<SceneMetadata>(metadata_of(*like));
    const SceneMetadata nowhere;
    if (like != nullptr) check_position(choose_target(options, spec, false), options, *like);
    impl->target = check_all(options, spec, scene ? &*scene : &nowhere);
    impl->options = options;
    impl->spec = spec;
    if (like != nullptr) {
        if (same_file(like->path(), options.path))
            throw UsageError("the destination '" + options.path + "' is the source");
        impl->scene = scene;
        if (spec.same_bands && impl->scene->bands.size() != static_cast<size_t>(spec.shape.bands))
            throw Error("internal: an output with the bands of its source has another number of them");
    }
    impl->spec.same_bands = (spec.same_bands || spec.spectral) && like != nullptr;
    if (like == nullptr) {
        impl->scene = scene;
        impl->spec.same_bands = impl->scene.has_value(); // the spec describes the bands
    }
    impl->nodata = choose_nodata(options, spec, impl->scene ? &*impl->scene : nullptr, impl->target.type);
    check_lerc_of_nan(impl->target, options, spec, impl->nodata);
    impl->rule = StoreRule(sample_type(impl->target.type), spec.keep_nan ? std::nullopt : impl->nodata);
    if (!spec.sample_type.empty()) impl->rule.take_parts(sample_type_of(spec.sample_type));
    impl->make_together();
    return std::make_unique<FileSink>(std::move(impl));
}

} // namespace hsi::raster
