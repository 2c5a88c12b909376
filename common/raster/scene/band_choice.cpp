// SPDX-License-Identifier: MIT
#include "raster/band_choice.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <set>

namespace hsi::raster {
namespace {

std::string nm_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g nm", value);
    return text;
}

/// Returns the bands that are good and have a wavelength, from the shortest wavelength to the longest.
std::vector<BandAt> by_wavelength(const std::vector<BandAt>& bands) {
    std::vector<BandAt> known;
    std::copy_if(bands.begin(), bands.end(), std::back_inserter(known),
                 [](const BandAt& b) { return b.good && std::isfinite(b.wavelength_nm); });
    std::stable_sort(known.begin(), known.end(),
                     [](const BandAt& a, const BandAt& b) { return a.wavelength_nm < b.wavelength_nm; });
    return known;
}

std::string reach_of(const std::vector<BandAt>& known) {
    return "Its good bands are between " + nm_text(known.front().wavelength_nm) + " and " +
           nm_text(known.back().wavelength_nm) + ".";
}

int nearest_band(const BandChoice& choice, const std::vector<BandAt>& known, const std::string& scene) {
    const double wanted = choice.from_nm;
    size_t best = 0;
    for (size_t k = 1; k < known.size(); ++k)
        if (std::abs(known[k].wavelength_nm - wanted) < std::abs(known[best].wavelength_nm - wanted))
            best = k;
    // Nanometres. Neighbouring bands of two spectrometers may be closer.
    constexpr double least = 5;
    double step = least;
    if (best > 0) step = std::max(step, known[best].wavelength_nm - known[best - 1].wavelength_nm);
    if (best + 1 < known.size())
        step = std::max(step, known[best + 1].wavelength_nm - known[best].wavelength_nm);
    if (std::abs(known[best].wavelength_nm - wanted) > step)
        throw Error(choice.option + " " + choice.text + ": " + scene +
                        " has no band near it; the nearest is at " + nm_text(known[best].wavelength_nm),
                    reach_of(known));
    return known[best].number;
}

} // namespace

std::vector<int> bands_of(const std::vector<BandChoice>& choices, const std::vector<BandAt>& bands,
                          const std::string& scene) {
    const auto known = by_wavelength(bands);
    const auto count = static_cast<int>(bands.size());
    std::vector<int> out;
    std::set<int> seen;
    const auto add = [&](int number) {
        if (seen.insert(number).second) out.push_back(number);
    };
    for (const BandChoice& choice : choices) {
        if (choice.first > 0) {
            if (choice.last > count)
                throw UsageError(choice.option + " " + std::to_string(std::max(choice.first, count + 1)) +
                                 ": " + scene + " has bands 1 to " + std::to_string(count));
            for (int b = choice.first; b <= choice.last; ++b)
                add(b);
            continue;
        }
        if (known.empty())
            throw Error(choice.option + " " + choice.text + ": " + scene + " has no wavelengths",
                        "Choose bands by number, such as -b 1-30; gdal_hsi_info lists the bands.");
        if (choice.nearest) {
            add(nearest_band(choice, known, scene));
            continue;
        }
        bool any = false;
        for (const BandAt& b : bands)
            if (b.good && b.wavelength_nm >= choice.from_nm && b.wavelength_nm <= choice.to_nm) {
                add(b.number);
                any = true;
            }
        if (!any)
            throw Error(choice.option + " " + choice.text + ": " + scene + " has no band in this range",
                        reach_of(known));
    }
    return out;
}

const BandChoice* range_around(const std::vector<BandChoice>& ranges, double wavelength_nm) {
    const auto at = std::find_if(ranges.begin(), ranges.end(), [&](const BandChoice& r) {
        return wavelength_nm >= r.from_nm && wavelength_nm <= r.to_nm;
    });
    return at == ranges.end() ? nullptr : &*at;
}

} // namespace hsi::raster
