// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "core/text_file.h"
#include "svm/svm.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace hsi::svm {
namespace {

using Json = nlohmann::json;

constexpr const char* format_name = "gdal_hsi_svm";
constexpr int format_version = 1;
constexpr uint64_t largest_file = uint64_t{4} << 30;

template <class T>
std::string shortest(T v) {
    if (v == 0) return std::signbit(v) ? "-0.0" : "0"; // "-0" would come back as the whole number 0
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    return std::string(text, end);
}

template <class T>
std::string row(const T* v, size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) {
        if (i) text += ',';
        // Wavelengths may be unknown; JSON has no NaN.
        text += std::isfinite(v[i]) ? shortest(v[i]) : std::string("null");
    }
    return text + "]";
}

std::string row(const std::vector<double>& v) { return row(v.data(), v.size()); }

std::string quoted(const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Reads with complaints that name the place.
class Reader {
  public:
    explicit Reader(std::string name) : m_name(std::move(name)) {}

    [[noreturn]] void fail(const std::string& what) const {
        throw Error("'" + m_name + "' is no usable SVM model: " + what,
                    "Models are made by gdal_hsi_svm_train; this file may be damaged.");
    }

    const Json& member(const Json& object, const char* key) const {
        if (!object.is_object()) fail(std::string("an object with '") + key + "' is missing");
        const auto it = object.find(key);
        if (it == object.end()) fail(std::string("'") + key + "' is missing");
        return *it;
    }
    const Json& list(const Json& object, const char* key) const {
        const Json& v = member(object, key);
        if (!v.is_array()) fail(std::string("'") + key + "' is no list");
        return v;
    }
    double number(const Json& v, const char* what) const {
        if (!v.is_number()) fail(std::string("'") + what + "' holds something that is no number");
        const double x = v.get<double>();
        if (!std::isfinite(x)) fail(std::string("'") + what + "' is not finite");
        return x;
    }
    int64_t whole(const Json& v, const char* what, int64_t least, int64_t most) const {
        const double x = number(v, what);
        if (x != std::floor(x) || x < static_cast<double>(least) || x > static_cast<double>(most))
            fail(std::string("'") + what + "' is not a whole number from " + std::to_string(least) + " to " +
                 std::to_string(most));
        return static_cast<int64_t>(x);
    }
    std::string text(const Json& object, const char* key) const {
        if (!object.is_object() || !object.contains(key)) return {};
        const Json& v = object[key];
        if (!v.is_string()) fail(std::string("'") + key + "' is no text");
        return v.get<std::string>();
    }
    std::vector<double> numbers(const Json& v, const char* what, size_t count) const {
        if (!v.is_array()) fail(std::string("'") + what + "' is no list");
        if (v.size() != count)
            fail(std::string("'") + what + "' has " + std::to_string(v.size()) + " entries instead of " +
                 std::to_string(count));
        std::vector<double> all;
        all.reserve(count);
        for (const auto& x : v)
            all.push_back(number(x, what));
        return all;
    }

  private:
    std::string m_name;
};

void read_features(const Reader& in, const Json& root, Model& m) {
    const Json& features = in.member(root, "features");
    const size_t n = in.list(features, "minimum").size();
    if (n == 0 || n > 1000000) in.fail("it has no features, or too many");
    m.minimum = in.numbers(features["minimum"], "minimum", n);
    m.maximum = in.numbers(in.member(features, "maximum"), "maximum", n);
    for (size_t f = 0; f < n; ++f)
        if (m.maximum[f] < m.minimum[f])
            in.fail("the minimum of feature " + std::to_string(f + 1) + " is above its maximum");
    const Json& bands = in.list(features, "bands");
    if (bands.size() != n) in.fail("'bands' and 'minimum' differ in length");
    for (const auto& b : bands)
        m.bands.push_back(static_cast<int>(in.whole(b, "bands", 1, 1000000)));
    if (features.contains("names")) {
        const Json& names = in.list(features, "names");
        if (names.size() != n) in.fail("'names' and 'minimum' differ in length");
        for (const auto& name : names) {
            if (!name.is_string()) in.fail("'names' holds something that is no text");
            m.band_names.push_back(name.get<std::string>());
        }
    }
    if (features.contains("wavelengths_nm")) {
        const Json& list = in.list(features, "wavelengths_nm");
        if (list.size() != n) in.fail("'wavelengths_nm' and 'minimum' differ in length");
        for (const auto& w : list)
            m.wavelengths_nm.push_back(w.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                   : in.number(w, "wavelengths_nm"));
    }
}

void read_classes(const Reader& in, const Json& root, Model& m) {
    const Json& classes = in.list(root, "classes");
    if (classes.size() < 2 || classes.size() > 65535) in.fail("it has fewer than two classes, or too many");
    for (const auto& one : classes) {
        ModelClass c;
        c.value = static_cast<int>(in.whole(in.member(one, "value"), "value", 1, 65535));
        if (!m.classes.empty() && c.value <= m.classes.back().value)
            in.fail("its classes are not in order of their values");
        c.name = in.text(one, "name");
        if (one.contains("samples")) c.samples = in.whole(one["samples"], "samples", 0, int64_t{1} << 50);
        if (one.contains("weight")) c.weight = in.number(one["weight"], "weight");
        if (one.contains("colour")) {
            const Json& colour = in.list(one, "colour");
            if (colour.size() != 4) in.fail("a colour is not four numbers");
            c.colour.emplace();
            for (size_t k = 0; k < 4; ++k)
                (*c.colour)[k] = static_cast<uint8_t>(in.whole(colour[k], "colour", 0, 255));
        }
        m.classes.push_back(std::move(c));
    }
}

void read_machine(const Reader& in, const Json& root, Model& m) {
    const Json& machine = in.member(root, "svm");
    if (in.text(machine, "type") != "c_svc" || in.text(machine, "kernel") != "rbf")
        in.fail("it is no C-SVC with an RBF kernel");
    m.c = in.number(in.member(machine, "C"), "C");
    m.gamma = in.number(in.member(machine, "gamma"), "gamma");
    if (!(m.gamma > 0) || !(m.c > 0)) in.fail("C and gamma must be above 0");
    const size_t k = m.classes.size(), n = m.minimum.size(), pairs = k * (k - 1) / 2;
    const Json& counts = in.list(machine, "support_count");
    if (counts.size() != k) in.fail("'support_count' and 'classes' differ in length");
    int64_t total = 0;
    for (const auto& c : counts) {
        m.support_count.push_back(static_cast<int>(in.whole(c, "support_count", 0, 1 << 30)));
        total += m.support_count.back();
    }
    const Json& vectors = in.list(machine, "support_vectors");
    if (total == 0 || vectors.size() != static_cast<size_t>(total))
        in.fail("'support_vectors' has " + std::to_string(vectors.size()) + " entries instead of " +
                std::to_string(total));
    for (const auto& v : vectors)
        for (const double x : in.numbers(v, "support_vectors", n)) {
            if (std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()))
                in.fail("a support vector is out of range");
            m.support_vectors.push_back(static_cast<float>(x));
        }
    const Json& coefficients = in.list(machine, "coefficients");
    if (coefficients.size() != k - 1) in.fail("'coefficients' has not one list a class but the first");
    for (const auto& list : coefficients) {
        const auto values = in.numbers(list, "coefficients", static_cast<size_t>(total));
        m.coefficients.insert(m.coefficients.end(), values.begin(), values.end());
    }
    m.rho = in.numbers(in.member(machine, "rho"), "rho", pairs);
    if (machine.contains("probability_a") || machine.contains("probability_b")) {
        m.prob_a = in.numbers(in.member(machine, "probability_a"), "probability_a", pairs);
        m.prob_b = in.numbers(in.member(machine, "probability_b"), "probability_b", pairs);
    }
}

} // namespace

