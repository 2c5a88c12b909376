// SPDX-License-Identifier: MIT
#include "tool/run_impl.h"

#include "core/codec_time.h"
#include "core/counted.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/host_memory.h"
#include "core/text.h"
#include "core/text_file.h"
#include "math/simd_target.h"
#include "parallel/ranks.h"
#include "raster/drivers.h"
#include "raster/side_files.h"
#include "tool/devices.h"
#include "tool/mask.h"
#include "tool/words.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

namespace hsi::tool {
namespace {

/// Returns the time without gmtime() and strftime(), which take a lock that may remain locked in the child of
/// a fork.
std::string utc_now() {
    using namespace std::chrono;
    const auto now = floor<seconds>(system_clock::now());
    const auto today = floor<days>(now);
    const year_month_day date(today);
    const hh_mm_ss time(now - today);
    char text[80];
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()));
    return text;
}

/// Converts NaN and infinities, which JSON lacks, to strings, so that they are not lost.
Json number_or_text(const std::optional<double>& value) {
    if (!value) return nullptr;
    if (std::isnan(*value)) return "nan";
    if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
    return *value;
}

std::string device_text(const DeviceChoice& choice) {
    if (choice.kind == DeviceChoice::Kind::automatic) return "auto";
    if (choice.kind == DeviceChoice::Kind::cpu) return "cpu";
    std::string text = "cuda";
    for (size_t i = 0; i < choice.devices.size(); ++i)
        text += (i ? "," : ":") + std::to_string(choice.devices[i]);
    return text;
}

/// Returns " (halo 2; values are kept in memory)"; empty without remarks.
std::string link_remarks(const raster::Chain::Link& link) {
    std::string text = link.halo > 0 ? "halo " + std::to_string(link.halo) : "";
    if (!link.kept.empty())
        text += std::string(text.empty() ? "" : "; ") +
                (link.kept == "numbers" ? "results from the neighbourhood of each pixel are kept"
                 : link.kept == "file"  ? "values are kept in a temporary file"
                                        : "values are kept in memory");
    return text.empty() ? text : " (" + text + ")";
}

std::vector<std::string> texts_of(const std::vector<raster::BandChoice>& choices) {
    std::vector<std::string> texts;
    for (const auto& choice : choices)
        texts.push_back(choice.text);
    return texts;
}

Json describe(const CommonOptions& o) {
    const auto& w = o.source.window;
    return Json{
        {"mask", o.mask.only.empty() ? Json() : Json(o.mask.only)},
        {"mask_exclude", o.mask.without.empty() ? Json() : Json(o.mask.without)},
        {"mask_flags", o.mask.flags},
        {"mask_flags_from", o.mask.flags_from.empty() ? Json() : Json(o.mask.flags_from)},
        {"mask_output", o.mask.outputs},
        {"oo", o.source.open_options},
        {"if", o.source.drivers},
        {"b", o.source.choices.empty() ? Json(o.source.bands) : Json(texts_of(o.source.choices))},
        {"exclude_range", texts_of(o.source.excluded)},
        {"bbl", !o.source.use_bbl            ? "ignore"
                : o.source.bad_bands.empty() ? "use"
                                             : o.source.bad_bands},
        {"srcwin", w ? Json{w->x, w->y, w->w, w->h} : Json()},
        {"srcnodata", number_or_text(o.source.nodata)},
        {"of", o.destination.format},
        {"co", o.destination.creation_options},
        {"ot", o.destination.type},
        {"dstnodata", number_or_text(o.destination.nodata)},
        {"stac", o.destination.stac.path},
        {"stac_datetime", o.destination.stac.datetime},
        {"overwrite", o.destination.overwrite},
        {"device", device_text(o.device)},
        {"memory", o.memory},
        {"device_memory", o.device_memory ? Json(o.device_memory) : Json()},
        {"threads", o.threads},
        {"tile", o.tile_samples ? Json{o.tile_samples, o.tile_lines} : Json()},
        {"report", o.report},
        {"report_append", o.report_append},
        {"dry_run", o.dry_run},
        {"quiet", o.quiet},
    };
}

