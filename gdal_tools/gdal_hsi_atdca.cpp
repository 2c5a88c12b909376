// SPDX-License-Identifier: MIT
// gdal_hsi_atdca: finds targets in a scene and writes them as points. The search reads the scene once when it
// fits into memory; further passes only for -t auto (covariance), -map and -scores.
#include "atdca/atdca.h"
#include "cli/devices.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "raster/output_set.h"
#include "raster/spectral_library.h"
#include "raster/vector_sink.h"
#include "stream/band_statistics.h"
#include "vd/vd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>

namespace {

using namespace hsi;

struct Settings {
    raster::VectorOptions targets;
    std::string count = "auto", method = "osp", score = "abs", vd_method = "hfc", score_kind = "abundance";
    std::string original, spectra, map, scores, reference;
    std::vector<std::string> creation_options;
    double false_alarm = 1e-3, max_angle = 180;
    int number = 0; ///< of -t; 0: auto
};

std::string scene_size(const stream::CubeShape& s) {
    return std::to_string(s.samples) + "x" + std::to_string(s.lines);
}

void check_bands(const raster::RasterSource& source) {
    if (source.shape().bands < 2)
        throw UsageError("-b: " + std::to_string(source.shape().bands) + " band of " + source.path() +
                             " is no spectrum: ATDCA needs at least 2 bands",
                         "Give more bands with -b, or keep bad ones with -bbl ignore.");
}

/// Where to search: the CPU, or a device through the CUDA module.
class Backend {
  public:
    Backend(cli::Run& run, uint64_t cube_bytes)
        : m_devices(run, one_device(run, cube_bytes), "atdca", atdca::cuda_symbol) {
        cli::tell_devices(run, m_devices.list(), atdca::simd_target());
    }
    atdca::Detection detect(cli::Run& run, const stream::CubeSource& source, const atdca::Options& options,
                            const stream::PassOptions& pass) const {
        auto* const cuda = m_devices.cuda();
        if (cuda && cuda->fits(m_devices.list()[0], run.options().device_memory, source.shape(), options))
            return cuda->detect(m_devices.list()[0], source, options, pass);
        if (cuda) {
            // Reading sets the pace when the scene is streamed, and the CPU keeps up with it.
            run.note("The scene does not fit into device memory: searching on the CPU");
            run.report()["device"] = cli::describe_devices(run, {}, atdca::simd_target());
        }
        return atdca::detect(source, options, pass);
    }

  private:
    static std::vector<CudaDevice> one_device(cli::Run& run, uint64_t cube_bytes) {
        auto devices = choose_devices(run.options().device, "atdca", cube_bytes);
        if (devices.size() > 1) {
            run.warn("the search runs on one device: CUDA " + std::to_string(devices.front().ordinal));
            devices.resize(1);
        }
        return devices;
    }
    cli::Devices<atdca::CudaBackend> m_devices;
};

/// The rasters that classify: a label map, scores by target.
class Rasters {
  public:
    /// A map whose name ends in .vrt has no pixels: `like`, the cube that it classifies, is named in it.
    Rasters(const cli::Run& run, const Settings& s, const stream::CubeShape& shape, int targets,
            const raster::RasterSource& like) {
        const auto options = [&](const std::string& role, const std::string& path) {
            raster::OutputOptions o;
            o.role = role;
            o.run = run.files();
            o.path = path;
            o.creation_options = s.creation_options;
            o.overwrite = s.targets.overwrite;
            o.history = run.options().destination.history;
            return o;
        };
        if (!s.map.empty()) {
            raster::OutputSpec spec;
            spec.shape = {shape.samples, shape.lines, 1};
            spec.type = targets <= 255 ? "Byte" : "UInt16";
            spec.bands = {{"Nearest target", {}}};
            spec.nodata = 0;
            spec.categories = {"Unclassified"};
            spec.colours = {{0, 0, 0, 0}};
            for (int k = 0; k < targets; ++k) {
                spec.categories.push_back("Target " + std::to_string(k + 1));
                spec.colours.push_back(colour(k));
            }
            m_virtual = raster::RasterSink::is_virtual(options("-map", s.map));
            if (m_virtual) {
                m_map = {options("-map", s.map), spec};
                raster::RasterSink::check_virtual(m_map.first, spec, like);
            } else {
                m_outputs.plan(options("-map", s.map), spec);
            }
        }
        if (!s.scores.empty()) {
            raster::OutputSpec spec;
            spec.shape = {shape.samples, shape.lines, targets};
            spec.holes = true;
            for (int k = 0; k < targets; ++k)
                spec.bands.push_back({"Target " + std::to_string(k + 1) + " " + s.score_kind,
                                      {{"unit", s.score_kind == "angle" ? "degree" : "1"}}});
            m_outputs.plan(options("-scores", s.scores), std::move(spec));
        }
        m_outputs.check();
    }
    /// Those that hold pixels: the map, then the scores.
    raster::OutputSet& outputs() { return m_outputs; }
    bool virtual_map() const { return m_virtual; }
    void write_virtual_map(const std::vector<std::vector<float>>& spectra, double max_angle,
                           const raster::RasterSource& like) const {
        std::string text;
        char one[32];
        for (const auto& x : spectra) {
            if (!text.empty()) text += "; ";
            for (size_t b = 0; b < x.size(); ++b) {
                std::snprintf(one, sizeof one, "%.9g", static_cast<double>(x[b]));
                text += (b ? " " : "") + std::string(one);
            }
        }
        raster::VirtualBand band;
        band.function = "hsi_sad";
        std::snprintf(one, sizeof one, "%.17g", max_angle);
        band.arguments = {{"spectra", text}, {"output", "class"}, {"max_angle", one}};
        raster::RasterSink::write_virtual(m_map.first, m_map.second, like, {band});
    }

