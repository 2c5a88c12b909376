// SPDX-License-Identifier: MIT
// gdal_hsi_svm_train: trains a model with the labelled pixels of a scene. One pass reads the tiles that
// contain a labelled pixel.
#include "core/class_names.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/labels.h"
#include "raster/side_files.h"
#include "sample/sample.h"
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
#include <cstdio>
#include <map>
#include <memory>
#include <set>
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
    std::string cv_by = "auto"; ///< auto, pixels, patches, or a file of groups
    std::string cv_field;       ///< field of the groups in a vector file of cv_by; empty: found by its name
    int folds = 5;
    bool cv_by_file() const { return cv_by != "auto" && cv_by != "pixels" && cv_by != "patches"; }
    uint64_t seed = 1;
    bool probability = false, overwrite = false;
    std::vector<std::array<std::string, 2>> with; ///< each pair: a scene and its labels
};

/// Parses a weight of a class: "3=2.5", "Oats=4", or with the class as listed_words() writes it: "\"Corn,
/// young\"=2".
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
        auto known =
            std::find_if(classes.begin(), classes.end(), [&, &name = which](const svm::ModelClass& c) {
                return name == std::to_string(c.value);
            });
        if (known == classes.end()) known = find_class_named(classes, which);
        if (known == classes.end()) throw UsageError("-weight: no training pixel has class '" + which + "'");
        known->weight *= factor;
    }
}

/// A scene with its labels: src, or a scene of -with.
struct LabelledScene {
    std::shared_ptr<raster::RasterSource> scene;
    raster::LabelledPixels labels;
    tools::LabelPatches patches;
};

