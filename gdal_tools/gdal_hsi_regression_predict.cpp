// SPDX-License-Identifier: MIT
// gdal_hsi_regression_predict: applies models to a scene and writes maps of estimates; one pass, tile by
// tile.
#include "core/counted.h"
#include "core/error.h"
#include "links/links.h"
#include "math/resampling.h"
#include "model/band_match.h"
#include "raster/output_set.h"
#include "raster/text_input.h"
#include "regression/regression.h"
#include "shared/regression_samples.h"
#include "shared/scene_and_library.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace regression_predict_tool {

using regression::Applied;
using tool::Content;

struct Settings {
    std::string model_file, reference, predictions, scatter;
    std::vector<std::string> apply;
    tools::SampleOptions samples;
    tools::BandFit fit = tools::BandFit::automatic;
    bool any_wavelengths = false;
};

/// Returns the scene's bands without resampling if the scene has a band within 0.5 nm of each band of the
/// model; else empty.
std::vector<math::ResampledBand> bands_as_they_are(const model::SceneBands& scene,
                                                   const std::vector<double>& wanted) {
    constexpr double near = 0.5;
    std::vector<math::ResampledBand> bands;
    for (const double nm : wanted) {
        size_t best = 0;
        for (size_t b = 1; b < scene.wavelengths_nm.size(); ++b)
            if (!(std::fabs(scene.wavelengths_nm[b] - nm) >= std::fabs(scene.wavelengths_nm[best] - nm)))
                best = b;
        if (!(std::fabs(scene.wavelengths_nm[best] - nm) <= near)) return {};
        bands.push_back({bands.size(), {best}, {1.0}});
    }
    return bands;
}

/// Returns an Error that lists the bands of the model that cannot be computed from the scene's bands.
Error not_made(const std::string& scene, const std::string& file, const std::vector<double>& from,
               const std::vector<double>& to, const std::vector<size_t>& left_out) {
    double low = INFINITY, high = -INFINITY;
    for (const double nm : from) { // some wavelengths may be unknown
        low = std::fmin(low, nm);
        high = std::fmax(high, nm);
    }
    const bool beyond = std::any_of(left_out.begin(), left_out.end(),
                                    [&](size_t j) { return !(to[j] >= low && to[j] <= high); });
    const auto [least, most] = std::minmax_element(to.begin(), to.end());
    const auto range = [](double a, double b) {
        return tool::number_text(a) + " to " + tool::number_text(b) + " nm";
    };
    // Range of wavelengths that the scene and the model have in common.
    const double first = std::max(low, *least), last = std::min(high, *most);
    return Error("the bands of " + scene + " cannot be resampled to " + counted(left_out.size(), "band") +
                     " of the model '" + file + "' (the first at " + tool::number_text(to[left_out.front()]) +
                     " nm): the scene has bands at " + range(low, high) + ", the model at " +
                     range(*least, *most),
                 first > last ? "Choose a model whose wavelengths the scene has."
                 : beyond     ? "Train the model again with the bands that both have: -b " +
                                tool::number_text(first) + "-" + tool::number_text(last) + "nm."
                          : "Use -resample linear to interpolate between the bands next to a gap, or train "
                            "the model again without the bands in gaps (-exclude-range).");
}

/// Warns if bands of the model are interpolated over large gaps between bands of the scene.
void warn_of_gaps(tool::Run& run, const std::string& file, const std::vector<double>& from,
                  std::vector<double> to, const std::vector<math::ResampledBand>& bands) {
    constexpr double far = 3; // in units of the median distance between the model's bands
    std::vector<double> apart, nm;
    for (const auto& band : bands) {
        nm.clear();
        for (const size_t b : band.sources)
            nm.push_back(from[b]);
        std::sort(nm.begin(), nm.end());
        double widest = 0;
        for (size_t i = 1; i < nm.size(); ++i)
            widest = std::max(widest, nm[i] - nm[i - 1]);
        apart.push_back(widest);
    }
    std::sort(to.begin(), to.end());
    std::adjacent_difference(to.begin(), to.end(), to.begin());
    if (to.size() < 2) return;
    const auto middle = to.begin() + static_cast<ptrdiff_t>(to.size() / 2);
    std::nth_element(to.begin() + 1, middle, to.end());
    const auto n =
        std::count_if(apart.begin(), apart.end(), [&](double widest) { return widest > far * *middle; });
    if (n > 0)
        run.warn(counted(n, "band") + " of the model '" + file + "' " + worded(n, "is", "are") +
                 " interpolated between bands of the scene that are more than " +
                 tool::number_text(far * *middle) +
                 " nm apart: estimates may be wrong. Train the model again without these bands");
}

