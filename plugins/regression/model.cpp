// SPDX-License-Identifier: MIT
// The model file: reading, checks and writing.
#include "core/error.h"
#include "model/document.h"
#include "regression/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::regression {
namespace {

using model::number_text;
using model::Reader;
using model::row;

constexpr const char* format_name = "gdal_hsi_regression";
constexpr int format_version = 1;
constexpr size_t most_samples = 10000, most_members = 10000, most_components = 20;
constexpr double most_nm = 1e9;

std::string rows_text(const std::vector<double>& rows, size_t length) {
    std::string t = "[\n";
    for (size_t at = 0; at < rows.size(); at += length)
        t += (at > 0 ? ",\n    " : "    ") + row(rows.data() + at, length);
    return t + "\n  ]";
}

/// Returns the values of a list of rows, each with `length` numbers.
std::vector<double> rows_of(const Reader& in, const Json& object, const char* key, size_t length,
                            size_t most) {
    const Json& list = in.list(object, key);
    if (list.empty() || list.size() > most)
        in.fail(std::string("'") + key + "' does not have 1 to " + std::to_string(most) + " rows");
    std::vector<double> all;
    for (const Json& one : list) {
        const auto numbers = in.numbers(one, key, length);
        all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
}

std::vector<double> positive_numbers(const Reader& in, const Json& object, const char* key, size_t count) {
    auto all = in.numbers(in.member(object, key), key, count);
    if (!std::all_of(all.begin(), all.end(), [](double v) { return v > 0; }))
        in.fail(std::string("'") + key + "' has a number that is not above 0");
    return all;
}

double at_least_zero(const Reader& in, const Json& object, const char* key) {
    const double v = in.number(in.member(object, key), key);
    if (v < 0) in.fail(std::string("'") + key + "' is below 0");
    return v;
}

std::string domain_text(const Domain& d) {
    return "\"domain\": {\n  \"mean\": " + row(d.standard.centre) +
           ",\n  \"spread\": " + row(d.standard.spread) + ",\n  \"variances\": " + row(d.variances) +
           ",\n  \"components\": " + rows_text(d.components, d.standard.centre.size()) +
           ",\n  \"t2_limit\": " + number_text(d.t2_limit) + ",\n  \"q_limit\": " + number_text(d.q_limit) +
           "\n},\n";
}

Domain domain_of(const Reader& in, const Json& object, size_t bands) {
    Domain d;
    d.standard.centre = in.numbers(in.member(object, "mean"), "mean", bands);
    d.standard.spread = positive_numbers(in, object, "spread", bands);
    d.components = rows_of(in, object, "components", bands, most_components);
    d.variances = positive_numbers(in, object, "variances", d.components.size() / bands);
    d.t2_limit = at_least_zero(in, object, "t2_limit");
    d.q_limit = at_least_zero(in, object, "q_limit");
    return d;
}

std::string kernel_text(const Model& m) {
    const Kernel& k = m.kernel;
    const bool gp = m.method == Method::gp;
    std::string t =
        gp ? "\"gp\": {\n  \"length\": " + number_text(k.length) + ",\n  \"noise\": " + number_text(k.noise) +
                 ",\n  \"variance\": " + number_text(k.variance)
           : "\"svr\": {\n  \"C\": " + number_text(k.c) + ",\n  \"gamma\": " + number_text(k.gamma) +
                 ",\n  \"epsilon\": " + number_text(k.epsilon) + ",\n  \"rho\": " + number_text(k.rho);
    return t + ",\n  \"value_mean\": " + number_text(k.value_mean) +
           ",\n  \"value_spread\": " + number_text(k.value_spread) +
           ",\n  \"centre\": " + row(k.standard.centre) + ",\n  \"spread\": " + row(k.standard.spread) +
           ",\n  \"weights\": " + row(k.weights) +
           ",\n  \"samples\": " + rows_text(k.samples, k.standard.centre.size()) + "\n}\n";
}

Kernel kernel_of(const Reader& in, const Json& object, Method method, size_t bands) {
    Kernel k;
    if (method == Method::gp) {
        k.length = in.positive(object, "length");
        k.noise = in.positive(object, "noise");
        k.variance = in.positive(object, "variance");
    } else {
        k.c = in.positive(object, "C");
        k.gamma = in.positive(object, "gamma");
        k.epsilon = at_least_zero(in, object, "epsilon");
        k.rho = in.number(in.member(object, "rho"), "rho");
    }
    k.value_mean = in.number(in.member(object, "value_mean"), "value_mean");
    k.value_spread = in.positive(object, "value_spread");
    k.standard.centre = in.numbers(in.member(object, "centre"), "centre", bands);
    k.standard.spread = positive_numbers(in, object, "spread", bands);
    k.samples = rows_of(in, object, "samples", bands, most_samples);
    k.weights = in.numbers(in.member(object, "weights"), "weights", k.samples.size() / bands);
    return k;
}

void read_training(const Reader& in, const Json& root, Model& m) {
    if (root.contains("training")) {
        const Json& t = root["training"];
        m.trained_on = in.text(t, "scene");
        m.labels = in.text(t, "labels");
        constexpr int64_t most = int64_t{1} << 50;
        m.samples = in.whole(in.member(t, "samples"), "samples", 0, most);
        m.groups = in.whole(in.member(t, "groups"), "groups", 0, most);
        m.folds = static_cast<int>(in.whole(in.member(t, "folds"), "folds", 0, 1 << 30));
        if (!in.member(t, "seed").is_number_unsigned()) in.fail("'seed' is not a whole number");
        m.seed = t["seed"].get<uint64_t>();
    }
    if (!root.contains("metrics") || root["metrics"].is_null()) return;
    const Json& q = root["metrics"];
    m.metrics = Metrics{};
    m.metrics->n = in.whole(in.member(q, "n"), "n", 0, int64_t{1} << 50);
    for (const auto& [key, value] : metric_names)
        (*m.metrics).*value =
            in.member(q, key).is_null() ? std::numeric_limits<double>::quiet_NaN() : in.number(q[key], key);
}

Transform transform_of(const Reader& in, const Json& words, const char* log_word,
                       const std::vector<double>& wavelengths_nm, size_t bands) {
    std::vector<Step> steps;
    for (const Json& word : words) {
        if (!word.is_string()) in.fail("'transform' has an entry that is not a text");
        const auto text = word.get<std::string>();
        try {
            steps.push_back(text == log_word ? Step{Step::Kind::log, 0} : parse_step(text, "'transform'"));
        } catch (const UsageError& e) {
            in.fail(e.what());
        }
    }
    try {
        return {std::move(steps), wavelengths_nm, bands};
    } catch (const Error& e) {
        in.fail(e.what());
    }
}

/// Reads a trait model of HyTools, or of a program that uses the same format.
Model from_hytools(const Reader& in, const Json& root) {
    Model m;
    const Json& model = in.member(root, "model");
    const std::string type = in.text(root.contains("type") ? root : model, "type");
    if (type != "plsr") in.fail("its type is '" + type + "' instead of 'plsr'");
    const Json& waves = in.list(root, "wavelengths");
    if (waves.empty() || waves.size() > 65536) in.fail("'wavelengths' does not have 1 to 65536 entries");
    m.wavelengths_nm = in.numbers(waves, "wavelengths", waves.size());
    const std::string units = in.text(root, "wavelength_units");
    const double nm = units.rfind("micro", 0) == 0 || units == "um" ? 1000 : 1;
    if (root.contains("fwhm")) m.fwhm_nm = in.numbers(root["fwhm"], "fwhm", waves.size());
    for (auto* list : {&m.wavelengths_nm, &m.fwhm_nm})
        for (double& v : *list)
            v = std::clamp(v * nm, 0.0, most_nm);
    for (size_t b = 1; b <= waves.size(); ++b)
        m.bands.push_back(static_cast<int>(b));
    m.transform = transform_of(in, model.contains("transform") ? in.list(model, "transform") : Json::array(),
                               "absorb", m.wavelengths_nm, waves.size());
    m.linear.coefficients = rows_of(in, model, "coefficients", waves.size(), most_members);
    m.linear.intercepts =
        in.numbers(in.member(model, "intercepts"), "intercepts", m.linear.coefficients.size() / waves.size());
    if (model.contains("components") && model["components"].is_number_integer())
        m.linear.components = static_cast<int>(in.whole(model["components"], "components", 0, 65536));
    m.name = in.text(root, "name");
    m.unit = in.text(root, root.contains("units") ? "units" : "unit");
    const Json& range = in.member(root, "model_diagnostics");
    m.lowest = in.number(in.member(range, "min"), "min");
    m.highest = in.number(in.member(range, "max"), "max");
    return m;
}

bool is_of_hytools(const std::string& text) {
    const Json root = Json::parse(text, nullptr, false);
    return root.is_object() && root.contains("model_diagnostics") && !root.contains("format");
}

} // namespace

Json to_json(const Metrics& m) {
    Json all{{"n", m.n}};
    for (const auto& [key, value] : metric_names)
        all[key] = m.*value;
    return all;
}

std::string to_json(const Model& m) {
    Json steps = Json::array();
    for (const Step& step : m.transform.steps())
        steps.push_back(text_of(step));
    std::string t = "{\n" + model::head_text(format_name, format_version, m.origin) + "\"method\": \"" +
                    name_of(m.method) + "\",\n\"training\": " +
                    model::dump(Json{{"scene", m.trained_on},
                                     {"labels", m.labels},
                                     {"samples", m.samples},
                                     {"groups", m.groups},
                                     {"folds", m.folds},
                                     {"seed", m.seed}}) +
                    ",\n\"metrics\": " + model::dump(m.metrics ? to_json(*m.metrics) : Json()) +
                    ",\n\"features\": {\n" + model::bands_text(m);
    if (!m.fwhm_nm.empty()) t += ",\n  \"fwhm_nm\": " + row(m.fwhm_nm);
    t += "\n},\n\"transform\": " + model::dump(steps) +
         ",\n\"values\": {\"name\": " + model::dump(Json(m.name)) + ", \"lowest\": " + number_text(m.lowest) +
         ", \"highest\": " + number_text(m.highest) + ", \"unit\": " + model::dump(Json(m.unit)) + "},\n";
    if (m.domain) t += domain_text(*m.domain);
    if (!m.is_linear()) return model::with_checksum(t + kernel_text(m) + "}\n");
    t += "\"linear\": {\n  " +
         (m.method == Method::plsr ? "\"components\": " + std::to_string(m.linear.components)
                                   : "\"lambda\": " + number_text(m.linear.lambda)) +
         ",\n  \"coefficients\": " + rows_text(m.linear.coefficients, m.transform.outputs()) +
         ",\n  \"intercepts\": " + row(m.linear.intercepts) + "\n}\n}\n";
    return model::with_checksum(t);
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "regression", "gdal_hsi_regression_train");
    if (is_of_hytools(text)) return from_hytools(in, Json::parse(text));
    const Json root = in.parse(text, format_name, format_version);
    Model m;
    const std::string method = in.text(root, "method");
    const auto* const found = std::find_if(std::begin(method_names), std::end(method_names),
                                           [&](const auto& one) { return method == one.first; });
    if (found == std::end(method_names)) in.fail("there is no method '" + method + "'");
    m.method = found->second;
    const Json& features = in.member(root, "features");
    static_cast<model::ModelBands&>(m) = in.bands(features);
    const size_t bands = m.bands.size();
    if (features.contains("fwhm_nm")) {
        in.expect(features["fwhm_nm"], "fwhm_nm", bands);
        for (const Json& one : features["fwhm_nm"])
            m.fwhm_nm.push_back(one.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                              : std::clamp(in.number(one, "fwhm_nm"), 0.0, most_nm));
    }
    m.transform = transform_of(in, in.list(root, "transform"), "log", m.wavelengths_nm, bands);
    const Json& values = in.member(root, "values");
    m.name = in.text(values, "name");
    m.unit = in.text(values, "unit");
    m.lowest = in.number(in.member(values, "lowest"), "lowest");
    m.highest = in.number(in.member(values, "highest"), "highest");
    const size_t outputs = m.transform.outputs();
    if (root.contains("domain")) m.domain = domain_of(in, root["domain"], outputs);
    if (m.is_linear()) {
        const Json& linear = in.member(root, "linear");
        if (m.method == Method::plsr)
            m.linear.components =
                static_cast<int>(in.whole(in.member(linear, "components"), "components", 0, 65536));
        else
            m.linear.lambda = in.positive(linear, "lambda");
        m.linear.coefficients = rows_of(in, linear, "coefficients", outputs, most_members);
        m.linear.intercepts =
            in.numbers(in.member(linear, "intercepts"), "intercepts", m.linear.coefficients.size() / outputs);
    } else {
        m.kernel = kernel_of(in, in.member(root, method.c_str()), m.method, outputs);
    }
    read_training(in, root, m);
    m.origin = in.origin(root);
    in.check_sum(root);
    return m;
}

