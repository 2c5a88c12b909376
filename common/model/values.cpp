// SPDX-License-Identifier: MIT
// The scale and unit of the values that a model was trained with, and the rescaling of a model to the values
// of a scene.
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

/// Compares approximately, because texts of scales are rounded, and some formats store scales in single
/// precision.
bool same(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b)); }

bool one_factor(const ValueScale& values) {
    return std::all_of(values.scale.begin(), values.scale.end(),
                       [&](double v) { return same(v, values.scale.front()); }) &&
           std::all_of(values.offset.begin(), values.offset.end(), [](double v) { return v == 0; });
}

} // namespace

std::string scale_text(const ValueScale& values) {
    if (values.scale.empty()) return values.unit.empty() ? "no scale" : "no scale, in " + values.unit;
    std::string text = range_text("scale", values.scale);
    if (std::any_of(values.offset.begin(), values.offset.end(), [](double v) { return v != 0; }))
        text += ", " + range_text("offset", values.offset);
    return values.unit.empty() ? text : text + " " + values.unit;
}

Rescaling rescaling(const std::string& file, const ModelBands& model, const ValueScale& scene) {
    Rescaling by;
    if (scene.scale.empty()) return by;
    std::vector<double> scale = model.value_scale, offset = model.value_offset;
    if (scale.empty()) {
        // It is unknown whether the model has one factor for all bands. Bands with different factors cannot
        // be compared with any model without conversion.
        if (one_factor(scene)) return by;
        scale.assign(scene.scale.size(), 1);
        offset.assign(scene.scale.size(), 0);
    }
    bool equal = true;
    for (size_t b = 0; b < scale.size(); ++b) {
        by.factor.push_back(scene.scale[b] / scale[b]);
        by.shift.push_back((scene.offset[b] - offset[b]) / scale[b]);
        equal &= same(scene.scale[b], scale[b]) && same(scene.offset[b], offset[b]);
    }
    if (equal) return {};
    const auto refuse = [&](const std::string& why) {
        throw Error("'" + file + "' was made for values with " +
                        scale_text({model.value_scale, model.value_offset, model.value_unit}) +
                        ", but the scene has values with " + scale_text(scene) + why,
                    "Set the scene's scale (gdal_edit.py -scale), or use -any-scale to use the stored values "
                    "unchanged.");
    };
    if (!model.value_unit.empty() && !scene.unit.empty() && model.value_unit != scene.unit)
        refuse(": different units are not converted");
    for (size_t b = 0; b < by.factor.size(); ++b)
        if (!(by.factor[b] > 0) || !std::isfinite(by.factor[b]) || !std::isfinite(by.shift[b]))
            refuse(": the factor between them is not above 0");
    return by;
}

bool same_scale(const ModelBands& model, const ValueScale& scene) {
    if (!model.value_unit.empty() && !scene.unit.empty() && model.value_unit != scene.unit) return false;
    const auto all_same = [](const std::vector<double>& a, const std::vector<double>& b, double unsaid) {
        for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
            if (!same(i < a.size() ? a[i] : unsaid, i < b.size() ? b[i] : unsaid)) return false;
        return true;
    };
    return all_same(model.value_scale, scene.scale, 1) && all_same(model.value_offset, scene.offset, 0);
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
