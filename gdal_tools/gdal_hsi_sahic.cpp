// SPDX-License-Identifier: MIT
// gdal_hsi_sahic: trains a classifier with labelled pixels and writes a class map of the scene. Steps: a scan
// (scale and training spectra), the training, one pass for class probabilities and spatial weights. The
// Markov random field is then solved for the whole scene, or in tiles with a halo.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/host_memory.h"
#include "links/links.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/packed_text.h"
#include "raster/side_files.h"
#include "raster/text_input.h"
#include "sahic/lorsal.h"
#include "sahic/mrf_scene.h"
#include "sahic/training_scan.h"
#include "shared/many_scenes.h"
#include "shared/mrf.h"
#include "shared/training_pixels.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace sahic_tool {

using tool::Content;
using tools::SahicComputing;

struct Settings : tools::MrfSettings {
    raster::LabelOptions labels;
    sahic::LorsalOptions lorsal;
    std::string model_file, apply, probabilities, confidence;
    bool no_spatial = false, any_wavelengths = false, any_scale = false;
    std::vector<std::array<std::string, 2>> with; ///< each pair: a scene and its labels
    bool no_labels() const { return !apply.empty() && labels.path == "none"; }
};

// Model, labels, outputs
// ----------------------------------------------------------------------------------------------------------

/// Reads the model of -apply, converts it to the scale of the scene, and sets `source` to the scene with only
/// the bands of the model.
std::shared_ptr<const sahic::MlrModel> read_model(tool::Run& run, const Settings& s,
                                                  std::shared_ptr<raster::RasterSource>& source) {
    auto model = sahic::from_json(raster::read_input(s.apply, largest_file::model), s.apply);
    source = tool::matching_source(run, s.apply, model, s.any_wavelengths);
    const auto values = tool::value_scale(*source);
    sahic::rescale(model, s.apply, tool::compare_scales(run, s.apply, model, values, s.any_scale), values);
    return std::make_shared<const sahic::MlrModel>(std::move(model));
}

/// A scene of -with, which is used for training but not classified.
struct TrainingScene {
    std::shared_ptr<raster::RasterSource> scene;
    raster::LabelledPixels labels; ///< labels with class numbers that are common to all scenes
};

/// Opens the scenes of -with and reads their labels. `classes`: in: the classes of src; out: the classes of
/// all scenes, matched by name.
std::vector<TrainingScene> open_training_scenes(tool::Run& run, const Settings& s,
                                                const raster::RasterSource& source,
                                                std::vector<raster::LabelClass>& classes) {
    std::vector<TrainingScene> scenes;
    tools::JoinedClasses joined;
    joined.add(run, source.path(), classes);
    const Json of_source = run.report()["labels"];
    Json list = Json::array();
    for (const auto& [name, path] : tools::listed_pairs(run, "-with", s.with)) {
        bool twice = same_file(name, source.path());
        for (const auto& other : scenes)
            twice = twice || same_file(name, other.scene->path());
        if (twice)
            throw UsageError("-with " + name + ": the scene is given twice",
                             "Its labelled pixels would count twice.");
        auto options = s.labels;
        options.path = path;
        auto scene = tools::open_beside(run, "-with", name, source);
        run.files()->reads("-with", path, raster::files_read_with(path));
        auto labels = tools::read_labels(run, options, *scene);
        const auto number = joined.add(run, name, labels.classes);
        for (uint16_t& value : labels.value)
            value = static_cast<uint16_t>(number.at(value));
        for (auto& c : labels.classes)
            c.value = number.at(c.value);
        list.push_back({{"scene", name}, {"labels", run.report()["labels"]}});
        scenes.push_back({std::move(scene), std::move(labels)});
    }
    if (scenes.empty()) return scenes;
    run.report()["labels"] = of_source;
    run.report()["with"] = list;
    classes = joined.all();
    return scenes;
}

/// Checks that labels contain only classes of the model. Without a model, checks that there are at least two
/// classes. `classes`: classes of all labels.
void check_labels(const Settings& s, const raster::LabelledPixels& labels,
                  const std::vector<raster::LabelClass>& classes, const sahic::MlrModel* model) {
    if (!model && classes.size() < 2)
        throw Error("the training pixels have only one class", "Label pixels of at least two classes.");
    if (!model) return;
    for (const auto& c : labels.classes)
        if (std::none_of(model->classes.begin(), model->classes.end(),
                         [&](const LabelClass& m) { return m.value == c.value; }))
            throw Error("class " + tool::class_text(c.value, c.name) + " of the labels is not in '" +
                            s.apply + "'",
                        "Use the model's training labels, or 'none'.");
}

