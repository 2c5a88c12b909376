// SPDX-License-Identifier: MIT
#include "shared/target_search.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "shared/scene_and_library.h"
#include "shared/second_scene.h"
#include "stream/statistics_scan.h"
#include "stream/value_parts.h"
#include "tool/words.h"
#include "vd/vd.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hsi::tools {
namespace {

ManyScenes::Place place_in(const ManyScenes* scenes, const atdca::Target& t) {
    return scenes ? scenes->place_of(t.line) : ManyScenes::Place{0, t.line};
}

} // namespace

void print_search_plan(tool::Run& run, const stream::CubeSource& source, const atdca::Options& options) {
    const auto plan = atdca::plan_detection(source, options, run.pass("search", 1));
    run.print("Search on the CPU: scene " +
              (plan.in_memory ? "kept in memory (" + format_byte_size(plan.scene_bytes) + ")"
                              : std::string("streamed")) +
              ", " + plan.tiles.describe() + ", " + format_byte_size(plan.buffer_bytes) +
              " of buffers, at most " + format_byte_size(plan.pool_bytes) + " of candidates");
    run.report()["plan"]["search"] = {{"in_memory", plan.in_memory},
                                      {"scene_bytes", plan.scene_bytes},
                                      {"candidate_bytes", plan.pool_bytes},
                                      {"tiles", plan.tiles.size()},
                                      {"tile_samples", plan.tiles.max_core_samples()},
                                      {"tile_lines", plan.tiles.max_core_lines()},
                                      {"lanes", plan.tiles.lanes()},
                                      {"buffer_bytes", plan.buffer_bytes}};
}

namespace {

/// Returns the virtual dimensionality as the number of targets.
int dimensionality(tool::Run& run, const TargetCount& count, const tool::Scene& whole, double share) {
    stream::StatisticsScan scan(whole.shape(), stream::Statistics::covariance);
    run.add_pass(stream::run_pass(*whole.counted(), scan, {}, run.pass("covariance", share)));
    const auto scene = scan.result();
    if (scene.valid_pixels == 0) return 1; // the search reports the error, or removes empty bands
    const auto method = count.vd_method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const int number = vd::estimate(scene, method, count.false_alarm).number;
    run.note("Virtual dimensionality (" + count.vd_method + "): " + std::to_string(number));
    run.report()["virtual_dimensionality"] = number;
    warn_of_vain_test(run, count.vd_method, count.false_alarm, scene);
    warn_of_many_signals(run, number, whole.shape().bands, "give -t a number");
    if (number < 1)
        throw Error(whole.raster()->path() +
                        ": virtual dimensionality found no signal, so -t auto found no number of targets",
                    "Give a number with -t, or a larger -pf.");
    return number;
}

atdca::Detection search(tool::Run& run, AtdcaComputing& computing, const stream::CubeSource& source,
                        const atdca::Options& options, const stream::PassOptions& pass) {
    // If the scene does not fit into device memory on one rank, all ranks search on the CPU.
    if (!run.ranks().any("the scene does not fit into device memory",
                         !computing->fits(run.options().device_memory, source.shape(), options)))
        return computing->detect(source, options, pass);
    // If the scene is read in each pass, reading limits the speed. The CPU is then as fast as a GPU.
    run.note("The scene does not fit into device memory: searching on the CPU");
    run.report()["device"] = tool::describe_devices(run, {}, atdca::simd_target());
    return atdca::detect(source, options, pass);
}

} // namespace

atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const TargetCount& count,
                              tool::Scene& scene, atdca::Options& options, double share) {
    const auto& source = scene.raster();
    // If the page cache of one computer cannot hold the file, all ranks keep the scene in memory.
    options.keep_scene = run.ranks().any("keep the scene", options.keep_scene);
    atdca::Detection found;
    const bool any = scene.attempt([&](bool again) {
        options.targets =
            count.number > 0 ? count.number : dimensionality(run, count, scene, again ? 0.0 : share * 0.25);
        found = search(run, computing, *scene.counted(), options,
                       run.pass("search", again ? 0.0 : share * (count.number > 0 ? 1.0 : 0.75)));
        for (const auto& pass : found.passes)
            run.add_pass(pass);
        return found.valid_pixels > 0;
    });
    if (!any) throw tool::no_valid_pixel(*source, run.mask() != nullptr);
    scene.set_fate("and not used as targets");
    scene.report_counted(found.valid_pixels, found.invalid_pixels);
    if (!found.warning.empty()) run.warn(found.warning);
    return found;
}

