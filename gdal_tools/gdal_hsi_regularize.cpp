// SPDX-License-Identifier: MIT
// gdal_hsi_regularize: smooths class probabilities of any origin with the Markov random field of
// gdal_hsi_sahic. With -scene, one scan collects the data of the scene for the edge weights. One pass cleans
// the probabilities and computes the weights. The field is then solved for the whole scene, or in tiles with
// a halo.
#include "core/counted.h"
#include "core/error.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "sahic/probabilities.h"
#include "sahic/training_scan.h"
#include "shared/mrf.h"
#include "shared/second_scene.h"
#include "shared/training_pixels.h"
#include "stream/stacked_source.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace regularize_tool {

using tool::Content;

struct Settings : tools::MrfSettings {
    std::string scene, map;
    raster::LabelOptions labels;
};

/// Plans the outputs: dst, then the map.
raster::OutputSet outputs_of(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                             const std::vector<LabelClass>& classes) {
    raster::OutputSet outputs;
    raster::OutputSpec p;
    p.shape = source.shape();
    p.holes = true;
    // The output has no scale: the scale of the bands applies only to the values before regularisation.
    p.same_bands = source.facts().bands.values.scale.empty();
    for (const auto& name : source.facts().bands.names)
        if (!p.same_bands) p.bands.push_back({name, {}});
    outputs.plan(run.options().destination, p);
    if (!s.map.empty()) {
        auto options = run.side_output("-map", s.map);
        // The nodata value is meant for the probabilities; the map has 0 for pixels without a class.
        options.nodata.reset();
        raster::OutputSpec map;
        map.shape = {p.shape.samples, p.shape.lines, 1};
        map.bands = {{"class", {}}};
        raster::describe_class_map(classes, options, map);
        outputs.plan(options, map);
    }
    outputs.check(source);
    return outputs;
}

/// Opens the file of -scene in the window of the probabilities.
std::shared_ptr<raster::RasterSource> open_scene(tool::Run& run, const Settings& s,
                                                 const raster::RasterSource& source) {
    if (s.scene.empty()) return nullptr;
    raster::OpenOptions options;
    options.path = s.scene;
    options.window = run.options().source.window;
    const auto scene = raster::open_raster(options);
    run.watch_source(scene);
    const auto a = source.shape(), b = scene->shape();
    if (a.samples != b.samples || a.lines != b.lines)
        throw Error("-scene " + s.scene + ": " + std::to_string(b.samples) + "x" + std::to_string(b.lines) +
                        " pixels, but the probabilities have " + std::to_string(a.samples) + "x" +
                        std::to_string(a.lines),
                    "Use the scene from which they were made.");
    tools::check_same_place(run, "-scene", *scene, source);
    return scene;
}

raster::LabelledPixels labels_of(tool::Run& run, const Settings& s, const raster::RasterSource& source,
                                 const std::vector<LabelClass>& classes) {
    if (s.labels.path.empty()) return {};
    auto labels = tools::read_labels(run, s.labels, source);
    for (const auto& c : labels.classes)
        if (std::none_of(classes.begin(), classes.end(), [&](const auto& k) { return k.value == c.value; }))
            throw Error("-labels " + s.labels.path + ": class " + tool::class_text(c.value, c.name) +
                            ", but the probabilities have " + counted(classes.size(), "class", "classes"),
                        "Use the training labels of the classifier; the item 'class' of a band states its "
                        "class, else band k is class k.");
    return labels;
}

/// Collects the data of the scene that the edge weights need, in one scan. Returns nullopt without a scene.
std::optional<sahic::WeightScene> scan_scene(tool::Scene* scene, bool periodic) {
    if (scene == nullptr) return {};
    std::shared_ptr<sahic::TrainingScan> found;
    // Pixels without a value in the scene or in the probabilities are reported together.
    scene->set_fate(nullptr);
    scene->scan("scan", 0.1, [&] {
        return found =
                   std::make_shared<sahic::TrainingScan>(scene->shape(), std::vector<int64_t>(), periodic);
    });
    return sahic::WeightScene{scene->shape().bands, static_cast<double>(found->largest()),
                              found->first_line(), found->first_sample()};
}

/// Writes the cleaned probabilities and the weights into planes.
void fill_planes(tool::Run& run, const raster::RasterSource& source, tool::Scene* scene, bool periodic,
                 stream::PlaneStore& planes) {
    sahic::ProbabilityPass operation(source.shape(), source.shape().bands, scan_scene(scene, periodic));
    const auto nothing = std::shared_ptr<void>();
    std::vector<std::shared_ptr<const stream::CubeSource>> sources{{nothing, &source}};
    if (scene != nullptr) sources.emplace_back(nothing, &scene->cube());
    const stream::StackedSource stacked(std::move(sources));
    std::vector<int> all(static_cast<size_t>(operation.classes()));
    std::iota(all.begin(), all.end(), 0);
    const auto p = planes.sink(all), a = planes.sink({operation.classes()});
    auto pass = run.pass("probabilities", scene != nullptr ? 0.1 : 0.2);
    if (planes.in_memory()) tool::leave_room(pass, planes.shape().float_bytes());
    run.add_pass(stream::run_pass(stacked, operation, {p.get(), a.get()}, pass));
    const auto& facts = operation.facts();
    if (facts.valid == 0) throw tool::no_valid_pixel(source);
    if (facts.labels(source.shape().bands))
        throw Error(
            source.path() + ": all values are whole numbers up to " +
                std::to_string(static_cast<long long>(facts.greatest)) +
                ": this is probably a class map, not probabilities",
            "Use one band of probabilities per class, as written by gdal_hsi_svm_classify -probabilities.");
    run.report()["pixels_off_one"] = facts.off;
    if (facts.off > 0)
        run.warn("in " + std::to_string(facts.off) + " of " + counted(facts.valid, "pixel") + " " +
                 (source.shape().bands == 1 ? "the probability is outside 0..1 and was clamped"
                                            : "the sum of the probabilities differs from 1 by more than "
                                              "0.001; they were divided by it"));
    tool::report_invalid(run, facts.valid, facts.invalid, "and left without a class");
}

