// SPDX-License-Identifier: MIT
// Computes sam and sid between the spectra of two libraries.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "core/text.h"
#include "core/tile_plan.h"
#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/spectral_library.h"
#include "raster/text_output.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "tool/passes.h"
#include "tool/phrases.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace hsi::detect_tool {
namespace {

void refuse_what_scenes_have(const tool::Run& run, const Settings& s) {
    if (!std::holds_alternative<Alone>(s.how))
        throw UsageError(tool::cannot_be_used_with("-method " + s.method, "a spectral library as src"),
                         "Use -method sam or sid, which compare one spectrum with one target.");
    const auto refuse = [](bool given, const char* option) {
        if (given)
            throw UsageError(tool::cannot_be_used_with(option, "a spectral library as src"),
                             "It is about pixels; leave it out.");
    };
    refuse(!s.target.pixels.empty(), "-target-pixel");
    refuse(!s.map.path.empty(), "-map");
    refuse(s.target.any_scale, "-any-scale");
    refuse(run.options().source.follow.has_value(), "-follow");
}

/// Returns the spectra of src at the given bands, as the pixels of a single row.
std::vector<float> line_of(const raster::SpectralLibrary& library, const std::vector<size_t>& bands) {
    std::vector<float> values;
    values.reserve(bands.size() * library.spectra.size());
    for (const size_t b : bands)
        for (const auto& spectrum : library.spectra)
            values.push_back(static_cast<float>(spectrum[b]));
    return values;
}

/// Returns the score of each target for each spectrum, [target][spectrum]; NaN if the spectrum is invalid.
std::vector<float> scores_of(Method method, const detect::Targets& targets, const std::vector<float>& line,
                             size_t spectra) {
    const auto operation = detect::make_detection(detect::make_detector(method, targets), {});
    const auto samples = static_cast<int64_t>(spectra);
    const auto worker = operation->start(0, {samples, 1, samples, 1, 1});
    const Rect all{0, 0, samples, 1};
    std::vector<float> scores(targets.names.size() * spectra);
    auto values = line;
    const auto bands = static_cast<int>(line.size() / spectra);
    worker->process(
        {0, all, all}, CubeView<float>::packed(values.data(), bands, 1, samples),
        {CubeView<float>::packed(scores.data(), static_cast<int>(targets.names.size()), 1, samples)});
    operation->stop(*worker);
    return scores;
}

} // namespace

void detect_in_library(tool::Run& run, const Settings& s, const raster::SpectralLibrary& library) {
    refuse_what_scenes_have(run, s);
    const auto& o = run.options();
    const auto output = run.text_output("dst", o.destination.path, o.destination.overwrite);
    raster::check_text_output(output);
    const std::string& path = s.target.library;
    std::string used;
    const auto fitted = tools::fit_library(
        tools::chosen_library(run, "-target", path, s.target.spectra, library.bands()), "-target", path,
        tools::library_bands(library), library.fwhm_nm, s.target.fit, &used);
    tools::report_fit(run, used, "-target", path);
    auto both = library;
    both.names.insert(both.names.end(), fitted.names.begin(), fitted.names.end());
    both.spectra.insert(both.spectra.end(), fitted.spectra.begin(), fitted.spectra.end());
    const auto bands = tools::overlap_of(both, "-target", path, true).bands;
    if (bands.size() < library.bands())
        run.note("Bands: " + std::to_string(bands.size()) + " of " + std::to_string(library.bands()) +
                 " have a value in all spectra of both libraries");
    detect::Targets targets{fitted.names, {}, false};
    for (const auto& spectrum : fitted.spectra) {
        auto& values = targets.spectra.emplace_back();
        for (const size_t b : bands)
            values.push_back(spectrum[b] * s.target.library_scale);
    }
    run.report()["detection"] = {{"method", s.method}, {"targets", targets.names}, {"bands", bands.size()}};
    tool::end_of_plan(run, [&] {
        run.print(counted(library.names.size(), "spectrum", "spectra") + " and " +
                  counted(targets.names.size(), "target") + "; nothing is written");
    });
    const size_t spectra = library.names.size();
    const auto scores = scores_of(std::get<Alone>(s.how).method, targets, line_of(library, bands), spectra);
    std::string table = "name,best";
    for (const auto& name : targets.names)
        table += "," + csv_cell(name);
    for (size_t k = 0; k < spectra; ++k) {
        std::string cells, best;
        float least = INFINITY;
        for (size_t t = 0; t < targets.names.size(); ++t) {
            const float score = scores[t * spectra + k];
            cells += "," + tools::number_cell(static_cast<double>(score));
            if (score < least) {
                least = score;
                best = targets.names[t];
            }
        }
        table += "\n" + csv_cell(library.names[k]) + "," + csv_cell(best) + cells;
    }
    raster::write_text_output(output, table + "\n");
    if (s.method == "sam") run.note("The scores are angles in radians; 1 radian is 57.3 degrees");
}

} // namespace hsi::detect_tool
