// SPDX-License-Identifier: MIT
// Coefficient files of HyTools (A. Chlus et al., University of Wisconsin): one of topography, one of BRDF.
#include "core/error.h"
#include "core/text.h"
#include "model/document.h"
#include "normalise/normalise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace hsi::normalise {
namespace {

using hsi::model::Reader;

constexpr double radian = 180 / 3.14159265358979323846;
/// Limits of input files: each bin takes memory for all bands of the scene, and each mask takes time for all
/// pixels.
constexpr size_t most_bins = 1000, most_masks = 100;

/// Returns the value of the list entry whose name is the text of `key`.
template <class T, size_t N>
T chosen(const Reader& in, const Json& root, const char* key,
         const std::array<std::pair<const char*, T>, N>& list) {
    const std::string text = in.text(root, key);
    for (const auto& [name, value] : list)
        if (text == name) return value;
    in.fail(std::string("'") + key + "' is '" + text + "', which gdal_hsi_normalise does not support");
}

/// Returns a limit of a mask. HyTools' settings write infinity as a text.
double end_of(const Reader& in, const Json& settings, const char* key) {
    const Json& value = in.member(settings, key);
    if (!value.is_string()) return in.number(value, key);
    std::string text = value.get<std::string>();
    const bool below = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.erase(0, 1);
    if (!equal_names(text, "inf") && !equal_names(text, "infinity"))
        in.fail("'" + std::string(key) + "' of a mask is '" + value.get<std::string>() +
                "', which is not a number");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return below ? -infinity : infinity;
}

/// Puts Infinity and NaN into quotes, because Python writes these values, but JSON does not have them.
std::string quoted(const std::string& text) {
    std::string made;
    bool inside = false;
    for (size_t i = 0; i < text.size(); ++i) {
        bool found = false;
        for (const char* const word : {"Infinity", "-Infinity", "NaN"})
            if (const size_t size = std::strlen(word); !inside && text.compare(i, size, word) == 0) {
                made += '"' + std::string(word) + '"';
                i += size - 1;
                found = true;
                break;
            }
        if (found) continue;
        if (text[i] == '"') inside = !inside;
        made += text[i];
        if (inside && text[i] == '\\' && i + 1 < text.size()) made += text[++i];
    }
    return made;
}

Limit limit_of(const Reader& in, const Json& mask) {
    const Json& settings = mask[1];
    Limit limit{Limit::ndvi, end_of(in, settings, "min"), end_of(in, settings, "max")};
    if (mask[0] == "ndi") {
        constexpr double near_infrared = 850, red = 660;
        if (in.number(in.member(settings, "band_1"), "band_1") != near_infrared ||
            in.number(in.member(settings, "band_2"), "band_2") != red)
            in.fail("a mask by 'ndi' uses bands other than 850 and 660 nm");
        return limit;
    }
    constexpr std::array<std::pair<const char*, Limit::Of>, 3> names{
        {{"cosine_i", Limit::cos_i}, {"slope", Limit::slope}, {"solar_zn", Limit::solar_zenith}}};
    limit.of = chosen(in, settings, "name", names);
    if (limit.of == Limit::cos_i) return limit;
    limit.least *= radian;
    limit.most *= radian;
    return limit;
}

std::vector<Limit> limits_of(const Reader& in, const Json& root) {
    std::vector<Limit> limits;
    if (in.list(root, "apply_mask").size() > most_masks) in.fail("'apply_mask' has too many masks");
    for (const Json& mask : in.list(root, "apply_mask")) {
        in.expect(mask, "apply_mask", 2);
        if (mask[0] == "kernel_finite") continue; // Pixels with unknown angles are always invalid.
        if (mask[0] != "ndi" && mask[0] != "ancillary")
            in.fail("the mask " + hsi::model::dump(mask[0]) +
                    " is unknown; gdal_hsi_normalise supports ndi, ancillary and kernel_finite");
        limits.push_back(limit_of(in, mask));
    }
    return limits;
}

/// The bands of a scene, 1-based, and the number of bands in the file.
struct FileBands {
    const std::vector<int>& numbers;
    int in_file = 0;
    size_t size() const { return numbers.size(); }
};

/// Calls `take(band, value)` for the coefficients of each band of the scene.
template <class Take>
void each_band(const Reader& in, const Json& root, const FileBands& bands, const Take& take) {
    const Json& all = in.member(root, "coeffs");
    if (!all.is_object()) in.fail("'coeffs' is not an object");
    for (const auto& [key, value] : all.items()) {
        const bool number = !key.empty() && key.size() < 7 &&
                            std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!number || std::stoi(key) >= bands.in_file)
            in.fail("'coeffs' has the band '" + key + "', but the scene's file has the bands 0 to " +
                    std::to_string(bands.in_file - 1));
        for (size_t b = 0; b < bands.size(); ++b)
            if (bands.numbers[b] == std::stoi(key) + 1) take(b, value);
    }
}