tool::Work work_of(const Settings& s, const stream::CubeShape& shape, size_t classes, double scene_bytes) {
    const double values = static_cast<double>(shape.pixels()) * static_cast<double>(classes),
                 turns = values * s.mrf.iterations;
    tool::Work work;
    work.cpu_reads = work.device_reads = static_cast<double>(shape.float_bytes()) + 2 * scene_bytes;
    work.writes = static_cast<double>(shape.float_bytes());
    work.add(sahic::cost::mrf, turns);
    return work;
}

void run_regularize(tool::Run& run, const Settings& s) {
    const auto source = run.open_source();
    const auto classes = tool::probability_classes(*source);
    const auto scene_file = open_scene(run, s, *source);
    const auto labels = labels_of(run, s, *source, classes);
    auto outputs = outputs_of(run, s, *source, classes);
    const double scene_bytes = scene_file ? static_cast<double>(scene_file->shape().float_bytes()) : 0;
    tools::SahicComputing computing(
        run, "sahic",
        tool::choose_devices(run, "sahic", work_of(s, source->shape(), classes.size(), scene_bytes), 1),
        sahic::simd_target(), [&] { return sahic::make_cpu_backend(run.options().threads); });
    const int k = static_cast<int>(classes.size());
    const auto field = tools::mrf_request_of(run, computing, s, source->shape(), k);
    const auto plan = sahic::plan_mrf(field);
    tool::end_of_plan(run, [&] { run.print(tools::describe_mrf_plan(run, plan)); });

    const auto planes = tools::make_mrf_planes(run, computing, plan, source->shape(), k);
    {
        std::optional<tool::Scene> scene;
        if (scene_file) scene.emplace(run, scene_file, "");
        fill_planes(run, *source, scene ? &*scene : nullptr, s.periodic, *planes);
    }
    outputs.create(source.get());
    run.reserve_cache(outputs.cache_bytes());
    sahic::MrfOutputs to;
    to.sinks = outputs.sinks();
    to.probabilities = true;
    to.map = to.sinks.size() > 1;
    if (to.map) std::swap(to.sinks[0], to.sinks[1]);
    to.probability_bands = source->shape().bands;
    const auto solver = sahic::make_mrf_setup(computing.backend(), field, plan);
    const auto result = sahic::smooth_scene(field, plan, solver, *planes, {labels.index, labels.value},
                                            classes, to, run.pass("mrf", 0.8));
    run.add_pass(result.report);
    tools::report_mrf(run, s, plan, result.residuals);
    for (size_t c = 0; c < classes.size(); ++c)
        run.report()["classes"].push_back(
            {{"value", classes[c].value}, {"name", classes[c].name}, {"pixels", result.pixels_by_class[c]}});
    outputs.commit();
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("The smoothed probabilities, one band per class; it appears when it is complete");
    tools::add_mrf_options(args, s).from(0);
    args.input("scene", s.scene, Content::raster,
               "Preserve the edges of the scene FILE, which is on the same grid");
    args.input("labels", s.labels.path, Content::labels,
               "Raster or vector FILE with known classes, which are kept, numbered as in -map");
    args.output("map", s.map, Content::raster,
                "Also write the most probable class of every pixel (item class of its band, else band "
                "number) to FILE");
    tool::add_label_options(args, s.labels);
    args.add_compute();
    args.check([&s](const tool::Call& call) {
        if (s.labels.path.empty()) tool::refuse_label_options(call, "Give labels with -labels FILE.");
    });
    args.looks_around();
    args.body([&s](tool::Run& run) { run_regularize(run, s); });
}

} // namespace regularize_tool
} // namespace

namespace tools {

extern constinit const tool::Definition regularize{
    "regularize",
    "Smoothing of class probabilities by a Markov random field",
    "Regularizes class probabilities of any classifier: the Markov random field of gdal_hsi_sahic (total "
    "variation) smooths them and keeps the edges of a scene and the pixels whose class is known.",
    {{"gdal_hsi_regularize -map map.tif probabilities.tif smooth.tif", "Smoothed probabilities, and a map"},
     {"gdal_hsi_svm_classify -apply model.json -probabilities p.tif scene.img raw.tif && gdal_hsi_regularize "
      "-scene "
      "scene.img -labels train.tif -map map.tif p.tif smooth.tif",
      "Probabilities of a support vector machine, with the edges of the scene and the training pixels"}},
    "",
    regularize_tool::declare};

} // namespace tools
} // namespace hsi
