// SPDX-License-Identifier: MIT
// gdal_hsi_sahic: a scene and labelled pixels to a class map. Scan (scale and training spectra), training,
// one pass for class probabilities and spatial weights, then the Markov random field over the whole scene or
// over tiles with a halo.
#include "cli/classification.h"
#include "cli/devices.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "raster/labels.h"
#include "raster/packed_text.h"
#include "sahic/lorsal.h"
#include "sahic/sahic.h"
#include "sahic/scene_scan.h"
#include "sahic/store.h"
#include "training_pixels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

namespace {

using namespace hsi;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Settings {
    raster::LabelOptions labels;
    sahic::LorsalOptions lorsal;
    sahic::MrfOptions mrf;
    std::string tv = "isotropic", boundary = "reflect", solver = "paper";
    std::string model_file, apply, probabilities, confidence;
    bool no_spatial = false, any_wavelengths = false;
    bool periodic() const { return boundary == "periodic"; }
    bool no_labels() const { return !apply.empty() && labels.path == "none"; }
};

/// Where to compute: the CPU, or devices through the CUDA module.
class Backend {
  public:
    Backend(cli::Run& run, uint64_t cube_bytes)
        : m_devices(run, choose_devices(run.options().device, "sahic", cube_bytes), "sahic",
                    sahic::cuda_symbol),
          m_cuda(m_devices.cuda()) {
        cli::tell_devices(run, m_devices.list(), sahic::simd_target());
    }
    bool cuda() const { return m_cuda != nullptr; }
    sahic::LorsalResult train(const sahic::TrainingSet& set, const sahic::LorsalOptions& options) const {
        // The optimum's working set is small and its steps are many: it is the CPU's on every device.
        return m_cuda && !options.optimum ? m_cuda->train(m_devices.list()[0], set, options)
                                          : sahic::train(set, options);
    }
    std::unique_ptr<sahic::SpectralPass> spectral_pass(std::shared_ptr<const sahic::MlrModel> model,
                                                       const sahic::SpectralOptions& options,
                                                       const stream::CubeShape& shape) const {
        return m_cuda ? m_cuda->make_spectral_pass(m_devices.list(), std::move(model), options, shape.samples,
                                                   shape.lines)
                      : sahic::make_spectral_pass(std::move(model), options, shape.samples, shape.lines);
    }
    std::unique_ptr<sahic::MrfSolver> mrf_solver(const sahic::MrfOptions& options,
                                                 const sahic::MrfLimits& limits, int threads) const {
        return m_cuda ? m_cuda->make_mrf_solver(m_devices.list()[0], options, limits)
                      : sahic::make_mrf_solver(options, limits, threads);
    }
    /// Host and device bytes of a solver.
    uint64_t mrf_host_bytes(const sahic::MrfLimits& limits) const {
        return m_cuda ? 0 : sahic::mrf_bytes(limits);
    }
    uint64_t mrf_device_bytes(const sahic::MrfLimits& limits) const {
        return m_cuda ? m_cuda->mrf_bytes(limits) : 0;
    }
    std::shared_ptr<HostAllocator> allocator() const {
        return m_cuda ? m_cuda->allocator(m_devices.list()[0]) : paged_allocator();
    }
    /// Device bytes for everything; 0 on the CPU.
    uint64_t device_memory(const cli::CommonOptions& options) const { return m_devices.memory(options); }
    /// Options of a pass that computes here. A device is kept busy by a few lanes, and each holds buffers on
    /// it.
    stream::PassOptions pass(cli::Run& run, const std::string& name, double share) const {
        auto options = run.pass(name, share);
        options.device_memory = device_memory(run.options());
        if (m_cuda) options.lanes = std::min(options.lanes, 4 * static_cast<int>(m_devices.list().size()));
        return options;
    }
    void report_kernels(cli::Run& run) const {
        if (!m_cuda) return;
        const auto s = m_cuda->kernel_seconds();
        run.report()["kernel_seconds"] = {{"training", s[0]}, {"probabilities", s[1]}, {"mrf", s[2]}};
    }