void take_topography(const Reader& in, const Json& root, const FileBands& bands, Model& m, OfHyTools& own) {
    constexpr std::array<std::pair<const char*, Topography>, 5> types{
        {{"scs+c", Topography::scs_c},
         {"c", Topography::c},
         {"scs", Topography::scs},
         {"cosine", Topography::cosine},
         {"mod_minneart", Topography::minnaert_g}}};
    m.method.topography = chosen(in, root, "type", types);
    const bool fits = m.method.fits_topography();
    // Without a fit and without a mask, the correction applies to all pixels.
    if (fits || root.contains("apply_mask")) own.topography = limits_of(in, root);
    if (!fits) return;
    own.terrain.slope.assign(bands.size(), 0);
    own.terrain.intercept.assign(bands.size(), 0);
    each_band(in, root, bands, [&](size_t b, const Json& c) {
        own.terrain.slope[b] = 1;
        own.terrain.intercept[b] = in.number(c, "coeffs");
    });
}

void take_brdf(const Reader& in, const Json& root, const FileBands& bands, Model& m, OfHyTools& own) {
    constexpr std::array<std::pair<const char*, Brdf>, 2> types{
        {{"universal", Brdf::universal}, {"flex", Brdf::flex}}};
    constexpr std::array<std::pair<const char*, Volume>, 2> volumes{
        {{"ross_thick", Volume::ross_thick}, {"ross_thin", Volume::ross_thin}}};
    constexpr std::array<std::pair<const char*, Geometric>, 4> geometrics{
        {{"li_sparse", Geometric::li_sparse},
         {"li_sparse_r", Geometric::li_sparse_r},
         {"li_dense", Geometric::li_dense},
         {"li_dense_r", Geometric::li_dense_r}}};
    m.method.brdf = chosen(in, root, "type", types);
    m.method.volume = chosen(in, root, "volume", volumes);
    m.method.geometric = chosen(in, root, "geometric", geometrics);
    m.method.b_r = in.positive(root, "b/r");
    m.method.h_b = in.positive(root, "h/b");
    m.solar_zenith = in.number(in.member(root, "solar_zn_norm_radians"), "solar_zn_norm_radians") * radian;
    if (!(m.solar_zenith >= 0 && m.solar_zenith < 90)) in.fail("'solar_zn_norm_radians' is out of range");
    own.brdf = limits_of(in, root);
    if (m.method.brdf == Brdf::flex) {
        if (in.text(root, "interp_kind") != "linear")
            in.fail("'interp_kind' is '" + in.text(root, "interp_kind") +
                    "'; gdal_hsi_normalise supports only linear");
        const Json& bins = in.member(root, "bins");
        if (bins.size() > most_bins) in.fail("'bins' has too many bins");
        for (size_t k = 1; k <= bins.size(); ++k) {
            const auto edges = in.numbers(in.member(bins, std::to_string(k).c_str()), "bins", 2);
            Bin bin;
            bin.middle = (edges[0] + edges[1]) / 2;
            m.bins.push_back(std::move(bin));
        }
        const auto falls = [](const Bin& a, const Bin& b) { return b.centre() <= a.centre(); };
        if (m.bins.empty() || std::adjacent_find(m.bins.begin(), m.bins.end(), falls) != m.bins.end())
            in.fail("'bins' are not in ascending order");
    } else {
        m.bins.resize(1);
    }
    for (Bin& bin : m.bins) { // A band without coefficients has the factor 1.
        bin.used = true;
        bin.volume.assign(bands.size(), 0);
        bin.geometric.assign(bands.size(), 0);
        bin.isotropic.assign(bands.size(), 1);
    }
    each_band(in, root, bands, [&](size_t b, const Json& value) {
        if (m.method.brdf == Brdf::flex) in.expect(value, "coeffs", m.bins.size());
        for (size_t k = 0; k < m.bins.size(); ++k) {
            const auto f = in.numbers(m.method.brdf == Brdf::flex ? value[k] : value, "coeffs", 3);
            m.bins[k].volume[b] = f[0];
            m.bins[k].geometric[b] = f[1];
            m.bins[k].isotropic[b] = f[2];
        }
    });
}

} // namespace

bool is_of_hytools(const std::string& text) {
    // The text is searched for words instead of being parsed, because models of a campaign are long and are
    // parsed by their own reader.
    constexpr std::array words{"apply_mask", "calc_mask", "solar_zn_norm_radians", "cosine", "mod_minneart",
                               "scs",        "scs+c"};
    const auto has = [&](const char* word) {
        return text.find('"' + std::string(word) + '"') != std::string::npos;
    };
    return !has("gdal_hsi_normalise") && std::any_of(words.begin(), words.end(), has);
}

void add_hytools(const std::string& text, const std::string& name, const std::vector<int>& numbers,
                 int in_file, Model& m) {
    const Reader in(name, "HyTools", "HyTools");
    const Json root = Json::parse(quoted(text), nullptr, false);
    if (!root.is_object()) in.fail("it is not a JSON object");
    if (!m.hytools) {
        m.hytools.emplace();
        m.method.topography = Topography::none;
        m.method.brdf = Brdf::none;
    }
    const bool brdf = root.contains("solar_zn_norm_radians") || root.contains("volume");
    if (brdf ? m.method.brdf != Brdf::none : m.method.topography != Topography::none)
        in.fail(std::string("a second file of ") + (brdf ? "BRDF" : "topography") + " was given");
    (brdf ? take_brdf : take_topography)(in, root, {numbers, in_file}, m, *m.hytools);
}

} // namespace hsi::normalise
