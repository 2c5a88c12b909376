// SPDX-License-Identifier: MIT
// gdal_hsi_regression_train: fits a model to values and spectra, from labelled pixels or from a table. One
// pass reads the tiles that contain a labelled pixel.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/side_files.h"
#include "regression/train.h"
#include "shared/many_scenes.h"
#include "shared/neighbours.h"
#include "shared/regression_samples.h"
#include "tool/definition.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace regression_train_tool {

using regression::Method;
using tool::Content;

struct Settings {
    tools::SampleOptions samples;
    std::string table, model_file, predictions, scatter, hytools, transform;
    regression::TrainOptions train;
    std::vector<regression::Step> steps;
    int64_t max_samples = 1000;
    bool overwrite = false;
    std::vector<std::array<std::string, 2>> with; ///< each pair: a scene and its labels
};

/// The training samples, and the description of their bands.
struct Learned {
    tools::SampleSet set;
    regression::Model bands; ///< only bands, wavelengths, FWHM and file names are set
};

Learned read_table(tool::Run& run, const Settings& s) {
    Learned learned;
    auto& m = learned.bands;
    learned.set = tools::read_sample_table(run, s.table, s.samples.labels.field, s.samples.labels.group_field,
                                           m.wavelengths_nm);
    for (size_t b = 1; b <= learned.set.bands; ++b)
        m.bands.push_back(static_cast<int>(b));
    m.trained_on = s.table;
    return learned;
}

Learned read_scenes(tool::Run& run, const Settings& s) {
    auto first = run.open_source();
    std::vector<std::pair<std::shared_ptr<raster::RasterSource>, tools::SampleOptions>> parts{
        {first, s.samples}};
    for (const auto& [name, path] : tools::listed_pairs(run, "-with", s.with)) {
        for (const auto& part : parts)
            if (same_file(name, part.first->path()))
                throw UsageError("-with " + name + ": the scene is given twice",
                                 "Its labelled pixels would count twice.");
        auto options = s.samples;
        options.labels.path = path;
        run.files()->reads("-with", path, raster::files_read_with(path));
        parts.emplace_back(tools::open_beside(run, "-with", name, *first), options);
    }
    tool::end_of_plan(run, [&] { run.print("Training: " + counted(parts.size(), "scene")); });
    Learned learned;
    for (size_t k = 0; k < parts.size(); ++k) {
        auto& [scene, options] = parts[k];
        if (k > 0 && scene->shape().bands != parts[0].first->shape().bands)
            scene = tools::open_beside(run, "-with", scene->path(), *parts[0].first);
        tools::add_samples(run, options, scene, static_cast<int>(k), learned.set);
        if (scene->shape().bands != parts[0].first->shape().bands)
            throw Error(scene->path() + ": bands have no value at any of its labelled pixels",
                        "Leave these bands out of all scenes (-b, -exclude-range), or label other pixels.");
    }
    const auto& set = learned.set;
    if (set.invalid_pixels > 0)
        run.warn(counted(set.invalid_pixels, "labelled pixel") +
                 worded(set.invalid_pixels, " has no valid spectrum", " have no valid spectrum") +
                 " (nodata, masked, NaN or all zero) and " + worded(set.invalid_pixels, "is", "are") +
                 " left out");
    if (set.count() == 0)
        throw Error("no labelled pixel has a valid spectrum",
                    "Check the nodata value (-srcnodata) and bad bands (-b).");
    const auto& scene = *parts[0].first;
    auto& m = learned.bands;
    tool::describe_bands(scene, m);
    m.value_scale.clear(); // set.x already holds scaled values
    m.value_offset.clear();
    m.fwhm_nm = scene.facts().bands.fwhm_nm;
    m.trained_on = scene.path();
    m.labels = s.samples.labels.path;
    return learned;
}

/// Returns the unit at the end of a field's name: "LMA (g/m2)", "nitrogen [%]".
std::string unit_in(const std::string& name) {
    const size_t open = name.find_last_of("([");
    const bool closed = !name.empty() && (name.back() == ')' || name.back() == ']');
    return closed && open != std::string::npos && open > 0 ? name.substr(open + 1, name.size() - open - 2)
                                                           : "";
}