/// Returns how the bands of the model are computed from the bands of the scene.
regression::Inputs inputs_of(tool::Run& run, const Settings& s, const std::string& file,
                             const regression::Model& model, const raster::RasterSource& scene) {
    const auto bands = tool::scene_bands(scene);
    const auto& values = scene.facts().bands.values;
    regression::Inputs inputs{{}, values.scale, values.offset};
    const bool by_wavelength = !s.any_wavelengths && model::all_known(model.wavelengths_nm) &&
                               model::all_known(bands.wavelengths_nm);
    if (!by_wavelength) {
        for (const int place : model::match_bands(file, model, scene.path(), bands, s.any_wavelengths))
            inputs.bands.push_back({inputs.bands.size(), {static_cast<size_t>(place)}, {1.0}});
        return inputs;
    }
    inputs.bands = bands_as_they_are(bands, model.wavelengths_nm);
    if (!inputs.bands.empty()) return inputs;
    const math::SpectralBands from{bands.wavelengths_nm, scene.facts().bands.fwhm_nm},
        to{model.wavelengths_nm, model.fwhm_nm};
    const bool response =
        s.fit == tools::BandFit::response ||
        (s.fit == tools::BandFit::automatic && math::tells_widths(from) && math::tells_widths(to));
    auto plan =
        math::plan_resampling(from, to, response ? math::Resampling::response : math::Resampling::linear);
    if (!plan.left_out.empty()) throw not_made(scene.path(), file, from.centres, to.centres, plan.left_out);
    warn_of_gaps(run, file, from.centres, to.centres, plan.bands);
    inputs.bands = std::move(plan.bands);
    run.note("The scene is resampled to the bands of '" + file + "' (" + (response ? "response" : "linear") +
             ")");
    run.report()["resampled"] = response ? "response" : "linear";
    return inputs;
}

std::vector<Applied> read_models(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                                 const std::vector<std::string>& files) {
    std::vector<Applied> models;
    Json report = Json::array();
    for (const auto& file : files) {
        auto model = std::make_shared<regression::Model>(
            regression::from_json(raster::read_input(file, largest_file::model), file));
        if (model->name.empty()) model->name = "value " + std::to_string(models.size() + 1);
        auto inputs = inputs_of(run, s, file, *model, scene);
        report.push_back({{"path", file},
                          {"name", model->name},
                          {"method", regression::name_of(model->method)},
                          {"features", model->bands.size()}});
        models.push_back({std::move(model), std::move(inputs)});
    }
    run.report()["models"] = report;
    return models;
}

raster::OutputSpec spec_of(const raster::RasterSource& scene, const std::vector<Applied>& models,
                           const std::vector<std::string>& files) {
    raster::OutputSpec spec;
    spec.shape = {scene.shape().samples, scene.shape().lines, 3 * static_cast<int>(models.size())};
    spec.holes = true;
    for (size_t m = 0; m < models.size(); ++m) {
        const auto& model = *models[m].model;
        raster::BandSpec estimate{model.name, {{"HSI_REGRESSION_MODEL", files[m]}}};
        estimate.unit = model.unit;
        raster::BandSpec deviation{model.name + " deviation", {}};
        deviation.unit = model.unit;
        spec.bands.push_back(std::move(estimate));
        spec.bands.push_back(std::move(deviation));
        spec.bands.push_back({model.name + " outside", {}});
    }
    return spec;
}

/// Returns the Error for a scene without any value in the range of the training values, so that its scale is
/// probably different.
Error another_scale(const raster::RasterSource& scene, const std::string& file,
                    const regression::Model& model) {
    return Error("all values of '" + scene.path() + "' are outside the training range of '" + file + "' (" +
                     tool::number_text(*std::min_element(model.minimum.begin(), model.minimum.end())) +
                     " to " +
                     tool::number_text(*std::max_element(model.maximum.begin(), model.maximum.end())) + ")",
                 "Set the scale of the scene's values, such as gdal_edit.py -scale 0.0001.");
}

