// SPDX-License-Identifier: MIT
// What is looked for, and against what: the targets of a run, and the mask of its background.
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

/// The targets of a run, at the bands of a scene that may lose some on the way.
class DetectTargets {
  public:
    /// Reads the library, and leaves bands that it does not know out of the scene. \throws as
    /// spectra_for_scene(), and UsageError for a pixel outside of the scene.
    DetectTargets(tool::Run& run, const TargetOptions& options, std::shared_ptr<raster::RasterSource>& scene);

    const std::vector<std::string>& names() const { return m_library.names; } ///< "LINE,SAMPLE" of pixels

    /// The spectra at the bands of `scene`, which is that of the constructor or one without some of its
    /// bands. Empty when the pixel `missing()` has no valid spectrum there.
    std::optional<detect::Targets> at(const raster::RasterSource& scene);

    /// To throw when there are none.
    Error missing() const;

    /// Of a library what may be a mistake beside the scene: other signs, other units (sam, sid and sff are
    /// the same in any), a spectrum of zeros, which else is darkness, and of a gas that absorbs nothing. A
    /// scene that lies on a device is looked at there, by `backend`.
    void warn_of_mistakes(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          detect::PixelBackend* backend = nullptr) const;

  private:
    void warn_of_emission(tool::Run& run) const;

    const std::vector<std::array<int64_t, 2>> m_pixels;
    const bool m_absorption;
    tools::FittedSpectra m_library; ///< of pixels: their names alone
    std::vector<int> m_bands;       ///< file bands behind the library's
    std::string m_missing;
};

/// The pixels of -background that are in the run's mask, too; null where all that have values are the
/// background. Its bytes count against the memory of passes (without_mask()). \throws Error as
/// tool::read_mask().
std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const Settings& settings,
                                                         const raster::RasterSource& scene);

} // namespace hsi::detect_tool
