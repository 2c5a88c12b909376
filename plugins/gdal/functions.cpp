// SPDX-License-Identifier: MIT
// Parses the arguments of each function.
#include "gdal/function.h"

#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "features/features.h"
#include "gdal/device.h"
#include "gdal/lanes.h"
#include "indices/indices.h"
#include "math/continuum.h"
#include "pca/pca.h"
#include "raster/packed_text.h"
#include "raster/spectral_library.h"
#include "sahic/sahic.h"
#include "smooth/smooth.h"
#include "spp/spp.h"
#include "svm/svm.h"
#include "unmix/unmix.h"

#include <cpl_conv.h>
#include <cpl_error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <numeric>

namespace hsi::plugin {
namespace {

/// Returns the spectra that the VRT contains (the argument `name`), or the spectra of a library (the argument
/// `library`). The argument `select` names some spectra of the library.
std::vector<std::vector<double>> exact_spectra(const Arguments& a, const char* name, int bands) {
    const std::string argument = std::string("'") + name + "'";
    if (a.has(name) == a.has("library"))
        a.refuse(a.has(name) ? "the argument " + argument + " cannot be used with 'library'"
                             : "the argument " + argument + " (or 'library') is missing",
                 "Give " + std::string(name) + "=\"1.5 2 ...; 3 4 ...\" or library=\"FILE.sli\".");
    std::vector<std::vector<double>> lists;
    std::string where;
    if (a.has(name)) {
        lists = a.lists(name);
        where = "the argument " + argument;
    } else {
        const std::string path = a.path("library");
        a.reads(CPLResetExtension(path.c_str(), "hdr")); // An ENVI library has one of these two header files.
        a.reads(path + ".hdr");
        const auto library = raster::read_spectral_library(path, static_cast<size_t>(bands));
        where = "the library " + path;
        if (!a.has("select")) {
            // Standard deviations in a library are not materials.
            const auto deviations = raster::deviations_in(library.names);
            for (size_t k = 0; k < library.spectra.size(); ++k)
                if (deviations.count(k) == 0) lists.push_back(library.spectra[k]);
        } else {
            for (const auto& wanted : a.pieces("select")) {
                const auto named = std::find(library.names.begin(), library.names.end(), wanted);
                char* end = nullptr;
                const long number = std::strtol(wanted.c_str(), &end, 10);
                size_t at = library.names.size();
                if (named != library.names.end())
                    at = static_cast<size_t>(named - library.names.begin());
                else if (*end == '\0' && number >= 1 && number <= static_cast<long>(library.spectra.size()))
                    at = static_cast<size_t>(number - 1);
                else
                    a.refuse("the argument 'select': " + where + " has no spectrum '" + wanted + "'",
                             "It has " + counted(library.spectra.size(), "spectrum", "spectra") +
                                 "; use names or numbers from 1.");
                lists.push_back(library.spectra[at]);
            }
        }
    }
    if (a.has("library") == false && a.has("select")) a.refuse("the argument 'select' requires 'library'");
    size_t number = 0;
    for (const auto& list : lists) {
        ++number;
        if (list.size() != static_cast<size_t>(bands))
            a.refuse(where + ": spectrum " + std::to_string(number) + " has " +
                     counted(list.size(), "value") + " for " + counted(static_cast<size_t>(bands), "source"));
        for (const double v : list)
            if (!std::isfinite(v))
                a.refuse(where + ": spectrum " + std::to_string(number) + " has a value that is not finite");
    }
    if (lists.empty()) a.refuse(where + " has no spectra");
    return lists;
}

std::vector<std::vector<float>> spectra_of(const Arguments& a, int bands) {
    std::vector<std::vector<float>> spectra;
    for (const auto& list : exact_spectra(a, "spectra", bands))
        spectra.emplace_back(list.begin(), list.end());
    return spectra;
}

/// Returns the text of a model. It is in the VRT, packed or plain, or in a file. `name` receives a name for
/// messages.
std::string model_text(const Arguments& a, std::string& name) {
    if (a.has("model") == a.has("model_data"))
        a.refuse(a.has("model") ? "the argument 'model' cannot be used with 'model_data'"
                                : "the argument 'model' (or 'model_data') is missing",
                 "Give model=\"FILE.json\".");
    if (a.has("model")) {
        name = a.path("model");
        return read_model(name);
    }
    name = "the argument 'model_data'";
    std::string text = a.text("model_data");
    return text.front() == '{' ? text : raster::unpack_text(text, name);
}

void check_features(const Arguments& a, const std::string& name, int features, int bands) {
    if (features != bands)
        a.refuse("'" + name + "' was made for " + counted(static_cast<size_t>(features), "band") +
                 ", but there are " + counted(static_cast<size_t>(bands), "source"));
}

void check_spectrum(const Arguments& a, int bands) {
    if (bands < 2) a.refuse("a spectrum needs at least 2 sources");
}

Function parse_norm(const Arguments&, int bands) {
    Function f;
    f.operation = atdca::make_residual(bands, {}, false);
    return f;
}

Function parse_osp(const Arguments& a, int bands) {
    check_spectrum(a, bands);
    auto targets = spectra_of(a, bands);
    const int count = a.whole("count", 1, static_cast<int>(targets.size()), static_cast<int>(targets.size()));
    targets.resize(static_cast<size_t>(count));
    Function f;
    f.operation = atdca::make_residual(bands, targets, a.choice("output", {"norm", "squared"}) == "squared");
    return f;
}

Function parse_sad(const Arguments& a, int bands) {
    check_spectrum(a, bands);
    const auto references = spectra_of(a, bands);
    for (size_t k = 0; k < references.size(); ++k)
        if (std::all_of(references[k].begin(), references[k].end(), [](float v) { return v == 0; }))
            a.refuse("spectrum " + std::to_string(k + 1) + " is all zero, so it has no angle");
    Function f;
    atdca::ClassifyOptions options;
    f.classes = a.choice("output", {"angle", "class"}) == "class";
    if (f.classes) {
        options.max_angle = a.number("max_angle", 180);
        if (!(options.max_angle >= 0 && options.max_angle <= 180))
            a.refuse("the argument 'max_angle' is not from 0 to 180 degrees");
    } else {
        options.map = false;
        options.scores = atdca::ClassifyOptions::Scores::angle;
        f.band = references.size() == 1 ? 0 : -1;
        if (a.choice("unit", {"degree", "radian"}) == "radian") f.factor = std::numbers::pi / 180;
    }
    f.operation = atdca::make_classification(references, options);
    f.bytes = references.size() * static_cast<size_t>(bands) * sizeof(double);
    f.pixel_cost = static_cast<double>(references.size()) * bands;
    return f;
}

pca::Model pca_model(const Arguments& a, int bands) {
    std::string name;
    const std::string text = model_text(a, name);
    auto model = pca::from_json(text, name);
    check_features(a, name, model.band_count(), bands);
    return model;
}

pca::Transform components_of(const pca::Model& model, int count) {
    std::vector<int> same(static_cast<size_t>(model.band_count()));
    std::iota(same.begin(), same.end(), 0);
    return pca::projection(model, count, same, model.band_count());
}

Function parse_project(const Arguments& a, int bands) {
    pca::Transform t;
    t.inputs = bands;
    t.outputs = 1;
    Function f;
    if (a.has("model") || a.has("model_data")) {
        const auto model = pca_model(a, bands);
        const int component = a.whole("component", 1, model.components, 1);
        const auto all = components_of(model, component);
        t.matrix.assign(all.matrix.end() - bands, all.matrix.end());
        t.offset = {all.offset.back()};
    } else if (a.has("spectra") || a.has("library")) {
        if (a.choice("projector", {"gs"}) != "gs") return f;
        t.matrix = atdca::gs_projector(bands, spectra_of(a, bands));
        t.offset = {a.number("offset", 0)};
    } else {
        if (!a.has("weights"))
            a.refuse(
                "the argument 'weights' is missing",
                "Give weights=\"0.1 0.2 ...\", a PCA model (model=\"FILE.json\" component=\"1\"), or targets "
                "(library=\"FILE.sli\").");
        t.matrix = a.numbers("weights");
        if (t.matrix.size() != static_cast<size_t>(bands))
            a.refuse("the argument 'weights' has " + counted(t.matrix.size(), "value") + " for " +
                     counted(static_cast<size_t>(bands), "source"));
        t.offset = {a.number("offset", 0)};
    }
    t.zero_is_invalid = a.choice("zero", {"invalid", "valid"}) == "invalid";
    f.magnitude = a.yes("absolute", false);
    f.operation = pca::make_transform(std::move(t));
    f.bytes = static_cast<size_t>(bands) * sizeof(double);
    return f;
}

/// Parses one band of gdal_hsi_resample. The band is a weighted sum of the sources, added in the same order
/// as in hsi_project.
Function parse_resample(const Arguments& a, int bands) {
    pca::Transform t;
    t.inputs = bands;
    t.outputs = 1;
    t.matrix = a.numbers("weights");
    if (t.matrix.size() != static_cast<size_t>(bands))
        a.refuse("the argument 'weights' has " + counted(t.matrix.size(), "value") + " for " +
                 counted(static_cast<size_t>(bands), "source"));
    t.offset = {0.0};
    Function f;
    f.operation = pca::make_transform(std::move(t));
    f.bytes = static_cast<size_t>(bands) * sizeof(double);
    return f;
}

/// Returns the numbers of an argument of a gdal_hsi_features band, one per source.
std::vector<double> source_numbers(const Arguments& a, const char* name, int bands) {
    auto list = a.numbers(name);
    if (list.size() != static_cast<size_t>(bands))
        a.refuse("the argument '" + std::string(name) + "' has " + counted(list.size(), "value") + " for " +
                 counted(static_cast<size_t>(bands), "source"));
    return list;
}

Function parse_continuum(const Arguments& a, int bands) {
    const auto nm = source_numbers(a, "wavelengths", bands);
    std::vector<std::vector<double>> ends;
    if (a.has("ranges")) ends = a.lists("ranges");
    if (ends.empty()) ends.push_back({-HUGE_VAL, HUGE_VAL});
    std::vector<features::Range> ranges;
    std::vector<int> uses(nm.size());
    for (const auto& one : ends) {
        if (one.size() != 2) a.refuse("the argument 'ranges' does not have two wavelengths per range");
        features::Range range;
        range.bands = math::rising_bands(nm, one[0], one[1]);
        if (range.bands.size() < 3)
            a.refuse("range " + std::to_string(ranges.size() + 1) + " has " +
                     counted(range.bands.size(), "source") + ", but a continuum needs 3");
        for (const size_t b : range.bands) {
            range.x.push_back(nm[b]);
            ++uses[b];
        }
        ranges.push_back(std::move(range));
    }
    const std::string output =
        a.choice("output", {"removed", "depth", "position", "width", "area", "asymmetry"});
    const bool removed = output == "removed";
    if (removed && !std::all_of(uses.begin(), uses.end(), [](int n) { return n == 1; }))
        a.refuse("each source must be in exactly one range");
    const auto count = static_cast<int>(ranges.size());
    const int band = a.whole("band", 1, removed ? bands : count, 1);
    int measure = 0;
    for (const char* name : {"depth", "position", "width", "area", "asymmetry"}) {
        if (output == name) break;
        ++measure;
    }
    Function f;
    f.band = removed ? band - 1 : (band - 1) * features::measures + measure;
    f.bytes = 2 * nm.size() * sizeof(double);
    f.pixel_cost = 16.0 * bands;
    f.operation = features::make_features(bands, std::move(ranges),
                                          removed ? features::Output::removed : features::Output::features);
    return f;
}

Function parse_index(const Arguments& a, int bands) {
    indices::Bands known;
    if (a.has("wavelengths")) known.wavelengths = source_numbers(a, "wavelengths", bands);
    if (a.has("scale")) known.scale = source_numbers(a, "scale", bands);
    if (a.has("offset")) known.offset = source_numbers(a, "offset", bands);
    const std::string expression = a.text("expr");
    Function f;
    try {
        f.operation = indices::make_indices(bands, {expression}, std::move(known));
    } catch (const Error& e) {
        a.refuse(std::string("the argument 'expr': ") + e.what(), e.advice());
    }
    f.pixel_cost = 2.0 * static_cast<double>(expression.size());
    f.bytes = static_cast<size_t>(bands) * 3 * sizeof(double);
    return f;
}

/// Returns the method with this name from a table of names.
template <class Names>
auto named(const Names& names, const std::string& name) {
    for (const auto& one : names)
        if (name == one.first) return one.second;
    throw Error("internal: no method '" + name + "'");
}

/// Returns the value of an argument that must be one of the names in a table.
template <class Names>
auto choice_of(const Arguments& a, const char* name, const Names& names) {
    std::vector<const char*> words;
    for (const auto& one : names)
        words.push_back(one.first);
    return named(names, a.choice(name, words));
}

/// Parses a band of gdal_hsi_smooth or gdal_hsi_reflect that is not a sum of bands.
Function parse_transform(const Arguments& a, int bands) {
    const auto number = [&](const char* name, double least, double most) {
        const double v = a.number(name);
        if (!(v >= least && v <= most)) a.refuse("the argument '" + std::string(name) + "' is out of range");
        return v;
    };
    a.text("method");
    const auto method = choice_of(a, "method", smooth::method_names);
    if (smooth::is_sum(method)) a.refuse("the argument 'method' is a sum of bands", "Use hsi_resample.");
    Function f;
    f.band = a.whole("band", 1, bands) - 1;
    f.operation = smooth::make_transform(
        bands, smooth::transform_of(
                   method, [&](const char* name, const auto& names) { return choice_of(a, name, names); },
                   number, [&](const char* name, int least, int most) { return a.whole(name, least, most); },
                   [&](const char* name) { return source_numbers(a, name, bands); }));
    f.pixel_cost = 8.0 * bands;
    f.bytes = static_cast<size_t>(bands) * 3 * sizeof(double);
    return f;
}

/// Returns the names "1", "2" ..., because spectra in a VRT have no names.
std::vector<std::string> numbers_to(size_t count) {
    std::vector<std::string> names;
    for (size_t k = 1; k <= count; ++k)
        names.push_back(std::to_string(k));
    return names;
}

Function parse_unmix(const Arguments& a, int bands) {
    check_spectrum(a, bands);
    unmix::Endmembers e;
    e.spectra = exact_spectra(a, "endmembers", bands);
    e.names = numbers_to(e.spectra.size());
    unmix::Options options;
    options.method = named(unmix::method_names, a.choice("method", {"fcls", "ucls", "nnls", "scls"}));
    const int band = a.whole("band", 1, e.count() + 1);
    options.rmse = band > e.count();
    Function f;
    f.operation = unmix::make_unmixing(e, options);
    f.output = options.rmse ? 1 : 0;
    f.band = options.rmse ? 0 : band - 1;
    f.bytes = e.spectra.size() * static_cast<size_t>(bands) * sizeof(double);
    f.pixel_cost = static_cast<double>(e.count()) * (bands + e.count() * e.count());
    return f;
}

Function detection_of(const Arguments& a, const detect::Detector& detector) {
    Function f;
    f.band = a.whole("band", 1, detector.targets, 1) - 1;
    f.operation = detect::make_detection(detector, {});
    f.bytes = (detector.rows.size() + detector.log_rows.size() + detector.factor.size()) * sizeof(double);
    f.pixel_cost =
        static_cast<double>(detector.rows.size() + detector.log_rows.size() + detector.factor.size());
    return f;
}

Function parse_sam(const Arguments& a, int bands) {
    check_spectrum(a, bands);
    detect::Targets targets;
    targets.spectra = exact_spectra(a, "targets", bands);
    targets.names = numbers_to(targets.spectra.size());
    const auto method = named(detect::method_names, a.choice("method", {"sam", "sid"}));
    return detection_of(a, detect::make_detector(method, targets));
}

/// Reads exactly `count` numbers. `name` is the argument for messages.
std::vector<double> so_many(const Arguments& a, const char* name, size_t count) {
    auto values = a.numbers(name);
    if (values.size() != count)
        a.refuse(std::string("the argument '") + name + "' has " + counted(values.size(), "value") +
                 ", not " + std::to_string(count));
    return values;
}

/// Parses a detector. Its background statistics come from gdal_hsi_detect and are not computed here.
Function parse_match(const Arguments& a, int bands) {
    check_spectrum(a, bands);
    detect::Detector d;
    d.method = named(detect::method_names, a.choice("method", {"mf", "cem", "ace"}));
    d.bands = bands;
    if (a.has("used")) {
        for (const double number : a.numbers("used")) {
            const int band = number >= 1 && number <= bands ? static_cast<int>(number) : 0;
            if (band < 1 || band != number || (!d.used.empty() && band - 1 <= d.used.back()))
                a.refuse("the argument 'used' does not list sources from 1 in ascending order");
            d.used.push_back(band - 1);
        }
    } else {
        d.used.resize(static_cast<size_t>(bands));
        std::iota(d.used.begin(), d.used.end(), 0);
    }
    const size_t n = d.used.size();
    d.centre = so_many(a, "mean", n);
    for (const auto& row : a.lists("weights")) {
        if (row.size() != n)
            a.refuse("the argument 'weights': row " + std::to_string(d.targets + 1) + " has " +
                     counted(row.size(), "value") + ", not " + std::to_string(n));
        d.rows.insert(d.rows.end(), row.begin(), row.end());
        ++d.targets;
    }
    if (d.targets == 0) a.refuse("the argument 'weights' is empty");
    d.constants.assign(static_cast<size_t>(d.targets), 1.0);
    if (d.method == detect::Method::ace) {
        d.constants = so_many(a, "contrast", static_cast<size_t>(d.targets));
        d.deviation = so_many(a, "deviation", n);
        const auto lower = so_many(a, "factor", n * (n + 1) / 2);
        d.factor.assign(n * n, 0.0);
        for (size_t row = 0, at = 0; row < n; ++row)
            for (size_t column = 0; column <= row; ++column)
                d.factor[row * n + column] = lower[at++];
    }
    return detection_of(a, d);
}

Function parse_spp(const Arguments& a, int bands) {
    if (bands != 2)
        a.refuse(std::string("there ") + worded(bands, "is ", "are ") + counted(bands, "source") +
                     ", not 2: the original band, and alpha in radians",
                 "Put masks after these sources, and their count into the argument 'masks'.");
    Function f;
    f.operation = spp::make_band_displacement(a.number("centroid"));
    return f;
}

/// The requested result of a classifier.
struct Asked {
    bool probability = false, confidence = false;
    int index = 0; ///< index of the class
};

template <class Classes>
Asked classifier_output(const Arguments& a, const Classes& classes) {
    Asked asked;
    const std::string output = a.choice("output", {"class", "probability", "confidence"});
    asked.probability = output == "probability";
    asked.confidence = output == "confidence";
    if (!asked.probability) return asked;
    const std::string wanted = a.text("class");
    std::string known;
    for (size_t k = 0; k < classes.size(); ++k) {
        if (wanted == std::to_string(classes[k].value) || wanted == classes[k].name) {
            asked.index = static_cast<int>(k);
            return asked;
        }
        known += (known.empty() ? "" : ", ") + std::to_string(classes[k].value) +
                 (classes[k].name.empty() ? "" : " (" + classes[k].name + ")");
    }
    a.refuse("the argument 'class': the model has no class '" + wanted + "'", "It has " + known + ".");
}

Function svm_function(const Arguments& a, const std::shared_ptr<const svm::Model>& model,
                      const Asked& asked) {
    svm::ClassifyOptions options;
    options.probabilities = asked.probability;
    options.confidence = asked.confidence;
    if ((asked.probability || asked.confidence) && !model->has_probabilities())
        a.refuse("the model has no probability estimates", "Train it with -probability.");
    Function f;
    f.classes = !asked.probability && !asked.confidence;
    f.output = f.classes ? 0 : 1;
    f.band = asked.probability ? asked.index : 0;
    f.pixel_cost = 2.0 * static_cast<double>(model->vector_count()) * model->features();
    f.bytes = static_cast<size_t>(model->vector_count()) * static_cast<size_t>(model->features()) * 12;
    const Place place = svm_place(*model);
    f.device = place == Place::device;
    f.operation = f.device ? svm_on_device(model, options) : svm::make_classification(model, options);
    if (place == Place::either)
        f.promotion = std::make_shared<const Promotion>(
            device_start_cost, [model, options] { return svm_on_device(model, options); });
    return f;
}

std::shared_ptr<const svm::Model> svm_model(const Arguments& a, int bands) {
    std::string name;
    const std::string text = model_text(a, name);
    auto model = std::make_shared<const svm::Model>(svm::from_json(text, name));
    check_features(a, name, model->features(), bands);
    return model;
}

Function parse_svm(const Arguments& a, int bands) {
    const auto model = svm_model(a, bands);
    return svm_function(a, model, classifier_output(a, model->classes));
}

Function mlr_function(const std::shared_ptr<const sahic::MlrModel>& model, const Asked& asked) {
    sahic::SpectralOptions options; // only the requested output
    options.probabilities = asked.probability;
    options.confidence = asked.confidence;
    options.map = !asked.probability && !asked.confidence;
    Function f;
    f.classes = options.map;
    f.band = asked.probability ? asked.index : 0;
    f.pixel_cost = 2.0 * static_cast<double>(model->anchor_count()) *
                   static_cast<double>(model->features() + model->class_count());
    f.bytes = model->anchors.size() * 12 + model->weights.size() * 16;
    f.operation = sahic::make_spectral_pass(model, options, 0, 0); // Only weights depend on the scene's size.
    return f;
}

std::shared_ptr<const sahic::MlrModel> mlr_model(const Arguments& a, int bands) {
    std::string name;
    const std::string text = model_text(a, name);
    auto model = std::make_shared<const sahic::MlrModel>(sahic::from_json(text, name));
    check_features(a, name, model->features(), bands);
    return model;
}

Function parse_mlr(const Arguments& a, int bands) {
    const auto model = mlr_model(a, bands);
    return mlr_function(model, classifier_output(a, model->classes));
}

// Steps of VRTProcessedDataset

Function step_pca(const Arguments& a, int bands) {
    const auto model = pca_model(a, bands);
    const int count = a.whole("components", 1, model.components, model.components);
    Function f;
    f.operation = pca::make_transform(components_of(model, count));
    f.band = -1;
    return f;
}

Function step_sad(const Arguments& a, int bands) {
    Function f = parse_sad(a, bands);
    if (!f.classes) f.band = -1; // one angle per reference
    return f;
}

Asked step_output(const Arguments& a) {
    Asked asked;
    const std::string output = a.choice("output", {"class", "probabilities", "confidence"});
    asked.probability = output == "probabilities";
    asked.confidence = output == "confidence";
    return asked;
}

Function step_svm(const Arguments& a, int bands) {
    const auto model = svm_model(a, bands);
    const Asked asked = step_output(a);
    Function f = svm_function(a, model, asked);
    if (asked.probability) f.band = -1; // one band per class
    return f;
}

Function step_mlr(const Arguments& a, int bands) {
    const auto model = mlr_model(a, bands);
    const Asked asked = step_output(a);
    Function f = mlr_function(model, asked);
    if (asked.probability) f.band = -1; // one band per class
    return f;
}

#define HSI_ARGUMENT(name, text) "<Argument name='" name "' description='" text "' type='string'/>"
#define HSI_FRAME                                                                                            \
    HSI_ARGUMENT("nodata",                                                                                   \
                 "nodata value of the sources: one value, or one per source (none: no nodata value)")        \
    HSI_ARGUMENT("masks", "how many of the last sources are masks; a pixel with 0 in a mask is nodata")      \
    HSI_ARGUMENT("dst_nodata",                                                                               \
                 "value of nodata pixels; a valid result that equals it becomes the next value")             \
    HSI_ARGUMENT("dst_type",                                                                                 \
                 "type of the band: values are rounded and clamped to it before they are compared with "     \
                 "dst_nodata (default: Float32)")
#define HSI_LIBRARY                                                                                          \
    HSI_ARGUMENT("library", "file of spectra: ENVI spectral library or CSV")                                 \
    HSI_ARGUMENT("select", "spectra of the library: names or numbers from 1, separated by semicolons")
#define HSI_SPECTRA                                                                                          \
    HSI_ARGUMENT("spectra", "spectra with one value per source, separated by semicolons") HSI_LIBRARY
#define HSI_MODEL                                                                                            \
    HSI_ARGUMENT("model", "file of the model")                                                               \
    HSI_ARGUMENT("model_data", "the model itself, packed")
#define HSI_CLASSIFIER                                                                                       \
    HSI_MODEL HSI_ARGUMENT("output", "class, probability or confidence")                                     \
        HSI_ARGUMENT("class", "value or name of the class") HSI_FRAME
#define HSI_CLASSIFIER_STEP HSI_MODEL HSI_ARGUMENT("output", "class, probabilities or confidence")
#define HSI_LIST(...) "<PixelFunctionArgumentsList>" __VA_ARGS__ "</PixelFunctionArgumentsList>"
#define HSI_STEP_LIST(...)                                                                                   \
    "<ProcessedDatasetFunctionArgumentsList>" __VA_ARGS__ "</ProcessedDatasetFunctionArgumentsList>"

} // namespace

const std::vector<Definition>& definitions() {
    static const std::vector<Definition> all{
        {"hsi_norm", "length of the pixel vector", HSI_LIST(HSI_FRAME), parse_norm},
        {"hsi_sad", "spectral angle to a reference, or the nearest of several",
         HSI_LIST(HSI_SPECTRA HSI_ARGUMENT("output", "angle or class")
                      HSI_ARGUMENT("unit", "degree or radian")
                          HSI_ARGUMENT("max_angle", "degrees; farther pixels are class 0") HSI_FRAME),
         parse_sad},
        {"hsi_osp", "length of the pixel vector's residual after projecting out the targets",
         HSI_LIST(HSI_SPECTRA HSI_ARGUMENT("count", "use the first targets only")
                      HSI_ARGUMENT("output", "norm or squared") HSI_FRAME),
         parse_osp},
        {"hsi_project", "dot product with weights, and an offset",
         HSI_LIST(
             HSI_ARGUMENT("weights", "one weight per source") HSI_ARGUMENT("offset", "added to the product")
                 HSI_MODEL HSI_ARGUMENT("component", "component of the PCA model, from 1")
                     HSI_SPECTRA HSI_ARGUMENT("projector", "gs: weights from targets")
                         HSI_ARGUMENT("absolute", "yes or no")
                             HSI_ARGUMENT("zero", "invalid or valid: what an all-zero pixel is") HSI_FRAME),
         parse_project},
        {"hsi_resample", "a band of another spectrometer: the sum of sources times weights",
         HSI_LIST(HSI_ARGUMENT("weights", "one weight per source") HSI_FRAME), parse_resample},
        {"hsi_continuum", "the spectrum divided by its continuum, or a measure of an absorption feature",
         HSI_LIST(HSI_ARGUMENT("wavelengths", "of the sources, in nanometres")
                      HSI_ARGUMENT("ranges", "two wavelengths each, separated by semicolons; all by default")
                          HSI_ARGUMENT("output", "removed, depth, position, width, area or asymmetry")
                              HSI_ARGUMENT("band", "removed: the source, else the range, from 1") HSI_FRAME),
         parse_continuum},
        {"hsi_index", "a spectral index: an expression over the spectrum",
         HSI_LIST(HSI_ARGUMENT("expr", "the expression; b1 is the first source, r800 the one nearest 800 nm")
                      HSI_ARGUMENT("wavelengths", "of the sources, in nanometres")
                          HSI_ARGUMENT("scale", "one factor per source; 1 by default")
                              HSI_ARGUMENT("offset", "added after the factor; 0 by default") HSI_FRAME),
         parse_index},
        {"hsi_transform", "a band of the spectrum after a transform: absorbance, SNV, MSC, norms, gains",
         HSI_LIST(
             HSI_ARGUMENT("method", "whittaker, absorbance, snv, msc, detrend, normalise, gain, logarithm or "
                                    "log-residual") HSI_ARGUMENT("band", "the source, from 1")
                 HSI_ARGUMENT("wavelengths",
                              "whittaker, detrend, normalise by area: of the sources, in nanometres")
                     HSI_ARGUMENT("max_gap", "nanometres between bands of a segment; 0: 2.5 median steps")
                         HSI_ARGUMENT("lambda", "whittaker: weight of the roughness")
                             HSI_ARGUMENT("order", "whittaker: of the differences, 1 to 3")
                                 HSI_ARGUMENT("degree", "detrend: of the polynomial, 0 to 5") HSI_ARGUMENT(
                                     "factor", "absorbance: makes reflectance of the values")
                                     HSI_ARGUMENT("norm", "normalise: area, max, l2 or mean") HSI_ARGUMENT(
                                         "reference", "msc: the spectrum; log-residual: mean logarithms")
                                         HSI_ARGUMENT("gain", "gain: one factor per source") HSI_ARGUMENT(
                                             "offset", "gain: added after the factor") HSI_FRAME),
         parse_transform},
        {"hsi_unmix", "abundance of an endmember, or the error of the fit",
         HSI_LIST(HSI_ARGUMENT("endmembers", "spectra with one value per source, separated by semicolons")
                      HSI_LIBRARY HSI_ARGUMENT("method", "fcls, ucls, nnls or scls") HSI_ARGUMENT(
                          "band", "the endmember, from 1; one more: the root mean square error") HSI_FRAME),
         parse_unmix},
        {"hsi_sam", "spectral angle in radians, or information divergence, to a target",
         HSI_LIST(HSI_ARGUMENT("targets", "spectra with one value per source, separated by semicolons")
                      HSI_LIBRARY HSI_ARGUMENT("method", "sam or sid")
                          HSI_ARGUMENT("band", "the target, from 1") HSI_FRAME),
         parse_sam},
        {"hsi_match", "matched filter, constrained energy or adaptive coherence, before a background",
         HSI_LIST(HSI_ARGUMENT("method", "mf, cem or ace")
                      HSI_ARGUMENT("mean", "of the background, one value per used source")
                          HSI_ARGUMENT("weights", "of each target, separated by semicolons")
                              HSI_ARGUMENT("used", "sources used, from 1; all by default")
                                  HSI_ARGUMENT("contrast", "ace: of each target")
                                      HSI_ARGUMENT("deviation", "ace: standard deviations")
                                          HSI_ARGUMENT("factor", "ace: rows of the lower inverse factor")
                                              HSI_ARGUMENT("band", "the target, from 1") HSI_FRAME),
         parse_match},
        {"hsi_spp", "the displaced band, from the original band and alpha",
         HSI_LIST(HSI_ARGUMENT("centroid", "mean of the band") HSI_FRAME), parse_spp},
        {"hsi_svm", "class or probability by a support vector machine", HSI_LIST(HSI_CLASSIFIER), parse_svm},
        {"hsi_mlr", "class or probability by a multinomial logistic regression", HSI_LIST(HSI_CLASSIFIER),
         parse_mlr},
    };
    return all;
}

const std::vector<Step>& steps() {
    static const std::vector<Step> all{
        {"HSI_PCA", HSI_STEP_LIST(HSI_MODEL HSI_ARGUMENT("components", "how many of the first components")),
         step_pca},
        {"HSI_SAD",
         HSI_STEP_LIST(HSI_SPECTRA HSI_ARGUMENT("output", "angle or class") HSI_ARGUMENT(
             "unit", "degree or radian") HSI_ARGUMENT("max_angle", "degrees; farther pixels are class 0")),
         step_sad},
        {"HSI_SVM", HSI_STEP_LIST(HSI_CLASSIFIER_STEP), step_svm},
        {"HSI_MLR", HSI_STEP_LIST(HSI_CLASSIFIER_STEP), step_mlr},
    };
    return all;
}

std::shared_ptr<const Function> Promotion::after(const Function& f, double cost) const {
    // A promotion can be used only in the process that created it.
    if (device_wish().forked) return nullptr;
    if (m_state == State::ended) return m_made;
    double done = m_done;
    while (!m_done.compare_exchange_weak(done, done + cost)) {
    }
    State idle = State::idle;
    if (done + cost < m_start_cost || !m_state.compare_exchange_strong(idle, State::starting)) return nullptr;
    try {
        auto other = std::make_shared<Function>(f);
        other->operation = m_make();
        other->device = true;
        other->promotion = nullptr;
        m_made = std::move(other);
    } catch (const Error& e) {
        CPLDebug("HSI", "%s; computing on the CPU", e.what());
    } catch (const std::exception& e) {
        CPLDebug("HSI", "%s; computing on the CPU", e.what());
    }
    m_state = State::ended;
    return m_made;
}

Function understand(const Definition& definition, const Arguments& a, int sources) {
    const int masks = a.whole("masks", 0, std::max(0, sources - 1), 0);
    const int bands = sources - masks;
    if (bands < 1) a.refuse("it has no source");
    Function f = definition.understand(a, bands);
    f.masks = masks;
    f.bands = bands;
    f.nodata.assign(static_cast<size_t>(bands), std::nullopt);
    const auto value = [&](const char* name, const std::string& text) {
        const CPLStringList one(CSLAddNameValue(nullptr, name, text.c_str()));
        return EQUAL(text.c_str(), "nan") ? std::numeric_limits<double>::quiet_NaN()
                                          : Arguments(a.function(), one.List(), {}).number(name);
    };
    if (a.has("nodata")) {
        const CPLStringList list(CSLTokenizeString2(a.text("nodata").c_str(), " ,;\t\n\r", 0));
        if (list.size() != 1 && list.size() != bands)
            a.refuse("the argument 'nodata' has " + counted(static_cast<size_t>(list.size()), "value") +
                         " for " + counted(static_cast<size_t>(bands), "source"),
                     "Give one value, or one for each source ('none' for a source without one).");
        for (int k = 0; k < bands; ++k) {
            const std::string text = list[list.size() == 1 ? 0 : k];
            if (!EQUAL(text.c_str(), "none")) f.nodata[static_cast<size_t>(k)] = value("nodata", text);
        }
    }
    if (a.has("dst_nodata"))
        f.no_value = value("dst_nodata", a.text("dst_nodata"));
    else if (f.classes)
        f.no_value = 0;
    if (a.has("dst_type")) {
        f.stored_type = GDALGetDataTypeByName(a.text("dst_type").c_str());
        if (f.stored_type == GDT_Unknown || GDALDataTypeIsComplex(f.stored_type))
            a.refuse("the argument 'dst_type' is '" + a.text("dst_type") + "'",
                     "Give the name of the band's type, for instance Byte or Int16.");
    }
    a.refuse_others();
    return f;
}

} // namespace hsi::plugin