  private:
    cli::Devices<sahic::CudaBackend> m_devices;
    sahic::CudaBackend* m_cuda;
};

/// The scan. Bands without a single value are left out of `scene`, with a warning: they would leave no pixel
/// valid. The cube is kept in memory where reading it again would cost.
sahic::SceneScan scan(cli::Run& run, std::shared_ptr<raster::RasterSource>& scene,
                      std::shared_ptr<stream::CubeSource>& cube, const raster::LabelledPixels& labels,
                      bool border) {
    const auto shape = scene->shape();
    const uint64_t bytes = tools::spectra_bytes(run, labels, shape.bands);
    sahic::SceneScan operation(shape, labels.index, border);
    cube = run.keep_if_slow(scene);
    auto pass = run.pass("scan", 0.1);
    pass.memory -= std::min(pass.memory / 2, bytes);
    run.add_pass(stream::run_pass(*cube, operation, {}, pass));
    cli::Run::seal(*cube);
    const std::vector<int> empty = operation.empty_bands();
    if (empty.empty()) return operation;
    if (empty.size() == static_cast<size_t>(shape.bands) || operation.largest() > 0)
        throw Error("all pixels of " + scene->path() + " are invalid",
                    "Check the nodata value (-srcnodata) and the bands (-b).");
    std::vector<int> numbers;
    for (const int b : empty)
        numbers.push_back(scene->bands()[static_cast<size_t>(b)]);
    run.warn("band " + cli::list_text(numbers) + " has no value at all: left out");
    run.report()["bands_without_values"] = numbers;
    scene = scene->without_bands(empty);
    return scan(run, scene, cube, labels, border);
}

sahic::TrainingSet training_set(cli::Run& run, const raster::RasterSource& scene,
                                const sahic::SceneScan& found, const raster::LabelledPixels& labels) {
    if (!(found.largest() > 0))
        throw Error("all pixels of " + scene.path() + " are invalid",
                    "Check the nodata value (-srcnodata) and the bands (-b).");
    sahic::TrainingSet set;
    set.features = scene.shape().bands;
    set.scale = static_cast<double>(found.largest());
    tools::fill_training_set(run, labels, found, set);
    for (const auto& c : set.classes)
        if (c.samples == 1) run.warn("class " + cli::class_text(c.value, c.name) + " has one training pixel");
    return set;
}

sahic::MlrModel train(cli::Run& run, const Backend& backend, const Settings& s,
                      const raster::RasterSource& scene, const sahic::SceneScan& found,
                      const raster::LabelledPixels& labels) {
    const auto set = training_set(run, scene, found, labels);
    sahic::LorsalOptions options = s.lorsal;
    options.threads = run.options().threads;
    options.memory = run.buffer_memory();
    const auto rest = run.pass("training", 0.2);
    options.cancel = rest.cancel;
    options.progress = rest.progress;
    const auto begin = Clock::now();
    auto result = backend.train(set, options);
    sahic::MlrModel& model = result.model;
    model.bands = scene.bands();
    model.band_names = scene.band_names();
    model.wavelengths_nm = scene.wavelengths_nm();
    model.trained_on = scene.path();
    model.labels = s.labels.path;
    model.history = run.options().destination.history;
    model.created_by = "gdal_hsi_sahic";
    Json classes = Json::array();
    for (const auto& c : model.classes)
        classes.push_back({{"value", c.value}, {"name", c.name}, {"samples", c.samples}});
    Json record = {{"classes", classes},
                   {"pixels", set.samples()},
                   {"solver", model.solver},
                   {"iterations", result.iterations},
                   {"objective", result.objective},
                   {"active_features", result.active_features},
                   {"active_weights", model.active_weights()},
                   {"scale", model.scale},
                   {"spread", model.spread},
                   {"seconds", seconds_since(begin)}};
    if (options.optimum) {
        const double share = result.gap / result.objective;
        record["gap"] = result.gap;
        record["relative_gap"] = share;
        if (share > options.gap) {
            char text[160];
            std::snprintf(text, sizeof text,
                          "the optimum is proven to %.1e of the objective only, not to %.0e", share,
                          options.gap);
            run.warn(text);
        }
    }
    run.report()["training"] = std::move(record);
    char text[200];
    std::snprintf(
        text, sizeof text, "%s: %d classes, %lld training pixels, objective %.6g, %lld active features",
        options.optimum ? "Optimum" : "LORSAL", model.class_count(), static_cast<long long>(set.samples()),
        result.objective, static_cast<long long>(result.active_features));
    run.note(text);
    return std::move(result.model);
}

/// Class map, probabilities, confidence: planned when the classes are known, made before the first pass that
/// writes.
raster::OutputSet plan_outputs(const cli::Run& run, const Settings& s, const raster::RasterSource& source,
                               const std::vector<raster::LabelClass>& classes) {
    std::map<std::string, std::string> metadata;
    if (!s.apply.empty()) metadata["HSI_SAHIC_MODEL"] = s.apply;
    return cli::plan_classification(run, source, classes, s.probabilities, s.confidence, metadata);
}

/// How the random field is cut: the whole scene at once where memory allows, else tiles with a halo.
struct MrfPlan {
    bool whole = true, store_in_memory = true;
    int64_t halo = 0;
    TilePlan tiles; ///< cores; windows are theirs, or wrap round
    sahic::MrfLimits limits;
    uint64_t host_bytes = 0;
};

/// Sets the tile size for which the fewest pixels are computed twice; leaves it open when no tile fits.
void choose_tile(TileRequest& request, int64_t halo) {
    int64_t least = 0;
    for (int64_t columns = 1; columns <= (request.samples + 15) / 16; ++columns) {
        const int64_t w = (request.samples + columns - 1) / columns,
                      window_w = std::min(w + 2 * halo, request.samples);
        const auto fits = [&](int64_t h) {
            return request.lane_bytes(std::min(w + 2 * request.halo, request.samples),
                                      std::min(h + 2 * request.halo, request.lines), w, h) <= request.budget;
        };
        if (!fits(1)) continue;
        int64_t low = 1, high = request.lines; // the most lines that fit
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            (fits(middle) ? low : high) = fits(middle) ? middle : middle - 1;
        }
        const int64_t rows = (request.lines + low - 1) / low, h = (request.lines + rows - 1) / rows;
        const int64_t computed = columns * rows * window_w * std::min(h + 2 * halo, request.lines);
        if (least == 0 || computed < least) {
            least = computed;
            request.forced_samples = w;
            request.forced_lines = h;
        }
    }
}