void report_search_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system) {
    const auto& e = found.cost;
    char text[200];
    std::snprintf(text, sizeof text,
                  "Search: %s; %s compared %.2f times the scene's pixels, %s would compare %d times",
                  e.in_memory ? (e.device ? "scene on the device, read once" : "scene in memory, read once")
                  : held_by_system ? "scene read again where the system holds it in memory"
                                   : "scene streamed",
                  counted(e.passes, "pass", "passes").c_str(), e.scan_equivalents,
                  counted(wanted, "full scan").c_str(), wanted);
    run.note(text);
    run.report()["search"] = {{"in_memory", e.in_memory},
                              {"on_device", e.device},
                              {"held_by_system", held_by_system},
                              {"passes", e.passes},
                              {"tiles", e.tiles},
                              {"tile_visits", e.tile_visits},
                              {"tile_visits_of_full_scans", e.tiles * wanted},
                              {"full_scan_equivalents", e.scan_equivalents},
                              {"full_scans", wanted},
                              {"candidates", e.pool}};
}

void warn_of_many_signals(tool::Run& run, int number, int bands, const std::string& advice) {
    constexpr int few = 32; // with fewer bands, it is normal that more than half of them count as signals
    if (2 * number <= bands) return;
    const std::string share = "virtual dimensionality: " + std::to_string(number) + " of " +
                              std::to_string(bands) + " bands, more than half: ";
    run.warn(bands < few ? share +
                               "the few bands limit the number, and the scene may have more signals. Use all "
                               "bands of the scene if src has only some of them, or components; otherwise " +
                               advice
                         : share +
                               "signal and noise cannot be separated here, so this is not a count of "
                               "materials. The scene has few pixels, or noise common to bands (smoothed or "
                               "resampled spectra), or much texture; " +
                               advice);
}

void warn_of_vain_test(tool::Run& run, const std::string& method, double false_alarm,
                       const stream::SceneStatistics& scene) {
    const int64_t pixels = scene.valid_pixels;
    const int bands = scene.bands;
    bool centred = true;
    for (int b = 0; b < bands; ++b) {
        constexpr double little = 0.05; // fraction of the standard deviation
        const double mean = scene.mean[static_cast<size_t>(b)];
        centred &=
            mean * mean <=
            little * little * scene.covariance[static_cast<size_t>(b) * (static_cast<size_t>(bands) + 1)];
    }
    if (centred)
        run.warn("the bands have a mean of about 0, as components have: " + method +
                 " counts directions with a significant mean, and finds no direction. Use the original "
                 "scene, or gdal_hsi_vd -method hysime");
    // The test compares an eigenvalue r of the correlation matrix with an eigenvalue k of the covariance
    // matrix, from n pixels. It finds a signal if r - k > tau sqrt(2 (r^2 + k^2) / n). For k = 0 and fewer
    // than 2 tau^2 pixels, this is false for every r.
    const double tau = vd::upper_quantile(false_alarm), least = tau > 0 ? 2 * tau * tau : 0;
    const std::string sizes = method + " has " + counted(pixels, "pixel") + " for " + counted(bands, "band");
    if (static_cast<double>(pixels) <= least)
        run.warn(sizes + ": at this -pf its test finds no signal in " +
                 counted(static_cast<int64_t>(least), "pixel") + " or fewer. Use a larger scene");
    else if (pixels <= bands)
        run.warn(sizes + ", too few: eigenvalues and number depend on these pixels more than on the scene. "
                         "Use a larger scene, or fewer bands (-b)");
}

void report_targets(tool::Run& run, const std::vector<atdca::Target>& targets, const ManyScenes* scenes) {
    run.note(std::string("Rank     Line   Sample           Score") + (scenes ? "  Scene" : ""));
    Json entries = Json::array();
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto& t = targets[k];
        const auto place = place_in(scenes, t);
        char text[100];
        std::snprintf(text, sizeof text, "%4zu %8lld %8lld %15.8g", k + 1, static_cast<long long>(place.line),
                      static_cast<long long>(t.sample), t.score);
        run.note(text + (scenes ? "  " + scenes->name(place.scene) : std::string()));
        entries.push_back({{"rank", k + 1}, {"line", place.line}, {"sample", t.sample}, {"score", t.score}});
        if (scenes) entries.back()["scene"] = scenes->name(place.scene);
    }
    run.report()["targets"] = entries;
}