Json describe(const stream::PassReport& p) {
    Json ranks = Json::array();
    for (const stream::RankPass& r : p.ranks)
        ranks.push_back({{"host", parallel::ranks().host(static_cast<int>(ranks.size()))},
                         {"tiles", r.tiles},
                         {"lanes", r.lanes},
                         {"bytes_read", r.bytes_read},
                         {"bytes_written", r.bytes_written},
                         {"seconds", r.seconds},
                         {"read_seconds", r.read_seconds},
                         {"compute_seconds", r.compute_seconds},
                         {"write_seconds", r.write_seconds},
                         {"decode_seconds", r.decode_seconds},
                         {"encode_seconds", r.encode_seconds},
                         {"wait_seconds", r.wait_seconds}});
    Json json{
        {"name", p.name},
        {"tiles", p.tiles},
        {"tile_samples", p.tile_samples},
        {"tile_lines", p.tile_lines},
        {"halo", p.halo},
        {"lanes", p.lanes},
        {"bytes_read", p.bytes_read},
        {"bytes_written", p.bytes_written},
        {"buffer_bytes", p.buffer_bytes},
        {"read_ahead_bytes", p.ahead_bytes},
        {"seconds", p.seconds},
        {"read_seconds", p.read_seconds},
        {"compute_seconds", p.compute_seconds},
        {"write_seconds", p.write_seconds},
        {"decode_seconds", p.decode_seconds},
        {"encode_seconds", p.encode_seconds},
    };
    if (!ranks.empty()) json["ranks"] = std::move(ranks);
    return json;
}

bool is_record(const Json& json) {
    return json.is_object() && json.contains("tool") && json.contains("version") && json.contains("passes");
}