MrfPlan plan_mrf(const cli::Run& run, const Backend& backend, const Settings& s,
                 const stream::CubeShape& shape, int classes) {
    const auto& common = run.options();
    const uint64_t memory = run.buffer_memory(), device = backend.device_memory(common);
    const auto k = static_cast<uint64_t>(classes);
    // A window needs p and the weights, the training pixels, and q beside the solver.
    const auto window_bytes = [&](int64_t w, int64_t h) {
        const auto pixels = static_cast<uint64_t>(w) * static_cast<uint64_t>(h);
        return pixels * (4 * (2 * k + 1) + 2) + backend.mrf_host_bytes({classes, h, w});
    };
    const auto device_fits = [&](int64_t w, int64_t h) {
        return device == 0 || backend.mrf_device_bytes({classes, h, w}) <= device;
    };
    MrfPlan plan;
    const uint64_t store = static_cast<uint64_t>(shape.pixels()) * 4 * (k + 1);
    const bool forced =
        common.tile_samples > 0 && (common.tile_samples < shape.samples || common.tile_lines < shape.lines);
    plan.limits = {classes, shape.lines, shape.samples};
    plan.tiles = TilePlan(shape.samples, shape.lines, shape.samples, shape.lines, 0, 1);
    plan.host_bytes = window_bytes(shape.samples, shape.lines);
    if (!forced && plan.host_bytes <= memory && device_fits(shape.samples, shape.lines)) return plan;

    plan.whole = false;
    const auto halo = sahic::mrf_halo(s.mrf);
    if (!halo) {
        char text[100];
        std::snprintf(text, sizeof text, "-mu %g with %d iterations reaches too far for tiles", s.mrf.mu,
                      s.mrf.iterations);
        std::string what = text;
        if (!forced)
            what += ", and the whole scene of " + std::to_string(shape.samples) + "x" +
                    std::to_string(shape.lines) + " pixels needs " + format_byte_size(plan.host_bytes);
        throw Error(
            what,
            "Leave -tile out, give more -memory or -device-memory, or use -mu 0.05 or less and at most 200 "
            "-iterations.");
    }
    plan.halo = *halo;
    plan.store_in_memory = store <= memory / 4; // larger tiles are worth more
    const uint64_t budget = plan.store_in_memory ? memory - store : memory;
    TileRequest request;
    request.samples = shape.samples;
    request.lines = shape.lines;
    request.halo = s.periodic() ? 0 : *halo;
    request.budget = budget;
    request.forced_samples = common.tile_samples;
    request.forced_lines = common.tile_lines;
    const int64_t around = s.periodic() ? 2 * *halo : 0;
    request.lane_bytes = [&](int64_t w, int64_t h, int64_t, int64_t) {
        return device_fits(w + around, h + around) ? window_bytes(w + around, h + around) : budget + 1;
    };
    if (!forced) choose_tile(request, *halo);
    plan.tiles = plan_tiles(request);
    plan.limits = {classes, plan.tiles.max_window_lines() + around, plan.tiles.max_window_samples() + around};
    plan.host_bytes =
        window_bytes(plan.limits.samples, plan.limits.lines) + (plan.store_in_memory ? store : 0);
    return plan;
}