double Model::factor(int feature) const {
    const auto f = static_cast<size_t>(feature);
    const double width = maximum[f] - minimum[f];
    return width > 0 ? 1.0 / width : 0.0;
}

std::string to_json(const Model& m) {
    const auto n = static_cast<size_t>(m.features()), vectors = static_cast<size_t>(m.vector_count());
    std::string t = "{\n\"format\": \"" + std::string(format_name) +
                    "\",\n\"version\": " + std::to_string(format_version) + ",\n";
    t += "\"created_by\": " + quoted(m.created_by) + ",\n\"history\": " + quoted(m.history) + ",\n";
    t += "\"training\": " +
         Json{{"scene", m.trained_on},
              {"labels", m.labels},
              {"folds", m.folds},
              {"cv_accuracy", m.cv_accuracy},
              {"seed", m.seed}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         ",\n";
    t += "\"classes\": [\n";
    for (size_t i = 0; i < m.classes.size(); ++i) {
        const ModelClass& c = m.classes[i];
        Json one{{"value", c.value}, {"name", c.name}, {"samples", c.samples}, {"weight", c.weight}};
        if (c.colour) one["colour"] = *c.colour;
        t += "  " + one.dump(-1, ' ', false, Json::error_handler_t::replace) +
             (i + 1 < m.classes.size() ? ",\n" : "\n");
    }
    t += "],\n\"features\": {\n  \"bands\": " + Json(m.bands).dump() + ",\n";
    if (!m.band_names.empty())
        t +=
            "  \"names\": " + Json(m.band_names).dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
    if (!m.wavelengths_nm.empty()) t += "  \"wavelengths_nm\": " + row(m.wavelengths_nm) + ",\n";
    t += "  \"minimum\": " + row(m.minimum) + ",\n  \"maximum\": " + row(m.maximum) + "\n},\n";
    t += "\"svm\": {\n  \"type\": \"c_svc\",\n  \"kernel\": \"rbf\",\n  \"C\": " + shortest(m.c) +
         ",\n  \"gamma\": " + shortest(m.gamma) + ",\n  \"support_count\": " + Json(m.support_count).dump() +
         ",\n  \"rho\": " + row(m.rho) + ",\n";
    if (m.has_probabilities())
        t += "  \"probability_a\": " + row(m.prob_a) + ",\n  \"probability_b\": " + row(m.prob_b) + ",\n";
    t += "  \"coefficients\": [\n";
    for (size_t i = 0; i + 1 < m.classes.size(); ++i) {
        t += "    " + row(m.coefficients.data() + i * vectors, vectors);
        t += i + 2 < m.classes.size() ? ",\n" : "\n";
    }
    t += "  ],\n  \"support_vectors\": [\n";
    for (size_t v = 0; v < vectors; ++v) {
        t += "    " + row(m.support_vectors.data() + v * n, n);
        t += v + 1 < vectors ? ",\n" : "\n";
    }
    return t + "  ]\n}\n}\n";
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name);
    const Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) in.fail("it is not valid JSON");
    if (!root.is_object() || in.text(root, "format") != format_name) in.fail("it is not marked as one");
    if (const auto version = in.whole(in.member(root, "version"), "version", 1, 1 << 30);
        version != format_version)
        in.fail("its version is " + std::to_string(version) + ", this program reads version " +
                std::to_string(format_version));
    Model m;
    read_features(in, root, m);
    read_classes(in, root, m);
    read_machine(in, root, m);
    m.created_by = in.text(root, "created_by");
    m.history = in.text(root, "history");
    if (root.contains("training")) {
        const Json& training = root["training"];
        m.trained_on = in.text(training, "scene");
        m.labels = in.text(training, "labels");
        if (training.is_object()) {
            if (training.contains("folds"))
                m.folds = static_cast<int>(in.whole(training["folds"], "folds", 0, 1 << 30));
            if (training.contains("cv_accuracy"))
                m.cv_accuracy = in.number(training["cv_accuracy"], "cv_accuracy");
            if (training.contains("seed")) {
                if (!training["seed"].is_number_integer()) in.fail("'seed' is no whole number");
                m.seed = training["seed"].get<uint64_t>();
            }
        }
    }
    return m;
}