std::shared_ptr<raster::RasterSource> open_original(tool::Run& run, const std::string& path,
                                                    const raster::RasterSource& source) {
    if (path.empty()) return nullptr;
    raster::OpenOptions options;
    options.path = path;
    options.use_bbl = run.options().source.use_bbl;
    options.bad_bands = run.options().source.bad_bands;
    options.window = run.options().source.window;
    auto original = raster::open_raster(options);
    run.watch_source(original);
    run.reserve_cache(original->cache_bytes());
    const auto a = source.shape(), b = original->shape();
    const auto size = [](const stream::CubeShape& one) {
        return std::to_string(one.samples) + "x" + std::to_string(one.lines);
    };
    if (a.samples != b.samples || a.lines != b.lines)
        throw Error("-original " + path + " is " + size(b) + ", " + source.path() + " is " + size(a),
                    "Give the cube that src was made from.");
    check_same_place(run, "-original", *original, source);
    // Targets are inside of the mask, so results from the other cube must also be inside of the mask.
    return source.facts().masked ? original->with_mask(run.mask()) : original;
}

std::vector<std::vector<float>> spectra_of_targets(std::shared_ptr<raster::RasterSource>& cube,
                                                   tool::Run& run, const std::vector<atdca::Target>& targets,
                                                   const ManyScenes* scenes) {
    std::vector<std::vector<float>> spectra;
    for (;;) {
        const auto reader = cube->open_reader();
        const int bands = cube->shape().bands;
        spectra.clear();
        for (const auto& t : targets) {
            const auto place = place_in(scenes, t);
            std::vector<float> x(static_cast<size_t>(bands));
            const auto other = place.scene > 0 ? scenes->scene(place.scene, *cube)->open_reader() : nullptr;
            (other ? other : reader)
                ->read({t.sample, place.line, 1, 1}, CubeView<float>::packed(x.data(), bands, 1, 1));
            spectra.push_back(std::move(x));
        }
        std::vector<int> empty, numbers;
        for (int b = 0; b < bands; ++b)
            if (std::all_of(spectra.begin(), spectra.end(),
                            [&](const auto& x) { return std::isnan(x[static_cast<size_t>(b)]); }))
                empty.push_back(b);
        if (empty.empty() || static_cast<int>(empty.size()) == bands) break;
        for (int b : empty)
            numbers.push_back(cube->bands()[static_cast<size_t>(b)]);
        run.warn("-original " + cube->path() + ": no value at any target in band " +
                 tool::list_text(numbers) + ": left out");
        cube = cube->without_bands(empty);
    }
    for (size_t k = 0; k < spectra.size(); ++k)
        if (!std::all_of(spectra[k].begin(), spectra[k].end(), [](float v) { return std::isfinite(v); }))
            throw Error("-original " + cube->path() + " has no value at target " + std::to_string(k + 1) +
                            " (line " + std::to_string(targets[k].line) + ", sample " +
                            std::to_string(targets[k].sample) + ")",
                        "Use the cube from which src was made, or leave out its bad bands.");
    return spectra;
}

namespace {

std::string target_name(const char* what, size_t rank, const atdca::Target& t, const ManyScenes* scenes) {
    const auto place = place_in(scenes, t);
    return std::string(what) + " " + std::to_string(rank) + " (line " + std::to_string(place.line) +
           " sample " + std::to_string(t.sample) + (scenes ? " of " + scenes->name(place.scene) : "") + ")";
}

} // namespace