/// Positions of the pixels of all scenes on one common grid. Pixels of different scenes never touch on this
/// grid.
struct Places {
    int64_t samples = 0; ///< length of a row of the grid
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
    /// Adds a scene. Leaves out pixels without a valid spectrum, with a warning.
    void add(tool::Run& run, LabelledScene& part) {
        const svm::Gather operation = tools::read_spectra(run, part.scene, part.labels.index);
        const int64_t width = part.labels.grid.samples;
        size_t further = m_groups;
        for (size_t i = 0; i < part.labels.index.size(); ++i) {
            further = std::max(further, m_groups + part.patches.of[i] + 1);
            if (!operation.valid(i)) continue;
            places.index.push_back((places.m_lines + part.labels.index[i] / width) * places.samples +
                                   part.labels.index[i] % width);
            group.push_back(m_groups + part.patches.of[i]);
        }
        m_groups = further;
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
    std::vector<size_t> group; ///< patch of each pixel, or its group in -cv-by FILE

  private:
    tools::JoinedClasses m_classes;
    size_t m_groups = 0;
};

/// The folds of the cross-validation.
struct Folds {
    std::vector<int> of; ///< fold of each pixel; empty: the folds are drawn pixel by pixel
    size_t groups = 0;
    std::string what; ///< description of the groups, such as "whole patches"
    std::string why;  ///< reason for this choice; empty if -cv-by states the choice
};

/// If at least half of the pixels are in patches of this size or larger, the labels are fields. Otherwise
/// they are random draws of pixels. In a random draw of a tenth of all pixels, a fifth of the pixels are in
/// such patches.
constexpr int64_t least_patch = 4;

bool are_fields(const std::vector<size_t>& group) {
    std::map<size_t, int64_t> pixels;
    for (const size_t g : group)
        ++pixels[g];
    const auto inside =
        std::count_if(group.begin(), group.end(), [&](size_t g) { return pixels.at(g) >= least_patch; });
    return 2 * inside >= static_cast<int64_t>(group.size());
}

/// Returns true if at least two classes are in several groups. Testing with other groups then shows how well
/// the classes are separated.
bool are_comparable(const svm::TrainingSet& set, const std::vector<size_t>& group) {
    std::map<uint16_t, std::set<size_t>> groups;
    for (size_t i = 0; i < group.size(); ++i)
        groups[set.label[i]].insert(group[i]);
    return std::count_if(groups.begin(), groups.end(),
                         [](const auto& one) { return one.second.size() > 1; }) > 1;
}

/// Opens the groups of -cv-by FILE. \throws Error that names -cv-field where labels have -field.
std::unique_ptr<raster::LabelSource> open_groups(const raster::LabelOptions& options,
                                                 const raster::Grid& grid) {
    try {
        return raster::LabelSource::open(options, &grid);
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        std::string advice = error.advice();
        const std::string of_labels = "-field", class_field = "class field";
        if (const size_t at = advice.find(of_labels); at != std::string::npos)
            advice.replace(at, of_labels.size(), "-cv-field");
        if (const size_t at = advice.find(class_field); at != std::string::npos)
            advice.replace(at, class_field.size(), "field of the groups");
        std::string what = error.what();
        if (const size_t at = what.find("the field with the classes"); at != std::string::npos)
            what = "-cv-by '" + options.path + "': the field with the groups is not known";
        throw Error(what, advice);
    }
}

/// Returns the group of each labelled pixel, from -cv-by FILE. `field`: set to the name of the field with the
/// groups; empty for a raster. \throws Error if a pixel has no group.
std::vector<size_t> read_groups(tool::Run& run, const Settings& s, const LabelledScene& part,
                                std::string& field) {
    const std::string& path = s.cv_by;
    raster::LabelOptions options;
    options.path = path;
    options.field = s.cv_field;
    options.zero = raster::ZeroMeans::a_class;
    const auto grid = raster::grid_of(*part.scene);
    const auto source = open_groups(options, grid);
    field = source->value_name();
    const auto groups = raster::collect_labels(*source);
    if (s.cv_field.empty() && !field.empty() && groups.classes.size() <= part.labels.classes.size())
        run.warn("-cv-by " + path + ": the field '" + field + "' has " +
                 counted(groups.classes.size(), "group") + " for " +
                 counted(part.labels.classes.size(), "class", "classes") +
                 ": check that it holds groups, such as fields or flight lines, and not classes; -cv-field "
                 "chooses another field");
    std::vector<size_t> of;
    int64_t without = 0;
    for (const int64_t index : part.labels.index) {
        const auto at = std::lower_bound(groups.index.begin(), groups.index.end(), index);
        if (at == groups.index.end() || *at != index)
            ++without;
        else
            of.push_back(groups.value[static_cast<size_t>(at - groups.index.begin())]);
    }
    if (without > 0)
        throw Error("-cv-by " + path + " has no group for " + std::to_string(without) + " of " +
                        counted(part.labels.index.size(), "labelled pixel"),
                    "Give each of these pixels a group, or remove their labels.");
    return of;
}

/// Chooses the folds. \throws Error if the labels do not have enough groups for -cv-by.
Folds folds_of(const Settings& s, const TrainingSets& sets, bool polygons, const std::string& field) {
    Folds folds;
    if (s.cv_by == "pixels") return folds;
    const bool fields = polygons || are_fields(sets.group);
    if (s.cv_by == "auto" && !fields) return folds;
    const bool comparable = are_comparable(sets.all, sets.group);
    if (!comparable && s.cv_by != "auto")
        throw Error("-cv-by " + s.cv_by + ": fewer than two classes are in more than one " +
                        (s.cv_by_file() ? "group" : "patch"),
                    "Label more areas, or draw single pixels (-cv-by pixels).");
    if (!comparable) {
        folds.why = "fewer than two classes are in more than one patch";
        return folds;
    }
    folds.of = sample::folds_of_groups(sets.all.label, sets.group, s.folds, s.seed);
    folds.groups = std::set<size_t>(sets.group.begin(), sets.group.end()).size();
    folds.what = s.cv_by_file() ? "groups of " + s.cv_by + (field.empty() ? "" : ", field '" + field + "'")
                                : "whole patches";
    if (s.cv_by == "auto")
        folds.why = polygons ? "the labels are polygons" : "most labelled pixels are in patches";
    return folds;
}

/// Reports how the folds are made, before the search.
void report_folds(tool::Run& run, const Folds& folds, const std::string& cv_by) {
    const bool by_groups = !folds.of.empty();
    auto& report = run.report();
    report["cv_by"] = !by_groups ? "pixels" : cv_by == "auto" ? "patches" : cv_by;
    if (by_groups) report["cv_groups"] = folds.groups;
    run.note("Cross-validation: folds of " +
             (by_groups ? folds.what + " (" + std::to_string(folds.groups) + ")" : "single pixels") +
             (folds.why.empty() ? "" : ", since " + folds.why) +
             (cv_by != "auto" ? ""
              : by_groups     ? "; use -cv-by pixels to draw single pixels"
                              : "; use -cv-by patches to keep touching pixels together"));
}

std::string percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
    return text.data();
}

