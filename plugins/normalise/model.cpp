// SPDX-License-Identifier: MIT
// The model file: reading, writing and merging.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "model/band_match.h"
#include "model/document.h"
#include "normalise/normalise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace hsi::normalise {
namespace {

using hsi::model::dump;
using hsi::model::number_text;
using hsi::model::Reader;
using hsi::model::row;

constexpr const char* format_name = "gdal_hsi_normalise";
constexpr int format_version = 1;
/// Times the number of bins (bin_edges()), this is within 64 bits.
constexpr int64_t most_pixels = int64_t{1} << 48;
constexpr double most_zenith = 90;

// Writing
// ----------------------------------------------------------------------------------------------------------

/// Returns `list` as a JSON list with one line of text per item.
std::string lines_text(const std::vector<std::string>& list) {
    std::string text = "[";
    for (size_t i = 0; i < list.size(); ++i)
        text += (i > 0 ? ",\n  " : "\n  ") + list[i];
    return text + "]";
}

std::string bin_text(const Bin& bin) {
    std::string text =
        "{\"from\": " + number_text(bin.from / 100.0) + ", \"to\": " + number_text(bin.to / 100.0) +
        ", \"pixels\": " + std::to_string(bin.pixels) + ", \"used\": " + (bin.used ? "true" : "false");
    if (bin.used)
        text += ",\n   \"coefficients\": {\"volume\": " + row(bin.volume) +
                ",\n    \"geometric\": " + row(bin.geometric) +
                ",\n    \"isotropic\": " + row(bin.isotropic) + "},\n   \"rmse\": " + row(bin.rmse);
    return text + "}";
}

std::string brdf_text(const Model& m) {
    std::string text = "\"brdf\": {\"method\": \"" + std::string(name_of(m.method.brdf)) + "\"";
    if (m.method.brdf == Brdf::none) return text + "}";
    std::vector<std::string> bins;
    for (const Bin& bin : m.bins)
        bins.push_back(bin_text(bin));
    text += ", \"volume\": \"" + std::string(name_of(m.method.volume)) + "\", \"geometric\": \"" +
            name_of(m.method.geometric) + "\", \"b_r\": " + number_text(m.method.b_r) +
            ", \"h_b\": " + number_text(m.method.h_b) + ", \"solar_zenith\": " + number_text(m.solar_zenith) +
            ", \"solar_zenith_given\": " + (m.binning.solar_zenith ? "true" : "false") +
            ", \"minimum_pixels\": " + std::to_string(m.binning.min_pixels);
    if (m.binning.edges.empty())
        text += ", \"wanted_bins\": " + std::to_string(m.binning.bins);
    else
        text += ", \"edges\": " + dump(Json(m.binning.edges));
    return text + ",\n  \"bins\": " + lines_text(bins) + "}";
}

std::string grid_text(const SceneGrid& grid) {
    if (grid.samples == 0) return "";
    std::string text =
        ", \"size\": [" + std::to_string(grid.samples) + "," + std::to_string(grid.lines) + "]";
    if (grid.geotransform) text += ", \"geotransform\": " + row(grid.geotransform->data(), 6);
    return text;
}

std::string scene_text(const SceneRecord& scene, const Method& method) {
    std::string text = "{\"name\": " + dump(Json(scene.name)) +
                       ", \"pixels\": " + std::to_string(scene.pixels) + grid_text(scene.grid) +
                       ", \"topography\": {\"pixels\": " + std::to_string(scene.terrain.pixels) +
                       ",\n   \"slope\": " + row(scene.terrain.slope) +
                       ",\n   \"intercept\": " + row(scene.terrain.intercept) + "},\n   \"sums\": ";
    std::vector<std::string> cells;
    for (size_t k = 0; k < scene.sums.count.size(); ++k)
        if (scene.sums.count[k] > 0)
            cells.push_back("[" + std::to_string(method.ndvi_min + static_cast<int>(k) + 1) + "," +
                            std::to_string(scene.sums.count[k]) + "," + row(scene.sums.sums[k]) + "]");
    return text + lines_text(cells) + "}";
}

// Reading
// ----------------------------------------------------------------------------------------------------------

template <class T>
T named(const Reader& in, const Json& object, const char* key, int last) {
    const std::string text = in.text(object, key);
    for (int v = 0; v <= last; ++v)
        if (text == name_of(static_cast<T>(v))) return static_cast<T>(v);
    in.fail(std::string("unknown ") + key + " '" + text + "'");
}

int hundredths(const Reader& in, const Json& object, const char* key) {
    const double v = in.number(in.member(object, key), key) * 100;
    if (!(std::fabs(v) <= 100)) in.fail(std::string("'") + key + "' is out of range (-1 to 1)");
    return static_cast<int>(std::lround(v));
}

double between(const Reader& in, const Json& object, const char* key, double least, double most) {
    const double v = in.number(in.member(object, key), key);
    if (!(v >= least && v <= most)) in.fail(std::string("'") + key + "' is out of range");
    return v;
}

bool truth(const Reader& in, const Json& object, const char* key) {
    if (!in.member(object, key).is_boolean()) in.fail(std::string("'") + key + "' is not true or false");
    return object[key].get<bool>();
}

Bin bin_of(const Reader& in, const Json& object, size_t bands, const Method& method) {
    Bin bin;
    bin.from = hundredths(in, object, "from");
    bin.to = hundredths(in, object, "to");
    if (bin.from >= bin.to || bin.from < method.ndvi_min || bin.to > method.ndvi_max)
        in.fail("a bin is not within the range of NDVI");
    bin.pixels = in.whole(in.member(object, "pixels"), "pixels", 0, most_pixels);
    bin.used = truth(in, object, "used");
    if (!bin.used) return bin;
    const Json& c = in.member(object, "coefficients");
    bin.volume = in.numbers(in.member(c, "volume"), "volume", bands);
    bin.geometric = in.numbers(in.member(c, "geometric"), "geometric", bands);
    bin.isotropic = in.numbers(in.member(c, "isotropic"), "isotropic", bands);
    bin.rmse = in.numbers(in.member(object, "rmse"), "rmse", bands);
    return bin;
}

void read_brdf(const Reader& in, const Json& brdf, Model& m) {
    m.method.brdf = named<Brdf>(in, brdf, "method", 2);
    if (m.method.brdf == Brdf::none) return;
    constexpr double least_crown = 0.1, most_crown = 10;
    m.method.volume = named<Volume>(in, brdf, "volume", 1);
    m.method.geometric = named<Geometric>(in, brdf, "geometric", 3);
    m.method.b_r = between(in, brdf, "b_r", least_crown, most_crown);
    m.method.h_b = between(in, brdf, "h_b", least_crown, most_crown);
    m.solar_zenith = between(in, brdf, "solar_zenith", 0, most_zenith);
    if (truth(in, brdf, "solar_zenith_given")) m.binning.solar_zenith = m.solar_zenith;
    m.binning.min_pixels = in.whole(in.member(brdf, "minimum_pixels"), "minimum_pixels", 1, most_pixels);
    if (brdf.contains("edges")) {
        const Json& edges = in.list(brdf, "edges");
        for (const Json& edge : edges)
            m.binning.edges.push_back(
                static_cast<int>(in.whole(edge, "edges", m.method.ndvi_min, m.method.ndvi_max)));
        if (edges.size() < 2 || !std::is_sorted(m.binning.edges.begin(), m.binning.edges.end(),
                                                [](int a, int b) { return a <= b; }))
            in.fail("'edges' is not in ascending order");
    } else {
        m.binning.bins = static_cast<int>(in.whole(in.member(brdf, "wanted_bins"), "wanted_bins", 1, 200));
    }
    for (const Json& bin : in.list(brdf, "bins"))
        m.bins.push_back(bin_of(in, bin, m.bands.size(), m.method));
    const auto falls = [](const Bin& a, const Bin& b) { return b.from < a.to; };
    if (std::adjacent_find(m.bins.begin(), m.bins.end(), falls) != m.bins.end())
        in.fail("'bins' overlap, or are not in ascending order");
    if (std::none_of(m.bins.begin(), m.bins.end(), [](const Bin& b) { return b.used; }))
        in.fail("no bin is used");
}

Terrain terrain_of(const Reader& in, const Json& object, size_t bands) {
    Terrain t;
    t.pixels = in.whole(in.member(object, "pixels"), "pixels", 0, most_pixels);
    const size_t count = in.list(object, "slope").empty() ? 0 : bands;
    t.slope = in.numbers(in.member(object, "slope"), "slope", count);
    t.intercept = in.numbers(in.member(object, "intercept"), "intercept", count);
    for (size_t b = 0; b < count; ++b)
        if (t.slope[b] < 0 || t.intercept[b] < 0) in.fail("a slope or an intercept is below 0");
    return t;
}

SceneGrid grid_of(const Reader& in, const Json& scene) {
    SceneGrid grid;
    if (!scene.contains("size")) return grid;
    in.expect(scene["size"], "size", 2);
    constexpr int64_t most = int64_t{1} << 31;
    grid.samples = in.whole(scene["size"][0], "size", 1, most);
    grid.lines = in.whole(scene["size"][1], "size", 1, most);
    if (!scene.contains("geotransform")) return grid;
    const auto numbers = in.numbers(scene["geotransform"], "geotransform", 6);
    std::copy(numbers.begin(), numbers.end(), grid.geotransform.emplace().begin());
    return grid;
}

SceneRecord scene_of(const Reader& in, const Json& object, size_t bands, const Method& method) {
    SceneRecord scene;
    scene.name = in.text(object, "name");
    scene.pixels = in.whole(in.member(object, "pixels"), "pixels", 0, most_pixels);
    scene.grid = grid_of(in, object);
    scene.terrain = terrain_of(in, in.member(object, "topography"), bands);
    scene.sums.count.resize(static_cast<size_t>(method.cells()));
    scene.sums.sums.resize(scene.sums.count.size());
    for (const Json& cell : in.list(object, "sums")) {
        in.expect(cell, "sums", 3);
        const auto k = static_cast<size_t>(in.whole(cell[0], "sums", method.ndvi_min + 1, method.ndvi_max) -
                                           method.ndvi_min - 1);
        if (!scene.sums.sums[k].empty()) in.fail("'sums' has a cell twice");
        scene.sums.count[k] = in.whole(cell[1], "sums", 1, most_pixels);
        scene.sums.sums[k] = in.numbers(cell[2], "sums", CellSums::width(bands));
    }
    return scene;
}

} // namespace

