// SPDX-License-Identifier: MIT
#include "shared/references.h"

#include "atdca/atdca.h"
#include "core/error.h"
#include "core/text.h"
#include "tool/model_values.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace hsi::tools {

void add_reference_options(tool::Builder& args, KnownSpectra& known, const std::string& found) {
    args.input("reference", known.path, tool::Content::spectra,
               "Print the spectral angle of the best " + found +
                   " to every spectrum of the library FILE (.sli, .csv, USGS ...)");
    add_spectrum_option(args, known.spectra, "the library of -reference");
    add_resample_option(args, known.fit);
    args.flag("reference-names", known.rename,
              "Name each spectrum of -spectra after the reference spectrum whose best " + found + " it is");
}

namespace {

/// Names the found spectra after the references. best: index of the found spectrum with the smallest angle to
/// each reference.
void rename_spectra(tool::Run& run, const std::vector<std::string>& references,
                    const std::vector<size_t>& best, raster::SpectralLibrary& found) {
    std::map<size_t, std::vector<std::string>> of_found;
    for (size_t r = 0; r < best.size(); ++r)
        of_found[best[r]].push_back(references[r]);
    for (const auto& [k, names] : of_found) {
        if (names.size() == 1)
            found.names[k] = names.front() + ", " + found.names[k];
        else
            run.warn("-reference-names: " + found.names[k] + " is the nearest spectrum of " +
                     joined(names, " and ") + ", and keeps its name");
    }
}

} // namespace

raster::SpectralLibrary read_references(tool::Run& run, const KnownSpectra& known, size_t scene_bands) {
    if (known.path.empty()) return {};
    return chosen_library(run, "-reference", known.path, known.spectra, scene_bands);
}

void compare_with_references(tool::Run& run, const KnownSpectra& known,
                             const raster::SpectralLibrary& references, raster::SpectralLibrary& found,
                             const raster::RasterSource& scene, const std::string& title) {
    if (known.path.empty()) return;
    const std::string& path = known.path;
    const auto bands = tool::scene_bands(scene);
    std::string lower_title = title;
    lower_title.front() = static_cast<char>(lower_title.front() - 'A' + 'a');
    std::string used;
    auto fit =
        fit_library(references, "-reference", path, bands, scene.facts().bands.fwhm_nm, known.fit, &used);
    report_fit(run, used, "-reference", path);
    const auto overlap = overlap_of(fit, "-reference", path, names_single_spectra(known.spectra));
    report_overlap(run, overlap, fit, references, bands, "-reference", path, "Compared");
    fit = raster::selected(fit, overlap.spectra);
    const auto& common = overlap.bands;
    const auto cut = [&](const std::vector<double>& x) {
        std::vector<double> y;
        y.reserve(common.size());
        for (size_t b : common)
            y.push_back(x[b]);
        return y;
    };
    size_t width = 9;
    for (const auto& name : fit.names)
        width = std::max(width, name.size());
    const size_t column = std::max<size_t>(8, title.size() + 2);
    const auto row = [&](const std::string& name, const std::string& target, double angle) {
        char text[32];
        std::snprintf(text, sizeof text, "%12.4f", angle);
        run.print(name + std::string(width - name.size(), ' ') +
                  std::string(column - std::min(column, target.size()), ' ') + target + text);
    };
    run.print("Reference" + std::string(width - 9 + column - title.size(), ' ') + title + " SAD/degree");
    Json table = Json::array();
    std::vector<size_t> nearest;
    double sum = 0;
    for (size_t r = 0; r < fit.names.size(); ++r) {
        const auto reference = cut(fit.spectra[r]);
        double best = std::numeric_limits<double>::infinity();
        size_t at = 0;
        for (size_t k = 0; k < found.spectra.size(); ++k) {
            const double angle =
                atdca::spectral_angle(reference.data(), cut(found.spectra[k]).data(), reference.size());
            if (angle < best) {
                best = angle;
                at = k;
            }
        }
        if (!std::isfinite(best))
            throw Error("-reference " + path + ": the spectrum " + fit.names[r] + " is all zero");
        row(fit.names[r], std::to_string(at + 1), best);
        nearest.push_back(at);
        table.push_back({{"reference", fit.names[r]}, {lower_title, at + 1}, {"sad_degrees", best}});
        sum += best;
    }
    row("Average", "", sum / static_cast<double>(fit.names.size()));
    run.report()["reference"] = {{"library", path}, {"bands", common.size()}, {"best", table}};
    if (known.rename) rename_spectra(run, fit.names, nearest, found);
}

} // namespace hsi::tools
