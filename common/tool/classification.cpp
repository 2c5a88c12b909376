// SPDX-License-Identifier: MIT
#include "tool/classification.h"

#include "core/error.h"
#include "tool/model_values.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace hsi::tool {
void report_notes(Run& run, const raster::LabelSource& labels) {
    for (const auto& note : labels.notes())
        run.warn(note);
    if (!labels.coordinates_note().empty()) run.note(labels.coordinates_note());
}

std::string class_text(int value, const std::string& name) {
    std::string text = std::to_string(value);
    if (!name.empty()) text.append(" ").append(name);
    return text;
}

void add_label_pixels(Builder& args, raster::LabelOptions& labels, const char* min_cover) {
    args.option("layer", labels.layer, "Layer of the vector labels").shown_as("NAME");
    args.flag("all-touched", labels.all_touched,
              "Label all pixels that a polygon touches, not only those whose centre it covers");
    args.flag("inside-only", labels.inside_only, "Label only pixels that are completely inside a polygon");
    args.option("min-cover", labels.min_cover, min_cover)
        .between(0, 1)
        .above(0)
        .shown_as("SHARE")
        .defaults_to("the centre decides");
    args.exclusive("all-touched", "inside-only");
    args.exclusive("all-touched", "min-cover");
    args.exclusive("inside-only", "min-cover");
    args.flag("pixel-coordinates", labels.pixel_coordinates,
              "Coordinates of vector labels are samples and lines, counted from the upper left corner "
              "of the scene");
}

void add_label_options(Builder& args, raster::LabelOptions& labels) {
    args.option("field", labels.field, "Field of vector labels with the classes: numbers or names")
        .shown_as("NAME");
    args.option("name-field", labels.name_field,
                "Field of vector labels with the names of the classes, if -field has numbers")
        .shown_as("NAME");
    add_label_pixels(
        args, labels,
        "Label only pixels that polygons of one class cover by at least this share, such as 0.7");
    args.choice("zero", labels.zero, "Meaning of 0 in labels",
                {{"auto", raster::ZeroMeans::what_is_plain,
                  "a class if features have it or the raster names it, else no label"},
                 {"class", raster::ZeroMeans::a_class, "a class"},
                 {"none", raster::ZeroMeans::no_label, "no label"}});
    args.option("leave-out", labels.leave_out,
                "Classes whose labels are ignored, by number or name: 5 or 5,Soil")
        .shown_as("CLASSES");
}

void refuse_label_pixels(const Call& call, const std::string& why, const std::string& advice) {
    for (const char* name : {"layer", "all-touched", "inside-only", "min-cover", "pixel-coordinates"})
        if (call.given(name)) throw UsageError("-" + std::string(name) + " " + why, advice);
}

void refuse_label_options(const Call& call, const std::string& advice) {
    const char* const why = "applies to labels, but no labels are given";
    refuse_label_pixels(call, why, advice);
    for (const char* name : {"field", "name-field", "zero", "leave-out"})
        if (call.given(name)) throw UsageError("-" + std::string(name) + " " + why, advice);
}

std::shared_ptr<raster::RasterSource> matching_source(Run& run, const std::string& file,
                                                      const model::ModelBands& model, bool any_wavelengths) {
    const auto found = match_source(run, run.open_source(), file, model, any_wavelengths);
    if (std::is_sorted(found.matched.begin(), found.matched.end())) return found.source;
    run.note("Bands: sorted into the order of the model's bands");
    return found.source->with_bands(found.matched);
}

namespace {

/// Returns the item "class" of every band. Returns an empty list if a band lacks the item, or if two bands
/// have the same item.
std::vector<int> class_items(const raster::RasterSource& source) {
    std::vector<int> numbers;
    for (const std::string& text : source.band_items("class")) {
        if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos)
            return {};
        const int number = std::stoi(text);
        if (number > raster::max_class || std::count(numbers.begin(), numbers.end(), number) > 0) return {};
        numbers.push_back(number);
    }
    return numbers;
}

/// Returns the class in a band name: "P(corn)" is a probability of corn.
std::string without_wrapping(const std::string& band) {
    const bool wrapped = band.size() > 3 && band.compare(0, 2, "P(") == 0 && band.back() == ')';
    return wrapped ? band.substr(2, band.size() - 3) : band;
}

} // namespace

std::vector<raster::LabelClass> probability_classes(const raster::RasterSource& source) {
    if (source.shape().bands > raster::max_class)
        throw Error(source.path() + ": " + std::to_string(source.shape().bands) + " bands, but at most " +
                        std::to_string(raster::max_class) + " classes are possible",
                    "Choose fewer bands with -b.");
    std::vector<raster::LabelClass> classes;
    for (const auto& name : source.facts().bands.names)
        classes.push_back({static_cast<int>(classes.size()) + 1, without_wrapping(name)});
    if (classes.size() == 1) {
        classes.push_back({2, "other"});
        return classes;
    }
    const auto numbers = class_items(source);
    for (size_t c = 0; c < numbers.size(); ++c)
        classes[c].value = numbers[c];
    return classes;
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
    outputs.check(source);
    return outputs;
}

} // namespace hsi::tool