/// Stores the minimum, maximum and mean of each band over the samples.
void describe_values(const tools::SampleSet& set, regression::Model& m) {
    m.minimum.assign(set.x.begin(), set.x.begin() + static_cast<ptrdiff_t>(set.bands));
    m.maximum = m.minimum;
    m.mean.assign(set.bands, 0.0);
    for (size_t i = 0; i < set.x.size(); ++i) {
        const size_t b = i % set.bands;
        m.minimum[b] = std::min(m.minimum[b], set.x[i]);
        m.maximum[b] = std::max(m.maximum[b], set.x[i]);
        m.mean[b] += set.x[i] / static_cast<double>(set.count());
    }
}

/// Returns the transformed samples. Removes samples that the transform makes infinite or NaN.
std::vector<double> transform_samples(tool::Run& run, const regression::Transform& transform,
                                      tools::SampleSet& set) {
    auto x = tools::transformed(transform, set.x);
    const auto good = tools::finite_rows(x, transform.outputs());
    const size_t lost = set.count() - good.size();
    run.report()["samples_without_transform"] = lost;
    if (lost == 0) return x;
    run.warn(counted(lost, "sample") + worded(lost, " is", " are") +
             " left out: -transform gives no finite values there");
    if (good.empty())
        throw Error("-transform gives finite values at no sample",
                    "Logarithms need values above 0, and snv needs spectra that are not flat.");
    set.keep(good);
    return regression::chosen_rows(x, transform.outputs(), good);
}

void warn_of_weak_training(tool::Run& run, const tools::SampleSet& set, const regression::TrainResult& result,
                           int wanted_folds) {
    constexpr size_t few = 30;
    if (set.count() < few)
        run.warn(counted(set.count(), "sample") + " are too few for reliable metrics. Label 30 or more");
    constexpr double usual_fill = -9999;
    if (const auto n = std::count(set.y.begin(), set.y.end(), usual_fill); n > 0)
        run.warn(counted(n, "sample") + worded(n, " has", " have") +
                 " the value -9999, which often means that a value is missing. Leave the value empty (null, "
                 "nodata) if it does");
    if (result.model.folds < wanted_folds)
        run.note(counted(result.model.folds, "fold") + " instead of " + std::to_string(wanted_folds) +
                 ", one per group");
    if (result.at_grid_end)
        run.warn("the best length scale or noise of the Gaussian process is the first or last value that was "
                 "tried, so a better one may lie beyond. Try another -transform");
    if (result.at_limit > 0)
        run.warn("LIBSVM: reaching max number of iterations (in " + counted(result.at_limit, "training") +
                 ")");
    std::vector<std::pair<int64_t, int>> by_place;
    for (size_t p = 0; p < set.place.size(); ++p)
        by_place.emplace_back(set.place[p], result.fold[static_cast<size_t>(set.pixel_sample[p])]);
    std::sort(by_place.begin(), by_place.end());
    std::vector<int64_t> places;
    for (const auto& [place, fold] : by_place)
        places.push_back(place);
    const auto touches = tools::touching_pixels(places, set.place_samples, [&](size_t i, size_t j) {
        return by_place[i].second != by_place[j].second;
    });
    const auto touching = std::count(touches.begin(), touches.end(), 1);
    run.report()["pixels_touching_other_folds"] = touching;
    if (tools::touching_counts(touching, static_cast<int64_t>(places.size())))
        run.warn(std::to_string(touching) + " of " + counted(places.size(), "labelled pixel") +
                 " touch a pixel of another fold, and neighbours are similar: the metrics are too good. Keep "
                 "neighbours together with -group or -block");
}

