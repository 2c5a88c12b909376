// SPDX-License-Identifier: MIT
#include "tool/classification.h"

#include "core/error.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace hsi::tool {
namespace {

void check_type(const std::string& type, const std::vector<raster::LabelClass>& classes) {
    const int most = type == "Byte"    ? 255
                     : type == "Int8"  ? 127
                     : type == "Int16" ? 32767
                                       : raster::max_class;
    for (const auto& c : classes)
        if (c.value > most)
            throw UsageError("-ot " + type + ": it holds class numbers up to " + std::to_string(most) +
                                 ", and there is class " + class_text(c.value, c.name),
                             "Leave -ot out: the type follows the classes.");
}

} // namespace

std::string class_text(int value, const std::string& name) {
    std::string text = std::to_string(value);
    if (!name.empty()) text.append(" ").append(name);
    return text;
}

void add_label_options(Call& call, raster::LabelOptions& labels) {
    call.option("field", labels.field, "Field of vector labels that holds the classes: numbers or names")
        .shown_as("NAME");
    call.option("name-field", labels.name_field,
                "Field of vector labels with the classes' names, beside numbers")
        .shown_as("NAME");
    call.option("layer", labels.layer, "Layer of vector labels that holds them").shown_as("NAME");
    call.flag("all-touched", labels.all_touched,
              "Burn every pixel that a polygon touches, not only those whose centre it covers");
}

std::shared_ptr<raster::RasterSource> matching_source(Run& run, const std::string& file,
                                                      const model::ModelBands& model, bool any_wavelengths) {
    auto source = run.open_source();
    if (run.options().source.bands.empty() && source->bands() != model.bands) {
        const auto& have = source->bands();
        std::vector<int> superfluous;
        size_t found = 0;
        for (size_t i = 0; i < have.size(); ++i) {
            if (found < model.bands.size() && have[i] == model.bands[found])
                ++found;
            else
                superfluous.push_back(static_cast<int>(i));
        }
        if (found == model.bands.size() && !superfluous.empty()) {
            run.note("Bands: " + std::to_string(found) + " of " + std::to_string(have.size()) +
                     ", those that the model was made for");
            source = source->without_bands(superfluous);
        }
    }
    const size_t bands = static_cast<size_t>(source->shape().bands);
    if (bands != model.bands.size())
        throw Error("'" + file + "' was made for " + std::to_string(model.bands.size()) + " bands, " +
                        source->path() + " gives " + std::to_string(bands),
                    "Choose the bands that it was trained on with -b.");
    const auto have = source->wavelengths_nm();
    if (!any_wavelengths && !have.empty() && !model.wavelengths_nm.empty())
        for (size_t i = 0; i < have.size(); ++i)
            if (std::fabs(have[i] - model.wavelengths_nm[i]) > 2.0) { // NaN: unknown, not compared
                char text[160];
                std::snprintf(text, sizeof text, "band %d is at %.1f nm, the model's feature %zu at %.1f nm",
                              source->bands()[i], have[i], i + 1, model.wavelengths_nm[i]);
                throw Error("'" + file + "' was made for other bands: " + text,
                            "Choose the bands with -b, or give -any-wavelengths to classify nevertheless.");
            }
    return source;
}

raster::OutputSet plan_classification(const Run& run, const raster::RasterSource& source,
                                      const std::vector<raster::LabelClass>& classes,
                                      const std::string& probabilities, const std::string& confidence,
                                      const std::map<std::string, std::string>& metadata) {
    raster::OutputSet outputs;
    const auto shape = source.shape();
    raster::OutputOptions map = run.options().destination;
    raster::OutputSpec labels;
    labels.shape = {shape.samples, shape.lines, 1};
    raster::describe_class_map(classes, map, labels);
    check_type(map.type, classes);
    labels.bands = {{"class", {}}};
    for (const auto& [key, value] : metadata)
        labels.metadata[key] = value;
    outputs.plan(map, labels);
    const auto further = [&](const std::string& role, const std::string& path,
                             std::vector<raster::BandSpec> bands) {
        if (path.empty()) return;
        raster::OutputSpec spec;
        spec.shape = {shape.samples, shape.lines, static_cast<int>(bands.size())};
        spec.bands = std::move(bands);
        spec.holes = true;
        spec.metadata = labels.metadata;
        outputs.plan(run.side_output(role, path), std::move(spec));
    };
    std::vector<raster::BandSpec> names;
    for (const auto& c : classes) {
        std::string name = "P(" + (c.name.empty() ? "class " + std::to_string(c.value) : c.name) + ")";
        names.push_back({std::move(name), {{"class", std::to_string(c.value)}}});
    }
    further("-probabilities", probabilities, std::move(names));
    further("-confidence", confidence, {{"confidence", {}}});
    outputs.check();
    return outputs;
}

} // namespace hsi::tool
