// SPDX-License-Identifier: MIT
// gdal_hsi_sahic: a scene and labelled pixels to a class map. Scan (scale and training spectra), training,
// one pass for class probabilities and spatial weights, then the Markov random field over the whole scene or
// over tiles with a halo.
#include "core/error.h"
#include "parallel/ranks.h"
#include "sahic_report.h"
#include "sahic_stages.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/model_values.h"
#include "training_pixels.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace sahic_tool {

using tool::Content;
using tools::SahicComputing;
using Settings = tools::SahicSettings;
/// Class map, probabilities, confidence: planned when the classes are known, made before the first pass that
/// writes.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               const std::vector<raster::LabelClass>& classes) {
    std::map<std::string, std::string> metadata;
    if (!s.apply.empty()) metadata["HSI_SAHIC_MODEL"] = s.apply;
    return tool::plan_classification(run, source, classes, s.probabilities, s.confidence, metadata);
}

/// Labels that go with a model: none of another class.
void check_labels(const Settings& s, const raster::LabelledPixels& labels, const sahic::MlrModel* model) {
    if (!model && labels.classes.size() < 2)
        throw Error("there is one class only", "Training needs labelled pixels of two classes at least.");
    if (!model) return;
    for (const auto& c : labels.classes)
        if (std::none_of(model->classes.begin(), model->classes.end(),
                         [&](const LabelClass& m) { return m.value == c.value; }))
            throw Error("class " + tool::class_text(c.value, c.name) + " of the labels is not in '" +
                            s.apply + "'",
                        "Use the labels that the model was trained with, or none.");
}

/// The model that -apply names, for this scene's numbers.
std::shared_ptr<const sahic::MlrModel> read_model(tool::Run& run, const Settings& s,
                                                  std::shared_ptr<raster::RasterSource>& source) {
    auto model = sahic::read_model(s.apply);
    source = tool::matching_source(run, s.apply, model, s.any_wavelengths);
    const auto values = tool::value_scale(*source);
    sahic::rescale(model, s.apply, tool::compare_scales(run, s.apply, model, values, s.any_scale), values);
    return std::make_shared<const sahic::MlrModel>(std::move(model));
}

/// One rank trains for all: a BLAS may have other last digits on another processor.
sahic::MlrModel by_root(const std::function<sahic::MlrModel()>& train) {
    parallel::Ranks& ranks = parallel::ranks();
    if (!ranks.several()) return train();
    std::optional<sahic::MlrModel> mine;
    if (ranks.root()) mine = train();
    const std::string text = ranks.broadcast("model", mine ? sahic::to_json(*mine) : std::string());
    return mine ? std::move(*mine) : sahic::from_json(text, "the model of rank 0");
}

tool::Work work_of(const Settings& s, const stream::CubeShape& scene, size_t classes, bool trained) {
    const auto bytes = static_cast<double>(scene.float_bytes());
    const double values = static_cast<double>(scene.pixels()) * static_cast<double>(classes),
                 turns = s.no_spatial ? 0.0 : values * s.mrf.iterations;
    tool::Work work;
    work.cpu_reads = work.device_reads = trained ? 2 * bytes : bytes;
    work.writes = static_cast<double>(scene.pixels());
    work.core_seconds = 1.3e-8 * turns + 4e-10 * values * scene.bands;
    work.device_seconds = 3e-11 * turns + 1e-12 * values * scene.bands;
    return work;
}

