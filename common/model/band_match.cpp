// SPDX-License-Identifier: MIT
#include "model/band_match.h"

#include "core/counted.h"
#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace hsi::model {
namespace {

std::string nanometres(double wavelength) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f nm", wavelength);
    return text;
}

/// Wavelengths in rising order, each with its band; equal wavelengths are in the order of their bands. Sorted
/// lists keep searches fast, since files from unknown sources may have many bands.
using Rising = std::vector<std::pair<double, size_t>>;
Rising rising(const std::vector<double>& wavelengths) {
    Rising all;
    for (size_t b = 0; b < wavelengths.size(); ++b)
        all.emplace_back(wavelengths[b], b);
    std::sort(all.begin(), all.end());
    return all;
}

/// Returns the tolerance of each band in nm: a quarter of the distance to its nearest neighbour, at least
/// 0.5.
std::vector<double> tolerances(const std::vector<double>& wavelengths) {
    const Rising all = rising(wavelengths);
    std::vector<double> found(wavelengths.size(), 0.5);
    for (size_t k = 0; k < all.size(); ++k) {
        double spacing = std::numeric_limits<double>::infinity();
        if (k > 0) spacing = all[k].first - all[k - 1].first;
        if (k + 1 < all.size()) spacing = std::min(spacing, all[k + 1].first - all[k].first);
        if (std::isfinite(spacing)) found[all[k].second] = std::max(0.5, 0.25 * spacing);
    }
    return found;
}

/// Returns the band nearest to a wavelength; the first one if several bands are equally near.
size_t nearest(const Rising& bands, double nm) {
    const auto first_of = [&](double value) {
        return std::lower_bound(bands.begin(), bands.end(), std::pair(value, size_t{0}));
    };
    const auto above = first_of(nm);
    if (above == bands.begin()) return above->second;
    const auto below = first_of(std::prev(above)->first);
    if (above == bands.end()) return below->second;
    const double up = above->first - nm, down = nm - below->first;
    return up == down ? std::min(above->second, below->second) : up < down ? above->second : below->second;
}

/// The scene's band for every band of a model, matched by wavelength. Each band of the scene is used at most
/// once.
struct Partners {
    std::vector<int> matched; ///< 0-based; -1: no band of the scene matches
    /// Error text with the number of bands without a match, and the first of them; empty if all bands match.
    std::string complaint;
};

/// `whose`: the beginning of the error text, "the model's" or "its".
Partners by_wavelength(const ModelBands& model, const std::vector<double>& scene, const std::string& whose) {
    const std::vector<double>& wanted = model.wavelengths_nm;
    Partners found;
    std::vector<char> used(scene.size());
    const Rising given = rising(scene);
    const std::vector<double> limits = tolerances(wanted);
    std::string first, why;
    size_t missing = 0;
    for (size_t b = 0; b < wanted.size(); ++b) {
        size_t best = nearest(given, wanted[b]);
        const bool near = std::fabs(scene[best] - wanted[b]) <= limits[b];
        // If several bands of the scene have this wavelength, take the next unused one.
        if (near && used[best])
            for (size_t other = best + 1; other < scene.size() && used[best]; ++other)
                if (scene[other] == scene[best] && !used[other]) best = other;
        if (near && !used[best]) {
            used[best] = 1;
            found.matched.push_back(static_cast<int>(best));
            continue;
        }
        found.matched.push_back(-1);
        if (++missing > 1) continue;
        first = "band " + std::to_string(model.bands[b]) + " (" + nanometres(wanted[b]) + ")";
        why = ": the nearest in the scene, at " + nanometres(scene[best]) +
              (near ? ", already matches another band" : ", is too far away");
    }
    if (missing == 1) found.complaint = whose + " " + first + " has no match" + why;
    if (missing > 1)
        found.complaint = std::to_string(missing) + " of " + whose + " " + counted(wanted.size(), "band") +
                          " have no match; the first is " + first + why;
    return found;
}

} // namespace

bool all_known(const std::vector<double>& wavelengths) {
    return !wavelengths.empty() && std::all_of(wavelengths.begin(), wavelengths.end(),
                                               [](double w) { return std::isfinite(w) && w > 0; });
}

