// SPDX-License-Identifier: MIT
// The targets of a run, and the mask of the background.
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

/// The targets of a run, at the bands of a scene. The scene may lose bands later.
class DetectTargets {
  public:
    /// Reads the library. Removes bands that the library does not have from the scene. \throws the errors of
    /// spectra_for_scene(), and UsageError if a pixel is outside of the scene.
    DetectTargets(tool::Run& run, const TargetOptions& options, std::shared_ptr<raster::RasterSource>& scene);

    /// Names of the targets; "LINE,SAMPLE" for pixels.
    const std::vector<std::string>& names() const { return m_library.names; }

    /// Returns the spectra at the bands of `scene`, which is the scene of the constructor, possibly without
    /// some of its bands. Returns nullopt if a target pixel has no valid spectrum; missing() then names the
    /// pixel.
    std::optional<detect::Targets> at(const raster::RasterSource& scene);

    /// Returns the Error for the target pixel without a valid spectrum.
    Error missing() const;

    /// Warns about probable errors in a library. For a gas (-target-is-absorption): a spectrum without
    /// absorption. Otherwise: spectra with negative values, if the scene has hardly any; and, except for sam,
    /// sid and sff, a spectrum of zeros, which finds dark pixels, and spectra in other units than the scene.
    /// `backend` examines a scene in device memory; may be null.
    void warn_of_mistakes(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          detect::PixelBackend* backend = nullptr) const;

  private:
    void warn_of_emission(tool::Run& run) const;

    const std::vector<std::array<int64_t, 2>> m_pixels;
    const bool m_absorption;
    tools::FittedSpectra m_library; ///< only the names if the targets are pixels
    std::vector<int> m_bands;       ///< band number in the file of each band of m_library
    std::string m_missing;
};

/// Returns the pixels that may be background. With -background, these are its pixels that are also in the
/// mask of the run. Without it, they are the pixels in the mask of the run for rx with rings; for other
/// methods, the result is null, because the pass of the statistics applies the mask. The bytes of the result
/// must be subtracted from the memory of passes (without_mask()). \throws the errors of tool::read_mask(),
/// and Error if no pixel remains.
std::shared_ptr<const detect::PixelMask> read_background(tool::Run& run, const Settings& settings,
                                                         const raster::RasterSource& scene);

} // namespace hsi::detect_tool
