// SPDX-License-Identifier: MIT
// gdal_hsi_svm_train: labelled pixels of a scene to a model file. One pass over the tiles that hold a
// labelled pixel.
#include "cli/classification.h"
#include "core/error.h"
#include "raster/labels.h"
#include "svm/gather.h"
#include "svm/svm_train.h"
#include "training_pixels.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace {

using namespace hsi;
using Json = nlohmann::json;

struct Settings {
    raster::LabelOptions labels;
    std::string model_file, libsvm_file, class_weights = "none";
    std::vector<std::string> weights;
    std::vector<double> c, gamma;
    int folds = 5;
    uint64_t seed = 1;
    bool probability = false, overwrite = false;
};

/// "3=2.5" or "Oats=4".
std::pair<std::string, double> parse_weight(const std::string& text) {
    const size_t equals = text.rfind('=');
    double factor = 0;
    if (equals != std::string::npos && equals > 0) {
        const char *first = text.data() + equals + 1, *last = text.data() + text.size();
        const auto [end, status] = std::from_chars(first, last, factor);
        if (status != std::errc() || end != last || !(factor > 0 && factor < 1e9)) factor = 0;
    }
    if (factor == 0)
        throw UsageError("-weight: '" + text + "' is not understood",
                         "Give a class and a factor above 0: -weight 3=2.5 or -weight Oats=4.");
    return {text.substr(0, equals), factor};
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
                return name == c.name || name == std::to_string(c.value);
            });
        if (known == classes.end()) throw UsageError("-weight: no training pixel has class '" + which + "'");
        known->weight *= factor;
    }
}

/// Reads the spectra of the labelled pixels. Bands without a single value there are left out of `scene`, with
/// a warning: they would leave no pixel valid.
svm::Gather read_spectra(cli::Run& run, std::shared_ptr<raster::RasterSource>& scene,
                         const raster::LabelledPixels& labels) {
    const auto shape = scene->shape();
    const uint64_t bytes = tools::spectra_bytes(run, labels, shape.bands);
    svm::Gather operation(shape.bands, shape.samples, labels.index);
    auto pass = run.pass("training pixels", 0.05);
    pass.memory -= std::min(pass.memory / 2, bytes);
    const auto plan = stream::plan_pass(*scene, operation, pass);
    const auto tiles = operation.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(*scene, operation, {}, plan, pass));

    std::vector<int> empty, numbers;
    const auto bands = static_cast<size_t>(shape.bands);
    for (size_t b = 0; b < bands; ++b) {
        bool any = false;
        for (size_t i = 0; i < labels.index.size() && !any; ++i)
            any = std::isfinite(operation.spectra()[i * bands + b]);
        if (any) continue;
        empty.push_back(static_cast<int>(b));
        numbers.push_back(scene->bands()[b]);
    }
    if (empty.empty() || empty.size() == bands) return operation;
    run.warn("no labelled pixel has a value in band " + cli::list_text(numbers) + ": left out");
    run.report()["bands_without_values"] = numbers;
    scene = scene->without_bands(empty);
    return read_spectra(run, scene, labels);
}

/// The labelled pixels as a training set; pixels without a valid spectrum are left out and told.
svm::TrainingSet gather(cli::Run& run, std::shared_ptr<raster::RasterSource>& scene,
                        const raster::LabelledPixels& labels) {
    const svm::Gather operation = read_spectra(run, scene, labels);
    svm::TrainingSet set;
    set.features = scene->shape().bands;
    tools::fill_training_set(run, labels, operation, set);
    return set;
}