raster::SpectralLibrary library_of_targets(const std::vector<std::vector<float>>& spectra,
                                           const std::vector<atdca::Target>& targets,
                                           const raster::RasterSource& cube, const char* what,
                                           const ManyScenes* scenes) {
    auto library = library_for(cube);
    const BandScales scales(cube);
    // Values that single precision cannot represent are read again, in double precision.
    const auto exact = cube.facts().exact_in_float ? nullptr : cube.in_sums()->open_reader();
    for (size_t k = 0; k < spectra.size(); ++k) {
        library.names.push_back(target_name(what, k + 1, targets[k], scenes));
        auto& x = library.spectra.emplace_back(spectra[k].begin(), spectra[k].end());
        if (exact) {
            std::vector<float> parts(x.size() * stream::value_parts);
            const auto place = place_in(scenes, targets[k]);
            const auto other =
                place.scene > 0 ? scenes->scene(place.scene, cube)->in_sums()->open_reader() : nullptr;
            (other ? other : exact)
                ->read({targets[k].sample, place.line, 1, 1},
                       CubeView<float>::packed(parts.data(), static_cast<int>(parts.size()), 1, 1));
            for (size_t b = 0; b < x.size(); ++b)
                x[b] = stream::joined(parts.data() + b * stream::value_parts, 1);
        }
        scales.apply(x);
    }
    return library;
}

void add_vector_options(tool::Builder& args, raster::VectorOptions& options) {
    args.option("of", options.format, "Vector format of dst")
        .shown_as("FORMAT")
        .defaults_to("from the extension of dst, else GPKG")
        .speaks(tool::Vocabulary::vector_drivers)
        .under("Output");
    args.option("dsco", options.dataset_options, "Dataset creation option of dst")
        .shown_as("NAME=VALUE")
        .under("Output");
    args.option("lco", options.layer_options, "Layer creation option of dst")
        .shown_as("NAME=VALUE")
        .under("Output");
}

namespace {

/// Reads the positions of all targets of a scene together, so that the coordinate arrays of a product are
/// read only once.
std::vector<raster::PixelPlace> places_of_targets(const std::vector<atdca::Target>& targets,
                                                  const raster::RasterSource& source,
                                                  const ManyScenes* scenes) {
    std::vector<raster::PixelPlace> places(targets.size());
    for (size_t k = 0; k < (scenes ? scenes->count() : 1); ++k) {
        std::vector<std::pair<int64_t, int64_t>> pixels;
        std::vector<size_t> which;
        for (size_t i = 0; i < targets.size(); ++i)
            if (const auto place = place_in(scenes, targets[i]); place.scene == k) {
                pixels.emplace_back(place.line, targets[i].sample);
                which.push_back(i);
            }
        if (which.empty()) continue;
        const auto found = raster::places_of_pixels(k > 0 ? *scenes->scene(k, source) : source, pixels);
        for (size_t i = 0; i < which.size(); ++i)
            places[which[i]] = found[i];
    }
    return places;
}

} // namespace

void write_targets(tool::Run& run, const raster::VectorOptions& output,
                   const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                   const ManyScenes* scenes) {
    if (const auto means = raster::unread_georeference(source); !means.empty())
        run.warn(source.path() + " is georeferenced by " + means +
                 ", which points cannot use: their coordinates are pixels (use gdalwarp to put the scene "
                 "onto a grid)");
    const auto places = places_of_targets(targets, source, scenes);
    raster::PointLayer layer;
    layer.name = raster::layer_name(output.path);
    layer.srs_wkt = raster::srs_of_places(source);
    layer.placed = scenes ? scenes->located() : source.located();
    if (scenes && source.located() && !layer.placed)
        run.warn("a scene of -with has no georeference: the points have no georeference");
    if (scenes) layer.text_field = "scene";
    layer.fields = {{"rank", true}, {"line", true}, {"sample", true}, {"score"}, {"lon"}, {"lat"}};
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto place = place_in(scenes, targets[k]);
        layer.points.push_back(
            {places[k].x,
             places[k].y,
             {static_cast<double>(k + 1), static_cast<double>(place.line),
              static_cast<double>(targets[k].sample), targets[k].score, places[k].lon, places[k].lat},
             scenes ? scenes->name(place.scene) : std::string()});
    }
    if (!raster::keeps_places(output, layer))
        run.warn("'" + output.path + "': GeoJSON needs points in degrees, but the georeference of " +
                 source.path() +
                 " cannot be converted: the points have no geometry, and only the fields line and sample "
                 "state their positions. Write a GeoPackage (.gpkg) to use pixels as coordinates");
    raster::write_points(output, layer);
}

} // namespace hsi::tools