/// Marks training pixels of a window (scene coordinates, wrapping round).
void mark_fixed(const raster::LabelledPixels& labels, const std::vector<uint16_t>& class_of,
                const stream::CubeShape& shape, const Rect& window, uint16_t* fixed) {
    std::fill_n(fixed, window.area(), uint16_t{0});
    for (int64_t y = 0; y < window.h; ++y) {
        const int64_t line = (((window.y + y) % shape.lines) + shape.lines) % shape.lines;
        auto it = std::lower_bound(labels.index.begin(), labels.index.end(), line * shape.samples);
        for (; it != labels.index.end() && *it < (line + 1) * shape.samples; ++it) {
            const int64_t sample = *it - line * shape.samples;
            const uint16_t value = class_of[labels.value[static_cast<size_t>(it - labels.index.begin())]];
            int64_t x = (((sample - window.x) % shape.samples) + shape.samples) % shape.samples;
            for (; x < window.w; x += shape.samples)
                fixed[y * window.w + x] = value;
        }
    }
}

/// Turns q of a tile's core into the outputs, strip by strip.
class Writer {
  public:
    Writer(const raster::OutputSet& outputs, const Settings& s, const sahic::MlrModel& model)
        : m_sinks(outputs.sinks()), m_probabilities(!s.probabilities.empty()),
          m_confidence(!s.confidence.empty()), m_model(model), m_by_class(model.classes.size(), 0) {}
    /// q: [class][line][sample] of `window`; p0: the first plane of the probabilities, NaN where invalid.
    void write(const Rect& core, const Rect& window, float* q, const float* p0) {
        constexpr int64_t strip = 256; // blocks of tiled files
        const int classes = m_model.class_count();
        for (int64_t y = core.y; y < core.bottom();) {
            const int64_t lines = std::min(strip - y % strip, core.bottom() - y);
            const auto pixels = static_cast<size_t>(core.w * lines);
            m_map.resize(pixels);
            m_best.resize(pixels);
            m_p.resize(pixels * static_cast<size_t>(classes));
            for (int64_t l = 0; l < lines; ++l) {
                const int64_t from = (y + l - window.y) * window.w + core.x - window.x;
                line(q + from, p0 + from, window.area(), core.w, static_cast<size_t>(l * core.w), pixels);
            }
            const Rect part{core.x, y, core.w, lines};
            size_t next = 0;
            m_sinks[next++]->write(part, CubeView<float>::packed(m_map.data(), 1, lines, core.w));
            if (m_probabilities)
                m_sinks[next++]->write(part, CubeView<float>::packed(m_p.data(), classes, lines, core.w));
            if (m_confidence)
                m_sinks[next++]->write(part, CubeView<float>::packed(m_best.data(), 1, lines, core.w));
            y += lines;
        }
    }
    const std::vector<int64_t>& pixels_by_class() const { return m_by_class; }

  private:
    void line(float* q, const float* p0, int64_t plane, int64_t count, size_t to, size_t pixels) {
        const auto classes = static_cast<size_t>(m_model.class_count());
        const bool projected = m_probabilities || m_confidence;
        for (int64_t i = 0; i < count; ++i) {
            const size_t at = to + static_cast<size_t>(i);
            if (std::isnan(p0[i])) {
                m_map[at] = m_best[at] = std::nanf("");
                for (size_t k = 0; k < classes; ++k)
                    m_p[k * pixels + at] = std::nanf("");
                continue;
            }
            size_t best = 0;
            for (size_t k = 1; k < classes; ++k)
                if (q[static_cast<int64_t>(k) * plane + i] > q[static_cast<int64_t>(best) * plane + i])
                    best = k;
            ++m_by_class[best];
            m_map[at] = static_cast<float>(m_model.classes[best].value);
            if (!projected) continue;
            sahic::project_on_simplex(q + i, static_cast<int>(classes), plane, 1);
            m_best[at] = q[static_cast<int64_t>(best) * plane + i];
            for (size_t k = 0; k < classes; ++k)
                m_p[k * pixels + at] = q[static_cast<int64_t>(k) * plane + i];
        }
    }
    std::vector<stream::CubeSink*> m_sinks;
    bool m_probabilities, m_confidence;
    const sahic::MlrModel& m_model;
    std::vector<float> m_map, m_best, m_p;
    std::vector<int64_t> m_by_class;
};