std::string to_json(const Model& m) {
    std::vector<std::string> scenes;
    for (const SceneRecord& scene : m.scenes)
        scenes.push_back(scene_text(scene, m.method));
    return hsi::model::with_checksum(
        "{\n" + hsi::model::head_text(format_name, format_version, {m.created_by, ""}) + "\"features\": {\n" +
        hsi::model::bands_text(m) + "},\n\"ndvi\": {\"minimum\": " + number_text(m.method.ndvi_min / 100.0) +
        ", \"maximum\": " + number_text(m.method.ndvi_max / 100.0) + "},\n\"topography\": {\"method\": \"" +
        name_of(m.method.topography) + "\", \"minimum_slope\": " + number_text(m.method.min_slope) +
        ", \"minimum_cosine\": " + number_text(m.method.min_cos_i) + "},\n" + brdf_text(m) +
        ",\n\"scenes\": " + lines_text(scenes) + "\n}\n");
}

Model from_json(const std::string& text, const std::string& name) {
    const Reader in(name, "normalisation", "gdal_hsi_normalise");
    const Json root = in.parse(text, format_name, format_version);
    Model m;
    static_cast<hsi::model::ModelBands&>(m) = in.bands(in.member(root, "features"));
    const Json& ndvi = in.member(root, "ndvi");
    m.method.ndvi_min = hundredths(in, ndvi, "minimum");
    m.method.ndvi_max = hundredths(in, ndvi, "maximum");
    if (m.method.ndvi_min >= m.method.ndvi_max) in.fail("its range of NDVI is empty");
    const Json& topography = in.member(root, "topography");
    constexpr double steepest = 90;
    m.method.topography = named<Topography>(in, topography, "method", 6);
    m.method.min_slope = between(in, topography, "minimum_slope", 0, steepest);
    m.method.min_cos_i = between(in, topography, "minimum_cosine", 0, 1);
    read_brdf(in, in.member(root, "brdf"), m);
    int64_t pixels = 0;
    for (const Json& object : in.list(root, "scenes")) {
        SceneRecord scene = scene_of(in, object, m.bands.size(), m.method);
        if (!m.scenes.empty() && scene.name <= m.scenes.back().name)
            in.fail("'scenes' has '" + scene.name + "' twice, or not in the order of names");
        for (const int64_t count : scene.sums.count)
            if ((pixels += count) > most_pixels) in.fail("its scenes have too many pixels");
        m.scenes.push_back(std::move(scene));
    }
    m.created_by = in.origin(root).created_by;
    in.check_sum(root);
    return m;
}