bool model_is_a_guess(const svm::TrainResult& result) { return result.model.cv_accuracy <= result.guess; }

/// Warns of unreliable training: classes with few pixels, and folds that touch.
void warn_of_weak_training(tool::Run& run, const svm::TrainingSet& set, const svm::TrainResult& result,
                           const Folds& folds, const std::string& cv_by, const Places& at) {
    // With fewer than two pixels of a class in a fold, a single wrong pixel decides the result of the class.
    const bool validated = result.folds > 0;
    const int64_t least = validated ? std::max<int64_t>(tools::least_class_pixels, 2 * int64_t{result.folds})
                                    : tools::least_class_pixels;
    tools::warn_of_small_classes(
        run, set.classes, least,
        validated && least > tools::least_class_pixels
            ? "fewer than two for each of the " + std::to_string(result.folds) + " folds"
            : "fewer than " + std::to_string(least) + " do not show the variability of a class");
    for (const auto& [text, count] : result.warnings)
        run.warn("LIBSVM: " + text + " (in " + counted(count, "training") + ")");
    if (!validated) return;
    if (model_is_a_guess(result))
        run.warn("no C and gamma is better than a guess: " + percent(result.model.cv_accuracy) +
                 " of the held-out pixels are right, but the largest class has " + percent(result.guess) +
                 " of them. These features do not separate the classes; try others (gdal_hsi_mnf, "
                 "gdal_hsi_pca), or label more areas");
    const auto& fold = result.fold;
    const auto count_touching = [&](bool of_one_class) {
        const auto touches = tools::touching_pixels(at.index, at.samples, [&](size_t i, size_t j) {
            return fold[i] != fold[j] && (!of_one_class || set.label[i] == set.label[j]);
        });
        return static_cast<int64_t>(std::count(touches.begin(), touches.end(), 1));
    };
    const int64_t touching = count_touching(false);
    run.report()["pixels_touching_other_folds"] = touching;
    // Touching pixels of different patches have different classes, so they do not raise the accuracy.
    const bool by_groups = !folds.of.empty(), of_file = by_groups && cv_by != "auto" && cv_by != "patches";
    const int64_t close = of_file ? count_touching(true) : by_groups ? 0 : touching;
    if (!tools::touching_counts(close, set.samples())) return;
    run.warn(
        std::to_string(close) + " of " + counted(set.samples(), "training pixel") +
        (of_file ? " touch a pixel of the same class in another fold" : " touch a pixel of another fold") +
        ", and neighbours are similar: the accuracy of the cross-validation is too high. " +
        (of_file ? "Use groups that do not divide the fields"
                 : "Use -cv-by patches if labels are patches; otherwise use gdal_hsi_accuracy on test "
                   "pixels drawn by gdal_hsi_sample -min-distance"));
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
            grid.push_back(
                {{"C", g.c}, {"gamma", g.gamma}, {"accuracy", g.accuracy}, {"standard_error", g.error}});
        report["grid"] = grid;
        report["folds"] = result.folds;
        report["cv_samples"] = result.samples;
        report["cv_largest_class"] = result.guess;
        report["cv_accuracy"] = m.cv_accuracy;
        report["kernel_tables"] = result.kernel_tables;
    }
    char text[256];
    if (!result.grid.empty()) {
        std::snprintf(text, sizeof text,
                      "Cross-validation: %d folds, accuracy %.2f %% with C = %g and gamma = %g", result.folds,
                      100 * m.cv_accuracy, m.c, m.gamma);
        std::string note = text;
        if (const auto& best = svm::best_of(result.grid); best.accuracy > m.cv_accuracy) {
            std::snprintf(
                text, sizeof text,
                "; the smallest C within one standard error (%.2f %%) of the highest accuracy, %.2f %% with "
                "C = %g",
                100 * best.error, 100 * best.accuracy, best.c);
            note += text;
        }
        run.note(note);
    }
    std::snprintf(text, sizeof text, "Model: %d classes, %s, %s", m.class_count(),
                  counted(m.features(), "feature").c_str(),
                  counted(m.vector_count(), "support vector").c_str());
    run.note(text);
}