  private:
    /// Hues a golden angle apart: neighbours in rank differ most.
    static std::array<uint8_t, 4> colour(int k) {
        const double hue = std::fmod(0.61803398875 * k, 1.0) * 6, value = k % 3 == 2 ? 0.65 : 0.95,
                     saturation = k % 2 ? 0.6 : 0.9;
        const auto channel = [&](double shift) {
            const double x = std::fmod(shift + hue, 6.0);
            const double v = value * (1 - saturation * std::clamp(std::min(x, 4 - x), 0.0, 1.0));
            return static_cast<uint8_t>(std::lround(255 * v));
        };
        return {channel(5), channel(3), channel(1), 255};
    }
    raster::OutputSet m_outputs;
    bool m_virtual = false;
    std::pair<raster::OutputOptions, raster::OutputSpec> m_map; ///< when it is virtual
};

/// How many targets: virtual dimensionality.
int dimensionality(cli::Run& run, const Settings& s, const raster::RasterSource& source, double share) {
    stream::CovarianceScan scan(source.shape().bands);
    run.add_pass(stream::run_pass(source, scan, {}, run.pass("covariance", share)));
    const auto scene = scan.result();
    if (scene.valid_pixels == 0) return 1; // the search says what is wrong, or leaves empty bands out
    const auto method = s.vd_method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const int number = vd::estimate(scene, method, s.false_alarm).number;
    run.note("Virtual dimensionality (" + s.vd_method + "): " + std::to_string(number));
    run.report()["virtual_dimensionality"] = number;
    if (number < 1)
        throw Error(source.path() +
                        ": virtual dimensionality found no signal, so -t auto has no number of targets",
                    "Give -t a number, or a larger -pf.");
    return number;
}

/// The targets' spectra in another cube of the same size.
std::vector<std::vector<float>> spectra_at(std::shared_ptr<raster::RasterSource>& cube, cli::Run& run,
                                           const std::vector<atdca::Target>& targets) {
    std::vector<std::vector<float>> spectra;
    for (;;) {
        const auto reader = cube->open_reader();
        const int bands = cube->shape().bands;
        spectra.clear();
        for (const auto& t : targets) {
            std::vector<float> x(static_cast<size_t>(bands));
            reader->read({t.sample, t.line, 1, 1}, CubeView<float>::packed(x.data(), bands, 1, 1));
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
        run.warn("-original " + cube->path() + ": no value at any target in band " + cli::list_text(numbers) +
                 ": left out");
        cube = cube->without_bands(empty);
    }
    for (size_t k = 0; k < spectra.size(); ++k)
        if (!std::all_of(spectra[k].begin(), spectra[k].end(), [](float v) { return std::isfinite(v); }))
            throw Error("-original " + cube->path() + " has no value at target " + std::to_string(k + 1) +
                            " (line " + std::to_string(targets[k].line) + ", sample " +
                            std::to_string(targets[k].sample) + ")",
                        "Give the cube that src was made from, or leave out its bad bands.");
    return spectra;
}

std::string target_name(size_t rank, const atdca::Target& t) {
    return "Target " + std::to_string(rank) + " (line " + std::to_string(t.line) + " sample " +
           std::to_string(t.sample) + ")";
}

raster::SpectralLibrary library_of(const std::vector<std::vector<float>>& spectra,
                                   const std::vector<atdca::Target>& targets,
                                   const raster::RasterSource& cube) {
    raster::SpectralLibrary library;
    for (size_t k = 0; k < spectra.size(); ++k) {
        library.names.push_back(target_name(k + 1, targets[k]));
        library.spectra.emplace_back(spectra[k].begin(), spectra[k].end());
    }
    library.wavelengths_nm = cube.wavelengths_nm();
    library.fwhm_nm = cube.fwhm_nm();
    return library;
}

/// The references at the bands of the targets' spectra.
raster::SpectralLibrary fitted(const raster::SpectralLibrary& references, const std::string& path,
                               const raster::SpectralLibrary& targets) {
    const auto &a = references.wavelengths_nm, &b = targets.wavelengths_nm;
    const auto near = [](double x, double y) { return !(std::fabs(x - y) > 0.5); };
    if (references.bands() == targets.bands() &&
        (a.empty() || b.empty() || std::equal(a.begin(), a.end(), b.begin(), near)))
        return references;
    if (a.empty() || b.empty())
        throw Error("-reference " + path + " has " + std::to_string(references.bands()) +
                        " bands, the scene " + std::to_string(targets.bands()) +
                        ", and there are no wavelengths to fit them by",
                    "Give a library with the scene's bands, or choose bands with -b.");
    return raster::resampled(references, b);
}

/// Table I of the paper: for every reference the target that is most similar.
void compare_with(cli::Run& run, const raster::SpectralLibrary& references,
                  const raster::SpectralLibrary& targets, const std::string& path) {
    const auto fit = fitted(references, path, targets);
    std::vector<size_t> common;
    for (size_t b = 0; b < targets.bands(); ++b)
        if (std::all_of(fit.spectra.begin(), fit.spectra.end(),
                        [&](const auto& x) { return std::isfinite(x[b]); }))
            common.push_back(b);
    if (common.size() < 2)
        throw Error("-reference " + path +
                    ": its wavelengths and the scene's have fewer than 2 bands in common");
    if (common.size() < targets.bands())
        run.note("Compared over " + std::to_string(common.size()) + " of " + std::to_string(targets.bands()) +
                 " bands: the others lie outside the library");
    const auto cut = [&](const std::vector<double>& x) {
        std::vector<double> y;
        for (size_t b : common)
            y.push_back(x[b]);
        return y;
    };
    size_t width = 9;
    for (const auto& name : fit.names)
        width = std::max(width, name.size());
    const auto row = [&](const std::string& name, const std::string& target, double angle) {
        char text[32];
        std::snprintf(text, sizeof text, "%12.4f", angle);
        run.print(name + std::string(width - name.size(), ' ') +
                  std::string(8 - std::min<size_t>(8, target.size()), ' ') + target + text);
    };
    run.print("Reference" + std::string(width - 9, ' ') + "  Target SAD/degree");
    nlohmann::json table = nlohmann::json::array();
    double sum = 0;
    for (size_t r = 0; r < fit.names.size(); ++r) {
        const auto reference = cut(fit.spectra[r]);
        double best = std::numeric_limits<double>::infinity();
        size_t at = 0;
        for (size_t k = 0; k < targets.spectra.size(); ++k) {
            const double angle =
                atdca::spectral_angle(reference.data(), cut(targets.spectra[k]).data(), reference.size());
            if (angle < best) {
                best = angle;
                at = k;
            }
        }
        if (!std::isfinite(best))
            throw Error("-reference " + path + ": the spectrum " + fit.names[r] + " is all zero");
        row(fit.names[r], std::to_string(at + 1), best);
        table.push_back({{"reference", fit.names[r]}, {"target", at + 1}, {"sad_degrees", best}});
        sum += best;
    }
    row("Average", "", sum / static_cast<double>(fit.names.size()));
    run.report()["reference"] = {{"library", path}, {"bands", common.size()}, {"best", table}};
}

raster::PointLayer layer_of(const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                            const std::string& path) {
    std::vector<std::pair<int64_t, int64_t>> pixels;
    for (const auto& t : targets)
        pixels.emplace_back(t.line, t.sample);
    const auto places = raster::places_of_pixels(source, pixels);
    raster::PointLayer layer;
    layer.name = raster::layer_name(path);
    layer.srs_wkt = source.srs_wkt();
    layer.fields = {{"rank", true}, {"line", true}, {"sample", true}, {"score"}, {"lon"}, {"lat"}};
    for (size_t k = 0; k < targets.size(); ++k)
        layer.points.push_back(
            {places[k].x,
             places[k].y,
             {static_cast<double>(k + 1), static_cast<double>(targets[k].line),
              static_cast<double>(targets[k].sample), targets[k].score, places[k].lon, places[k].lat}});
    return layer;
}

void tell_economy(cli::Run& run, const atdca::Detection& found, int wanted, bool held_by_system) {
    const auto& e = found.economy;
    char text[200];
    std::snprintf(text, sizeof text,
                  "Search: %s; %d passes looked at %.2f times the scene's pixels, %d full scans would at %d",
                  e.in_memory ? (e.device ? "scene on the device, read once" : "scene in memory, read once")
                  : held_by_system ? "scene read again where the system holds it in memory"
                                   : "scene streamed",
                  e.passes, e.scan_equivalents, wanted, wanted);
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

void run_atdca(cli::Run& run, Settings s) {
    s.targets.history = run.options().destination.history;
    s.targets.run = run.files();
    auto source = run.open_source();
    check_bands(*source);
    std::shared_ptr<raster::RasterSource> original;
    if (!s.original.empty()) {
        raster::OpenOptions options;
        options.path = s.original;
        options.use_bbl = run.options().source.use_bbl;
        options.window = run.options().source.window;
        original = raster::RasterSource::open(options);
        run.reserve_cache(original->cache_bytes());
        const auto a = source->shape(), b = original->shape();
        if (a.samples != b.samples || a.lines != b.lines)
            throw Error("-original " + s.original + " is " + scene_size(b) + ", " + source->path() + " is " +
                            scene_size(a),
                        "Give the cube that src was made from.");
    }
    raster::check_vector_output(s.targets);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.targets.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    raster::SpectralLibrary references;
    if (!s.reference.empty()) references = raster::read_spectral_library(s.reference);
    Rasters(run, s, source->shape(), s.number > 0 ? s.number : 255, original ? *original : *source);
    const Backend backend(run, source->shape().float_bytes());

    atdca::Options options;
    options.method = s.method == "osp" ? atdca::Method::osp : atdca::Method::gs;
    options.score = s.score == "abs" ? atdca::Score::absolute : atdca::Score::sign;
    options.targets = s.number;
    // What the system holds is as near as a copy of it, and making the copy takes longer than the few looks
    // of OSP; GS takes twice as many.
    options.keep_scene = options.method == atdca::Method::gs || !source->held_by_system();
    const bool further = !s.map.empty() || !s.scores.empty();
    if (run.options().dry_run) {
        options.targets = s.number > 0 ? s.number : std::min(source->shape().bands, 50);
        const auto plan = atdca::plan_detection(*source, options, run.pass("search", 1));
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
        return;
    }

    atdca::Detection found;
    const double share = further ? 0.6 : 1.0; // of the progress, for the search and what it needs
    for (bool first = true;; first = false) {
        options.targets =
            s.number > 0 ? s.number : dimensionality(run, s, *source, first ? share * 0.25 : 0.0);
        found = backend.detect(run, *source, options,
                               run.pass("search", first ? share * (s.number > 0 ? 1.0 : 0.75) : 0.0));
        for (const auto& pass : found.passes)
            run.add_pass(pass);
        if (found.valid_pixels > 0 || !first) break;
        // Perhaps a band without a single value spoils every pixel.
        stream::BandStatisticsScan scan(source->shape().bands);
        run.add_pass(stream::run_pass(*source, scan, {}, run.pass("statistics", 0.0)));
        if (!run.leave_out_empty_bands(source, scan.result().empty_bands())) break;
        check_bands(*source);
    }
    if (found.valid_pixels == 0) throw cli::no_valid_pixel(*source);
    run.report()["valid_pixels"] = found.valid_pixels;
    run.report()["invalid_pixels"] = found.invalid_pixels;
    if (found.invalid_pixels > 0)
        run.note(std::to_string(found.invalid_pixels) + " of " + std::to_string(source->shape().pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and cannot be targets");
    if (!found.warning.empty()) run.warn(found.warning);

    const auto& targets = found.targets;
    auto cube = original ? original : source;
    std::vector<std::vector<float>> spectra;
    if (original)
        spectra = spectra_at(cube, run, targets);
    else
        for (const auto& t : targets)
            spectra.push_back(t.spectrum);
    const auto library = library_of(spectra, targets, *cube);

    if (further) {
        Rasters rasters(run, s, source->shape(), static_cast<int>(targets.size()), *cube);
        atdca::ClassifyOptions classify;
        classify.map = !s.map.empty() && !rasters.virtual_map();
        classify.max_angle = s.max_angle;
        if (!s.scores.empty())
            classify.scores = s.score_kind == "angle" ? atdca::ClassifyOptions::Scores::angle
                                                      : atdca::ClassifyOptions::Scores::abundance;
        if (auto& outputs = rasters.outputs(); !outputs.empty()) {
            const auto operation = atdca::make_classification(spectra, classify);
            outputs.create(cube.get());
            run.reserve_cache(outputs.cache_bytes());
            run.add_pass(stream::run_pass(*cube, *operation, outputs.sinks(), run.pass("classify", 0.4)));
            outputs.commit();
        }
        if (rasters.virtual_map()) rasters.write_virtual_map(spectra, s.max_angle, *cube);
    }
    if (!s.spectra.empty()) raster::write_spectral_library(spectra_output, library, s.targets.history);
    raster::write_points(s.targets, layer_of(targets, *source, s.targets.path));

    tell_economy(run, found, options.targets, !options.keep_scene);
    run.note("Rank     Line   Sample           Score");
    nlohmann::json entries = nlohmann::json::array();
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto& t = targets[k];
        char text[100];
        std::snprintf(text, sizeof text, "%4zu %8lld %8lld %15.8g", k + 1, static_cast<long long>(t.line),
                      static_cast<long long>(t.sample), t.score);
        run.note(text);
        entries.push_back({{"rank", k + 1}, {"line", t.line}, {"sample", t.sample}, {"score", t.score}});
    }
    run.report()["targets"] = entries;
    if (!s.reference.empty()) compare_with(run, references, library, s.reference);
}

void check_settings(Settings& s) {
    if (s.count != "auto") {
        char* end = nullptr;
        const long value = std::strtol(s.count.c_str(), &end, 10);
        if (end == s.count.c_str() || *end != '\0' || value < 1 || value > 65535)
            throw UsageError("-t: '" + s.count + "' is not a number of targets", "Use 1 to 65535, or auto.");
        s.number = static_cast<int>(value);
    }
    if (s.method == "osp" && s.score == "signed")
        throw UsageError("-score signed: the scores of -method osp have no sign", "Use it with -method gs.");
    if (!(s.false_alarm > 0 && s.false_alarm < 1))
        throw UsageError("-pf: " + std::to_string(s.false_alarm) + " is no false-alarm probability",
                         "Use a number between 0 and 1, for example 1e-3.");
    if (!(s.max_angle >= 0 && s.max_angle <= 180))
        throw UsageError("-max-angle: " + std::to_string(s.max_angle) + " is no angle between spectra",
                         "Use 0 to 180 degrees.");
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_atdca",
        "Automatic target detection and classification (ATDCA): finds the pixels whose spectra differ most "
        "from one another, by orthogonal subspace projection (osp) or Gram-Schmidt (gs), and writes them as "
        "points.",
        "Examples:\n"
        "  gdal_hsi_atdca -t 30 scene.img targets.gpkg\n"
        "  gdal_hsi_spp scene.img y.tif && gdal_hsi_atdca -t 19 -original scene.img y.tif targets.geojson\n"
        "  gdal_hsi_atdca -spectra targets.sli -map nearest.tif -max-angle 5 scene.img targets.gpkg\n"
        "  gdal_hsi_atdca -q -reference minerals.sli scene.img targets.gpkg\n");
    tool.add_source();
    tool.add_compute();
    Settings s;
    auto& app = tool.app();
    app.add_option("dst", s.targets.path, "the targets, a vector layer; it appears when it is complete")
        ->required()
        ->group("Arguments");
    app.add_option("-t,--targets", s.count, "Number of targets; auto: the virtual dimensionality")
        ->type_name("N|auto")
        ->capture_default_str();
    app.add_option("--method", s.method, "osp: greatest ||P x||^2; gs: greatest |p.x|")
        ->check(CLI::IsMember({"osp", "gs"}))
        ->type_name("osp|gs")
        ->capture_default_str();
    app.add_option("--score", s.score, "gs: by the absolute value, or by p.x as Algorithm 2 is printed")
        ->check(CLI::IsMember({"abs", "signed"}))
        ->type_name("abs|signed")
        ->capture_default_str();
    app.add_option("--vd-method", s.vd_method, "Method of -t auto")
        ->check(CLI::IsMember({"hfc", "nwhfc"}))
        ->type_name("hfc|nwhfc")
        ->capture_default_str();
    app.add_option("--pf", s.false_alarm, "False-alarm probability of -t auto")
        ->type_name("P")
        ->capture_default_str();
    app.add_option(
           "--original", s.original,
           "Read the targets' spectra in this cube, of which src is a preprocessed one; -map and -scores "
           "classify it")
        ->type_name("FILE");
    app.add_option("--spectra", s.spectra, "Write the spectra: .sli (ENVI library) or .csv")
        ->type_name("FILE");
    app.add_option(
           "--map", s.map,
           "Write a map: the nearest target of every pixel, by spectral angle; a .vrt computes it when it is "
           "read")
        ->type_name("FILE");
    app.add_option("--max-angle", s.max_angle,
                   "-map: pixels farther than this from every target stay unclassified")
        ->type_name("DEGREES")
        ->capture_default_str();
    app.add_option("--scores", s.scores, "Write detection scores, a band a target")->type_name("FILE");
    app.add_option("--score-kind", s.score_kind,
                   "-scores: least-squares abundance, or spectral angle in degrees")
        ->check(CLI::IsMember({"abundance", "angle"}))
        ->type_name("abundance|angle")
        ->capture_default_str();
    app.add_option(
           "--reference", s.reference,
           "Print the spectral angle of the best target to every spectrum of this library (.sli, .csv)")
        ->type_name("FILE");
    app.add_option("--of", s.targets.format, "Vector format [from the extension of dst, else GPKG]")
        ->type_name("FORMAT")
        ->group("Output");
    app.add_option("--dsco", s.targets.dataset_options, "Dataset creation option of dst; may be repeated")
        ->type_name("NAME=VALUE")
        ->group("Output");
    app.add_option("--lco", s.targets.layer_options, "Layer creation option of dst; may be repeated")
        ->type_name("NAME=VALUE")
        ->group("Output");
    app.add_option("--co", s.creation_options, "Creation option of -map and -scores; may be repeated")
        ->type_name("NAME=VALUE")
        ->group("Output");
    app.add_flag("--overwrite", s.targets.overwrite, "Replace outputs that are there")->group("Output");
    tool.add_input("-original", s.original);
    tool.add_input("-reference", s.reference);
    tool.check([&](const cli::CommonOptions&) { check_settings(s); });
    return tool.run(argc, argv, [&](cli::Run& run) { run_atdca(run, s); });
}
