// SPDX-License-Identifier: MIT
// gdal_hsi_svm_train: labelled pixels of a scene to a model file. One pass over the tiles that hold a
// labelled pixel.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/labels.h"
#include "raster/side_files.h"
#include "shared/labelled_spectra.h"
#include "shared/many_scenes.h"
#include "shared/neighbours.h"
#include "shared/training_pixels.h"
#include "svm/svm_train.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace svm_train_tool {

using tool::Content;
struct Settings {
    raster::LabelOptions labels;
    std::string model_file, libsvm_file, class_weights = "none";
    std::vector<std::string> weights;
    std::vector<double> c, gamma;
    int folds = 5;
    uint64_t seed = 1;
    bool probability = false, overwrite = false;
    std::vector<std::array<std::string, 2>> with; ///< scene, labels
};

/// "3=2.5", "Oats=4", or with the class as listed_words() has one: "\"Corn, young\"=2".
std::pair<std::string, double> parse_weight(const std::string& text) {
    const size_t equals = text.rfind('=');
    double factor = 0;
    if (equals != std::string::npos && equals > 0) {
        factor = to_number(std::string_view(text).substr(equals + 1)).value_or(0);
        if (!(factor > 0 && factor < 1e9)) factor = 0;
    }
    if (factor == 0)
        throw UsageError("-weight: '" + text + "' is not understood",
                         "Give a class and a factor above 0: -weight 3=2.5 or -weight Oats=4.");
    const std::string which = text.substr(0, equals);
    const auto words = listed_words(which);
    return {words && words->size() == 1 ? words->front() : which, factor};
}

void set_weights(const Settings& s, std::vector<svm::ModelClass>& classes) {
    if (s.class_weights == "balanced") {
        const auto weights = svm::balanced_weights(classes);
        for (size_t i = 0; i < classes.size(); ++i)
            classes[i].weight = weights[i];
    }
    for (const auto& text : s.weights) {
        const auto [which, factor] = parse_weight(text);
        const auto known =
            std::find_if(classes.begin(), classes.end(), [&, &name = which](const svm::ModelClass& c) {
                return name == c.name || name == std::to_string(c.value) ||
                       differ_in_composition(name, c.name);
            });
        if (known == classes.end()) throw UsageError("-weight: no training pixel has class '" + which + "'");
        known->weight *= factor;
    }
}

/// A scene with its labels: src, or one of -with.
struct LabelledScene {
    std::shared_ptr<raster::RasterSource> scene;
    raster::LabelledPixels labels;
};

/// Where the pixels of all scenes lie, as if on one grid: no pixel of one touches one of another.
struct Places {
    int64_t samples = 0; ///< of a line
    std::vector<int64_t> index;

  private:
    friend class TrainingSets;
    int64_t m_lines = 0;
};

/// The labelled pixels of several scenes as one training set, scene after scene.
class TrainingSets {
  public:
    explicit TrainingSets(const std::vector<LabelledScene>& parts) {
        for (const auto& part : parts)
            places.samples = std::max(places.samples, part.labels.grid.samples + 1);
    }
    /// Pixels without a valid spectrum are left out with a warning.
    void add(tool::Run& run, LabelledScene& part) {
        const svm::Gather operation = tools::read_spectra(run, part.scene, part.labels.index);
        const int64_t width = part.labels.grid.samples;
        for (size_t i = 0; i < part.labels.index.size(); ++i)
            if (operation.valid(i))
                places.index.push_back((places.m_lines + part.labels.index[i] / width) * places.samples +
                                       part.labels.index[i] % width);
        places.m_lines += part.labels.grid.lines + 1;
        const auto one = tools::training_set(run, part.labels, part.scene->shape().bands, operation.spectra(),
                                             [&](size_t i) { return operation.valid(i); });
        const auto number = m_classes.add(run, part.scene->path(), one.classes);
        all.features = one.features;
        all.classes = m_classes.all();
        all.values.insert(all.values.end(), one.values.begin(), one.values.end());
        for (const uint16_t value : one.label)
            all.label.push_back(static_cast<uint16_t>(number.at(value)));
    }

    svm::TrainingSet all;
    Places places;

  private:
    tools::JoinedClasses m_classes;
};

