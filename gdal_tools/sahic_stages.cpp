// SPDX-License-Identifier: MIT
#include "sahic_stages.h"

#include "core/error.h"
#include "parallel/ranks.h"
#include "raster/metadata/packed_text.h"
#include "sahic_report.h"
#include "tool/classification.h"
#include "tool/model_values.h"
#include "training_pixels.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <utility>

namespace hsi::tools {
namespace {

/// Options of a pass that computes there. Lanes wait for the file more than for the device: eight read 10 GB
/// in 0.60 s, 16 in 0.455. Each holds buffers on it.
stream::PassOptions pass_of(SahicComputing& computing, const std::string& name, double share) {
    auto options = computing.pass(name, share);
    if (computing.on_devices())
        options.lanes = std::min(options.lanes, 16 * static_cast<int>(computing.devices().size()));
    return options;
}

} // namespace

std::shared_ptr<const sahic::SceneScan> scan(tool::Scene& scene, const raster::LabelledPixels& labels,
                                             bool border) {
    std::shared_ptr<sahic::SceneScan> found;
    scene.set_fate(nullptr); // the map counts them, too
    const auto pass_of_scan = [&](bool again) {
        auto pass = scene.run().pass("scan", again ? 0.0 : 0.1);
        pass.memory -=
            std::min(pass.memory / 2, tools::spectra_bytes(scene.run(), labels, scene.shape().bands));
        return pass;
    };
    scene.scan(
        [&] { return found = std::make_shared<sahic::SceneScan>(scene.shape(), labels.index, border); },
        pass_of_scan);
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
    options.threads = parallel::ranks().threads_of_host(run.options().threads);
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
    model.origin = tool::origin_of(run);
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

void take_border(const tool::Scene& scene, const sahic::SceneScan& found, sahic::SpectralOptions& spectral) {
    if (scene.run().masks_statistics()) return read_border(scene.run(), *scene.raster(), spectral);
    spectral.first_line = found.first_line();
    spectral.first_sample = found.first_sample();
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

PlanesToCome begin_planes(const tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                          const sahic::FieldPlan& plan, const stream::CubeShape& shape, size_t classes,
                          const raster::LabelledPixels& labels) {
    if (s.no_spatial) return {};
    const auto features = static_cast<uint64_t>(labels.index.size()) + 1;
    return begin_field_planes(run, computing, plan, shape, static_cast<int>(classes),
                              sahic::training_bytes(features) +
                                  features * 4 * static_cast<uint64_t>(shape.bands));
}

SahicResult classify_with_field(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                                const std::shared_ptr<const sahic::MlrModel>& model,
                                const stream::CubeSource& cube, sahic::SpectralOptions spectral,
                                const sahic::FieldRequest& field, const sahic::FieldPlan& plan,
                                PlanesToCome to_come, const raster::LabelledPixels& labels,
                                const raster::OutputSet& outputs, const std::function<void()>& release) {
    const auto shape = cube.shape();
    const int classes = model->class_count();
    const auto planes = to_come.valid() ? to_come.get() : field_planes(run, computing, plan, shape, classes);
    SahicResult result;
    spectral.probabilities = spectral.weight = true;
    std::future<HostBuffer<float>> q;
    {
        const auto operation = computing->make_spectral_pass(model, spectral, shape.samples, shape.lines);
        auto pass = pass_of(computing, "probabilities", 0.2);
        uint64_t held = plan.store_in_memory ? planes->shape().float_bytes() : 0;
        if (2 * held <= pass.memory / 2) { // room for the lanes is left beside it, too
            q = begin_field_q(computing, plan);
            if (q.valid()) held *= 2;
        }
        pass.memory -= std::min(pass.memory / 2, held);
        std::vector<int> all(static_cast<size_t>(classes));
        std::iota(all.begin(), all.end(), 0);
        const auto p = planes->sink(all), a = planes->sink({classes});
        run.add_pass(stream::run_pass(cube, *operation, {p.get(), a.get()}, pass));
        result.invalid = operation->invalid();
    }
    release();
    auto solver = sahic::make_field_solver(computing.backend(), field, plan);
    if (q.valid()) solver.q = q.get();
    const auto smoothed = sahic::smooth_field(
        field, plan, solver, *planes, {labels.index, labels.value}, model->classes,
        {outputs.sinks(), !s.probabilities.empty(), !s.confidence.empty()}, run.pass("mrf", 0.5));
    run.add_pass(smoothed.report);
    tell_field(run, s, plan, smoothed.residuals);
    result.by_class = smoothed.pixels_by_class;
    return result;
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

} // namespace hsi::tools