void smooth(cli::Run& run, const Backend& backend, const Settings& s, const stream::CubeShape& shape,
            const MrfPlan& plan, const sahic::Store& store, const sahic::MlrModel& model,
            const raster::LabelledPixels& labels, Writer& writer) {
    const auto k = static_cast<size_t>(model.class_count());
    std::vector<uint16_t> class_of(static_cast<size_t>(raster::max_class) + 1, 0);
    for (size_t c = 0; c < k; ++c)
        class_of[static_cast<size_t>(model.classes[c].value)] = static_cast<uint16_t>(c + 1);
    const auto most = static_cast<size_t>(plan.limits.lines * plan.limits.samples);
    const bool direct = plan.whole && store.in_memory();
    HostBuffer<float> window_data(backend.allocator(), direct ? 0 : most * (k + 1));
    HostBuffer<float> q(backend.allocator(), most * k);
    std::vector<uint16_t> fixed(most);
    auto pass = run.pass("mrf", 0.5);
    const auto solver = backend.mrf_solver(s.mrf, plan.limits, run.options().threads);
    stream::PassReport report;
    report.name = "mrf";
    report.tiles = plan.tiles.size();
    report.tile_samples = plan.tiles.max_core_samples();
    report.tile_lines = plan.tiles.max_core_lines();
    report.halo = plan.halo;
    report.lanes = 1;
    report.buffer_bytes = plan.host_bytes;
    sahic::MrfResiduals residuals;
    const auto begin = Clock::now();
    for (int64_t t = 0; t < plan.tiles.size(); ++t) {
        const Tile tile = plan.tiles.tile(t);
        const bool wraps = s.periodic() && !plan.whole;
        const Rect window = wraps ? grow(tile.core, plan.halo) : tile.window;
        auto now = Clock::now();
        const float* p = store.data();
        if (!direct) {
            store.read(window, window_data.data());
            p = window_data.data();
        }
        mark_fixed(labels, class_of, shape, window, fixed.data());
        report.read_seconds += seconds_since(now);
        sahic::MrfProblem problem;
        problem.classes = static_cast<int>(k);
        problem.lines = window.h;
        problem.samples = window.w;
        problem.p = p;
        problem.weight = p + k * static_cast<size_t>(window.area());
        problem.fixed = fixed.data();
        problem.periodic = s.periodic() && plan.whole;
        problem.core = {tile.core.x - window.x, tile.core.y - window.y, tile.core.w, tile.core.h};
        solver->progress = [&](double share) {
            if (pass.progress)
                pass.progress((static_cast<double>(t) + share) / static_cast<double>(plan.tiles.size()));
        };
        now = Clock::now();
        residuals += solver->solve(problem, q.data(), pass.cancel);
        report.compute_seconds += seconds_since(now);
        now = Clock::now();
        writer.write(tile.core, window, q.data(), p);
        report.write_seconds += seconds_since(now);
    }
    report.seconds = seconds_since(begin);
    run.add_pass(report);
    const auto rms = [&](double sum, double entries) { return entries > 0 ? std::sqrt(sum / entries) : 0.0; };
    const auto entries = static_cast<double>(residuals.entries);
    run.report()["mrf"] = {{"iterations", s.mrf.iterations},
                           {"lambda", s.mrf.lambda},
                           {"mu", s.mrf.mu},
                           {"tv", s.tv},
                           {"boundary", s.boundary},
                           {"tiles", plan.tiles.size()},
                           {"tile_samples", plan.tiles.max_core_samples()},
                           {"tile_lines", plan.tiles.max_core_lines()},
                           {"halo", plan.halo},
                           {"store", plan.store_in_memory ? "memory" : "file"},
                           {"objective", residuals.objective},
                           {"residuals",
                            {{"data", rms(residuals.v1, entries)},
                             {"positive", rms(residuals.v2, entries)},
                             {"sum_to_one", rms(residuals.v3, entries)},
                             {"smooth", rms(residuals.v4, entries)},
                             {"differences", rms(residuals.v5, 2 * entries)},
                             {"change", rms(residuals.change, entries)}}}};
}

raster::LabelledPixels read_labels(cli::Run& run, const Settings& s, const raster::RasterSource& scene) {
    const auto grid = raster::grid_of(scene);
    const auto source = raster::LabelSource::open(s.labels, &grid);
    for (const auto& note : source->notes())
        run.warn(note);
    run.report()["labels"] = {{"path", source->path()}, {"how", source->description()}};
    return raster::collect_labels(*source);
}