/// What makes the figures of training doubtful: classes of a few pixels, and folds that touch one another.
void warn_of_weak_training(tool::Run& run, const svm::TrainingSet& set, const svm::TrainResult& result,
                           const Settings& s, const std::vector<int64_t>& places, int64_t samples) {
    // Of fewer than two pixels a fold, one that is wrong by chance is all that a fold says of a class.
    const bool validated = result.folds > 0;
    const int64_t least = validated ? std::max<int64_t>(tools::least_class_pixels, 2 * int64_t{result.folds})
                                    : tools::least_class_pixels;
    tools::warn_of_small_classes(run, set.classes, least,
                                 validated && least > tools::least_class_pixels
                                     ? "fewer than two for each of the " + std::to_string(result.folds) +
                                           " folds"
                                     : "under " + std::to_string(least) + " do not show how a class spreads");
    for (const auto& [text, count] : result.warnings)
        run.warn("LIBSVM: " + text + " (in " + counted(count, "training") + ")");
    if (!validated) return;
    const auto fold = svm::stratified_folds(set.label, result.folds, s.seed);
    const auto touches =
        tools::touching_pixels(places, samples, [&](size_t i, size_t j) { return fold[i] != fold[j]; });
    const int64_t touching = std::count(touches.begin(), touches.end(), 1);
    run.report()["pixels_touching_other_folds"] = touching;
    if (tools::touching_counts(touching, set.samples()))
        run.warn(std::to_string(touching) + " of " + counted(set.samples(), "training pixel") +
                 " touch one of another fold, and neighbours are alike: the accuracy of the "
                 "cross-validation is too good. Believe that of gdal_hsi_accuracy on test pixels that "
                 "gdal_hsi_sample -min-distance has drawn apart");
}

void describe(tool::Run& run, const svm::TrainResult& result) {
    const svm::Model& m = result.model;
    auto& report = run.report();
    Json classes = Json::array();
    for (size_t i = 0; i < m.classes.size(); ++i)
        classes.push_back({{"value", m.classes[i].value},
                           {"name", m.classes[i].name},
                           {"samples", m.classes[i].pixels},
                           {"weight", m.classes[i].weight},
                           {"support_vectors", m.support_count[i]}});
    report["classes"] = classes;
    report["C"] = m.c;
    report["gamma"] = m.gamma;
    report["support_vectors"] = m.vector_count();
    report["features"] = m.features();
    if (!result.grid.empty()) {
        Json grid = Json::array();
        for (const auto& g : result.grid)
            grid.push_back({{"C", g.c}, {"gamma", g.gamma}, {"accuracy", g.accuracy}});
        report["grid"] = grid;
        report["folds"] = result.folds;
        report["cv_accuracy"] = m.cv_accuracy;
        report["kernel_tables"] = result.kernel_tables;
    }
    char text[256];
    if (!result.grid.empty()) {
        std::snprintf(text, sizeof text,
                      "Cross-validation: %d folds, accuracy %.2f %% with C = %g and gamma = %g", result.folds,
                      100 * m.cv_accuracy, m.c, m.gamma);
        run.note(text);
    }
    std::snprintf(text, sizeof text, "Model: %d classes, %s, %s", m.class_count(),
                  counted(m.features(), "feature").c_str(),
                  counted(m.vector_count(), "support vector").c_str());
    run.note(text);
}

/// src and the scenes of -with, in their order, with their labels.
std::vector<LabelledScene> open_scenes(tool::Run& run, const Settings& s) {
    std::vector<LabelledScene> parts;
    auto source = run.open_source();
    parts.push_back({source, tools::read_labels(run, s.labels, *source)});
    Json list = Json::array();
    const Json first = run.report()["labels"];
    for (const auto& [name, path] : tools::listed_pairs(run, "-with", s.with)) {
        for (const auto& part : parts)
            if (same_file(name, part.scene->path()))
                throw UsageError("-with " + name + ": the scene is given twice",
                                 "Its labelled pixels would count twice.");
        auto options = s.labels;
        options.path = path;
        auto scene = tools::open_beside(run, "-with", name, *source);
        run.files()->reads("-with", path, raster::files_read_with(path));
        parts.push_back({scene, tools::read_labels(run, options, *scene)});
        list.push_back({{"scene", name}, {"labels", run.report()["labels"]}});
    }
    run.report()["labels"] = first;
    if (!list.empty()) run.report()["with"] = list;
    return parts;
}

void print_labels(tool::Run& run, const raster::LabelledPixels& labels) {
    std::string text = "Training pixels: " + std::to_string(labels.index.size()) + " (" +
                       run.report()["labels"]["how"].get<std::string>() + ")";
    for (const auto& c : labels.classes)
        text += "\n  " + tool::class_text(c.value, c.name) + ": " + std::to_string(c.pixels);
    run.print(text);
}