void report_outside(tool::Run& run, const std::vector<Applied>& models,
                    const regression::Estimation& operation) {
    Json counts = Json::array();
    for (size_t m = 0; m < models.size(); ++m) {
        const auto& name = models[m].model->name;
        counts.push_back({{"name", name},
                          {"outside", operation.outside(m)},
                          {"without_transform", operation.undefined(m)}});
        if (const int64_t n = operation.undefined(m); n > 0)
            run.warn(name + ": " + counted(n, "pixel") + worded(n, " has", " have") +
                     " no finite value after the model's transform and" + worded(n, " gets", " get") +
                     " no estimate");
        constexpr double most = 0.5;
        const auto all = static_cast<double>(std::max<int64_t>(operation.estimated(m), 1));
        if (static_cast<double>(operation.outside(m)) > most * all)
            run.warn(name + ": " +
                     std::to_string(std::llround(100 * static_cast<double>(operation.outside(m)) / all)) +
                     " % of the pixels are outside the training range of the model. Check that the scene has "
                     "the same scale and land cover");
    }
    run.report()["outside"] = counts;
}

/// Compares estimates with the values of independent samples (-reference).
void assess(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> scene,
            const std::string& file) {
    const auto output = run.text_output("-predictions", s.predictions, run.options().destination.overwrite);
    raster::check_text_output(output);
    const tools::PlotOutput scatter(run, "scatter", s.scatter, run.options().destination.overwrite);
    scatter.check(tools::scatter_frame);
    tools::SampleSet set;
    auto options = s.samples;
    options.labels.path = s.reference;
    tools::add_samples(run, options, scene, 0, set);
    const auto applied = read_models(run, s, *scene, {file});
    std::vector<double> x; // spectra of the samples at the model's bands
    for (size_t row = 0; row < set.count(); ++row)
        for (const auto& band : applied[0].inputs.bands) {
            x.push_back(0);
            for (size_t k = 0; k < band.sources.size(); ++k)
                x.back() += band.weights[k] * set.x[row * set.bands + band.sources[k]];
        }
    tools::HeldOut held_out;
    size_t sample = 0, far = 0;
    const regression::Fitted fitted(applied[0].model);
    fitted.evaluate_rows(x, [&](const regression::Fitted::Buffers& b, size_t i) {
        const auto from = x.begin() + static_cast<ptrdiff_t>(sample * applied[0].inputs.bands.size());
        const auto [least, most] =
            std::minmax_element(from, from + static_cast<ptrdiff_t>(applied[0].inputs.bands.size()));
        const double value = set.y[sample++];
        if (b.defined[i] == 0) return;
        held_out.value.push_back(value);
        held_out.estimate.push_back(b.estimate[i]);
        held_out.deviation.push_back(b.deviation[i]);
        far += b.outside[i] > 1 && fitted.is_of_another_scale(std::max(-*least, *most));
    });
    if (held_out.value.empty())
        throw Error("the model has no estimate for any sample of '" + s.reference + "'",
                    "Logarithms need values above 0.");
    if (far == held_out.value.size()) throw another_scale(*scene, file, *applied[0].model);
    const auto metrics = regression::metrics_of(held_out.value, held_out.estimate);
    run.report()["metrics"] = regression::to_json(metrics);
    run.note("Samples of '" + s.reference + "': " + tools::metrics_text(metrics));
    if (!s.predictions.empty()) raster::write_text_output(output, tools::predictions_csv(held_out));
    if (scatter.wanted()) scatter.write(run, tools::scatter_plot(held_out, *applied[0].model, metrics));
}

tool::Work work_of(const stream::CubeShape& shape, const std::vector<Applied>& models) {
    tool::Work work;
    const auto pixels = static_cast<double>(shape.pixels());
    work.cpu_reads = work.device_reads = static_cast<double>(shape.float_bytes());
    work.writes = 12 * pixels * static_cast<double>(models.size());
    for (const Applied& one : models)
        work.add(regression::cost::product, pixels * regression::product_count(*one.model));
    return work;
}

