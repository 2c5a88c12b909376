// SPDX-License-Identifier: MIT
#include "tool/model_values.h"

#include "model/band_match.h"
#include "tool/execute.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace hsi::tool {
namespace {

/// Returns a model's ranges in the order of the scene's bands.
stream::ValueRange range_of(const model::ModelBands& model, const std::vector<int>& matched) {
    stream::ValueRange range;
    if (model.minimum.empty()) return range; // an old model file without ranges
    range = {model.minimum, model.maximum, model.mean};
    for (size_t b = 0; b < matched.size(); ++b) {
        const auto place = static_cast<size_t>(matched[b]);
        range.minimum[place] = model.minimum[b];
        range.maximum[place] = model.maximum[b];
        if (!model.mean.empty()) range.mean[place] = model.mean[b];
    }
    return range;
}

template <class T>
Json extremes(const std::vector<T>& low, const std::vector<T>& high) {
    return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

std::string number_text(const Json& v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", v.get<double>());
    return text;
}

} // namespace

model::SceneBands scene_bands(const raster::RasterSource& scene) {
    return {scene.facts().bands.known_as, scene.facts().bands.wavelengths_nm, scene.facts().bands.known_told,
            scene.facts().bands.in_file};
}

void describe_bands(const raster::RasterSource& scene, model::ModelBands& model) {
    model.bands = scene.facts().bands.known_as;
    model.numbers_told = scene.facts().bands.known_told;
    model.file_bands = model.numbers_told ? 0 : scene.facts().bands.in_file;
    model.band_names = scene.facts().bands.names;
    model.wavelengths_nm = scene.facts().bands.wavelengths_nm;
    const auto values = value_scale(scene);
    model.value_scale = values.scale;
    model.value_offset = values.offset;
    model.value_unit = values.unit;
}

model::Origin origin_of(const Run& run) {
    return {run.tool() + " " + project_version(), run.options().destination.history};
}

void add_any_wavelengths(Builder& args, bool& any_wavelengths, const char* with) {
    args.flag("any-wavelengths", any_wavelengths,
              std::string(with) + (*with != 0 ? "match" : "Match") +
                  " bands with the model by their order, not by wavelength");
}

namespace {

/// Warns if the model's bands were found only by their order.
void note_order(Run& run, const raster::RasterSource& source, const model::ModelBands& model,
                const std::vector<int>& matched, bool any_wavelengths) {
    const auto scene = scene_bands(source);
    if (any_wavelengths || (model::all_known(model.wavelengths_nm) && model::all_known(scene.wavelengths_nm)))
        return;
    for (size_t b = 0; b < matched.size(); ++b)
        if (scene.numbers[static_cast<size_t>(matched[b])] != model.bands[b])
            return run.note("Bands: matched by their order, since the wavelengths or band numbers of scene "
                            "and model cannot be compared");
}

} // namespace

MatchedSource match_source(Run& run, const std::shared_ptr<raster::RasterSource>& source,
                           const std::string& file, const model::ModelBands& model, bool any_wavelengths,
                           model::BandsOf whose) {
    MatchedSource result{source, model::match_bands(file, model, source->path(), scene_bands(*source),
                                                    any_wavelengths, whose)};
    note_order(run, *source, model, result.matched, any_wavelengths);
    std::vector<int> sorted = result.matched;
    std::sort(sorted.begin(), sorted.end());
    result.source = only_bands(source, sorted);
    if (result.source == source) return result;
    run.note("Bands: " + std::to_string(sorted.size()) + " of " + std::to_string(source->shape().bands) +
             " are used, the bands " + (whose == model::BandsOf::model ? "of the model" : "of " + file));
    for (int& b : result.matched)
        b = static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), b) - sorted.begin());
    return result;
}

void add_any_scale(Builder& args, bool& any_scale, const char* with) {
    args.flag("any-scale", any_scale,
              std::string(with) + (*with != 0 ? "use" : "Use") +
                  " stored values without comparing scale and offset with the model");
}

model::ValueScale value_scale(const raster::RasterSource& scene, const std::vector<int>& matched) {
    const auto values = scene.facts().bands.values;
    model::ValueScale scale{values.scale, values.offset, values.unit};
    if (!values.scale.empty())
        for (size_t b = 0; b < matched.size(); ++b) {
            scale.scale[b] = values.scale[static_cast<size_t>(matched[b])];
            scale.offset[b] = values.offset[static_cast<size_t>(matched[b])];
        }
    return scale;
}

std::shared_ptr<raster::RasterSource> match_scene(Run& run,
                                                  const std::shared_ptr<raster::RasterSource>& source,
                                                  const std::string& name, const std::string& first,
                                                  const model::ModelBands& bands) {
    auto [scene, matched] = match_source(run, source, first, bands, false, model::BandsOf::scenes);
    if (!std::is_sorted(matched.begin(), matched.end())) scene = scene->with_bands(matched);
    const auto values = value_scale(*scene);
    if (!model::same_scale(bands, values))
        throw Error(name + ": its values have " + model::scale_text(values) + ", the values of " + first +
                        " have" + " " +
                        model::scale_text({bands.value_scale, bands.value_offset, bands.value_unit}),
                    "Use scenes with the same scale; set a missing scale with gdal_edit.py -scale.");
    return scene;
}

model::Rescaling compare_scales(Run& run, const std::string& file, const model::ModelBands& model,
                                const model::ValueScale& scene, bool any_scale) {
    const model::ValueScale of_model{model.value_scale, model.value_offset, model.value_unit};
    auto& report = run.report()["value_scale"];
    report = {
        {"scene", model::scale_text(scene)}, {"model", model::scale_text(of_model)}, {"converted", false}};
    if (any_scale) {
        report["compared"] = false;
        return {};
    }
    auto by = model::rescaling(file, model, scene);
    if (!by.none()) {
        report["converted"] = true;
        run.note("Values: the scene has " + model::scale_text(scene) + ", the model has " +
                 model::scale_text(of_model) + "; the values are converted");
    } else if (!scene.unit.empty() && !model.value_unit.empty() && scene.unit != model.value_unit) {
        run.warn("the scene's unit is '" + scene.unit + "', but '" + file + "' was made for '" +
                 model.value_unit + "'");
    }
    return by;
}

RangeCheck::RangeCheck(const stream::CubeSource& cube, const model::ModelBands& model,
                       const std::vector<int>& matched)
    : m_model(model), m_watch(cube, range_of(model, matched)) {}

void RangeCheck::tell(Run& run, const std::string& range) const {
    m_watch.exchange(run.ranks());
    if (m_model.minimum.empty() || m_watch.valid() == 0) return;
    const double share = static_cast<double>(m_watch.far_outside()) / static_cast<double>(m_watch.valid());
    const auto scene = extremes(m_watch.minimum(), m_watch.maximum());
    const auto training = extremes(m_model.minimum, m_model.maximum);
    run.report()["value_range"] = {{"pixels_looked_at", m_watch.valid()},
                                   {"far_outside", m_watch.far_outside()},
                                   {"far_outside_share", share},
                                   {"scene", scene},
                                   {"training", training}};
    if (share < 0.01) return;
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.*f %%", share < 0.1 ? 1 : 0, 100 * share);
    run.warn(std::string(percent) + " of the pixels are far outside the range that " + range +
             " (band values " + number_text(scene[0]) + ".." + number_text(scene[1]) + ", training " +
             number_text(training[0]) + ".." + number_text(training[1]) +
             "): check that the scale is the same");
}

} // namespace hsi::tool