std::vector<int> common_bands(const std::vector<double>& first_nm, const std::vector<double>& second_nm) {
    if (!all_known(first_nm) || !all_known(second_nm)) return {};
    const Rising second = rising(second_nm);
    const std::vector<double> limits = tolerances(first_nm);
    std::vector<int> matched;
    std::vector<char> used(second_nm.size());
    for (size_t b = 0; b < first_nm.size(); ++b) {
        // In nm: the searched range is a little wider than the limit, so that rounding excludes no band.
        constexpr double little = 1e-3;
        std::pair best(limits[b], std::numeric_limits<size_t>::max());
        for (auto at = std::lower_bound(second.begin(), second.end(),
                                        std::pair(first_nm[b] - limits[b] - little, size_t{0}));
             at != second.end() && at->first <= first_nm[b] + limits[b] + little; ++at)
            if (!used[at->second])
                best = std::min(best, std::pair(std::fabs(at->first - first_nm[b]), at->second));
        const bool found = best.second < used.size();
        if (found) used[best.second] = 1;
        matched.push_back(found ? static_cast<int>(best.second) : -1);
    }
    return matched;
}

bool comparable_numbers(const SceneBands& first, const SceneBands& second) {
    if (first.told && second.told) return true;
    const auto among = [](const SceneBands& told, const SceneBands& file) {
        return std::all_of(told.numbers.begin(), told.numbers.end(),
                           [&](int number) { return number <= file.file_bands; });
    };
    if (first.told) return among(first, second);
    if (second.told) return among(second, first);
    return first.file_bands > 0 && first.file_bands == second.file_bands;
}

std::vector<int> common_numbers(const std::vector<int>& first, const std::vector<int>& second) {
    std::unordered_map<int, int> place_of; // from each number to the first index with this number
    for (size_t k = 0; k < second.size(); ++k)
        place_of.emplace(second[k], static_cast<int>(k));
    std::vector<int> places;
    for (const int number : first) {
        const auto at = place_of.find(number);
        places.push_back(at == place_of.end() ? -1 : at->second);
    }
    return places;
}

SceneBands bands_of(const ModelBands& model) {
    SceneBands bands{model.bands, model.wavelengths_nm, model.numbers_told, model.file_bands};
    if (bands.told || bands.file_bands > 0) return bands;
    for (size_t b = 0; b < model.bands.size(); ++b)
        bands.told |= model.bands[b] != static_cast<int>(b) + 1;
    return bands;
}

std::vector<int> match_bands(const std::string& file, const ModelBands& model, const std::string& scene_name,
                             const SceneBands& scene, bool ignored, BandsOf whose) {
    const size_t wanted = model.bands.size(), given = scene.numbers.size();
    const bool of_model = whose == BandsOf::model;
    const std::string begin = "'" + file + (of_model ? "' was made for " : "' has ");
    const auto misfit = [&](const std::string& why) {
        return Error(
            begin + counted(wanted, "band") + ", but " + scene_name + " has " + std::to_string(given) + why,
            of_model ? "Choose the model's bands with -b." : "Use -b to choose bands that all scenes have.");
    };
    const auto others = [&](const std::string& why, const std::string& advice) {
        return Error(begin + "other bands than " + scene_name + ": " + why,
                     of_model ? advice + "-any-wavelengths matches bands by their order."
                              : "Use scenes of one sensor with the same bad bands, or choose bands that all "
                                "scenes have with -b.");
    };
    if (!ignored && all_known(model.wavelengths_nm) && all_known(scene.wavelengths_nm)) {
        auto partners = by_wavelength(model, scene.wavelengths_nm, of_model ? "the model's" : "its");
        if (partners.complaint.empty()) return std::move(partners.matched);
        if (given < wanted) throw misfit(": " + partners.complaint);
        throw others(partners.complaint,
                     "Use it with scenes of the same sensor and with the same bad bands; ");
    }
    if (given < wanted) throw misfit("");
    auto matched = common_numbers(model.bands, scene.numbers);
    const auto missing = std::find(matched.begin(), matched.end(), -1);
    if (missing == matched.end() && !(ignored && given == wanted)) return matched;
    const auto its_band = [&] {
        return "its band " + std::to_string(model.bands[static_cast<size_t>(missing - matched.begin())]);
    };
    if (given > wanted) throw misfit(", which do not include " + its_band());
    if (!ignored && (scene.told || comparable_numbers(bands_of(model), scene)))
        throw others(
            its_band() + " is missing" +
                (scene.told ? ", by the band numbers in the model's scene" : ", by the band numbers"),
            "Choose the model's bands with -b; ");
    std::iota(matched.begin(), matched.end(), 0);
    return matched;
}

} // namespace hsi::model