// Many scenes
// ----------------------------------------------------------------------------------------------------------

double pixels_apart(const std::array<double, 6>& first, const std::array<double, 6>& second, int64_t samples,
                    int64_t lines) {
    const double area = first[1] * first[5] - first[2] * first[4];
    double most = 0;
    for (const double x : {0.0, static_cast<double>(samples)})
        for (const double y : {0.0, static_cast<double>(lines)}) {
            const auto apart = [&](size_t k) {
                return second[k] - first[k] + (second[k + 1] - first[k + 1]) * x +
                       (second[k + 2] - first[k + 2]) * y;
            };
            const double east = apart(0), north = apart(3);
            if (east == 0 && north == 0) continue;
            most = std::max(most, std::hypot((east * first[5] - north * first[2]) / area,
                                             (north * first[1] - east * first[4]) / area));
        }
    return most;
}

bool SceneGrid::same(const SceneGrid& o) const {
    if (samples == 0 || o.samples == 0) return true;
    if (samples != o.samples || lines != o.lines) return false;
    constexpr double most = 0.5;
    return !geotransform || !o.geotransform ||
           pixels_apart(*geotransform, *o.geotransform, samples, lines) <= most;
}

std::optional<double> SceneRecord::level() const {
    std::vector<double> means;
    for (const auto& cell : sums.sums) {
        if (cell.empty()) continue;
        means.resize((cell.size() - CellSums::shared) / CellSums::per_band);
        for (size_t b = 0; b < means.size(); ++b)
            means[b] += cell[CellSums::shared + b * CellSums::per_band];
    }
    if (means.empty()) return std::nullopt;
    const auto middle = means.begin() + static_cast<ptrdiff_t>(means.size() / 2);
    std::nth_element(means.begin(), middle, means.end());
    if (!(*middle > 0)) return std::nullopt;
    return *middle / static_cast<double>(sums.pixels());
}

