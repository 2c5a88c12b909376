// SPDX-License-Identifier: MIT
#include "detect_inputs.h"

#include "core/error.h"
#include "raster/labels.h"

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

std::unique_ptr<detect::PixelMask> read_background(tool::Run& run, const std::string& path,
                                                   const raster::RasterSource& scene) {
    if (path.empty()) return nullptr;
    const auto grid = raster::grid_of(scene);
    raster::LabelOptions options;
    options.path = path;
    options.mask = true;
    const auto source = raster::LabelSource::open(options, &grid);
    for (const auto& note : source->notes())
        run.warn(note);
    auto mask = std::make_unique<detect::PixelMask>(grid.samples, grid.lines);
    constexpr int64_t strip = 64;
    std::vector<uint16_t> values(static_cast<size_t>(strip * grid.samples));
    int64_t pixels = 0;
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t count = std::min(strip, grid.lines - y);
        source->read(y, count, values.data());
        for (int64_t line = 0; line < count; ++line)
            for (int64_t sample = 0; sample < grid.samples; ++sample)
                if (values[static_cast<size_t>(line * grid.samples + sample)] != 0) {
                    mask->set(y + line, sample);
                    ++pixels;
                }
    }
    if (pixels == 0)
        throw Error("-background " + path + ": no pixel of the scene is in it",
                    "Give a mask that lies on the scene and is not 0 where the background is.");
    run.report()["background_mask"] = {
        {"path", source->path()}, {"how", source->description()}, {"pixels", pixels}};
    return mask;
}

} // namespace hsi::tools
