// SPDX-License-Identifier: MIT
#include "atdca_report.h"

#include "core/counted.h"
#include "core/error.h"
#include "fitted_library.h"
#include "library_overlap.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace hsi::tools {

void tell_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system) {
    const auto& e = found.cost;
    char text[200];
    std::snprintf(text, sizeof text, "Search: %s; %s looked at %.2f times the scene's pixels, %s would at %d",
                  e.in_memory ? (e.device ? "scene on the device, read once" : "scene in memory, read once")
                  : held_by_system ? "scene read again where the system holds it in memory"
                                   : "scene streamed",
                  counted(e.passes, "pass", "passes").c_str(), e.scan_equivalents,
                  counted(wanted, "full scan").c_str(), wanted);
    run.note(text);
    run.report()["search"] = {{"in_memory", e.in_memory},
                              {"on_device", e.device},
                              {"held_by_system", held_by_system},
                              {"passes", e.passes},
                              {"tiles", e.tiles},
                              {"tile_visits", e.tile_visits},
                              {"tile_visits_of_full_scans", e.tiles * wanted},
                              {"full_scan_equivalents", e.scan_equivalents},
                              {"full_scans", wanted},
                              {"candidates", e.pool}};
}

void tell_targets(tool::Run& run, const std::vector<atdca::Target>& targets) {
    run.note("Rank     Line   Sample           Score");
    Json entries = Json::array();
    for (size_t k = 0; k < targets.size(); ++k) {
        const auto& t = targets[k];
        char text[100];
        std::snprintf(text, sizeof text, "%4zu %8lld %8lld %15.8g", k + 1, static_cast<long long>(t.line),
                      static_cast<long long>(t.sample), t.score);
        run.note(text);
        entries.push_back({{"rank", k + 1}, {"line", t.line}, {"sample", t.sample}, {"score", t.score}});
    }
    run.report()["targets"] = entries;
}

void compare_with_references(tool::Run& run, const raster::SpectralLibrary& references,
                             const raster::SpectralLibrary& targets, const AtdcaSettings& s) {
    const std::string& path = s.reference;
    auto fit = fit_library(references, "-reference", path, targets.bands(), targets.wavelengths_nm);
    const auto overlap = overlap_of(fit, "-reference", path, names_all(s.reference_spectra));
    tell_overlap(run, overlap, fit, "-reference", path, "Compared");
    fit = raster::selected(fit, overlap.spectra);
    const auto& common = overlap.bands;
    const auto cut = [&](const std::vector<double>& x) {
        std::vector<double> y;
        for (size_t b : common)
            y.push_back(x[b]);
        return y;
    };
    size_t width = 9;
    for (const auto& name : fit.names)
        width = std::max(width, name.size());
    const auto row = [&](const std::string& name, const std::string& target, double angle) {
        char text[32];
        std::snprintf(text, sizeof text, "%12.4f", angle);
        run.print(name + std::string(width - name.size(), ' ') +
                  std::string(8 - std::min<size_t>(8, target.size()), ' ') + target + text);
    };
    run.print("Reference" + std::string(width - 9, ' ') + "  Target SAD/degree");
    Json table = Json::array();
    double sum = 0;
    for (size_t r = 0; r < fit.names.size(); ++r) {
        const auto reference = cut(fit.spectra[r]);
        double best = std::numeric_limits<double>::infinity();
        size_t at = 0;
        for (size_t k = 0; k < targets.spectra.size(); ++k) {
            const double angle =
                atdca::spectral_angle(reference.data(), cut(targets.spectra[k]).data(), reference.size());
            if (angle < best) {
                best = angle;
                at = k;
            }
        }
        if (!std::isfinite(best))
            throw Error("-reference " + path + ": the spectrum " + fit.names[r] + " is all zero");
        row(fit.names[r], std::to_string(at + 1), best);
        table.push_back({{"reference", fit.names[r]}, {"target", at + 1}, {"sad_degrees", best}});
        sum += best;
    }
    row("Average", "", sum / static_cast<double>(fit.names.size()));
    run.report()["reference"] = {{"library", path}, {"bands", common.size()}, {"best", table}};
}

} // namespace hsi::tools