/// Returns the records of earlier runs in a file: one record, or several; nullopt if the file is not a
/// report.
std::optional<std::vector<Json>> records_in(const std::string& path) {
    constexpr uint64_t largest = uint64_t{256} << 20;
    try {
        const std::string text = read_text_file(path, largest);
        if (text.empty()) return std::vector<Json>();
        const Json json = Json::parse(text, nullptr, false);
        if (is_record(json)) return std::vector<Json>{json};
        if (!json.is_object() || !json.contains("chain") || !json["chain"].is_array()) return std::nullopt;
        const auto& chain = json["chain"];
        if (!std::all_of(chain.begin(), chain.end(), is_record)) return std::nullopt;
        return std::vector<Json>(chain.begin(), chain.end());
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Returns "1-3,7", for messages about bands.
std::string band_ranges(const std::vector<int>& bands) {
    std::string text;
    for (size_t i = 0; i < bands.size();) {
        size_t last = i;
        while (last + 1 < bands.size() && bands[last + 1] == bands[last] + 1)
            ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(bands[i]);
        if (last > i) text += '-' + std::to_string(bands[last]);
        i = last + 1;
    }
    return text;
}

/// Returns the message about bands that lose precision as floats, with the advice.
std::string coarse_text(const std::vector<raster::CoarseBand>& coarse) {
    std::vector<int> bands;
    for (const auto& b : coarse)
        bands.push_back(b.band);
    const auto& first = coarse.front();
    const bool one = bands.size() == 1;
    char text[240];
    std::snprintf(text, sizeof text,
                  "about %.6g and vary by %.2g, but single precision has steps of %.2g there", first.level,
                  first.spread, first.step);
    std::string out = "the values of band" + std::string(one ? " " : "s ") + band_ranges(bands) +
                      " are too close together for single precision, in which the tools compute: " +
                      (one ? "they" : "those of band " + std::to_string(first.band)) + " are " + text +
                      ". Results from these bands are inaccurate. ";
    // Below the smallest normal number, the steps no longer shrink with the values.
    const bool small = std::fabs(first.level) < static_cast<double>(std::numeric_limits<float>::min());
    const double by = small ? std::pow(10.0, std::round(-std::log10(std::fabs(first.level)))) : first.level;
    std::snprintf(
        text, sizeof text,
        "%s first: gdal_calc.py -A FILE --allBands A --calc 'A%s%.6g%s' --type Float64 --outfile NEW",
        small ? "Multiply them" : "Subtract a constant", small ? "*" : "-(", by, small ? "" : ")");
    return out + text;
}

} // namespace

// --- Run::Impl
// -------------------------------------------------------------------------------------------------------

void Run::Impl::start() {
    started = {std::chrono::steady_clock::now(), codec_time(), utc_now()};
    memory = MemoryPlan(options.memory, options.threads);
    set_cache();
}

void Run::Impl::set_cache() { front_end.limit_cache(memory.cache()); }

void Run::Impl::progress(double done) {
    if (options.quiet || options.dry_run) return;
    const std::lock_guard lock(mutex);
    bar.position =
        done > 1 - 1e-9 ? 1.0 : std::max(done, bar.position); // the sum of shares is rarely exactly 1
    front_end.progress(bar.position);
}

void Run::Impl::warn(const std::string& words) {
    const std::string text = raster::with_final_names(words);
    {
        const std::lock_guard lock(mutex);
        // A file that is used with several inputs is reported once.
        if (std::find(warnings.begin(), warnings.end(), text) != warnings.end()) return;
        warnings.push_back(text);
    }
    front_end.warn(text);
}

void Run::Impl::warn_of_coarse_bands(const raster::RasterSource& scene) {
    std::vector<raster::CoarseBand> coarse;
    try {
        coarse = scene.coarse_bands();
    } catch (const Error&) { // the pass that reads the whole file reports the fault
    }
    if (!coarse.empty()) warn("'" + scene.path() + "': " + coarse_text(coarse));
}

void Run::Impl::warn_of_overflow(bool together) {
    for (const auto& file : std::exchange(watched, {})) {
        const bool met =
            together ? parallel::ranks().any("infinities", file->met_infinity()) : file->met_infinity();
        if (!parallel::ranks().root()) continue;
        if (!met || front_end.cancel().requested()) continue;
        try {
            const auto beyond = file->count_beyond_float();
            if (beyond.values == 0) continue; // the infinities are in the file itself
            warn("'" + file->path() + "': " + counted(beyond.values, "value is", "values are") +
                 " too large for single precision (3.4e38) and become infinite, so " +
                 counted(beyond.pixels, "pixel is", "pixels are") +
                 " invalid. Use -srcnodata if these values are nodata, else scale the scene first.");
        } catch (const Error&) { // a file that cannot be read again was already read successfully
        }
    }
}

void Run::Impl::finish() {
    for (const auto& file : watched)
        file->check_unchanged();
    warn_of_overflow(true);
    if (bar.position > 0 && bar.position < 1) progress(1.0);
    front_end.check_printed();
}

Json Run::Impl::record(const Outcome* failure) {
    Json root = entries.report;
    root["tool"] = tool;
    root["version"] = project_version();
    root["gdal"] = raster::gdal_version();
    root["command"] = command;
    root["started"] = started.utc;
    root["options"] = describe(options);
    root["options"].update(entries.own_options);
    if (!root.contains("device")) root["device"] = nullptr;
    root["simd"] = math::simd_target();
    if (parallel::ranks().job_size() > 1) root["ranks"] = parallel::ranks().job_size();
    root["source"] = entries.source;
    if (!options.destination.path.empty()) root["destination"] = options.destination.path;
    Json list = Json::array();
    stream::PassReport total;
    // The time of the whole run is used, because outputs are also completed after the last pass.
    const CodecTime coded = codec_time();
    double decode_seconds = coded.decoding - started.coding.decoding,
           encode_seconds = coded.encoding - started.coding.encoding;
    for (const auto& pass : passes) {
        list.push_back(describe(pass));
        total.add(pass);
        total.buffer_bytes = std::max(total.buffer_bytes, pass.buffer_bytes);
        for (size_t k = 0; k < pass.ranks.size(); ++k) // the seconds of this process are already included
            if (static_cast<int>(k) != parallel::ranks().rank()) {
                decode_seconds += pass.ranks[k].decode_seconds;
                encode_seconds += pass.ranks[k].encode_seconds;
            }
    }
    root["passes"] = std::move(list);
    root["totals"] = Json{{"passes", passes.size()},
                          {"bytes_read", total.bytes_read},
                          {"bytes_written", total.bytes_written},
                          {"buffer_bytes", total.buffer_bytes},
                          {"pass_seconds", total.seconds},
                          {"read_seconds", total.read_seconds},
                          {"compute_seconds", total.compute_seconds},
                          {"write_seconds", total.write_seconds},
                          {"decode_seconds", decode_seconds},
                          {"encode_seconds", encode_seconds}};
    root["block_cache_bytes"] = memory.cache();
    root["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - started.time).count();
    root["peak_resident_bytes"] = peak_resident();
    {
        const std::lock_guard lock(mutex);
        root["warnings"] = warnings;
    }
    if (failure)
        root["error"] =
            Json{{"message", failure->what}, {"advice", failure->advice}, {"exit_code", failure->code}};
    return root;
}

std::string Run::Impl::make_report(const Outcome* failure) {
    Json root = record(failure);
    if (options.report_append) {
        // The file has changed since the run began.
        if (!overwrite && report_is_other_file()) throw no_report();
        auto chain = records_in(options.report).value_or(std::vector<Json>());
        chain.push_back(std::move(root));
        root = Json{{"chain", std::move(chain)}};
    }
    return root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

raster::TextOutput Run::Impl::report_output() const { return {"-report", options.report, true, files}; }

bool Run::Impl::report_is_other_file() const {
    struct stat facts {};
    return stat(options.report.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && !records_in(options.report);
}

Error Run::Impl::no_report() const {
    return Error("'" + options.report +
                     "' (-report) exists and is not a report of these tools, or is damaged",
                 "Use another file, or move this one.");
}

void Run::Impl::check_report() {
    struct stat facts {};
    if (options.report_append && stat(options.report.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
        throw UsageError("-report-append: " + options.report + " is not a regular file",
                         "Use a file, or leave out -report-append.");
    if (!options.report.empty()) raster::check_text_output(report_output());
    if (!overwrite && report_is_other_file()) throw no_report();
}

void Run::Impl::commit_with_report(const std::shared_ptr<raster::RunFiles>& outputs, const Outcome* failure,
                                   const CancelFlag* cancel) {
    if (options.report.empty()) return outputs->commit(cancel);
    const auto write = [&] {
        raster::TextOutput output = report_output();
        output.run = outputs;
        raster::write_text_output(output, make_report(failure));
    };
    if (options.report_append && parallel::ranks().root()) {
        const raster::RunFiles::Addition record{options.report, write};
        return outputs->commit(cancel, &record);
    }
    write();
    outputs->commit(cancel);
}

void Run::Impl::commit() { commit_with_report(files, nullptr, &front_end.cancel()); }

void Run::Impl::write_failure_report(const Outcome& failure) {
    const CancelFlag* const cancel = front_end.cancel().requested() ? nullptr : &front_end.cancel();
    if (outputs_are_good && cancel) return commit_with_report(files, &failure, cancel);
    if (options.report.empty()) return;
    // Outputs that were complete when the run failed wait in the register of the run, so the report is
    // written with a register of its own.
    const auto alone = raster::make_run_files();
    alone->set_listeners([this](const std::string& text) { warn(text); },
                         [this](const std::string& text) {
                             if (!options.quiet) front_end.note(text);
                         });
    commit_with_report(alone, &failure, cancel);
}

// --- Run
// -------------------------------------------------------------------------------------------------------------

Run::Run(std::unique_ptr<Impl> impl) : m(std::move(impl)) {}
Run::~Run() = default;

const std::string& Run::tool() const { return m->tool; }
const std::vector<const Definition*>& Run::tools() const { return m->front_end.tools(); }
const CommonOptions& Run::options() const { return m->options; }
Json& Run::report() { return m->assumes ? m->entries.assumed : m->entries.report; }
const CancelFlag& Run::cancel() const { return m->front_end.cancel(); }
void Run::add_pass(const stream::PassReport& pass) { m->passes.push_back(pass); }
void Run::warn(const std::string& text) {
    if (!m->assumes) m->warn(text);
}

std::shared_ptr<raster::RasterSource> Run::open_source(Precision precision) {
    const auto source = raster::open_raster(m->options.source);
    auto files = raster::files_read_with(source->path());
    if (const raster::Growth* const growth = source->growth()) {
        files = growth->files();
        m->files->expect_growth(files);
    }
    if (source->path() != m->options.source.path)
        files.push_back(m->options.source.path); // this path led to the source
    m->files->reads("src", source->path(), files);
    if (const std::string& bad = m->options.source.bad_bands; !bad.empty()) m->files->reads("-bbl", bad, {});
    watch_source(source, precision);
    // Passes get at least half of -memory, which always suffices for one worker.
    if (const uint64_t held = source->reader_bytes(); held > half(m->options.memory))
        throw Error("a reader of " + source->path() + " needs " + format_byte_size(held) +
                        " of decoded blocks, more than half of -memory " +
                        format_byte_size(m->options.memory),
                    "Use a larger -memory, or store the scene with smaller blocks or separate blocks per "
                    "band (gdal_translate -co TILED=YES -co INTERLEAVE=BAND).");
    m->memory.expect_shared_block(source->shared_block_bytes());
    if (m->decoding == 0) {
        const auto shape = source->shape();
        m->decoding = coding_cost(source->facts().compression).decode *
                      static_cast<double>(source->stored_bytes_per_pixel()) /
                      (4.0 * static_cast<double>(shape.bands));
    }
    // The plan of each pass includes the readers' memory outside of the cache; the cache never gets more than
    // a quarter.
    reserve_cache(std::min(source->cache_bytes(), quarter(m->options.memory)));
    m->memory.hold(source->take_memory(quarter(m->options.memory), m->options.threads));
    if (m->entries.source.is_null()) {
        const auto shape = source->shape();
        m->entries.source = Json{
            {"path", source->path()},
            {"driver", source->facts().driver},
            {"product", source->facts().product.empty() ? Json() : Json(source->facts().product)},
            {"samples", shape.samples},
            {"lines", shape.lines},
            {"bands", shape.bands},
            {"band_numbers", source->bands()},
            {"bad_bands", source->facts().bands.bad},
            {"type", source->facts().type},
            {"access", raster::access_name(source->facts().access)},
            {"nodata", number_or_text(source->facts().bands.nodata)},
        };
        if (!source->facts().product.empty())
            note("Recognised " + source->path() + " as " + source->facts().product);
        if (const auto bad = source->facts().bands.bad; bad.size() == 1)
            note("Band " + band_ranges(bad) +
                 " is marked bad in the file and left out (-bbl ignore uses it).");
        else if (!bad.empty())
            note("Bands " + band_ranges(bad) +
                 " are marked bad in the file and left out (-bbl ignore uses them).");
    }
    if (const raster::Chain* const chain = source->chain()) {
        std::string text = "Chain: " + chain->source();
        Json links = Json::array();
        for (const auto& link : chain->links()) {
            text += " ! " + link.operation + link_remarks(link);
            links.push_back({{"operation", link.operation},
                             {"halo", link.halo},
                             {"kept", link.kept.empty() ? Json() : Json(link.kept)}});
        }
        m->entries.source["chain"] = {{"source", chain->source()}, {"links", std::move(links)}};
        if (m->options.dry_run) print(text);
    }
    if (!m->options.mask.given()) return source;
    if (!m->mask) m->mask = read_scene_mask(*this, *source);
    return m->options.mask.outputs ? source->with_mask(m->mask) : source;
}

const std::shared_ptr<const stream::PixelMask>& Run::mask() const { return m->mask; }
bool Run::masks_statistics() const { return m->mask && !m->options.mask.outputs; }

std::shared_ptr<const stream::CubeSource>
Run::masked(const std::shared_ptr<const stream::CubeSource>& source) const {
    if (!masks_statistics()) return source;
    return std::make_shared<stream::MaskedSource>(source, m->mask);
}

namespace {

/// Returns a short summary of a file's content: its size, and some of its bytes.
std::string likeness(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const auto status = fs::status(path, error);
    if (fs::is_directory(status)) { // a Zarr store
        std::vector<std::string> all;
        for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
            if (at->is_regular_file(error))
                all.push_back(at->path().string() + " " + std::to_string(at->file_size(error)));
        std::sort(all.begin(), all.end());
        return counted(all.size(), "file") + " in it, " + std::to_string(digest_of(joined(all, "\n")));
    }
    if (!fs::is_regular_file(status)) return {};
    std::ifstream file(path, std::ios::binary);
    const auto size = static_cast<int64_t>(fs::file_size(path, error));
    constexpr int64_t piece = 64 << 10, pieces = 32;
    std::vector<char> bytes(static_cast<size_t>(piece));
    uint64_t digest = digest_of_nothing;
    for (int64_t k = 0; k < pieces; ++k) {
        const int64_t begin = size <= piece * pieces ? k * piece : (size - piece) / (pieces - 1) * k;
        if (begin >= size) break;
        file.seekg(begin);
        file.read(bytes.data(), piece);
        digest = digest_of({bytes.data(), static_cast<size_t>(file.gcount())}, digest);
        file.clear();
    }
    return counted(size, "byte") + ", " + std::to_string(digest);
}

} // namespace

void Run::Impl::agree_on_files() {
    if (!parallel::ranks().several()) return;
    std::string all;
    for (const std::string& file : files->read())
        if (is_local(file) && agreed->insert(file).second)
            if (const std::string like = likeness(file); !like.empty())
                all += (all.empty() ? "" : "\n") + file + " (" + like + ")";
    parallel::ranks().agree("files", all, "sees another file",
                            "Give all ranks the same files, on a file system that they share.");
}

void Run::watch_source(const std::shared_ptr<raster::RasterSource>& source, Precision precision) {
    const bool known = std::any_of(m->watched.begin(), m->watched.end(),
                                   [&](const auto& other) { return other->path() == source->path(); });
    if (known) return;
    m->watched.push_back(source);
    source->end_with(&m->front_end.cancel());
    const auto shape = source->shape();
    parallel::ranks().agree("scene",
                            std::to_string(shape.samples) + "x" + std::to_string(shape.lines) + " pixels, " +
                                counted(shape.bands, "band") + " of " + source->facts().type,
                            "sees another '" + source->path() + "'",
                            "Give all ranks the same file, on a file system that they share.");
    m->agree_on_files();
    for (const std::string& text : source->facts().notes)
        warn(text);
    if (precision == Precision::single && parallel::ranks().root()) m->warn_of_coarse_bands(*source);
}

void Run::Impl::source_has_grown(const std::shared_ptr<raster::RasterSource>& source) {
    for (auto& file : watched)
        if (file->path() == source->path()) file = source;
    if (!entries.source.is_null() && entries.source["path"] == source->path())
        entries.source["lines"] = source->shape().lines;
}

void Run::reserve_cache(uint64_t bytes) {
    m->memory.reserve_cache(bytes);
    m->set_cache();
}

Error no_valid_pixel(const raster::RasterSource& source, bool masked) {
    return Error(source.path() + ": no pixel" + (masked ? " in the mask" : "") +
                     " is valid (each pixel has a selected band that is nodata, masked or NaN, or is zero in "
                     "all bands)",
                 std::string("Check ") + (masked ? "the mask, " : "") +
                     "the nodata value (-srcnodata) and leave out bad bands (-b).");
}

std::shared_ptr<stream::CubeSource> Run::keep_if_slow(const std::shared_ptr<raster::RasterSource>& source,
                                                      uint64_t beside) {
    m->kept.reset();
    if (m->options.dry_run) return source; // nothing is read
    // Each of several ranks that share a pass would keep only a part of the scene.
    if (parallel::ranks().several()) return source;
    if (source->facts().access == raster::Access::raw && !source->facts().remote) return source;
    const auto chain = raster::links_of(*source);
    const bool computed = !chain.empty();
    // If a device computes the scene, the pass reads it in the device's memory. A copy in host memory would
    // cost more.
    if (source->computes_on() >= 0) return source;
    if (computed && !chain.back().kept.empty() && chain.back().kept != "numbers") return source;
    if (!MemoryPlan::may_keep(source->shape().float_bytes(), buffer_memory(), source->reader_bytes(),
                              beside)) {
        if (computed)
            note(source->path() + " is computed again in every pass, since its " +
                 format_byte_size(source->shape().float_bytes()) + " do not fit into -memory");
        return source;
    }
    if (computed)
        note(source->path() +
             " is computed once and kept in memory: " + format_byte_size(source->shape().float_bytes()));
    const auto kept = std::make_shared<stream::ResidentSource>(source);
    m->kept = kept;
    return kept;
}

void seal(stream::CubeSource& source) {
    if (auto* kept = dynamic_cast<stream::ResidentSource*>(&source)) kept->seal();
}

uint64_t Run::buffer_memory() const {
    const auto kept = m->kept.lock();
    return m->memory.buffers((kept ? kept->shape().float_bytes() : 0) + (m->mask ? m->mask->bytes() : 0));
}

stream::PassOptions Run::pass(const std::string& name, double share) {
    stream::PassOptions pass;
    pass.name = name;
    pass.lanes = m->options.threads;
    pass.memory = buffer_memory();
    pass.asked_memory = m->options.memory;
    set_device_memory(pass, m->options.device_memory);
    pass.tile_samples = m->options.tile_samples;
    pass.tile_lines = m->options.tile_lines;
    pass.cancel = &m->front_end.cancel();
    if (m->options.dry_run)
        pass.ranks = m->options.ranks > 0 ? m->options.ranks : parallel::ranks().job_size();
    const double from = m->bar.share_done;
    share = std::min(share, 1 - from); // a repeated pass takes its share of the progress from the last passes
    m->bar.share_done += share;
    pass.progress = [state = m.get(), from, share](double done) { state->progress(from + share * done); };
    return pass;
}

const std::shared_ptr<raster::RunFiles>& Run::files() const { return m->files; }

void Run::keep_outputs() {
    m->front_end.check_printed();
    m->outputs_are_good = true;
}

raster::TextOutput Run::text_output(const std::string& role, const std::string& path, bool overwrite) const {
    return {role, path, overwrite, m->files};
}

raster::OutputOptions Run::side_output(const std::string& role, const std::string& path) const {
    const raster::OutputOptions& main = m->options.destination;
    raster::OutputOptions side;
    side.path = path;
    side.role = role;
    side.run = m->files;
    side.nodata = main.nodata;
    side.overwrite = main.overwrite;
    side.memory = main.memory;
    side.threads = main.threads;
    side.cancel = main.cancel;
    side.history = main.history;
    side.grows = main.grows;
    // If the extension differs from the destination's, it states the format. The same extension, or none,
    // means the destination's format.
    const std::string extension = raster::extension_of(path);
    const bool alike = equal_names(extension, raster::extension_of(main.path));
    if (alike || extension.empty()) {
        side.format = main.format;
        if (alike || !main.format.empty()) side.creation_options = main.creation_options;
    }
    return side;
}

parallel::Group& Run::ranks() const { return parallel::ranks(); }

void Run::only_print() { m->options.quiet = true; }

void Run::note(const std::string& text) {
    if (m->options.quiet || m->assumes) return;
    m->files->check_unchanged();
    {
        const std::lock_guard lock(m->mutex);
        // A note on each of several scenes is printed once.
        if (!m->notes.insert(text).second) return;
    }
    m->front_end.note(text);
}

void Run::print(const std::string& text) {
    m->files->check_unchanged();
    m->front_end.print(text);
}

} // namespace hsi::tool