void print_plan(cli::Run& run, const Settings& s, const stream::CubeShape& shape, const MrfPlan& plan) {
    std::string text = "Class probabilities: a scan, then one pass over " + std::to_string(shape.samples) +
                       "x" + std::to_string(shape.lines) + " pixels";
    if (!s.no_spatial) {
        text += "\nRandom field: ";
        text += plan.whole
                    ? "the whole scene at once"
                    : std::to_string(plan.tiles.size()) + " tiles of " +
                          std::to_string(plan.tiles.max_core_samples()) + "x" +
                          std::to_string(plan.tiles.max_core_lines()) + ", halo " + std::to_string(plan.halo);
        text += ", " + format_byte_size(plan.host_bytes) + " of buffers, probabilities in " +
                (plan.store_in_memory ? "memory" : "a temporary file");
        run.report()["plan"]["mrf"] = {{"tiles", plan.tiles.size()},
                                       {"tile_samples", plan.tiles.max_core_samples()},
                                       {"tile_lines", plan.tiles.max_core_lines()},
                                       {"halo", plan.halo},
                                       {"store", plan.store_in_memory ? "memory" : "file"},
                                       {"buffer_bytes", plan.host_bytes}};
    }
    run.print(text);
}

/// The map as a VRT, the model in it: a class is computed when a pixel is read, from its spectrum alone.
void write_virtual_map(cli::Run& run, const Settings& s, const raster::RasterSource& scene,
                       const sahic::MlrModel* model) {
    if (model == nullptr || !s.no_spatial || !s.probabilities.empty() || !s.confidence.empty())
        throw UsageError(
            "-of VRT: only the map of a saved model without the random field is computed pixel by pixel",
            "Train with -model, then use -apply with -no-spatial, without -probabilities and -confidence.");
    raster::OutputOptions map = run.options().destination;
    raster::OutputSpec spec;
    spec.shape = {scene.shape().samples, scene.shape().lines, 1};
    raster::describe_class_map(cli::legend_of(model->classes), map, spec);
    spec.bands = {{"class", {}}};
    spec.metadata["HSI_SAHIC_MODEL"] = s.apply;
    raster::RasterSink::check_virtual(map, spec, scene);
    if (run.options().dry_run) return run.print("A VRT: nothing is computed before it is read");
    raster::RasterSink::write_virtual(
        map, spec, scene, {{"hsi_mlr", {{"model_data", raster::pack_text(sahic::to_json(*model))}}, {}, {}}});
}