std::vector<std::string> other_options(const Method& a, const Method& b) {
    const std::pair<const char*, bool> all[] = {
        {"topography", a.topography == b.topography},
        {"brdf", a.brdf == b.brdf},
        {"volume", a.volume == b.volume},
        {"geometric", a.geometric == b.geometric},
        {"b-r", a.b_r == b.b_r},
        {"h-b", a.h_b == b.h_b},
        {"ndvi", a.ndvi_min == b.ndvi_min && a.ndvi_max == b.ndvi_max},
        {"min-slope", a.min_slope == b.min_slope},
        {"min-cos-i", a.min_cos_i == b.min_cos_i}};
    std::vector<std::string> differ;
    for (const auto& [name, same] : all)
        if (!same) differ.emplace_back(name);
    return differ;
}

namespace {

/// Returns the names of differing settings that only affect what is computed from the sums.
std::vector<std::string> other_options(const Binning& a, const Binning& b) {
    std::vector<std::string> differ;
    if (a.edges != b.edges || (a.edges.empty() && a.bins != b.bins)) differ.emplace_back("bins");
    if (a.min_pixels != b.min_pixels) differ.emplace_back("min-pixels");
    if (a.solar_zenith != b.solar_zenith) differ.emplace_back("solar-zenith");
    return differ;
}

bool is_finite(const Bin& bin) {
    for (const auto* const list : {&bin.volume, &bin.geometric, &bin.isotropic, &bin.rmse})
        for (const double v : *list)
            if (!std::isfinite(v)) return false;
    return true;
}

} // namespace

const SceneRecord* Model::find(const std::string& name) const {
    const auto at = std::find_if(scenes.begin(), scenes.end(), [&](const auto& s) { return s.name == name; });
    return at == scenes.end() ? nullptr : &*at;
}

