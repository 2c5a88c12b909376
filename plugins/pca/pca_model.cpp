// SPDX-License-Identifier: MIT
// The model file: JSON that people can read, with numbers that survive the round trip.
#include "core/error.h"
#include "core/json.h"
#include "core/text_file.h"
#include "model/document.h"
#include "pca/pca.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace hsi::pca {
namespace {

constexpr const char* format_name = "gdal_hsi_pca";
constexpr const char* former_name = "gdal_hsi_pca model"; ///< of files of version 0.1
constexpr int format_version = 1;
constexpr size_t largest_model = 65536; ///< bands: GDAL's own ceiling

/// JSON has no NaN: unknown wavelengths are null.
Json with_nulls(const std::vector<double>& values) {
    Json list = Json::array();
    for (double v : values)
        list.push_back(std::isfinite(v) ? Json(v) : Json(nullptr));
    return list;
}

using model::Reader;

/// The largest value that a variance or a squared deviation of floats can have, with room for many bands.
constexpr double greatest_variance = 1e80;
constexpr double tolerance = 1e-6;

std::string entry(const char* list, size_t index) {
    return "entry " + std::to_string(index + 1) + " of '" + list + "'";
}

void read_eigenvalues(const Reader& in, const Json& root, Model& m) {
    m.eigenvalues = in.numbers(in.member(root, "eigenvalues"), "eigenvalues", m.bands.size());
    const double largest = m.eigenvalues.front();
    for (size_t k = 0; k < m.eigenvalues.size(); ++k) {
        const double v = m.eigenvalues[k];
        if (std::fabs(v) > greatest_variance) in.fail(entry("eigenvalues", k) + " is out of range");
        // Variances of zero come out of the solver with an error of either sign.
        if (v < -tolerance * std::fabs(largest)) in.fail(entry("eigenvalues", k) + " is negative");
        if (k > 0 && v > m.eigenvalues[k - 1] + tolerance * std::fabs(largest))
            in.fail(entry("eigenvalues", k) + " is larger than the one before it");
    }
    if (largest < 0) in.fail(entry("eigenvalues", 0) + " is negative");
}

/// Rows must be orthonormal: projections and their inverse take it for granted.
void check_loadings(const Reader& in, const Model& m) {
    const size_t n = m.mean.size(), rows = static_cast<size_t>(m.components);
    const auto product = [&](size_t a, size_t b) {
        double sum = 0;
        for (size_t i = 0; i < n; ++i)
            sum += m.loadings[a * n + i] * m.loadings[b * n + i];
        return sum;
    };
    for (size_t k = 0; k < rows; ++k)
        if (!(std::fabs(product(k, k) - 1) <= tolerance))
            in.fail("row " + std::to_string(k + 1) + " of 'loadings' has not the length 1");
    // L L' x = x for a vector without structure, before each pair is looked at: thousands of bands have
    // millions.
    std::vector<double> x(rows), y(n, 0.0);
    double seed = 0.5;
    for (size_t k = 0; k < rows; ++k) {
        seed = 3.99 * seed * (1 - seed); // the logistic map
        x[k] = seed + 0.01;
        for (size_t i = 0; i < n; ++i)
            y[i] += m.loadings[k * n + i] * x[k];
    }
    for (size_t k = 0; k < rows; ++k) {
        double z = 0;
        for (size_t i = 0; i < n; ++i)
            z += m.loadings[k * n + i] * y[i];
        if (std::fabs(z - x[k]) <= tolerance) continue;
        for (size_t other = 0; other < rows; ++other)
            if (other != k && std::fabs(product(k, other)) > tolerance / static_cast<double>(rows))
                in.fail("rows " + std::to_string(std::min(k, other) + 1) + " and " +
                        std::to_string(std::max(k, other) + 1) + " of 'loadings' are not orthogonal");
        in.fail("the rows of 'loadings' are not orthogonal");
    }
}

} // namespace