std::string to_hytools(const Model& m) {
    Json steps = Json::array();
    for (const Step& step : m.transform.steps())
        steps.push_back(step.kind == Step::Kind::log ? "absorb" : text_of(step));
    const size_t bands = m.transform.outputs();
    Json fwhm = Json::array();
    for (const double w : math::full_widths({m.wavelengths_nm, m.fwhm_nm}))
        fwhm.push_back(w);
    Json diagnostics{{"min", m.lowest}, {"max", m.highest}};
    if (m.metrics) diagnostics["rmse"] = m.metrics->rmse;
    return "{\n\"name\": " + model::dump(Json(m.name)) + ",\n\"units\": " + model::dump(Json(m.unit)) +
           ",\n\"type\": \"plsr\",\n\"wavelength_units\": \"nanometers\",\n\"wavelengths\": " +
           row(m.wavelengths_nm) + ",\n\"fwhm\": " + model::dump(fwhm) +
           ",\n\"model\": {\n  \"components\": " + std::to_string(m.linear.components) +
           ",\n  \"transform\": " + model::dump(steps) +
           ",\n  \"coefficients\": " + rows_text(m.linear.coefficients, bands) +
           ",\n  \"intercepts\": " + row(m.linear.intercepts) +
           "\n},\n\"model_diagnostics\": " + model::dump(diagnostics) + "\n}\n";
}

} // namespace hsi::regression