void run_train(tool::Run& run, const Settings& s) {
    const auto model_output = run.text_output("model", s.model_file, s.overwrite);
    const auto libsvm_output = run.text_output("-libsvm", s.libsvm_file, s.overwrite);
    raster::check_text_output(model_output);
    raster::check_text_output(libsvm_output);
    auto parts = open_scenes(run, s);
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    tool::end_of_plan(run, [&] {
        for (const auto& part : parts)
            print_labels(run, part.labels);
    });
    TrainingSets sets(parts);
    for (auto& part : parts) {
        // A band that the first one lacks is none of the model's.
        if (&part != &parts.front() && part.scene->shape().bands != parts.front().scene->shape().bands)
            part.scene = tools::open_beside(run, "-with", part.scene->path(), *parts.front().scene);
        sets.add(run, part);
        if (part.scene->shape().bands != parts.front().scene->shape().bands)
            throw Error(part.scene->path() + ": bands have no value at any of its labelled pixels",
                        "Leave these bands out of all scenes (-b, -exclude-range), or label other pixels.");
    }
    svm::TrainingSet& set = sets.all;
    set_weights(s, set.classes);

    svm::TrainOptions options;
    if (!s.c.empty()) options.c = s.c;
    if (!s.gamma.empty()) options.gamma = s.gamma;
    options.folds = s.folds;
    options.seed = s.seed;
    options.probability = s.probability;
    options.threads = run.options().threads;
    options.memory = run.buffer_memory();
    const auto rest = run.pass("training", 0.95);
    options.cancel = rest.cancel;
    options.progress = rest.progress;
    svm::TrainResult result = svm::train(set, options);
    if (result.folds > 0 && result.folds < s.folds)
        run.warn("the smallest class has " + counted(result.folds, "training pixel") + ": " +
                 counted(result.folds, "fold") + " instead of " + std::to_string(s.folds));

    warn_of_weak_training(run, set, result, s, sets.places.index, sets.places.samples);

    svm::Model& model = result.model;
    const auto& scene = *parts.front().scene;
    tool::describe_bands(scene, model);
    tools::describe_values(set, model);
    model.trained_on = s.labels.path.empty() ? std::string() : scene.path();
    model.labels = s.labels.path;
    model.origin = tool::origin_of(run);
    describe(run, result);
    raster::write_text_output(model_output, svm::to_json(model));
    if (!s.libsvm_file.empty()) raster::write_text_output(libsvm_output, svm::to_libsvm(model));
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the training");
    args.input_argument("labels", s.labels.path, Content::labels,
                        "Training labels: a raster or vector file, in any SRS and on any grid");
    args.output_argument("model", s.model_file, Content::model,
                         "The model (JSON); it appears when it is complete")
        .or_option("model");
    args.option("C", s.c, "Penalty C; several values are candidates of the grid search")
        .above(0)
        .shown_as("C")
        .defaults_to("2^-5, 2^-3 .. 2^15")
        .also("cost");
    args.option("gamma", s.gamma,
                "Gamma of the kernel exp(-gamma |x-y|^2); several values are candidates of the grid search")
        .above(0)
        .shown_as("G")
        .defaults_to("2^-15, 2^-13 .. 2^3");
    args.option("cv", s.folds, "Folds of the cross-validation; fewer if a class has fewer training pixels")
        .between(2, 1000);
    args.option("seed", s.seed, "Seed of the random folds").from(0);
    args.flag("probability", s.probability,
              "Also estimate class probabilities; training takes several times longer");
    args.choice<std::string>(
        "class-weights", s.class_weights, "Weights of the classes",
        {{"none", "none", "1 for all classes"},
         {"balanced", "balanced", "all classes have equal weight, for any number of pixels"}});
    args.option("weight", s.weights, "Factor of C for one class (number or name): 3=2.5").shown_as("CLASS=W");
    args.output("libsvm", s.libsvm_file, Content::text,
                "Also write the model to FILE in the format of LIBSVM");
    tools::add_pairs_option(args, s.with,
                            "Also train with the labelled pixels of this scene (classes match by name)");
    tool::add_label_options(args, s.labels);
    args.overwrite(s.overwrite, "Replace the model if it exists; otherwise an existing model is an error");
    args.add_compute(false);
    args.check([&s](const tool::CommonOptions& options) {
        if (!s.with.empty() && options.mask.given())
            throw UsageError(tool::cannot_be_used_with("-with", "a mask, which is of src alone"),
                             "Leave the masked pixels out of the labels (gdal_hsi_sample).");
        for (auto* list : {&s.c, &s.gamma}) {
            std::sort(list->begin(), list->end());
            list->erase(std::unique(list->begin(), list->end()), list->end());
        }
        for (const auto& text : s.weights)
            parse_weight(text);
    });
    args.body([&s](tool::Run& run) { run_train(run, s); });
}

} // namespace svm_train_tool
} // namespace

namespace tools {

extern constinit const tool::Definition svm_train{
    "svm_train",
    "Training of a support vector machine (SVM)",
    "Trains a support vector machine (LIBSVM: C-SVC, RBF kernel, one against one) on labelled pixels "
    "of a scene. Features are scaled to [0, 1]; C and gamma are found by stratified cross-validation "
    "over a grid, or given. The model is one readable file.",
    {{"gdal_hsi_svm_train -model model.json profile.tif train.tif", "C and gamma by cross-validation"},
     {"gdal_hsi_svm_train -model model.json -field landcover -probability scene.img fields.gpkg",
      "From polygons, with probabilities"},
     {"gdal_hsi_svm_train -C 128 -gamma 0.125 -class-weights balanced -model m.json scene.img train.tif",
      "C and gamma given, small classes as heavy as large ones"}},
    "",
    svm_train_tool::declare};

} // namespace tools
} // namespace hsi