std::string to_json(const Model& model) {
    OrderedJson doc;
    doc["format"] = format_name;
    doc["version"] = format_version;
    doc["created_by"] = model.origin.created_by;
    doc["history"] = model.origin.history;
    doc["source"] = model.source;
    doc["pixels"] = model.pixels;
    doc["components"] = model.components;
    doc["whiten"] = model.whiten;
    doc["eigenvalues"] = model.eigenvalues;
    std::vector<double> explained;
    for (int k = 0; k < model.components; ++k)
        explained.push_back(model.explained(k));
    doc["explained_variance_ratio"] = explained;
    doc["bands"] = model.bands;
    doc["wavelengths_nm"] = with_nulls(model.wavelengths_nm);
    if (const auto values = model::values_text(model); !values.empty()) doc["values"] = Json::parse(values);
    if (!model.minimum.empty()) {
        doc["minimum"] = model.minimum;
        doc["maximum"] = model.maximum;
    }
    doc["mean"] = model.mean;
    doc["scale"] = model.scale;
    doc["loadings"] = OrderedJson::array();
    for (int k = 0; k < model.components; ++k)
        doc["loadings"].push_back(
            std::vector<double>(model.loading(k), model.loading(k) + model.band_count()));
    // One list a line: readable, and small differences stay small.
    std::string text = "{";
    bool first = true;
    for (const auto& [key, value] : doc.items()) {
        text += (first ? "\n  " : ",\n  ") + Json(key).dump() + ": ";
        first = false;
        if (key == "loadings") {
            text += "[";
            for (size_t k = 0; k < value.size(); ++k)
                text += (k ? ",\n    " : "\n    ") + value[k].dump();
            text += "\n  ]";
        } else {
            text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
        }
    }
    return text + "\n}\n";
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "PCA", "gdal_hsi_pca -model");
    const Json root = in.parse(text, format_name, format_version, former_name);
    Model m;
    in.member(root, "mean");
    in.member(root, "wavelengths_nm");
    static_cast<model::ModelBands&>(m) = in.bands(root);
    const size_t n = m.bands.size();
    if (n > largest_model) in.fail("it has too many bands");
    m.origin = in.origin(root);
    m.source = in.text(root, "source");
    m.pixels = in.whole(in.member(root, "pixels"), "pixels", 1, int64_t{1} << 53);
    m.components =
        static_cast<int>(in.whole(in.member(root, "components"), "components", 1, static_cast<int64_t>(n)));
    const Json& whiten = in.member(root, "whiten");
    if (!whiten.is_boolean()) in.fail("'whiten' is neither true nor false");
    m.whiten = whiten.get<bool>();
    if (const Json& scale = in.list(root, "scale"); !scale.empty()) {
        m.scale = in.numbers(scale, "scale", n);
        for (size_t b = 0; b < n; ++b) {
            if (!(m.scale[b] > 0)) in.fail(entry("scale", b) + " is not above 0");
            if (m.scale[b] * m.scale[b] > greatest_variance) in.fail(entry("scale", b) + " is out of range");
        }
    }
    read_eigenvalues(in, root, m);
    const Json& loadings = in.member(root, "loadings");
    in.expect(loadings, "loadings", static_cast<size_t>(m.components));
    for (const auto& row : loadings) {
        const auto values = in.numbers(row, "loadings", n);
        m.loadings.insert(m.loadings.end(), values.begin(), values.end());
    }
    check_loadings(in, m);
    return m;
}

void rescale(Model& m, const model::Rescaling& by, const model::ValueScale& scene) {
    if (by.none()) return;
    model::rescale(m, by, scene);
    if (m.scale.empty()) m.scale.assign(m.mean.size(), 1.0);
    for (size_t b = 0; b < m.scale.size(); ++b)
        m.scale[b] /= by.factor[b];
}

Model load_model(const std::string& path) {
    return from_json(read_text_file(path, model::largest_file), path);
}

} // namespace hsi::pca
