// SPDX-License-Identifier: MIT
#include "library_overlap.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/names.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace hsi::tools {
namespace {

/// Which bands a spectrum lacks of those that any has.
std::vector<std::vector<size_t>> holes_of(const raster::SpectralLibrary& fitted,
                                          const std::vector<size_t>& reached) {
    std::vector<std::vector<size_t>> holes;
    for (const auto& spectrum : fitted.spectra) {
        auto& of_spectrum = holes.emplace_back();
        for (const size_t b : reached)
            if (!std::isfinite(spectrum[b])) of_spectrum.push_back(b);
    }
    return holes;
}

/// How many of the spectra in `order`, which lack more and more, to keep so that most values are left.
size_t best_count(const std::vector<size_t>& order, const std::vector<std::vector<size_t>>& holes,
                  size_t bands, size_t reached) {
    std::vector<bool> lost(bands);
    size_t left = reached, best = 0, most = 0;
    for (size_t n = 0; n < order.size(); ++n) {
        for (const size_t b : holes[order[n]]) {
            left -= lost[b] ? 0 : 1;
            lost[b] = true;
        }
        if ((n + 1) * left < most) continue;
        most = (n + 1) * left;
        best = n + 1;
    }
    return best;
}

} // namespace

Overlap overlap_of(const raster::SpectralLibrary& fitted, const std::string& role, const std::string& path,
                   bool keep) {
    const size_t bands = fitted.bands();
    const auto has_value = [&](size_t b) {
        return std::any_of(fitted.spectra.begin(), fitted.spectra.end(),
                           [&](const auto& x) { return std::isfinite(x[b]); });
    };
    std::vector<size_t> reached;
    for (size_t b = 0; b < bands; ++b)
        if (has_value(b)) reached.push_back(b);
    if (reached.size() < 2)
        throw Error(role + " " + path +
                    ": its wavelengths and the scene's have fewer than 2 bands in common");
    const auto holes = holes_of(fitted, reached);
    std::vector<size_t> order(holes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return holes[a].size() < holes[b].size(); });
    const size_t count = keep ? order.size() : best_count(order, holes, bands, reached.size());
    Overlap overlap;
    overlap.spectra.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    overlap.left_out.assign(order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
    std::sort(overlap.spectra.begin(), overlap.spectra.end());
    std::sort(overlap.left_out.begin(), overlap.left_out.end());
    for (const size_t b : reached)
        if (std::all_of(overlap.spectra.begin(), overlap.spectra.end(),
                        [&](size_t k) { return std::isfinite(fitted.spectra[k][b]); }))
            overlap.bands.push_back(b);
    if (overlap.bands.size() < 2) {
        const size_t worst = order.back();
        throw Error(role + " " + path +
                        ": fewer than 2 bands of the scene have a value in all of its spectra",
                    "'" + fitted.names[worst] + "' lacks " + counted(holes[worst].size(), "band") + " of " +
                        std::to_string(reached.size()) + "; choose spectra with -spectrum.");
    }
    return overlap;
}

void tell_overlap(tool::Run& run, const Overlap& overlap, const raster::SpectralLibrary& fitted,
                  const std::string& role, const std::string& path, const std::string& what) {
    if (const size_t count = overlap.left_out.size(); count > 0) {
        constexpr size_t most = 5;
        std::vector<std::string> names;
        for (const size_t k : overlap.left_out)
            if (names.size() < most) names.push_back("'" + fitted.names[k] + "'");
        run.warn(role + " " + path + ": " + std::to_string(count) + " of " +
                 counted(fitted.spectra.size(), "spectrum", "spectra") +
                 worded(count, " lacks values in the scene's bands and is left out: ",
                        " lack values in the scene's bands and are left out: ") +
                 joined(names, ", ") +
                 (count > most ? " and " + counted(count - most, "other") : std::string()));
    }
    const size_t bands = fitted.bands(), used = overlap.bands.size();
    if (used < bands)
        run.note(what + " over " + std::to_string(used) + " of " + counted(bands, "band") +
                 worded(bands - used, ": in the other", ": in the others") +
                 " the library's spectra do not all have a value");
}

} // namespace hsi::tools
