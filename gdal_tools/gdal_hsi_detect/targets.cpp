// SPDX-License-Identifier: MIT
#include "gdal_hsi_detect/targets.h"

#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"
#include "tool/mask.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hsi::detect_tool {

DetectTargets::DetectTargets(tool::Run& run, const TargetOptions& options,
                             std::shared_ptr<raster::RasterSource>& scene)
    : m_pixels(options.pixels), m_absorption(options.absorption) {
    if (!options.library.empty()) {
        m_library = tools::spectra_for_scene(run, "-target", options.library, options.spectra,
                                             options.library_scale, "Detection", scene, options.fit);
        m_bands = scene->bands();
        return;
    }
    const auto shape = scene->shape();
    for (const auto& [line, sample] : m_pixels) {
        if (line >= shape.lines || sample >= shape.samples)
            throw UsageError("-target-pixel " + std::to_string(line) + " " + std::to_string(sample) +
                                 ": the scene has lines 0 to " + std::to_string(shape.lines - 1) +
                                 " and samples 0 to " + std::to_string(shape.samples - 1),
                             "Count line and sample from 0, within -srcwin.");
        m_library.names.push_back(std::to_string(line) + "," + std::to_string(sample));
    }
}

std::optional<detect::Targets> DetectTargets::at(const raster::RasterSource& scene) {
    if (m_pixels.empty()) {
        auto library = tools::without_lost_bands(m_library, m_bands, scene);
        return detect::Targets{std::move(library.names), std::move(library.spectra), m_absorption};
    }
    detect::Targets targets{m_library.names, {}, false};
    const auto bands = static_cast<size_t>(scene.shape().bands);
    const auto reader = scene.open_reader();
    for (const auto& [line, sample] : m_pixels) {
        std::vector<float> x(bands);
        reader->read({sample, line, 1, 1}, CubeView<float>::packed(x.data(), static_cast<int>(bands), 1, 1));
        if (!std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); }) ||
            std::all_of(x.begin(), x.end(), [](float v) { return v == 0; })) {
            m_missing = std::to_string(line) + " " + std::to_string(sample);
            return {};
        }
        targets.spectra.emplace_back(x.begin(), x.end());
    }
    return targets;
}

Error DetectTargets::missing() const {
    return Error("-target-pixel " + m_missing + ": the pixel is invalid (nodata, masked, NaN or all zero)",
                 "Choose a pixel with a value in all bands, or leave bands out with -b.");
}

void DetectTargets::warn_of_mistakes(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                                     detect::PixelBackend* backend) const {
    if (m_absorption) return warn_of_emission(run);
    if (!m_library.spectra.empty())
        tools::warn_of_other_signs(run, scene, m_library,
                                   std::string("Use the same quantity in both") +
                                       (s.method == "mf" || s.method == "ace"
                                            ? ", or -target-is-absorption for the absorption of a gas"
                                            : ""));
    if (std::holds_alternative<Features>(s.how) || std::holds_alternative<Alone>(s.how)) return;
    for (size_t k = 0; k < m_library.spectra.size(); ++k)
        if (const auto& x = m_library.spectra[k];
            std::all_of(x.begin(), x.end(), [](double v) { return v == 0; }))
            run.warn("target '" + m_library.names[k] +
                     "' is all zero, so it finds dark pixels. Leave it out if that is not intended");
    if (!m_library.spectra.empty())
        tools::warn_of_other_units(run, scene, m_library,
                                   "scores depend on the exact factor: compare the scores of several "
                                   "factors, or use -method sam, which needs no factor",
                                   [backend](const CubeView<float>& cube, double* squares) {
                                       return backend != nullptr && backend->sum_squares(cube, squares);
                                   });
}

void DetectTargets::warn_of_emission(tool::Run& run) const {
    for (size_t k = 0; k < m_library.spectra.size(); ++k) {
        double below = 0, all = 0; // sums of squares: of values below 0, and of all values
        for (const double v : m_library.spectra[k]) {
            below += v < 0 ? v * v : 0;
            all += v * v;
        }
        constexpr double hardly = 0.01;
        if (below <= hardly * all)
            run.warn("-target-is-absorption: '" + m_library.names[k] +
                     "' has hardly any negative values, so high scores mean a brighter background instead of "
                     "absorption: invert the signs of the library if it has absorption coefficients");
    }
}

std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const Settings& settings,
                                                         const raster::RasterSource& scene) {
    const std::string& path = settings.background;
    // A ring must use only pixels of the mask of the run. For other methods, the pass of the statistics
    // applies the mask.
    if (path.empty())
        return std::holds_alternative<Rings>(settings.how) && run.masks_statistics() ? run.mask() : nullptr;
    std::string how;
    const auto mask = tool::read_mask(run, "-background", path, scene, how);
    run.report()["background_mask"] = {{"path", path}, {"how", how}, {"pixels", mask->count()}};
    if (!run.mask()) return mask;
    mask->keep_only(*run.mask());
    if (mask->count() == 0)
        throw Error("-background " + path + ": the mask excludes all of its pixels",
                    "Use a mask that keeps pixels of -background.");
    run.report()["background_mask"]["pixels"] = mask->count();
    return mask;
}

} // namespace hsi::detect_tool