void describe(cli::Run& run, const svm::TrainResult& result) {
    const svm::Model& m = result.model;
    auto& report = run.report();
    Json classes = Json::array();
    for (size_t i = 0; i < m.classes.size(); ++i)
        classes.push_back({{"value", m.classes[i].value},
                           {"name", m.classes[i].name},
                           {"samples", m.classes[i].samples},
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
    std::snprintf(text, sizeof text, "Model: %d classes, %d features, %lld support vectors", m.class_count(),
                  m.features(), static_cast<long long>(m.vector_count()));
    run.note(text);
}

void run_train(cli::Run& run, const Settings& s) {
    const auto model_output = run.text_output("model", s.model_file, s.overwrite);
    const auto libsvm_output = run.text_output("-libsvm", s.libsvm_file, s.overwrite);
    raster::check_text_output(model_output);
    raster::check_text_output(libsvm_output);
    auto scene = run.open_source();
    const auto grid = raster::grid_of(*scene);
    const auto source = raster::LabelSource::open(s.labels, &grid);
    for (const auto& note : source->notes())
        run.warn(note);
    const auto labels = raster::collect_labels(*source);
    run.report()["device"] = "CPU, " + std::to_string(run.options().threads) + " threads";
    run.report()["labels"] = {{"path", source->path()}, {"how", source->description()}};
    if (run.options().dry_run) {
        std::string text =
            "Training pixels: " + std::to_string(labels.index.size()) + " (" + source->description() + ")";
        for (const auto& c : labels.classes)
            text += "\n  " + cli::class_text(c.value, c.name) + ": " + std::to_string(c.pixels);
        run.print(text);
        return;
    }
    svm::TrainingSet set = gather(run, scene, labels);
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
        run.warn("the smallest class has " + std::to_string(result.folds) + " training pixels: " +
                 std::to_string(result.folds) + " folds instead of " + std::to_string(s.folds));

    svm::Model& model = result.model;
    model.bands = scene->bands();
    model.band_names = scene->band_names();
    model.wavelengths_nm = scene->wavelengths_nm();
    model.trained_on = s.labels.path.empty() ? std::string() : scene->path();
    model.labels = s.labels.path;
    model.history = run.options().destination.history;
    model.created_by = "gdal_hsi_svm_train";
    describe(run, result);
    raster::write_text_output(model_output, svm::to_json(model));
    if (!s.libsvm_file.empty()) raster::write_text_output(libsvm_output, svm::to_libsvm(model));
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_svm_train",
        "Trains a support vector machine (LIBSVM: C-SVC, RBF kernel, one against one) on labelled pixels of "
        "a "
        "scene. Features are scaled to [0, 1]; C and gamma are found by stratified cross-validation over a "
        "grid, or given. The model is one readable file.",
        "Examples:\n"
        "  gdal_hsi_svm_train profile.tif train.tif model.json\n"
        "  gdal_hsi_svm_train -field landcover -probability scene.img fields.gpkg model.json\n"
        "  gdal_hsi_svm_train -C 128 -gamma 0.125 -class-weights balanced scene.img train.tif model.json\n");
    Settings s;
    auto& app = tool.app();
    tool.add_source();
    app.add_option("labels", s.labels.path,
                   "training labels: a raster or vector file, in any SRS and on any grid")
        ->required();
    app.add_option("model", s.model_file, "the model file to write (JSON)")->required();
    app.add_option("-C,--C", s.c, "Penalty C; repeated: candidates for the grid search [2^-5, 2^-3 .. 2^15]")
        ->type_name("C");
    app.add_option("--gamma", s.gamma,
                   "Kernel width exp(-gamma |x-y|^2); repeated: candidates [2^-15, 2^-13 .. 2^3]")
        ->type_name("G");
    app.add_option("--cv", s.folds,
                   "Folds of the cross-validation (fewer when a class has fewer training pixels)")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--seed", s.seed, "Seed of the folds")->type_name("N")->capture_default_str();
    app.add_flag("--probability", s.probability,
                 "Also estimate class probabilities (training takes several times longer)");
    app.add_option("--class-weights", s.class_weights,
                   "Factors of C: none, or balanced (each class counts alike, however many pixels it has)")
        ->type_name("none|balanced")
        ->capture_default_str();
    app.add_option("--weight", s.weights,
                   "Factor of C for one class (number or name): 3=2.5; may be repeated")
        ->type_name("CLASS=W");
    app.add_option("--libsvm", s.libsvm_file, "Also write the machine as a LIBSVM model file")
        ->type_name("FILE");
    cli::add_label_options(app, s.labels);
    app.add_flag("--overwrite", s.overwrite, "Replace the model when it is there");
    tool.add_compute(false);
    tool.add_input("labels", s.labels.path);
    tool.check([&](const cli::CommonOptions&) {
        for (auto* list : {&s.c, &s.gamma}) {
            for (const double v : *list)
                if (!(v > 0) || !std::isfinite(v))
                    throw UsageError(std::string(list == &s.c ? "-C" : "-gamma") +
                                     ": values must be above 0");
            std::sort(list->begin(), list->end());
            list->erase(std::unique(list->begin(), list->end()), list->end());
        }
        if (s.folds < 2 || s.folds > 1000) throw UsageError("-cv: from 2 to 1000 folds are possible");
        if (s.class_weights != "none" && s.class_weights != "balanced")
            throw UsageError("-class-weights: '" + s.class_weights + "' is neither none nor balanced");
        for (const auto& text : s.weights)
            parse_weight(text);
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_train(run, s); });
}