Model read_model(const std::string& path) { return from_json(read_text_file(path, largest_file), path); }

std::string to_libsvm(const Model& m) {
    const auto n = static_cast<size_t>(m.features()), vectors = static_cast<size_t>(m.vector_count());
    std::string t = "svm_type c_svc\nkernel_type rbf\ngamma " + shortest(m.gamma) + "\nnr_class " +
                    std::to_string(m.classes.size()) + "\ntotal_sv " + std::to_string(vectors) + "\n";
    const auto line = [&](const char* key, const std::vector<double>& values) {
        t += key;
        for (const double v : values)
            t.append(" ").append(shortest(v));
        t += "\n";
    };
    line("rho", m.rho);
    t += "label";
    for (const auto& c : m.classes)
        t.append(" ").append(std::to_string(c.value));
    t += "\n";
    if (m.has_probabilities()) {
        line("probA", m.prob_a);
        line("probB", m.prob_b);
    }
    t += "nr_sv";
    for (const int c : m.support_count)
        t.append(" ").append(std::to_string(c));
    t += "\nSV\n";
    for (size_t v = 0; v < vectors; ++v) {
        for (size_t i = 0; i + 1 < m.classes.size(); ++i)
            t.append(shortest(m.coefficients[i * vectors + v])).append(" ");
        for (size_t f = 0; f < n; ++f)
            if (const float x = m.support_vectors[v * n + f]; x != 0.0f)
                t.append(std::to_string(f + 1))
                    .append(":")
                    .append(shortest(static_cast<double>(x)))
                    .append(" ");
        t += "\n";
    }
    return t;
}

} // namespace hsi::svm