void Model::add(SceneRecord scene) {
    if (const SceneRecord* const other = find(scene.name)) {
        if (!other->grid.same(scene.grid))
            throw Error("the model includes another scene with the name '" + scene.name + "'",
                        "Scenes are identified by their names without folders: rename one of them.");
        throw Error("the model already includes '" + scene.name + "'",
                    "Its pixels would count twice: remove that scene first (-remove).");
    }
    scenes.push_back(std::move(scene));
    std::sort(scenes.begin(), scenes.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
}

void Model::add(const Model& other, const std::string& name, const std::vector<std::string>& anew) {
    auto options = other_options(method, other.method);
    for (auto& option : other_options(binning, other.binning))
        options.push_back(std::move(option));
    std::erase_if(options, [&](const std::string& option) {
        return std::find(anew.begin(), anew.end(), option) != anew.end();
    });
    for (std::string& option : options)
        option.insert(0, 1, '-');
    if (!options.empty())
        throw Error(
            "'" + name + "' was made with different values of " + joined(options, ", "),
            "Fit all models with the same options, or give -bins, -min-pixels or -solar-zenith again.");
    if (other.bands.size() != bands.size())
        throw Error("'" + name + "' has " + std::to_string(other.bands.size()) + " bands, the others have " +
                        std::to_string(bands.size()),
                    "Fit all models with the same bands (-b, -exclude-range).");
    const auto matched = hsi::model::match_bands(
        "the models before it", *this, name, hsi::model::bands_of(other), false, hsi::model::BandsOf::scenes);
    if (!std::is_sorted(matched.begin(), matched.end()))
        throw Error("'" + name + "' has the bands in a different order",
                    "Fit all models with the same bands (-b, -exclude-range).");
    for (const SceneRecord& scene : other.scenes)
        add(scene);
}

void Model::remove(const Model& other, const std::string& name) {
    for (const SceneRecord& scene : other.scenes) {
        const auto at =
            std::find_if(scenes.begin(), scenes.end(), [&](const auto& s) { return s.name == scene.name; });
        if (at == scenes.end())
            throw Error("-remove " + name + ": the model does not include its scene '" + scene.name + "'",
                        "Remove models whose scenes were added before.");
        scenes.erase(at);
    }
}

void Model::order_bands(const std::vector<int>& places) {
    const auto order = [&](std::vector<double>& values) {
        const std::vector<double> before = values;
        for (size_t k = 0; k < before.size(); ++k)
            values[static_cast<size_t>(places[k])] = before[k];
    };
    for (Bin& bin : bins)
        for (auto* const list : {&bin.volume, &bin.geometric, &bin.isotropic, &bin.rmse})
            order(*list);
    for (SceneRecord& scene : scenes) {
        order(scene.terrain.slope);
        order(scene.terrain.intercept);
    }
}

void Model::fit(int64_t without_angles) {
    if (scenes.empty()) throw Error("-remove leaves no scene", "Leave out one of -remove.");
    if (method.brdf == Brdf::none) return;
    std::vector<const CellSums*> sums;
    double zenith = 0;
    int64_t pixels = 0, most = 0;
    for (const SceneRecord& scene : scenes) {
        sums.push_back(&scene.sums);
        for (size_t k = 0; k < scene.sums.count.size(); ++k) {
            if (scene.sums.count[k] == 0) continue;
            if ((pixels += scene.sums.count[k]) > most_pixels)
                throw Error("the scenes have too many pixels together", "Fit fewer scenes.");
            zenith += scene.sums.sums[k][CellSums::shared - 1];
        }
    }
    bins = fit_bins(method, binning, bands.size(), sums);
    solar_zenith = binning.solar_zenith.value_or(pixels > 0 ? zenith / static_cast<double>(pixels) : 0);
    if (!(solar_zenith >= 0 && solar_zenith <= most_zenith) ||
        !std::all_of(bins.begin(), bins.end(), is_finite))
        throw Error("the model cannot be fitted: its scenes have impossible sums",
                    "A model that was read may be damaged: make it again.");
    for (const Bin& bin : bins)
        most = std::max(most, bin.pixels);
    if (std::any_of(bins.begin(), bins.end(), [](const Bin& bin) { return bin.used; })) return;
    std::string why = "the largest of " + counted(bins.size(), "bin") + " has " + counted(most, "pixel") +
                      ", but " + std::to_string(binning.min_pixels) + " are needed";
    if (most >= binning.min_pixels)
        why = "the angles of view and sun hardly vary in the bins with " +
              std::to_string(binning.min_pixels) + " or more pixels";
    if (without_angles > 0)
        why += "; " + counted(without_angles, "valid pixel has", "valid pixels have") + " unknown angles";
    throw Error("no bin of NDVI can be used: " + why,
                "Fit more scenes together (-with), use fewer -bins, or -brdf none.");
}

} // namespace hsi::normalise