void describe(tool::Run& run, const regression::Model& m) {
    auto& report = run.report();
    report["method"] = regression::name_of(m.method);
    report["samples"] = m.samples;
    report["groups"] = m.groups;
    report["folds"] = m.folds;
    report["features"] = m.bands.size();
    report["metrics"] = regression::to_json(*m.metrics);
    std::string choices;
    const auto chose = [&](const char* name, const char* words, auto value) {
        report[name] = value;
        choices += std::string(", ") + words + " " + tool::number_text(static_cast<double>(value));
    };
    if (m.method == Method::plsr) chose("components", "components", m.linear.components);
    if (m.method == Method::ridge) chose("lambda", "lambda", m.linear.lambda);
    if (m.is_linear()) chose("members", "members", m.members());
    if (m.method == Method::gp) {
        chose("length", "length", m.kernel.length);
        chose("noise", "noise", m.kernel.noise);
    } else if (m.method == Method::svr) {
        chose("C", "C", m.kernel.c);
        chose("gamma", "gamma", m.kernel.gamma);
        chose("support_vectors", "support vectors", m.kernel.weights.size());
    }
    run.note("Model of " + m.name + ": " + regression::name_of(m.method) + choices);
    run.note("Held-out samples (" + counted(m.folds, "fold") + " of " + counted(m.groups, "group") +
             "): " + tools::metrics_text(*m.metrics));
}

void run_train(tool::Run& run, const Settings& s) {
    const auto model_output = run.text_output("model", s.model_file, s.overwrite),
               predictions = run.text_output("-predictions", s.predictions, s.overwrite),
               hytools = run.text_output("-hytools", s.hytools, s.overwrite);
    for (const auto* output : {&model_output, &predictions, &hytools})
        raster::check_text_output(*output);
    const tools::PlotOutput scatter(run, "scatter", s.scatter, s.overwrite);
    scatter.check(tools::scatter_frame);
    Learned learned = s.table.empty() ? read_scenes(run, s) : read_table(run, s);
    auto& set = learned.set;
    set.number_groups();
    const regression::Transform transform(s.steps, learned.bands.wavelengths_nm, set.bands);
    auto x = transform_samples(run, transform, set);
    // All labelled pixels, before -max-samples selects some; they define the domain of the model.
    const std::vector<double> labelled = set.pixels;
    const bool thins = s.train.method == Method::gp || s.train.method == Method::svr;
    if (thins && set.count() > static_cast<size_t>(s.max_samples)) {
        run.note(std::to_string(s.max_samples) + " of " + counted(set.count(), "sample") +
                 " are used (-max-samples)");
        const auto kept = regression::thinned(set.count(), static_cast<size_t>(s.max_samples), s.train.seed);
        set.keep(kept);
        x = regression::chosen_rows(x, transform.outputs(), kept);
    }
    auto options = s.train;
    options.threads = run.options().threads;
    const auto rest = run.pass("training", 0.95);
    options.cancel = rest.cancel;
    options.progress = rest.progress;
    const regression::Samples samples{transform.outputs(), x, set.y, set.group};
    auto& about = learned.bands;
    about.transform = transform;
    about.name = set.name;
    about.unit = unit_in(set.name);
    about.origin = tool::origin_of(run);
    describe_values(set, about);
    auto result = regression::train(samples, options, std::move(about));

    auto& model = result.model;
    const auto pixels = tools::transformed(transform, labelled);
    model.domain = regression::domain_of(
        regression::chosen_rows(pixels, transform.outputs(), tools::finite_rows(pixels, transform.outputs())),
        transform.outputs(), result.standardised ? &result.standard : nullptr);
    warn_of_weak_training(run, set, result, s.train.folds);
    describe(run, model);
    raster::write_text_output(model_output, regression::to_json(model));
    const tools::HeldOut held_out{set.y, result.estimate, result.deviation, set.group, result.fold};
    if (!s.predictions.empty()) raster::write_text_output(predictions, tools::predictions_csv(held_out));
    if (scatter.wanted()) scatter.write(run, tools::scatter_plot(held_out, model, *model.metrics));
    if (!s.hytools.empty()) raster::write_text_output(hytools, regression::to_hytools(model));
}

