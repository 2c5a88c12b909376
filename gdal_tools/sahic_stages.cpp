// SPDX-License-Identifier: MIT
#include "sahic_stages.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "raster/packed_text.h"
#include "tool/classification.h"
#include "tool/model_values.h"
#include "training_pixels.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

namespace hsi::tools {
namespace {

using Json = nlohmann::json;

/// Options of a pass that computes there. A device is kept busy by a few lanes, and each holds buffers on it.
stream::PassOptions pass_of(SahicComputing& computing, const std::string& name, double share) {
    auto options = computing.pass(name, share);
    if (computing.on_devices())
        options.lanes = std::min(options.lanes, 4 * static_cast<int>(computing.devices().size()));
    return options;
}

void tell_training(tool::Run& run, const sahic::LorsalOptions& options, const sahic::LorsalResult& result,
                   int64_t pixels, double seconds) {
    const sahic::MlrModel& model = result.model;
    Json classes = Json::array();
    for (const auto& c : model.classes)
        classes.push_back({{"value", c.value}, {"name", c.name}, {"samples", c.pixels}});
    Json record = {{"classes", classes},
                   {"pixels", pixels},
                   {"solver", model.solver},
                   {"iterations", result.iterations},
                   {"objective", result.objective},
                   {"active_features", result.active_features},
                   {"active_weights", model.active_weights()},
                   {"scale", model.scale},
                   {"spread", model.spread},
                   {"seconds", seconds}};
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
    std::snprintf(text, sizeof text,
                  "%s: %d classes, %lld training pixels, objective %.6g, %lld active features",
                  options.optimum ? "Optimum" : "LORSAL", model.class_count(), static_cast<long long>(pixels),
                  result.objective, static_cast<long long>(result.active_features));
    run.note(text);
}

void report_field(tool::Run& run, const SahicSettings& s, const sahic::FieldPlan& plan,
                  const sahic::MrfResiduals& sums) {
    const auto entries = static_cast<double>(sums.entries);
    const auto rms = [&](double sum, double of) { return of > 0 ? std::sqrt(sum / of) : 0.0; };
    run.report()["mrf"] = {{"iterations", s.mrf.iterations},
                           {"lambda", s.mrf.lambda},
                           {"mu", s.mrf.mu},
                           {"tv", s.mrf.anisotropic ? "anisotropic" : "isotropic"},
                           {"boundary", s.periodic ? "periodic" : "reflect"},
                           {"tiles", plan.tiles.size()},
                           {"tile_samples", plan.tiles.max_core_samples()},
                           {"tile_lines", plan.tiles.max_core_lines()},
                           {"halo", plan.halo},
                           {"store", plan.store_in_memory ? "memory" : "file"},
                           {"objective", sums.objective},
                           {"residuals",
                            {{"data", rms(sums.v1, entries)},
                             {"positive", rms(sums.v2, entries)},
                             {"sum_to_one", rms(sums.v3, entries)},
                             {"smooth", rms(sums.v4, entries)},
                             {"differences", rms(sums.v5, 2 * entries)},
                             {"change", rms(sums.change, entries)}}}};
}

} // namespace

std::shared_ptr<const sahic::SceneScan> scan(tool::Scene& scene, const raster::LabelledPixels& labels,
                                             bool border) {
    std::shared_ptr<sahic::SceneScan> found;
    scene.set_fate(nullptr); // the map counts them, too
    scene.scan(
        [&] { return found = std::make_shared<sahic::SceneScan>(scene.shape(), labels.index, border); },
        [&](bool again) {
            auto pass = scene.run().pass("scan", again ? 0.0 : 0.1);
            pass.memory -=
                std::min(pass.memory / 2, tools::spectra_bytes(scene.run(), labels, scene.shape().bands));
            return pass;
        });
    return found;
}

sahic::MlrModel train(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                      const raster::RasterSource& scene, const sahic::SceneScan& found,
                      const raster::LabelledPixels& labels) {
    auto set = tools::training_set(run, labels, scene.shape().bands, found.spectra(),
                                   [&](size_t i) { return found.valid(i); });
    set.scale = static_cast<double>(found.largest());
    for (const auto& c : set.classes)
        if (c.pixels == 1) run.warn("class " + tool::class_text(c.value, c.name) + " has one training pixel");
    sahic::LorsalOptions options = s.lorsal;
    options.threads = run.options().threads;
    options.memory = run.buffer_memory();
    const auto rest = run.pass("training", 0.2);
    options.cancel = rest.cancel;
    options.progress = rest.progress;
    const auto begin = std::chrono::steady_clock::now();
    auto result = computing->train(set, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    sahic::MlrModel& model = result.model;
    tool::describe_bands(scene, model);
    tools::describe_values(set, model);
    model.trained_on = scene.path();
    model.labels = s.labels.path;
    model.history = run.options().destination.history;
    model.created_by = "gdal_hsi_sahic";
    tell_training(run, options, result, set.samples(), took.count());
    return std::move(result.model);
}

void read_border(tool::Run& run, const raster::RasterSource& scene, sahic::SpectralOptions& spectral) {
    sahic::SceneScan operation(scene.shape(), {}, true);
    auto pass = run.pass("border", 0.3);
    const auto plan = stream::plan_pass(scene, operation, pass);
    const auto tiles = operation.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(scene, operation, {}, plan, pass));
    spectral.first_line = operation.first_line();
    spectral.first_sample = operation.first_sample();
}

sahic::FieldRequest field_of(const tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                             const stream::CubeShape& shape, int classes) {
    sahic::FieldRequest field;
    field.shape = shape;
    field.classes = classes;
    field.mrf = s.mrf;
    field.periodic = s.periodic;
    field.memory = run.buffer_memory();
    field.device_memory = computing.device_memory();
    field.tile_samples = run.options().tile_samples;
    field.tile_lines = run.options().tile_lines;
    field.host_bytes = [&](const sahic::MrfLimits& limits) { return computing->mrf_host_bytes(limits); };
    field.device_bytes = [&](const sahic::MrfLimits& limits) { return computing->mrf_device_bytes(limits); };
    return field;
}

SahicResult classify_spectra(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                             const std::shared_ptr<const sahic::MlrModel>& model,
                             const stream::CubeSource& cube, const raster::OutputSet& outputs) {
    sahic::SpectralOptions spectral;
    spectral.map = true;
    spectral.probabilities = !s.probabilities.empty();
    spectral.confidence = !s.confidence.empty();
    const auto shape = cube.shape();
    const auto operation = computing->make_spectral_pass(model, spectral, shape.samples, shape.lines);
    run.add_pass(
        stream::run_pass(cube, *operation, outputs.sinks(), pass_of(computing, "probabilities", 0.7)));
    return {operation->pixels_by_class(), operation->invalid()};
}

SahicResult classify_with_field(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                                const std::shared_ptr<const sahic::MlrModel>& model,
                                const stream::CubeSource& cube, sahic::SpectralOptions spectral,
                                const sahic::FieldRequest& field, const sahic::FieldPlan& plan,
                                const raster::LabelledPixels& labels, const raster::OutputSet& outputs,
                                const std::function<void()>& release) {
    const auto shape = cube.shape();
    const int classes = model->class_count();
    const stream::CubeShape stored{shape.samples, shape.lines, classes + 1};
    auto planes = plan.store_in_memory ? std::make_unique<stream::PlaneStore>(stored, computing->allocator())
                                       : std::make_unique<stream::PlaneStore>(
                                             stored, stream::folder_beside(run.options().destination.path));
    SahicResult result;
    spectral.probabilities = spectral.weight = true;
    {
        const auto operation = computing->make_spectral_pass(model, spectral, shape.samples, shape.lines);
        auto pass = pass_of(computing, "probabilities", 0.2);
        const uint64_t held = plan.store_in_memory ? stored.float_bytes() : 0;
        pass.memory -= std::min(pass.memory / 2, held);
        std::vector<int> all(static_cast<size_t>(classes));
        std::iota(all.begin(), all.end(), 0);
        const auto p = planes->sink(all), a = planes->sink({classes});
        run.add_pass(stream::run_pass(cube, *operation, {p.get(), a.get()}, pass));
        result.invalid = operation->invalid();
    }
    release();
    const auto solver = computing->make_mrf_solver(s.mrf, plan.limits);
    const auto smoothed =
        sahic::smooth_field(field, plan, *solver, *planes, {labels.index, labels.value}, model->classes,
                            {outputs.sinks(), !s.probabilities.empty(), !s.confidence.empty()},
                            computing->allocator(), run.pass("mrf", 0.5));
    run.add_pass(smoothed.report);
    report_field(run, s, plan, smoothed.residuals);
    result.by_class = smoothed.pixels_by_class;
    return result;
}

void print_field_plan(tool::Run& run, const SahicSettings& s, const stream::CubeShape& shape,
                      const sahic::FieldPlan& plan) {
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

void write_virtual_map(tool::Run& run, const SahicSettings& s, const raster::RasterSource& scene,
                       const sahic::MlrModel* model) {
    if (model == nullptr || !s.no_spatial || !s.probabilities.empty() || !s.confidence.empty())
        throw UsageError(
            "-of VRT: only the map of a saved model without the random field is computed pixel by pixel",
            "Train with -model, then use -apply with -no-spatial, without -probabilities and -confidence.");
    raster::OutputOptions map = run.options().destination;
    raster::OutputSpec spec;
    spec.shape = {scene.shape().samples, scene.shape().lines, 1};
    raster::describe_class_map(model->classes, map, spec);
    spec.bands = {{"class", {}}};
    spec.metadata["HSI_SAHIC_MODEL"] = s.apply;
    raster::RasterSink::check_virtual(map, spec, scene);
    if (run.options().dry_run) return run.print("A VRT: nothing is computed before it is read");
    raster::RasterSink::write_virtual(
        map, spec, scene, {{"hsi_mlr", {{"model_data", raster::pack_text(sahic::to_json(*model))}}, {}, {}}});
}

void tell_classes(tool::Run& run, SahicComputing& computing, const sahic::MlrModel& model,
                  const SahicResult& result, int64_t pixels) {
    Json counts = Json::array();
    for (size_t c = 0; c < model.classes.size(); ++c)
        counts.push_back({{"value", model.classes[c].value},
                          {"name", model.classes[c].name},
                          {"pixels", result.by_class[c]}});
    run.report()["classes"] = counts;
    if (computing.on_devices()) {
        const auto seconds = computing->kernel_seconds();
        run.report()["kernel_seconds"] = {
            {"training", seconds[0]}, {"probabilities", seconds[1]}, {"mrf", seconds[2]}};
    }
    tool::tell_invalid(run, pixels - result.invalid, result.invalid, "and have no class");
}

} // namespace hsi::tools