/// Plans the outputs: class map, probabilities and confidence. The files are created later, before the first
/// pass that writes.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               const std::vector<raster::LabelClass>& classes) {
    std::map<std::string, std::string> metadata;
    if (!s.apply.empty()) metadata["HSI_SAHIC_MODEL"] = s.apply;
    return tool::plan_classification(run, source, classes, s.probabilities, s.confidence, metadata);
}

/// Writes the map as a VRT or an .hsi that contains the model. The class of a pixel is computed from its
/// spectrum alone, when the pixel is read.
void write_virtual_map(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                       const sahic::MlrModel* model) {
    if (model == nullptr || !s.no_spatial || !s.probabilities.empty() || !s.confidence.empty())
        throw UsageError(
            "dst is " + std::string(raster::virtual_kind(run.options().destination)) +
                ": only a saved model without the random field can be computed pixel by pixel",
            "Train with -model, then use -apply with -no-spatial, without -probabilities and -confidence.");
    raster::OutputOptions map = run.options().destination;
    raster::OutputSpec spec;
    spec.shape = {scene.shape().samples, scene.shape().lines, 1};
    raster::describe_class_map(model->classes, map, spec);
    spec.bands = {{"class", {}}};
    spec.metadata["HSI_SAHIC_MODEL"] = s.apply;
    tool::write_virtual(
        run, map, spec, scene, [&] { return links::mlr_classes(*model); },
        [&] {
            return std::vector<raster::VirtualBand>{
                {"hsi_mlr", {{"model_data", raster::pack_text(sahic::to_json(*model))}}, {}, {}}};
        });
}

tool::Work work_of(const Settings& s, const stream::CubeShape& scene, size_t classes, bool trained) {
    const auto bytes = static_cast<double>(scene.float_bytes());
    const double values = static_cast<double>(scene.pixels()) * static_cast<double>(classes),
                 turns = s.no_spatial ? 0.0 : values * s.mrf.iterations;
    tool::Work work;
    work.cpu_reads = work.device_reads = trained ? 2 * bytes : bytes;
    work.writes = static_cast<double>(scene.pixels());
    work.add(sahic::cost::mrf, turns);
    work.add(sahic::cost::classifier, values * scene.bands);
    return work;
}

/// Prints the plan for -dry-run.
void print_mrf_plan(tool::Run& run, const Settings& s, const stream::CubeShape& shape,
                    const sahic::MrfPlan& plan) {
    std::string text = "Class probabilities: a scan, then one pass over " + std::to_string(shape.samples) +
                       "x" + std::to_string(shape.lines) + " pixels";
    if (!s.no_spatial) text += "\n" + tools::describe_mrf_plan(run, plan);
    run.print(text);
}

// Training
// ----------------------------------------------------------------------------------------------------------

/// Scans the scene for its scale, the spectra of the labelled pixels and, if `border`, its first row and
/// column.
std::shared_ptr<const sahic::TrainingScan>
scan_for_training(tool::Scene& scene, const raster::LabelledPixels& labels, bool border) {
    std::shared_ptr<sahic::TrainingScan> found;
    scene.set_fate(nullptr); // pixels without values are counted later, with the map
    const auto pass_of_scan = [&](bool again) {
        auto pass = scene.run().pass("scan", again ? 0.0 : 0.1);
        tool::leave_room(pass, tools::spectra_bytes(scene.run(), labels.index.size(), scene.shape().bands));
        return pass;
    };
    scene.scan(
        [&] { return found = std::make_shared<sahic::TrainingScan>(scene.shape(), labels.index, border); },
        pass_of_scan);
    return found;
}

/// Reports the training. `seconds`: duration of the training.
void report_training(tool::Run& run, const sahic::LorsalOptions& options, const sahic::LorsalResult& result,
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
                          "the optimum is proven only to %.1e of the objective, not to %.0e", share,
                          options.gap);
            run.warn(text);
        }
    }
    run.report()["training"] = std::move(record);
    char text[200];
    std::snprintf(text, sizeof text, "%s: %d classes, %lld training pixels, objective %.6g, %s",
                  options.optimum ? "Optimum" : "LORSAL", model.class_count(), static_cast<long long>(pixels),
                  result.objective, counted(result.active_features, "active feature").c_str());
    run.note(text);
}