void run_predict(tool::Run& run, const Settings& s) {
    const auto files = s.apply.empty() ? std::vector<std::string>{s.model_file} : s.apply;
    for (const auto& file : s.apply)
        run.files()->reads("-apply", file, {});
    const auto scene = run.open_source();
    if (!s.reference.empty()) assess(run, s, scene, files.front());
    if (run.options().destination.path.empty()) return;
    auto models = read_models(run, s, *scene, files);
    const auto spec = spec_of(*scene, models, files);
    const auto& dst = run.options().destination;
    if (raster::is_virtual(dst)) {
        if (!raster::is_computed(dst))
            throw UsageError("dst: a VRT has no pixel function for regressions",
                             "Write a virtual scene (.hsi) instead.");
        return tool::write_virtual(
            run, dst, spec, *scene, [&] { return links::estimates(scene->shape().bands, models); },
            [] { return std::vector<raster::VirtualBand>(); });
    }
    tool::Computing<regression::Backend> computing(
        run, "regression", tool::choose_devices(run, "regression", work_of(scene->shape(), models)),
        regression::simd_target(), [] { return std::make_unique<regression::Backend>(); });
    const auto operation = computing->make_estimation(scene->shape().bands, models);
    raster::OutputSet outputs;
    outputs.plan(dst, spec);
    tool::write(run, *scene, *operation, outputs, scene.get(),
                [&] { return computing.pass("estimation", 1.0); });
    if (operation->valid() == 0 && operation->undefined(0) == 0) throw tool::no_valid_pixel(*scene);
    for (size_t m = 0; m < models.size(); ++m)
        if (operation->estimated(m) > 0 && operation->of_another_scale(m) == operation->estimated(m))
            throw another_scale(*scene, files[m], *models[m].model);
    outputs.commit();
    report_outside(run, models, *operation);
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    tool::report_invalid(run, operation->valid(), operation->invalid());
}

void check(const tool::Call& call, const Settings& s) {
    if (s.apply.empty() && s.model_file.empty()) throw UsageError("model is missing");
    if (call.options().destination.path.empty() && s.reference.empty())
        throw UsageError("dst is missing", "Give dst, or -reference.");
    if (!s.reference.empty() && s.apply.size() > 1)
        throw UsageError(tool::cannot_be_used_with("-reference", "several models"), "Give one model.");
    if (call.options().destination.path.empty())
        for (const char* name : {"device", "device-memory"})
            if (call.given(name))
                throw UsageError("-" + std::string(name) + " requires dst",
                                 "The samples of -reference are computed on the CPU.");
    tools::PlotOutput::check_name("scatter", s.scatter);
    if (s.reference.empty()) {
        tools::refuse_sample_options(call, "requires -reference");
        for (const char* name : {"field", "predictions", "scatter"})
            if (call.given(name)) throw UsageError("-" + std::string(name) + " requires -reference");
    }
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.input_argument("model", s.model_file, Content::model,
                        "The model, a file of gdal_hsi_regression_train or a trait model of HyTools")
        .required = false; // -apply works without src
    args.add_destination("The estimates, three bands per model; it appears when it is complete").required =
        false; // -reference works without dst
    args.computes_dst();
    args.option("apply", s.apply,
                "Apply this model instead of model; several models are applied in one read of src")
        .shown_as("FILE");
    args.exclusive("apply", "model");
    args.choice(
        "resample", s.fit, "How the scene is resampled to the model's bands",
        {{"auto", tools::BandFit::automatic, "response if both have the FWHM of all bands, else linear"},
         {"response", tools::BandFit::response, "convolved with the responses of the model's bands"},
         {"linear", tools::BandFit::linear, "interpolated between two bands of the scene"}});
    tool::add_any_wavelengths(args, s.any_wavelengths);
    args.input("reference", s.reference, Content::labels,
               "Compare the estimates with the values of these labels, which the model was not trained "
               "with");
    tools::add_sample_options(args, s.samples);
    args.output("predictions", s.predictions, Content::text,
                "Also write values and estimates of -reference to this .csv");
    args.output("scatter", s.scatter, Content::text,
                "Also plot the estimates against the values of -reference, to .svg or .png");
    args.add_compute();
    args.check([&s](const tool::Call& call) { check(call, s); });
    args.body([&s](tool::Run& run) { run_predict(run, s); });
}

} // namespace regression_predict_tool
} // namespace

namespace tools {

extern constinit const tool::Definition regression_predict{
    "regression_predict",
    "Maps of a regression",
    "Applies models of gdal_hsi_regression_train, or trait models of HyTools, to a scene: the estimate, its "
    "deviation, and where values or spectra are outside of the training data.",
    {{"gdal_hsi_regression_predict scene.img model.json traits.tif", "A map with three bands"},
     {"gdal_hsi_regression_predict -apply nitrogen.json -apply lma.json scene.img traits.tif",
      "Two models, one read"},
     {"gdal_hsi_regression_predict -device cuda scene.img gp.json traits.tif", "A Gaussian process on a GPU"},
     {"gdal_hsi_regression_predict -reference test.gpkg -field nitrogen scene.img model.json",
      "Metrics of independent plots"}},
    "",
    regression_predict_tool::declare};

} // namespace tools
} // namespace hsi