/// Opens src and the scenes of -with, in this order, with their labels. `group_field`: set to the field of
/// the groups in a vector file of -cv-by.
std::vector<LabelledScene> open_scenes(tool::Run& run, const Settings& s, std::string& group_field) {
    std::vector<LabelledScene> parts;
    auto source = run.open_source();
    const auto add = [&](std::shared_ptr<raster::RasterSource> scene, const raster::LabelOptions& options) {
        LabelledScene part{std::move(scene), {}, {}};
        part.labels = tools::read_labels(run, options, *part.scene, &part.patches);
        parts.push_back(std::move(part));
    };
    add(source, s.labels);
    if (s.cv_by_file()) {
        run.files()->reads("-cv-by", s.cv_by, raster::files_read_with(s.cv_by));
        parts.front().patches = {read_groups(run, s, parts.front(), group_field), false};
    }
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
        add(scene, options);
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
    std::string group_field;
    auto parts = open_scenes(run, s, group_field);
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    tool::end_of_plan(run, [&] {
        for (const auto& part : parts)
            print_labels(run, part.labels);
    });
    TrainingSets sets(parts);
    for (auto& part : parts) {
        // The model omits bands that are empty in the first scene.
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
    options.refine = s.c.empty() && s.gamma.empty();
    Folds folds;
    if (options.c.size() * options.gamma.size() > 1) {
        const bool polygons = std::any_of(parts.begin(), parts.end(),
                                          [](const LabelledScene& part) { return part.patches.polygons; });
        folds = folds_of(s, sets, polygons, group_field);
        report_folds(run, folds, s.cv_by);
        options.fold = folds.of;
        if (!folds.of.empty()) options.folds = 1 + *std::max_element(folds.of.begin(), folds.of.end());
    }
    options.searched = [&run](const std::vector<svm::GridPoint>& grid) {
        const auto& best = svm::best_of(grid);
        std::array<char, 160> text{};
        std::snprintf(text.data(), text.size(),
                      "Search: %zu candidates, the best C = %g and gamma = %g with %.2f %%", grid.size(),
                      best.c, best.gamma, 100 * best.accuracy);
        run.note(text.data());
    };
    options.seed = s.seed;
    options.probability = s.probability;
    options.threads = run.options().threads;
    options.memory = run.buffer_memory();
    const auto rest = run.pass("training", 0.95);
    options.cancel = rest.cancel;
    options.progress = rest.progress;
    svm::TrainResult result = svm::train(set, options);
    if (folds.of.empty() && result.folds > 0 && result.folds < s.folds)
        run.warn("the smallest class has " + counted(result.folds, "training pixel") + ": " +
                 counted(result.folds, "fold") + " instead of " + std::to_string(s.folds));

    warn_of_weak_training(run, set, result, folds, s.cv_by, sets.places);

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
    args.option("cv-by", s.cv_by,
                "Groups of pixels that a fold holds out: patches of a class, or the groups in FILE; auto: "
                "patches if any")
        .shown_as("auto|pixels|patches|FILE");
    args.option("cv-field", s.cv_field, "Field of the groups in a vector FILE of -cv-by: numbers or names")
        .shown_as("NAME")
        .defaults_to("found by its name");
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
        if (s.cv_by.empty()) throw UsageError("-cv-by is empty");
        if (!s.cv_field.empty() && !s.cv_by_file())
            throw UsageError(tool::option_requires("-cv-field", "-cv-by FILE"));
        if (!s.with.empty() && s.cv_by_file())
            throw UsageError("-cv-by FILE cannot be used with -with", "Use -cv-by patches.");
        if (!s.with.empty() && options.mask.given())
            throw UsageError(tool::cannot_be_used_with("-with", "a mask, because a mask applies to src only"),
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
    "of a scene. Features are scaled to [0, 1]; C and gamma are given, or found by cross-validation over a "
    "grid, with whole patches if the labels form patches. The model is a JSON file.",
    {{"gdal_hsi_svm_train -model model.json profile.tif train.tif", "C and gamma by cross-validation"},
     {"gdal_hsi_svm_train -model model.json -field landcover -probability scene.img fields.gpkg",
      "From polygons, with probabilities"},
     {"gdal_hsi_svm_train -C 128 -gamma 0.125 -class-weights balanced -model m.json scene.img train.tif",
      "Given C and gamma, and equal weights of all classes"}},
    "",
    svm_train_tool::declare};

} // namespace tools
} // namespace hsi
