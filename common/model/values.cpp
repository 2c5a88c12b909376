// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "model/classes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hsi::model {
namespace {

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

std::string range_text(const char* what, const std::vector<double>& values) {
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    if (*least == *greatest) return std::string(what) + " " + number(*least);
    return std::string(what) + "s from " + number(*least) + " to " + number(*greatest);
}

/// Texts of scales are rounded, and some formats keep them in single precision.
bool same(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

} // namespace

std::string scale_text(const ValueScale& values) {
    if (values.scale.empty()) return "no scale";
    std::string text = range_text("scale", values.scale);
    if (std::any_of(values.offset.begin(), values.offset.end(), [](double v) { return v != 0; }))
        text += ", " + range_text("offset", values.offset);
    return values.unit.empty() ? text : text + " " + values.unit;
}

Rescaling rescaling(const std::string& file, const ModelBands& model, const ValueScale& scene) {
    Rescaling by;
    if (model.value_scale.empty() || scene.scale.empty()) return by;
    bool equal = true;
    for (size_t b = 0; b < model.value_scale.size(); ++b) {
        by.factor.push_back(scene.scale[b] / model.value_scale[b]);
        by.shift.push_back((scene.offset[b] - model.value_offset[b]) / model.value_scale[b]);
        equal &= same(scene.scale[b], model.value_scale[b]) && same(scene.offset[b], model.value_offset[b]);
    }
    if (equal) return {};
    const auto refuse = [&](const std::string& why) {
        throw Error(
            "'" + file + "' was made for values with " +
                scale_text({model.value_scale, model.value_offset, model.value_unit}) +
                ", the scene's have " + scale_text(scene) + why,
            "Give the scene the scale that its numbers have (gdal_edit.py -scale), or -any-scale to take the "
            "numbers as they are.");
    };
    if (!model.value_unit.empty() && !scene.unit.empty() && model.value_unit != scene.unit)
        refuse(": different units are not converted");
    for (size_t b = 0; b < by.factor.size(); ++b)
        if (!(by.factor[b] > 0) || !std::isfinite(by.factor[b]) || !std::isfinite(by.shift[b]))
            refuse(": no factor above 0 leads from one to the other");
    return by;
}

void rescale(ModelBands& model, const Rescaling& by, const ValueScale& scene) {
    if (by.none()) return;
    for (auto* values : {&model.minimum, &model.maximum, &model.mean})
        for (size_t b = 0; b < values->size(); ++b)
            (*values)[b] = ((*values)[b] - by.shift[b]) / by.factor[b];
    model.value_scale = scene.scale;
    model.value_offset = scene.offset;
}

} // namespace hsi::model