/// Returns the training set of a scene that was scanned.
model::TrainingSet training_set_of(tool::Run& run, const raster::LabelledPixels& labels, int bands,
                                   const sahic::TrainingScan& found) {
    auto set =
        tools::training_set(run, labels, bands, found.spectra(), [&](size_t i) { return found.valid(i); });
    set.scale = static_cast<double>(found.largest());
    return set;
}

/// Scans a scene of -with and adds its labelled pixels to `set`. `scene`: src without its empty bands.
/// \throws Error if the scene of -with has no values in one of these bands.
void add_training_scene(tool::Run& run, const raster::RasterSource& scene, const TrainingScene& further,
                        model::TrainingSet& set) {
    auto opened = further.scene;
    if (opened->shape().bands != scene.shape().bands)
        opened = tools::open_beside(run, "-with", opened->path(), scene);
    tool::Scene other(run, opened, "");
    other.read_once();
    const auto found = scan_for_training(other, further.labels, false);
    if (other.shape().bands != scene.shape().bands)
        throw Error(opened->path() + ": bands have no value at any of its pixels",
                    "Leave these bands out of all scenes (-b, -exclude-range).");
    const auto one = training_set_of(run, further.labels, scene.shape().bands, *found);
    set.values.insert(set.values.end(), one.values.begin(), one.values.end());
    set.label.insert(set.label.end(), one.label.begin(), one.label.end());
    set.scale = std::max(set.scale, one.scale);
    for (const auto& c : one.classes) {
        const auto known = std::find_if(set.classes.begin(), set.classes.end(), [&](const auto& other_class) {
            return other_class.value == c.value;
        });
        if (known == set.classes.end()) {
            set.classes.push_back(c);
            continue;
        }
        known->pixels += c.pixels;
        if (known->name.empty()) known->name = c.name;
    }
    std::sort(set.classes.begin(), set.classes.end(),
              [](const auto& a, const auto& b) { return a.value < b.value; });
}

/// Trains the model with the labelled pixels of all scenes. Reports the results.
sahic::MlrModel train(tool::Run& run, SahicComputing& computing, const Settings& s,
                      const raster::RasterSource& scene, const model::TrainingSet& set) {
    for (const auto& c : set.classes)
        if (c.pixels == 1) run.warn("class " + tool::class_text(c.value, c.name) + " has one training pixel");
    tools::warn_of_small_classes(run, set.classes, tools::least_class_pixels,
                                 "fewer than " + std::to_string(tools::least_class_pixels) +
                                     " do not show the variability of a class");
    sahic::LorsalOptions options = s.lorsal;
    options.threads = run.ranks().threads_of_host(run.options().threads);
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
    report_training(run, options, result, set.samples(), took.count());
    return std::move(result.model);
}

/// Trains on the first rank, and sends the model to the other ranks. BLAS may give slightly different results
/// on another processor.
sahic::MlrModel train_on_root(parallel::Group& ranks, const std::function<sahic::MlrModel()>& train_here) {
    if (!ranks.several()) return train_here();
    std::optional<sahic::MlrModel> mine;
    if (ranks.root()) mine = train_here();
    const std::string text = ranks.broadcast("model", mine ? sahic::to_json(*mine) : std::string());
    return mine ? std::move(*mine) : sahic::from_json(text, "the model of rank 0");
}

// Class probabilities and the Markov random field
// ----------------------------------------------------------------------------------------------------------

/// Reads the first row and column of the scene, which a periodic border needs, in a separate pass.
void read_border(tool::Run& run, const raster::RasterSource& scene, sahic::SpectralOptions& spectral) {
    sahic::TrainingScan operation(scene.shape(), {}, true);
    auto pass = run.pass("border", 0.3);
    const auto plan = stream::plan_pass(scene, operation, pass);
    const auto tiles = operation.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(scene, operation, {}, plan, pass));
    spectral.first_line = operation.first_line();
    spectral.first_sample = operation.first_sample();
}

/// Sets the first row and column of the scene, which a periodic border needs. Takes them from the scan of the
/// training. If that scan saw only the pixels of a mask, reads them again.
void set_border(const tool::Scene& scene, const sahic::TrainingScan& found,
                sahic::SpectralOptions& spectral) {
    if (scene.run().masks_statistics()) return read_border(scene.run(), *scene.raster(), spectral);
    spectral.first_line = found.first_line();
    spectral.first_sample = found.first_sample();
}

/// Returns the options of a pass on a device, with a limit on the number of threads, because each thread
/// holds buffers on the device.
stream::PassOptions pass_of(SahicComputing& computing, const std::string& name, double share) {
    auto options = computing.pass(name, share);
    if (computing.on_devices())
        options.limit.most = tool::most_lanes_a_device * static_cast<int>(computing.devices().size());
    return options;
}

