// SPDX-License-Identifier: MIT
// The model file: JSON that people can read, with numbers that survive the round trip.
#include "core/error.h"
#include "pca/pca.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace hsi::pca {
namespace {

using nlohmann::json;
constexpr const char* format_name = "gdal_hsi_pca model";
constexpr int format_version = 1;

/// JSON has no NaN: unknown wavelengths are null.
json with_nulls(const std::vector<double>& values) {
    json list = json::array();
    for (double v : values)
        list.push_back(std::isfinite(v) ? json(v) : json(nullptr));
    return list;
}

std::vector<double> from_nulls(const json& list) {
    std::vector<double> values;
    for (const auto& v : list)
        values.push_back(v.is_null() ? std::numeric_limits<double>::quiet_NaN() : v.get<double>());
    return values;
}

} // namespace

std::string to_json(const Model& model) {
    nlohmann::ordered_json doc;
    doc["format"] = format_name;
    doc["version"] = format_version;
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
    doc["mean"] = model.mean;
    doc["scale"] = model.scale;
    doc["loadings"] = nlohmann::ordered_json::array();
    for (int k = 0; k < model.components; ++k)
        doc["loadings"].push_back(
            std::vector<double>(model.loading(k), model.loading(k) + model.band_count()));
    // One list a line: readable, and small differences stay small.
    std::string text = "{";
    bool first = true;
    for (const auto& [key, value] : doc.items()) {
        text += (first ? "\n  " : ",\n  ") + json(key).dump() + ": ";
        first = false;
        if (key == "loadings") {
            text += "[";
            for (size_t k = 0; k < value.size(); ++k)
                text += (k ? ",\n    " : "\n    ") + value[k].dump();
            text += "\n  ]";
        } else {
            text += value.dump();
        }
    }
    return text + "\n}\n";
}

Model from_json(const std::string& text, const std::string& name) {
    const auto refuse = [&](const std::string& why) {
        throw Error(name + " is no PCA model: " + why, "Make one with gdal_hsi_pca -model FILE.");
    };
    Model m;
    try {
        const json doc = json::parse(text);
        if (!doc.is_object() || doc.value("format", std::string()) != format_name)
            refuse("it has another format");
        if (doc.at("version").get<int>() != format_version)
            refuse("its version is " + std::to_string(doc.at("version").get<int>()) +
                   ", this program knows " + std::to_string(format_version));
        m.source = doc.at("source").get<std::string>();
        m.pixels = doc.at("pixels").get<int64_t>();
        m.components = doc.at("components").get<int>();
        m.whiten = doc.at("whiten").get<bool>();
        m.eigenvalues = doc.at("eigenvalues").get<std::vector<double>>();
        m.bands = doc.at("bands").get<std::vector<int>>();
        m.wavelengths_nm = from_nulls(doc.at("wavelengths_nm"));
        m.mean = doc.at("mean").get<std::vector<double>>();
        m.scale = doc.at("scale").get<std::vector<double>>();
        for (const auto& row : doc.at("loadings")) {
            const auto values = row.get<std::vector<double>>();
            if (values.size() != m.mean.size()) refuse("a row of loadings has another length than mean");
            m.loadings.insert(m.loadings.end(), values.begin(), values.end());
        }
    } catch (const json::exception& e) {
        refuse(e.what());
    }
    const size_t n = m.mean.size();
    if (n == 0 || m.components < 1 || static_cast<size_t>(m.components) > n ||
        m.loadings.size() != static_cast<size_t>(m.components) * n || m.eigenvalues.size() != n ||
        m.bands.size() != n || (!m.scale.empty() && m.scale.size() != n) ||
        (!m.wavelengths_nm.empty() && m.wavelengths_nm.size() != n))
        refuse("its lists do not fit together");
    for (double s : m.scale)
        if (!(s > 0)) refuse("a scale is not positive");
    return m;
}

Model load_model(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Error("cannot open the model " + path, "Make one with gdal_hsi_pca -model FILE.");
    std::ostringstream text;
    text << file.rdbuf();
    return from_json(text.str(), path);
}

} // namespace hsi::pca