void run_sahic(cli::Run& run, const Settings& s) {
    const auto model_output = run.text_output("-model", s.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    std::shared_ptr<const sahic::MlrModel> model;
    if (!s.apply.empty()) model = std::make_shared<const sahic::MlrModel>(sahic::read_model(s.apply));
    auto scene = model ? cli::matching_source(run, s.apply, *model, s.any_wavelengths) : run.open_source();
    if (raster::RasterSink::is_virtual(run.options().destination))
        return write_virtual_map(run, s, *scene, model.get());
    raster::LabelledPixels labels;
    if (!s.no_labels()) labels = read_labels(run, s, *scene);
    if (model)
        for (const auto& c : labels.classes)
            if (std::none_of(model->classes.begin(), model->classes.end(),
                             [&](const sahic::ModelClass& m) { return m.value == c.value; }))
                throw Error("class " + cli::class_text(c.value, c.name) + " of the labels is not in '" +
                                s.apply + "'",
                            "Use the labels that the model was trained with, or none.");
    if (!model && labels.classes.size() < 2)
        throw Error("there is one class only", "Training needs labelled pixels of two classes at least.");
    auto outputs = plan_outputs(run, s, *scene, model ? cli::legend_of(model->classes) : labels.classes);
    const Backend backend(run, scene->shape().float_bytes());
    const auto classes = static_cast<int>(model ? model->classes.size() : labels.classes.size());
    MrfPlan plan;
    if (!s.no_spatial) plan = plan_mrf(run, backend, s, scene->shape(), classes);
    if (run.options().dry_run) return print_plan(run, s, scene->shape(), plan);

    sahic::SpectralOptions spectral;
    std::shared_ptr<stream::CubeSource> cube = scene;
    const bool border = s.periodic() && !s.no_spatial;
    if (!model) {
        const auto found = scan(run, scene, cube, labels, border);
        spectral.first_line = found.first_line();
        spectral.first_sample = found.first_sample();
        model = std::make_shared<const sahic::MlrModel>(train(run, backend, s, *scene, found, labels));
        // A class may have lost all its pixels.
        if (model->class_count() != classes) {
            outputs = plan_outputs(run, s, *scene, cli::legend_of(model->classes));
            if (!s.no_spatial) plan = plan_mrf(run, backend, s, scene->shape(), model->class_count());
        }
    } else if (border) {
        sahic::SceneScan operation(scene->shape(), {}, true);
        auto pass = run.pass("border", 0.3);
        const auto tiles_of = stream::plan_pass(*scene, operation, pass);
        const auto tiles = operation.tiles(tiles_of);
        pass.only = &tiles;
        run.add_pass(stream::run_pass(*scene, operation, {}, tiles_of, pass));
        spectral.first_line = operation.first_line();
        spectral.first_sample = operation.first_sample();
    }
    const auto shape = scene->shape();
    outputs.create(scene.get());
    run.reserve_cache(outputs.cache_bytes());
    std::vector<int64_t> by_class;
    int64_t invalid = 0;
    if (s.no_spatial) {
        spectral.map = true;
        spectral.probabilities = !s.probabilities.empty();
        spectral.confidence = !s.confidence.empty();
        const auto operation = backend.spectral_pass(model, spectral, shape);
        const auto pass = backend.pass(run, "probabilities", 0.7);
        run.add_pass(stream::run_pass(*cube, *operation, outputs.sinks(), pass));
        by_class = operation->pixels_by_class();
        invalid = operation->invalid();
    } else {
        spectral.probabilities = spectral.weight = true;
        const stream::CubeShape stored{shape.samples, shape.lines, model->class_count() + 1};
        const std::string folder =
            std::filesystem::path(run.options().destination.path).parent_path().string();
        const auto store = plan.store_in_memory ? std::make_unique<sahic::Store>(stored, backend.allocator())
                                                : std::make_unique<sahic::Store>(stored, folder);
        {
            const auto operation = backend.spectral_pass(model, spectral, shape);
            auto pass = backend.pass(run, "probabilities", 0.2);
            const uint64_t held = plan.store_in_memory ? stored.float_bytes() : 0;
            pass.memory -= std::min(pass.memory / 2, held);
            const auto p = store->sink(0, model->class_count()), a = store->sink(model->class_count(), 1);
            run.add_pass(stream::run_pass(*cube, *operation, {p.get(), a.get()}, pass));
            invalid = operation->invalid();
        }
        cube = scene; // what was kept in memory is not needed any more
        Writer writer(outputs, s, *model);
        smooth(run, backend, s, shape, plan, *store, *model, labels, writer);
        by_class = writer.pixels_by_class();
    }
    raster::write_text_output(model_output, sahic::to_json(*model));
    outputs.commit();

    Json counts = Json::array();
    for (size_t c = 0; c < model->classes.size(); ++c)
        counts.push_back(
            {{"value", model->classes[c].value}, {"name", model->classes[c].name}, {"pixels", by_class[c]}});
    run.report()["classes"] = counts;
    run.report()["invalid_pixels"] = invalid;
    backend.report_kernels(run);
    if (invalid > 0)
        run.note(std::to_string(invalid) + " of " + std::to_string(shape.pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and have no class");
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_sahic",
        "Classifies a scene from labelled pixels with spectra and neighbourhood (SAHIC): sparse multinomial "
        "logistic regression on RBF features (LORSAL), then a spatially adaptive Markov random field that "
        "keeps "
        "the training pixels and the edges of the scene.",
        "Examples:\n"
        "  gdal_hsi_sahic scene.img train.tif map.tif\n"
        "  gdal_hsi_sahic -field landcover -probabilities p.tif -model m.json scene.img fields.gpkg map.tif\n"
        "  gdal_hsi_sahic -apply m.json other_scene.img none map.tif\n"
        "  gdal_hsi_sahic -apply m.json -no-spatial other_scene.img none map.vrt\n"
        "  gdal_hsi_sahic -delta 0.35 -lambda 1 pavia.tif train.tif map.tif   (ROSIS, as in the paper)\n");
    Settings s;
    auto& app = tool.app();
    tool.add_source();
    app.add_option("labels", s.labels.path,
                   "training labels: a raster or vector file, in any SRS and on any grid (none: with -apply)")
        ->required();
    tool.add_destination();
    app.get_option("dst")->description("the class map");
    const auto number = [&](const char* name, auto& value, const char* text, const char* type) {
        return app.add_option(name, value, text)->type_name(type)->capture_default_str();
    };
    number("--delta", s.lorsal.delta, "Width of the RBF kernel: 0.8 for AVIRIS, 0.35 for ROSIS in the paper",
           "D");
    number("--lambda-c", s.lorsal.lambda_c, "Weight of the regressors' l1 norm (sparsity)", "L");
    number("--beta", s.lorsal.beta, "First penalty of LORSAL's splitting", "B");
    number("--lorsal-solver", s.solver,
           "How the regression is trained: 200 steps of the paper's splitting, or to its optimum (gap of "
           "1e-4 proven)",
           "paper|optimum");
    number("--lambda", s.mrf.lambda, "Weight of the spatial term: 2 for AVIRIS, 1 for ROSIS in the paper",
           "L");
    number("--mu", s.mrf.mu, "Penalty of the ADMM of the random field", "M");
    number("--iterations", s.mrf.iterations, "Iterations of the ADMM", "N");
    number("--tv", s.tv, "Total variation: of both differences together, or of each alone",
           "isotropic|anisotropic");
    number("--boundary", s.boundary,
           "Border of the scene: mirrored, or touching its opposite as in the paper", "reflect|periodic");
    app.add_flag("--no-spatial", s.no_spatial, "LORSAL alone, without the random field");
    app.add_option("--probabilities", s.probabilities,
                   "Also write the probability of each class, a band each, to this file")
        ->type_name("FILE");
    app.add_option("--confidence", s.confidence,
                   "Also write the probability of the mapped class to this file")
        ->type_name("FILE");
    app.add_option("--model", s.model_file, "Also write the trained model to this file (JSON)")
        ->type_name("FILE");
    app.add_option("--apply", s.apply,
                   "Use a model of -model instead of training; labels then only fix pixels of the map")
        ->type_name("FILE");
    app.add_flag("--any-wavelengths", s.any_wavelengths,
                 "With -apply: do not compare the scene's wavelengths with the model's");
    cli::add_label_options(app, s.labels);
    tool.add_compute();
    tool.add_input("labels", s.labels.path);
    tool.add_input("-apply", s.apply);
    tool.check([&](const cli::CommonOptions&) {
        const auto positive = [](const char* name, double v) {
            if (!(v > 0) || !std::isfinite(v))
                throw UsageError(std::string(name) + ": the value must be above 0");
        };
        positive("-delta", s.lorsal.delta);
        positive("-lambda-c", s.lorsal.lambda_c);
        positive("-beta", s.lorsal.beta);
        positive("-lambda", s.mrf.lambda);
        positive("-mu", s.mrf.mu);
        if (s.mrf.iterations < 1 || s.mrf.iterations > 1000000)
            throw UsageError("-iterations: from 1 to 1000000 are possible");
        if (s.tv != "isotropic" && s.tv != "anisotropic")
            throw UsageError("-tv: '" + s.tv + "' is neither isotropic nor anisotropic");
        s.mrf.anisotropic = s.tv == "anisotropic";
        if (s.boundary != "reflect" && s.boundary != "periodic")
            throw UsageError("-boundary: '" + s.boundary + "' is neither reflect nor periodic");
        if (s.solver != "paper" && s.solver != "optimum")
            throw UsageError("-lorsal-solver: '" + s.solver + "' is neither paper nor optimum");
        s.lorsal.optimum = s.solver == "optimum";
        const auto contradicts = [&](const char* with, std::initializer_list<const char*> names) {
            for (const char* name : names)
                if (app.count(name) > 0)
                    throw UsageError(std::string(name + 1) + " has no meaning with " + with,
                                     "Leave one of them out.");
        };
        if (s.no_spatial)
            contradicts("-no-spatial", {"--lambda", "--mu", "--iterations", "--tv", "--boundary"});
        if (!s.apply.empty())
            contradicts("-apply", {"--delta", "--lambda-c", "--beta", "--lorsal-solver", "--model"});
        if (s.lorsal.optimum) contradicts("-lorsal-solver optimum", {"--beta"});
        if (s.apply.empty() && s.any_wavelengths)
            throw UsageError("-any-wavelengths has a meaning with -apply only");
        if (s.no_spatial && !s.apply.empty() && s.labels.path != "none")
            throw UsageError("labels have no meaning with -apply and -no-spatial",
                             "Give none in their place.");
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_sahic(run, s); });
}