void run_sahic(tool::Run& run, const Settings& s) {
    const auto model_output = run.text_output("-model", s.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    std::shared_ptr<raster::RasterSource> source;
    std::shared_ptr<const sahic::MlrModel> model;
    if (!s.apply.empty()) model = read_model(run, s, source);
    tool::Scene scene(run, model ? source : run.open_source(), "");
    if (raster::RasterSink::is_virtual(run.options().destination))
        return tools::write_virtual_map(run, s, *scene.raster(), model.get());
    raster::LabelledPixels labels;
    if (!s.no_labels()) labels = tools::read_labels(run, s.labels, *scene.raster());
    check_labels(s, labels, model.get());
    auto outputs = plan_outputs(run, s, *scene.raster(), model ? model->classes : labels.classes);
    const size_t classes = model ? model->classes.size() : labels.classes.size();
    SahicComputing computing(
        run, "sahic", tool::choose_devices(run, "sahic", work_of(s, scene.shape(), classes, !model)),
        sahic::simd_target(), [&] { return sahic::make_cpu_backend(run.options().threads); });
    sahic::FieldRequest field;
    sahic::FieldPlan plan;
    const auto plan_field = [&](size_t of) {
        field = tools::field_of(run, computing, s, scene.shape(), static_cast<int>(of));
        if (!s.no_spatial) plan = sahic::plan_field(field);
    };
    const bool trained = !model, dry_run = run.options().dry_run;
    // A device that is still starting says later what memory it has: a scan of the scene goes on meanwhile.
    const bool planned_late = trained && !dry_run && computing.starting();
    if (!planned_late) plan_field(classes);
    if (dry_run) return tools::print_field_plan(run, s, scene.shape(), plan);

    sahic::SpectralOptions spectral;
    tools::PlanesToCome planes;
    const bool border = s.periodic && !s.no_spatial;
    if (trained) {
        const auto found = tools::scan(scene, labels, border);
        if (planned_late) plan_field(classes);
        planes = tools::begin_planes(run, computing, s, plan, scene.shape(), classes, labels);
        if (border) tools::take_border(scene, *found, spectral);
        model = std::make_shared<const sahic::MlrModel>(
            by_root([&] { return tools::train(run, computing, s, *scene.raster(), *found, labels); }));
        // A class may have lost all its pixels.
        if (model->classes.size() != classes) {
            outputs = plan_outputs(run, s, *scene.raster(), model->classes);
            planes = {};
            plan_field(model->classes.size());
        }
    } else if (border) {
        tools::read_border(run, *scene.raster(), spectral);
    }
    // A model that was just trained knows the scene.
    std::optional<tool::RangeCheck> check;
    if (!trained) check.emplace(scene.cube(), *model);
    const stream::CubeSource& cube = check ? check->source() : scene.cube();
    outputs.create(scene.raster().get());
    run.reserve_cache(outputs.cache_bytes());
    const int64_t pixels = scene.shape().pixels();
    const auto finished_reading = [&] {
        if (check) check->tell(run);
        check.reset();
        scene.release(); // what was kept in memory is not needed any more
    };
    const auto result =
        s.no_spatial ? tools::classify_spectra(run, computing, s, model, cube, outputs)
                     : tools::classify_with_field(run, computing, s, model, cube, std::move(spectral), field,
                                                  plan, std::move(planes), labels, outputs, finished_reading);
    if (check) finished_reading();
    if (result.invalid == pixels) throw tool::no_valid_pixel(*scene.raster());
    raster::write_text_output(model_output, sahic::to_json(*model));
    outputs.commit();
    tools::tell_classes(run, computing, *model, result, pixels);
}

void declare_training(tool::Call& call, Settings& s) {
    call.option("delta", s.lorsal.delta,
                "Width of the RBF kernel: 0.8 for AVIRIS, 0.35 for ROSIS in the paper")
        .above(0)
        .shown_as("D");
    call.option("lambda-c", s.lorsal.lambda_c, "Weight of the regressors' l1 norm, which makes them sparse")
        .above(0)
        .shown_as("L");
    call.option("beta", s.lorsal.beta, "First penalty of LORSAL's splitting").above(0).shown_as("B");
    call.option("beta-growth", s.lorsal.growth,
                "What multiplies the penalty after each step (1: constant, as in the paper)")
        .between(1, 2)
        .shown_as("G");
    call.choice("lorsal-solver", s.lorsal.optimum, "How the regression is trained",
                {{"paper", false, "200 steps of the paper's splitting"},
                 {"optimum", true, "to its optimum, with a gap of 1e-4 proven"}});
}

void declare_random_field(tool::Call& call, Settings& s) {
    tools::add_field_options(call, s).above(0);
    call.flag("no-spatial", s.no_spatial, "The regression's own map, without the random field");
}

/// What options mean together.
void check_settings(const tool::Call& call, const Settings& s, const tool::MaskOptions& mask) {
    tool::check_mask_use(mask, s.apply.empty(), "-apply");
    const auto contradicts = [&](const std::string& with, std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (call.given(name))
                throw UsageError("-" + std::string(name) + " has no meaning with " + with,
                                 "Leave one of them out.");
    };
    if (s.no_spatial) contradicts("-no-spatial", {"lambda", "mu", "iterations", "tv", "boundary"});
    if (!s.apply.empty())
        contradicts("-apply", {"delta", "lambda-c", "beta", "beta-growth", "lorsal-solver", "model"});
    if (s.lorsal.optimum) contradicts("-lorsal-solver optimum", {"beta", "beta-growth"});
    if (s.apply.empty() && s.any_wavelengths)
        throw UsageError("-any-wavelengths has a meaning with -apply only");
    if (s.apply.empty() && s.any_scale) throw UsageError("-any-scale has a meaning with -apply only");
    if (!s.apply.empty() && s.labels.path == "none")
        tool::refuse_label_options(call, "Leave it out, or give labels in the place of none.");
    if (s.no_spatial && !s.apply.empty() && s.labels.path != "none")
        throw UsageError("labels have no meaning with -apply and -no-spatial", "Give none in their place.");
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_mask("the training", true);
    call.input_argument("labels", s.labels.path, Content::labels,
                        "Training labels: a raster or vector file, in any SRS and on any grid; with -apply, "
                        "none for no labels");
    call.add_destination("The class map, with the labels' names and colours; it appears when it is complete");
    declare_training(call, s);
    declare_random_field(call, s);
    call.output("probabilities", s.probabilities, Content::raster,
                "Also write the probability of each class, a band each, to FILE");
    call.output("confidence", s.confidence, Content::raster,
                "Also write the probability of the mapped class to FILE");
    call.output("model", s.model_file, Content::model, "Also save the trained model to FILE (JSON)");
    call.input("apply", s.apply, Content::model,
               "Use the model FILE that -model has saved instead of training; labels then only fix pixels of "
               "the map");
    tool::add_any_wavelengths(call, s.any_wavelengths, "With -apply: ");
    tool::add_any_scale(call, s.any_scale, "With -apply: ");
    tool::add_label_options(call, s.labels);
    call.add_compute();
    call.check([&s, &call](const tool::CommonOptions& o) { check_settings(call, s, o.mask); });
    call.body([&s](tool::Run& run) { run_sahic(run, s); });
}

} // namespace sahic_tool
} // namespace

namespace tools {

extern const tool::Definition sahic{
    "sahic",
    "Spatially adaptive classification (SAHIC)",
    "Classifies a scene from labelled pixels with spectra and neighbourhood (SAHIC): sparse "
    "multinomial logistic regression on RBF features (LORSAL), then a spatially adaptive Markov "
    "random field that keeps the training pixels and the edges of the scene.",
    {{"gdal_hsi_sahic scene.img train.tif map.tif", "Train and classify"},
     {"gdal_hsi_sahic -field landcover -probabilities p.tif -model m.json scene.img fields.gpkg map.tif",
      "From polygons, with probabilities and a model"},
     {"gdal_hsi_sahic -apply m.json other_scene.img none map.tif", "Another scene with the model"},
     {"gdal_hsi_sahic -apply m.json -no-spatial other_scene.img none map.vrt",
      "The same pixel by pixel, computed when it is looked at"},
     {"gdal_hsi_sahic -delta 0.35 -lambda 1 pavia.tif train.tif map.tif", "ROSIS, as in the paper"}},
    "",
    sahic_tool::declare};

} // namespace tools
} // namespace hsi
