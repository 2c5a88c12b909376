// SPDX-License-Identifier: MIT
#include "detect_inputs.h"

#include "core/error.h"
#include "tool/mask.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::tools {

DetectTargets::DetectTargets(tool::Run& run, const DetectSettings& settings,
                             std::shared_ptr<raster::RasterSource>& scene)
    : m_pixels(settings.pixels) {
    if (!settings.library.empty()) {
        m_library = spectra_for_scene(run, "-target", settings.library, settings.spectra,
                                      settings.library_scale, "Detection", scene);
        m_bands = scene->bands();
        return;
    }
    const auto shape = scene->shape();
    for (const auto& [line, sample] : m_pixels) {
        if (line >= shape.lines || sample >= shape.samples)
            throw UsageError("-target-pixel " + std::to_string(line) + " " + std::to_string(sample) +
                                 ": the scene has lines 0 to " + std::to_string(shape.lines - 1) +
                                 " and samples 0 to " + std::to_string(shape.samples - 1),
                             "Line and sample count from 0, within -srcwin.");
        m_library.names.push_back(std::to_string(line) + "," + std::to_string(sample));
    }
}

std::optional<detect::Targets> DetectTargets::at(const raster::RasterSource& scene) {
    if (m_pixels.empty()) {
        auto library = without_lost_bands(m_library, m_bands, scene);
        return detect::Targets{std::move(library.names), std::move(library.spectra)};
    }
    detect::Targets targets{m_library.names, {}};
    const auto bands = static_cast<size_t>(scene.shape().bands);
    const auto reader = scene.open_reader();
    for (size_t k = 0; k < m_pixels.size(); ++k) {
        std::vector<float> x(bands);
        reader->read({m_pixels[k][1], m_pixels[k][0], 1, 1},
                     CubeView<float>::packed(x.data(), static_cast<int>(bands), 1, 1));
        if (!std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); }) ||
            std::all_of(x.begin(), x.end(), [](float v) { return v == 0; })) {
            m_missing = std::to_string(m_pixels[k][0]) + " " + std::to_string(m_pixels[k][1]);
            return {};
        }
        targets.spectra.emplace_back(x.begin(), x.end());
    }
    return targets;
}

Error DetectTargets::missing() const {
    return Error("-target-pixel " + m_missing + ": the pixel is invalid (nodata, masked, NaN or all zero)",
                 "Name a pixel that has a value in all bands, or leave bands out with -b.");
}

void DetectTargets::compare_levels(tool::Run& run, const raster::RasterSource& scene) const {
    if (!m_library.spectra.empty()) tools::compare_levels(run, scene, m_library);
}

std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const DetectSettings& settings,
                                                         const raster::RasterSource& scene) {
    const std::string& path = settings.background;
    // Rings are taken from pixels that have scores, too; the other methods' statistics have a pass of their
    // own.
    if (path.empty()) return settings.local() && run.masks_statistics() ? run.mask() : nullptr;
    std::string how;
    const auto mask = tool::read_mask(run, "-background", path, scene, how);
    run.report()["background_mask"] = {{"path", path}, {"how", how}, {"pixels", mask->count()}};
    if (!run.mask()) return mask;
    mask->keep_only(*run.mask());
    if (mask->count() == 0)
        throw Error("-background " + path + ": no pixel of it is in the mask",
                    "The background are the pixels that both -background and the mask take.");
    run.report()["background_mask"]["pixels"] = mask->count();
    return mask;
}

} // namespace hsi::tools
