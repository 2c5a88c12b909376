// SPDX-License-Identifier: MIT
// The targets of a run, and the mask of its background.
#pragma once

#include "core/error.h"
#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::detect_tool {

/// The targets of a run, at the bands of a scene that may later lose some bands.
class DetectTargets {
  public:
    /// Reads the library, and leaves bands that it does not have out of the scene. \throws as
    /// spectra_for_scene(), and UsageError for a pixel outside of the scene.
    DetectTargets(tool::Run& run, const TargetOptions& options, std::shared_ptr<raster::RasterSource>& scene);

    const std::vector<std::string>& names() const { return m_library.names; } ///< "LINE,SAMPLE" for pixels

    /// Returns the spectra at the bands of `scene`, which is the constructor's scene or that scene without
    /// some bands. Empty if the pixel `missing()` has no valid spectrum there.
    std::optional<detect::Targets> at(const raster::RasterSource& scene);

    /// Returns the Error for missing targets.
    Error missing() const;

    /// Warns about likely errors in a library, compared with the scene: other signs, other units (irrelevant
    /// to sam, sid and sff), a spectrum of zeros, which means darkness, and for a gas a spectrum without
    /// absorption. `backend` examines a scene on a device.
    void warn_of_mistakes(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          detect::PixelBackend* backend = nullptr) const;

  private:
    void warn_of_emission(tool::Run& run) const;

    const std::vector<std::array<int64_t, 2>> m_pixels;
    const bool m_absorption;
    tools::FittedSpectra m_library; ///< for pixels: only their names
    std::vector<int> m_bands;       ///< file bands of the library's bands
    std::string m_missing;
};

/// Returns the pixels of -background that are also in the run's mask; null if all valid pixels are the
/// background. Its bytes count against the memory of passes (without_mask()). \throws Error as
/// tool::read_mask().
std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const Settings& settings,
                                                         const raster::RasterSource& scene);

} // namespace hsi::detect_tool
