// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "core/text_file.h"
#include "sahic/sahic.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace hsi::sahic {
namespace {

using Json = nlohmann::json;

constexpr const char* format_name = "gdal_hsi_mlr";
constexpr int format_version = 1;
constexpr uint64_t largest_file = uint64_t{4} << 30;

template <class T>
void append(std::string& text, T v) {
    if (!std::isfinite(v)) { // unknown wavelengths; JSON has no NaN
        text += "null";
    } else if (v == 0) {
        text += std::signbit(v) ? "-0.0" : "0"; // "-0" would come back as the whole number 0
    } else {
        char digits[64];
        text.append(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
    }
}

template <class T>
std::string row(const T* v, size_t count) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) {
        if (i) text += ',';
        append(text, v[i]);
    }
    return text + "]";
}

std::string number_text(double v) {
    std::string text;
    append(text, v);
    return text;
}

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Reads with complaints that name the place.
class Reader {
  public:
    explicit Reader(std::string name) : m_name(std::move(name)) {}

    [[noreturn]] void fail(const std::string& what) const {
        throw Error("'" + m_name + "' is no usable MLR model: " + what,
                    "Models are made by gdal_hsi_sahic -model; this file may be damaged.");
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
    double positive(const Json& object, const char* key) const {
        const double x = number(member(object, key), key);
        if (!(x > 0)) fail(std::string("'") + key + "' is not above 0");
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
    void expect(const Json& v, const char* what, size_t count) const {
        if (!v.is_array()) fail(std::string("'") + what + "' is no list");
        if (v.size() != count)
            fail(std::string("'") + what + "' has " + std::to_string(v.size()) + " entries instead of " +
                 std::to_string(count));
    }

  private:
    std::string m_name;
};

void read_features(const Reader& in, const Json& root, MlrModel& m) {
    const Json& features = in.member(root, "features");
    const Json& bands = in.list(features, "bands");
    const size_t n = bands.size();
    if (n == 0 || n > 1000000) in.fail("it has no features, or too many");
    for (const auto& b : bands)
        m.bands.push_back(static_cast<int>(in.whole(b, "bands", 1, 1000000)));
    if (features.contains("names")) {
        in.expect(features["names"], "names", n);
        for (const auto& name : features["names"]) {
            if (!name.is_string()) in.fail("'names' holds something that is no text");
            m.band_names.push_back(name.get<std::string>());
        }
    }
    if (features.contains("wavelengths_nm")) {
        in.expect(features["wavelengths_nm"], "wavelengths_nm", n);
        for (const auto& w : features["wavelengths_nm"])
            m.wavelengths_nm.push_back(w.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                   : in.number(w, "wavelengths_nm"));
    }
    m.scale = in.positive(features, "scale");
}

void read_classes(const Reader& in, const Json& root, MlrModel& m) {
    const Json& classes = in.list(root, "classes");
    if (classes.size() < 2 || classes.size() > 65535) in.fail("it has fewer than two classes, or too many");
    for (const auto& one : classes) {
        ModelClass c;
        c.value = static_cast<int>(in.whole(in.member(one, "value"), "value", 1, 65535));
        if (!m.classes.empty() && c.value <= m.classes.back().value)
            in.fail("its classes are not in order of their values");
        c.name = in.text(one, "name");
        if (one.contains("samples")) c.samples = in.whole(one["samples"], "samples", 0, int64_t{1} << 50);
        if (one.contains("colour")) {
            in.expect(one["colour"], "colour", 4);
            c.colour.emplace();
            for (size_t k = 0; k < 4; ++k)
                (*c.colour)[k] = static_cast<uint8_t>(in.whole(one["colour"][k], "colour", 0, 255));
        }
        m.classes.push_back(std::move(c));
    }
}

void read_regressors(const Reader& in, const Json& root, MlrModel& m) {
    const Json& mlr = in.member(root, "mlr");
    if (in.text(mlr, "kernel") != "rbf") in.fail("its kernel is no RBF");
    m.delta = in.positive(mlr, "delta");
    m.spread = in.positive(mlr, "spread");
    if (!std::isfinite(m.gamma())) in.fail("'delta' and 'spread' are too small");
    const Json& anchors = in.list(mlr, "anchors");
    const size_t n = m.bands.size(), count = anchors.size();
    if (count > (size_t{1} << 30)) in.fail("it has too many anchors");
    for (const auto& a : anchors) {
        in.expect(a, "anchors", n);
        for (const auto& v : a) {
            const double x = in.number(v, "anchors");
            if (std::fabs(x) > static_cast<double>(std::numeric_limits<float>::max()))
                in.fail("an anchor is out of range");
            m.anchors.push_back(static_cast<float>(x));
        }
    }
    const Json& weights = in.list(mlr, "weights");
    in.expect(weights, "weights", m.classes.size() - 1);
    for (const auto& list : weights) {
        in.expect(list, "weights", count + 1);
        for (const auto& v : list)
            m.weights.push_back(in.number(v, "weights"));
    }
}

} // namespace

int64_t MlrModel::active_weights() const {
    return std::count_if(weights.begin(), weights.end(), [](double w) { return w != 0; });
}

std::string to_json(const MlrModel& m) {
    const size_t n = m.bands.size(), anchors = static_cast<size_t>(m.anchor_count());
    std::string t = "{\n\"format\": \"" + std::string(format_name) +
                    "\",\n\"version\": " + std::to_string(format_version) + ",\n";
    t += "\"created_by\": " + dump(m.created_by) + ",\n\"history\": " + dump(m.history) + ",\n";
    t += "\"training\": " +
         dump(Json{{"scene", m.trained_on},
                   {"labels", m.labels},
                   {"pixels", m.training_pixels},
                   {"solver", m.solver},
                   {"iterations", m.iterations},
                   {"lambda_c", m.lambda_c},
                   {"beta", m.beta},
                   {"objective", m.objective},
                   {"gap", m.gap}}) +
         ",\n\"classes\": [\n";
    for (size_t i = 0; i < m.classes.size(); ++i) {
        const ModelClass& c = m.classes[i];
        Json one{{"value", c.value}, {"name", c.name}, {"samples", c.samples}};
        if (c.colour) one["colour"] = *c.colour;
        t += "  " + dump(one) + (i + 1 < m.classes.size() ? ",\n" : "\n");
    }
    t += "],\n\"features\": {\n  \"bands\": " + Json(m.bands).dump() + ",\n";
    if (!m.band_names.empty()) t += "  \"names\": " + dump(m.band_names) + ",\n";
    if (!m.wavelengths_nm.empty())
        t += "  \"wavelengths_nm\": " + row(m.wavelengths_nm.data(), m.wavelengths_nm.size()) + ",\n";
    t += "  \"scale\": " + number_text(m.scale) +
         "\n},\n\"mlr\": {\n  \"kernel\": \"rbf\",\n  \"delta\": " + number_text(m.delta) +
         ",\n  \"spread\": " + number_text(m.spread) + ",\n  \"weights\": [\n";
    for (size_t k = 0; k + 1 < m.classes.size(); ++k) {
        t += "    " + row(m.weights.data() + k * (anchors + 1), anchors + 1);
        t += k + 2 < m.classes.size() ? ",\n" : "\n";
    }
    t += "  ],\n  \"anchors\": [\n";
    for (size_t a = 0; a < anchors; ++a) {
        t += "    " + row(m.anchors.data() + a * n, n);
        t += a + 1 < anchors ? ",\n" : "\n";
    }
    return t + "  ]\n}\n}\n";
}

MlrModel from_json(const std::string& text, const std::string& name) {
    const Reader in(name);
    const Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) in.fail("it is not valid JSON");
    if (!root.is_object() || in.text(root, "format") != format_name) in.fail("it is not marked as one");
    if (const auto version = in.whole(in.member(root, "version"), "version", 1, 1 << 30);
        version != format_version)
        in.fail("its version is " + std::to_string(version) + ", this program reads version " +
                std::to_string(format_version));
    MlrModel m;
    read_features(in, root, m);
    read_classes(in, root, m);
    read_regressors(in, root, m);
    m.created_by = in.text(root, "created_by");
    m.history = in.text(root, "history");
    if (root.contains("training") && root["training"].is_object()) {
        const Json& training = root["training"];
        m.trained_on = in.text(training, "scene");
        m.labels = in.text(training, "labels");
        m.solver = in.text(training, "solver");
        const auto number = [&](const char* key) {
            return training.contains(key) ? in.number(training[key], key) : 0.0;
        };
        if (training.contains("pixels"))
            m.training_pixels = in.whole(training["pixels"], "pixels", 0, int64_t{1} << 50);
        if (training.contains("iterations"))
            m.iterations = static_cast<int>(in.whole(training["iterations"], "iterations", 0, 1 << 30));
        m.lambda_c = number("lambda_c");
        m.beta = number("beta");
        m.objective = number("objective");
        m.gap = number("gap");
    }
    return m;
}

MlrModel read_model(const std::string& path) { return from_json(read_text_file(path, largest_file), path); }

} // namespace hsi::sahic