/// Number of pixels of each class, and number of invalid pixels, of the map.
struct MapResult {
    std::vector<int64_t> by_class;
    int64_t invalid = 0;
};

/// Writes the results of the spectral classifier, without the Markov random field, directly to the outputs.
MapResult classify_spectra(tool::Run& run, SahicComputing& computing, const Settings& s,
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

using PlanesToCome = std::future<std::unique_ptr<stream::PlaneStore>>;

/// Allocates the planes on a separate thread, during the training, if a device copies from them: pinning
/// their memory takes time. Returns an empty future without a device, or if the planes and the training do
/// not fit into -memory together.
PlanesToCome begin_mrf_planes(const tool::Run& run, SahicComputing& computing, const Settings& s,
                              const sahic::MrfPlan& plan, const stream::CubeShape& shape, size_t classes,
                              int64_t training_pixels) {
    if (s.no_spatial) return {};
    const auto features = static_cast<uint64_t>(training_pixels) + 1;
    const uint64_t training =
        sahic::training_bytes(features) + features * 4 * static_cast<uint64_t>(shape.bands);
    const stream::CubeShape stored{shape.samples, shape.lines, static_cast<int>(classes) + 1};
    if (!computing.on_devices() || !plan.store_in_memory ||
        stored.float_bytes() + training > run.buffer_memory())
        return {};
    return std::async(std::launch::async, [stored, allocator = computing->allocator()] {
        return std::make_unique<stream::PlaneStore>(stored, allocator);
    });
}

/// Allocates the buffer for the solution of the Markov random field on a separate thread. Does this only if a
/// single process solves the whole scene on a device.
std::future<HostBuffer<float>> begin_mrf_q(const tool::Run& run, SahicComputing& computing,
                                           const sahic::MrfPlan& plan) {
    if (!computing.on_devices() || !plan.whole || run.ranks().several()) return {};
    const auto values = static_cast<size_t>(plan.limits.samples * plan.limits.lines) *
                        static_cast<size_t>(plan.limits.classes);
    return std::async(std::launch::async, [values, allocator = computing->allocator()] {
        return HostBuffer<float>(allocator, values);
    });
}

/// Writes class probabilities and weights into planes, and smooths them with the Markov random field.
/// `to_come`: planes that are being allocated; may be empty. Calls release() after the cube has been read.
MapResult classify_with_mrf(tool::Run& run, SahicComputing& computing, const Settings& s,
                            const std::shared_ptr<const sahic::MlrModel>& model,
                            const stream::CubeSource& cube, sahic::SpectralOptions spectral,
                            const sahic::MrfRequest& field, const sahic::MrfPlan& plan, PlanesToCome to_come,
                            const raster::LabelledPixels& labels, const raster::OutputSet& outputs,
                            const std::function<void()>& release) {
    const auto shape = cube.shape();
    const int classes = model->class_count();
    const auto planes =
        to_come.valid() ? to_come.get() : tools::make_mrf_planes(run, computing, plan, shape, classes);
    MapResult result;
    spectral.probabilities = spectral.weight = true;
    std::future<HostBuffer<float>> q;
    {
        const auto operation = computing->make_spectral_pass(model, spectral, shape.samples, shape.lines);
        auto pass = pass_of(computing, "probabilities", 0.2);
        uint64_t held = plan.store_in_memory ? planes->shape().float_bytes() : 0;
        if (2 * held <= tool::half(pass.memory)) { // enough memory is left for the threads of the pass
            q = begin_mrf_q(run, computing, plan);
            if (q.valid()) held *= 2;
        }
        tool::leave_room(pass, held);
        std::vector<int> all(static_cast<size_t>(classes));
        std::iota(all.begin(), all.end(), 0);
        const auto p = planes->sink(all), a = planes->sink({classes});
        run.add_pass(stream::run_pass(cube, *operation, {p.get(), a.get()}, pass));
        result.invalid = operation->invalid();
    }
    release();
    auto solver = sahic::make_mrf_setup(computing.backend(), field, plan);
    if (q.valid()) solver.q = q.get();
    const auto smoothed = sahic::smooth_scene(
        field, plan, solver, *planes, {labels.index, labels.value}, model->classes,
        {outputs.sinks(), !s.probabilities.empty(), !s.confidence.empty()}, run.pass("mrf", 0.5));
    run.add_pass(smoothed.report);
    tools::report_mrf(run, s, plan, smoothed.residuals);
    result.by_class = smoothed.pixels_by_class;
    return result;
}

/// Reports the class map to the user and in the report.
void report_classes(tool::Run& run, SahicComputing& computing, const sahic::MlrModel& model,
                    const MapResult& result, int64_t pixels) {
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
    tool::report_invalid(run, pixels - result.invalid, result.invalid, "and left without a class");
}

// The run
// ----------------------------------------------------------------------------------------------------------

void run_sahic(tool::Run& run, const Settings& s) {
    const auto model_output = run.text_output("-model", s.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    std::shared_ptr<raster::RasterSource> source;
    std::shared_ptr<const sahic::MlrModel> model;
    if (!s.apply.empty()) model = read_model(run, s, source);
    tool::Scene scene(run, model ? source : run.open_source(), "");
    if (raster::is_virtual(run.options().destination))
        return write_virtual_map(run, s, *scene.raster(), model.get());
    raster::LabelledPixels labels;
    if (!s.no_labels()) labels = tools::read_labels(run, s.labels, *scene.raster());
    auto known = labels.classes;
    const auto further = open_training_scenes(run, s, *scene.raster(), known);
    check_labels(s, labels, known, model.get());
    auto outputs = plan_outputs(run, s, *scene.raster(), model ? model->classes : known);
    const size_t classes = model ? model->classes.size() : known.size();
    SahicComputing computing(
        run, "sahic", tool::choose_devices(run, "sahic", work_of(s, scene.shape(), classes, !model)),
        sahic::simd_target(), [&] { return sahic::make_cpu_backend(run.options().threads); });
    sahic::MrfRequest field;
    sahic::MrfPlan plan;
    const auto plan_mrf = [&](size_t of) {
        field = tools::mrf_request_of(run, computing, s, scene.shape(), static_cast<int>(of));
        if (!s.no_spatial) plan = sahic::plan_mrf(field);
    };
    tool::end_of_plan(run, [&] {
        plan_mrf(classes);
        print_mrf_plan(run, s, scene.shape(), plan);
    });
    const bool trained = !model;
    // A device that is still starting does not report its memory yet. The scene is scanned in the meantime.
    const bool planned_late = trained && computing.starting();
    if (!planned_late) plan_mrf(classes);

    sahic::SpectralOptions spectral;
    PlanesToCome planes;
    const bool border = s.periodic && !s.no_spatial;
    if (trained) {
        const auto found = scan_for_training(scene, labels, border);
        if (planned_late) plan_mrf(classes);
        auto set = training_set_of(run, labels, scene.shape().bands, *found);
        for (const auto& other : further)
            add_training_scene(run, *scene.raster(), other, set);
        planes = begin_mrf_planes(run, computing, s, plan, scene.shape(), classes, set.samples());
        if (border) set_border(scene, *found, spectral);
        model = std::make_shared<const sahic::MlrModel>(
            train_on_root(run.ranks(), [&] { return train(run, computing, s, *scene.raster(), set); }));
        // A class may have lost all its pixels, because their spectra are invalid.
        if (model->classes.size() != classes) {
            outputs = plan_outputs(run, s, *scene.raster(), model->classes);
            planes = {};
            plan_mrf(model->classes.size());
        }
    } else if (border) {
        read_border(run, *scene.raster(), spectral);
    }
    // The range of values is checked only for a model from a file. A model that was just trained has the
    // range of the scene.
    std::optional<tool::RangeCheck> check;
    if (!trained) check.emplace(scene.cube(), *model);
    const stream::CubeSource& cube = check ? check->source() : scene.cube();
    outputs.create(scene.raster().get());
    run.reserve_cache(outputs.cache_bytes());
    const int64_t pixels = scene.shape().pixels();
    const auto finished_reading = [&] {
        if (check) check->tell(run);
        check.reset();
        scene.release(); // frees the copy of the scene in memory
    };
    const auto result = s.no_spatial
                            ? classify_spectra(run, computing, s, model, cube, outputs)
                            : classify_with_mrf(run, computing, s, model, cube, std::move(spectral), field,
                                                plan, std::move(planes), labels, outputs, finished_reading);
    if (check) finished_reading();
    if (result.invalid == pixels) throw tool::no_valid_pixel(*scene.raster());
    raster::write_text_output(model_output, sahic::to_json(*model));
    outputs.commit();
    report_classes(run, computing, *model, result, pixels);
}

// The options
// ----------------------------------------------------------------------------------------------------------

void declare_training(tool::Builder& args, Settings& s) {
    args.option("delta", s.lorsal.delta,
                "Width of the RBF kernel: 0.8 for AVIRIS, 0.35 for ROSIS in the paper")
        .above(0)
        .shown_as("D");
    args.option("lambda-c", s.lorsal.lambda_c, "Weight of the regressors' l1 norm, which makes them sparse")
        .above(0)
        .shown_as("L");
    args.option("beta", s.lorsal.beta, "First penalty of LORSAL's splitting").above(0).shown_as("B");
    args.option("beta-growth", s.lorsal.growth,
                "Factor of the penalty after each step (1: constant, as in the paper)")
        .between(1, 2)
        .shown_as("G");
    args.choice("lorsal-solver", s.lorsal.optimum, "How the multinomial logistic regression is trained",
                {{"paper", false, "200 steps of the paper's splitting"},
                 {"optimum", true, "to the optimum, with a proven gap of 1e-4"}});
}

void declare_random_field(tool::Builder& args, Settings& s) {
    tools::add_mrf_options(args, s).above(0);
    args.flag("no-spatial", s.no_spatial, "Write the map of the regression, without the Markov random field");
}

/// Checks the options together.
void check_settings(const tool::Call& call, const Settings& s, const tool::MaskOptions& mask) {
    if (mask.given()) tool::check_mask_use(mask, s.apply.empty(), "-apply");
    const auto contradicts = [&](const std::string& with, std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (call.given(name))
                throw UsageError(tool::cannot_be_used_with("-" + std::string(name), with),
                                 "Leave one of them out.");
    };
    if (s.no_spatial) contradicts("-no-spatial", {"lambda", "mu", "iterations", "tv", "boundary"});
    if (!s.apply.empty())
        contradicts("-apply", {"delta", "lambda-c", "beta", "beta-growth", "lorsal-solver", "model", "with"});
    if (!s.with.empty() && mask.given())
        throw UsageError(tool::cannot_be_used_with("-with", "a mask, because a mask applies to src only"),
                         "Leave the masked pixels out of the labels (gdal_hsi_sample).");
    if (s.lorsal.optimum) contradicts("-lorsal-solver optimum", {"beta", "beta-growth"});
    if (s.apply.empty() && s.any_wavelengths) throw UsageError("-any-wavelengths requires -apply");
    if (s.apply.empty() && s.any_scale) throw UsageError("-any-scale requires -apply");
    if (!s.apply.empty() && s.labels.path == "none")
        tool::refuse_label_options(call, "Leave it out, or give labels instead of 'none'.");
    if (s.no_spatial && !s.apply.empty() && s.labels.path != "none")
        throw UsageError("labels cannot be used with -apply and -no-spatial",
                         "Give 'none' instead of labels.");
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the training", true);
    args.input_argument("labels", s.labels.path, Content::labels,
                        "Training labels: a raster or vector file, in any SRS and on any grid; with -apply "
                        "optionally 'none'");
    args.add_destination("The class map, with the labels' names and colours; it appears when it is complete");
    declare_training(args, s);
    declare_random_field(args, s);
    args.output("probabilities", s.probabilities, Content::raster,
                "Also write the probability of each class, one band per class, to FILE");
    args.output("confidence", s.confidence, Content::raster,
                "Also write the probability of the mapped class to FILE");
    args.output("model", s.model_file, Content::model, "Also save the trained model to FILE (JSON)");
    args.input("apply", s.apply, Content::model,
               "Use the model FILE of -model instead of training; labels then only fix pixels of the map");
    tool::add_any_wavelengths(args, s.any_wavelengths, "With -apply: ");
    tool::add_any_scale(args, s.any_scale, "With -apply: ");
    tools::add_pairs_option(args, s.with,
                            "Also train with the labelled pixels of this scene (classes match by name)");
    tool::add_label_options(args, s.labels);
    args.add_compute();
    args.check([&s](const tool::Call& call) { check_settings(call, s, call.options().mask); });
    args.looks_around();
    args.body([&s](tool::Run& run) { run_sahic(run, s); });
}

} // namespace sahic_tool
} // namespace

namespace tools {

extern constinit const tool::Definition sahic{
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
      "Without the Markov random field, computed when it is displayed"},
     {"gdal_hsi_sahic -delta 0.35 -lambda 1 pavia.tif train.tif map.tif", "ROSIS, as in the paper"}},
    "",
    sahic_tool::declare};

} // namespace tools
} // namespace hsi