/// Rejects options that belong to another method.
void check_method(const tool::Call& call, const Settings& s) {
    const auto method = s.train.method;
    const auto only = [&](const char* name, std::initializer_list<Method> methods, const char* which) {
        if (call.given(name) && std::count(methods.begin(), methods.end(), method) == 0)
            throw UsageError("-" + std::string(name) + " requires -method " + which);
    };
    only("scale", {Method::plsr, Method::ridge}, "plsr or ridge");
    only("members", {Method::plsr, Method::ridge}, "plsr or ridge");
    only("share", {Method::plsr, Method::ridge}, "plsr or ridge");
    only("components", {Method::plsr}, "plsr");
    only("max-components", {Method::plsr}, "plsr");
    only("lambda", {Method::ridge}, "ridge");
    only("select", {Method::gp}, "gp");
    only("C", {Method::svr}, "svr");
    only("gamma", {Method::svr}, "svr");
    only("epsilon", {Method::svr}, "svr");
    only("max-samples", {Method::gp, Method::svr}, "gp or svr");
    only("hytools", {Method::plsr, Method::ridge}, "plsr or ridge");
}

void check(const tool::Call& call, Settings& s) {
    check_method(call, s);
    tools::PlotOutput::check_name("scatter", s.scatter);
    for (const auto& word : listed_words(s.transform).value_or(std::vector<std::string>{s.transform}))
        if (!s.transform.empty()) s.steps.push_back(regression::parse_step(word, "-transform"));
    for (const auto& step : s.steps) {
        const bool known = step.kind == regression::Step::Kind::vector ||
                           step.kind == regression::Step::Kind::mean ||
                           step.kind == regression::Step::Kind::log;
        if (!s.hytools.empty() && !known)
            throw UsageError(
                tool::cannot_be_used_with("-hytools", std::string("-transform ") + regression::text_of(step)),
                "HyTools supports vector, mean and log.");
    }
    for (auto* list : {&s.train.lambda, &s.train.c, &s.train.gamma}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    if (!s.samples.labels.group_field.empty() && s.samples.block > 0)
        throw UsageError(tool::cannot_be_used_with("-group", "-block"));
    if (!s.table.empty()) {
        tools::refuse_sample_options(call, "cannot be used with -table");
        if (s.samples.block > 0) throw UsageError(tool::cannot_be_used_with("-block", "-table"));
        if (!s.with.empty()) throw UsageError(tool::cannot_be_used_with("-with", "-table"));
        return;
    }
    if (call.options().source.path.empty()) throw UsageError("src is missing", "Give src, or -table FILE.");
    if (s.samples.labels.path.empty()) throw UsageError("labels is missing");
    if (!s.with.empty() && call.options().mask.given())
        throw UsageError(tool::cannot_be_used_with("-with", "a mask, because a mask applies to src only"),
                         "Leave the masked pixels out of the labels.");
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source().required = false; // -table works without src
    args.add_mask("the training");
    args.input_argument("labels", s.samples.labels.path, Content::labels,
                        "Values: features with a numeric field, or a raster, in any SRS and on any grid")
        .required = false;
    args.output_argument("model", s.model_file, Content::model,
                         "The model (JSON); it appears when it is complete")
        .or_option("model");
    args.input("table", s.table, Content::text,
               "Train with this table (one spectrum per row, columns named by wavelength) instead of src "
               "and labels");
    for (const char* const other : {"src", "labels", "mask", "mask-exclude"})
        args.exclusive("table", other);
    tools::add_sample_options(args, s.samples);
    args.option("group", s.samples.labels.group_field, "Field whose equal values stay together in a fold")
        .shown_as("FIELD")
        .defaults_to("features that share pixels, pixels that touch, rows");
    args.option("block", s.samples.block, "Keep squares of N x N pixels together in a fold")
        .from(1)
        .shown_as("N")
        .in_unit("pixels")
        .defaults_to("off");
    args.choice("method", s.train.method, "Method",
                {{"plsr", Method::plsr, "partial least squares regression"},
                 {"ridge", Method::ridge, "ridge regression"},
                 {"gp", Method::gp, "a Gaussian process"},
                 {"svr", Method::svr, "support vector regression (LIBSVM)"}});
    args.option(
            "transform", s.transform,
            "Transforms of the spectra in their order: snv, vector, mean, log, d1:W, d2:W (derivatives, W "
            "bands)")
        .shown_as("LIST")
        .defaults_to("none");
    args.flag("scale", s.train.scale, "Divide bands by their standard deviation (plsr, ridge)");
    args.option("cv", s.train.folds, "Folds of the cross-validation").between(2, 1000).shown_as("K");
    args.option("seed", s.train.seed, "Seed of folds and members").from(0);
    args.option("components", s.train.components, "Number of components (plsr)")
        .from(1)
        .shown_as("N")
        .defaults_to("by cross-validation");
    args.option("max-components", s.train.max_components, "Maximum number of components to try (plsr)")
        .from(1)
        .shown_as("N");
    args.option("lambda", s.train.lambda, "Penalty, in mean variances of a band (ridge)")
        .above(0)
        .shown_as("T")
        .defaults_to("10^-10, 10^-9.5 .. 10^2");
    args.option("members", s.train.members, "Number of models whose mean is the estimate (plsr, ridge)")
        .between(0, 10000)
        .shown_as("N");
    args.option("share", s.train.share, "Share of the groups that a member is trained with (plsr, ridge)")
        .between(0, 1)
        .above(0)
        .shown_as("P");
    args.choice<bool>("select", s.train.select_by_errors, "How length scale and noise are chosen (gp)",
                      {{"likelihood", false, "by the likelihood"}, {"cv", true, "by held-out errors"}});
    args.option("C", s.train.c, "Penalty of errors; several values are candidates (svr)")
        .above(0)
        .shown_as("C")
        .defaults_to("2^-3, 2^-1 .. 2^9");
    args.option("gamma", s.train.gamma, "Gamma of the kernel; several values are candidates (svr)")
        .above(0)
        .shown_as("G")
        .defaults_to("2^-13, 2^-11 .. 2^1");
    args.option("epsilon", s.train.epsilon,
                "Errors below this, in standard deviations, are not penalised (svr)")
        .from(0)
        .shown_as("V");
    args.option("max-samples", s.max_samples, "Maximum number of samples, drawn by -seed (gp, svr)")
        .between(2, 10000)
        .shown_as("N");
    tools::add_pairs_option(args, s.with, "Also train with the labelled pixels of this scene");
    args.output("predictions", s.predictions, Content::text,
                "Also write values and held-out estimates to this .csv");
    args.output("scatter", s.scatter, Content::text,
                "Also plot held-out estimates against values, to .svg or .png");
    args.output("hytools", s.hytools, Content::text, "Also write the model as a trait model of HyTools");
    args.overwrite(s.overwrite, "Replace the model if it exists; otherwise an existing model is an error");
    args.add_compute(false);
    args.check([&s](const tool::Call& call) { check(call, s); });
    args.body([&s](tool::Run& run) { run_train(run, s); });
}

} // namespace regression_train_tool
} // namespace

namespace tools {

extern constinit const tool::Definition regression_train{
    "regression_train",
    "Training of a regression",
    "Trains a regression of a continuous variable (a leaf trait, soil carbon) on spectra: partial least "
    "squares, ridge, a Gaussian process or a support vector machine. Cross-validation by groups chooses the "
    "model and estimates its error.",
    {{"gdal_hsi_regression_train -field nitrogen scene.img plots.gpkg model.json",
      "From plots with a numeric field"},
     {"gdal_hsi_regression_train -table spectra.csv -field nitrogen -transform snv model.json",
      "From a table of spectra"},
     {"gdal_hsi_regression_train -method gp -block 20 scene.img carbon.tif model.json",
      "A Gaussian process, from a raster"}},
    "",
    regression_train_tool::declare,
    true};

} // namespace tools
} // namespace hsi
