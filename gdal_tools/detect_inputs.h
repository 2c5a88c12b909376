// SPDX-License-Identifier: MIT
// What gdal_hsi_detect looks for, and against what: spectra of a library or of pixels, and the mask of the
// background.
#pragma once

#include "detect/detect.h"
#include "fitted_library.h"
#include "raster/source/raster_source.h"
#include "tool/run.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::tools {

struct DetectSettings {
    detect::Method method = detect::Method::ace;
    std::string library, background, map;
    std::vector<std::string> spectra;           ///< of the library; empty: all
    std::vector<std::array<int64_t, 2>> pixels; ///< line, sample
    std::array<int, 2> window{0, 0};            ///< inner, outer; 0: none
    std::optional<double> threshold;
    double library_scale = 1;
    bool any_scale = false;
    bool local() const { return window[1] > 0; }
};

/// The targets of a run, at the bands of a scene that may lose some on the way.
class DetectTargets {
  public:
    /// Reads the library, and leaves bands that it does not know out of the scene. \throws as
    /// spectra_for_scene(), and UsageError for a pixel outside of the scene.
    DetectTargets(tool::Run& run, const DetectSettings& settings,
                  std::shared_ptr<raster::RasterSource>& scene);
    const std::vector<std::string>& names() const { return m_library.names; } ///< "LINE,SAMPLE" of pixels
    /// The spectra at the bands of `scene`, which is that of the constructor or one without some of its
    /// bands. Empty when the pixel `missing()` has no valid spectrum there.
    std::optional<detect::Targets> at(const raster::RasterSource& scene);
    Error missing() const; ///< to throw when there are none
    /// compare_levels(), for a library.
    void compare_levels(tool::Run& run, const raster::RasterSource& scene) const;

  private:
    const std::vector<std::array<int64_t, 2>> m_pixels;
    SceneSpectra m_library;   ///< of pixels: their names alone
    std::vector<int> m_bands; ///< file bands behind the library's
    std::string m_missing;
};

/// The pixels of -background that are in the run's mask, too; null where all that have values are the
/// background. Its bytes count against the memory of passes (beside()). \throws Error as tool::read_mask().
std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const DetectSettings& settings,
                                                         const raster::RasterSource& scene);

} // namespace hsi::tools
