// SPDX-License-Identifier: MIT
// Writes the output of tools that transform each spectrum separately: gdal_hsi_smooth and gdal_hsi_reflect.
#pragma once

#include "raster/raster_source.h"
#include "smooth/smooth.h"
#include "tool/scene.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::tools {

/// Scale and unit of the result's values.
struct Meaning {
    std::optional<double> scale;
    std::string unit;
};

/// Describes how a tool transforms a scene.
struct SpectrumWork {
    std::string pass;      ///< name of the pass, such as "smoothing"
    double share = 1;      ///< part of the progress bar
    std::string undefined; ///< reason why pixels have no result, such as "since a value is not above 0"
    Meaning meaning;
    /// Returns the transform for the bands of a scene. The scene may have lost bands since the last call.
    std::function<smooth::Transform(const raster::RasterSource&)> make;
};

/// Writes dst with the transformed bands. If dst is a virtual format, writes the definition of the transform.
/// \throws Error if no pixel is valid, or if no valid pixel has a result.
void write_transformed(tool::Run& run, tool::Scene& scene, const SpectrumWork& work);

/// Returns the mean of each band over the pixels that statistics use. If `first` is given, the spectra are
/// transformed with it (such as by a logarithm) before the mean is computed. Bands without a value are
/// removed from the scene.
std::vector<double> counted_means(tool::Run& run, tool::Scene& scene,
                                  const std::optional<smooth::Transform>& first = {});

/// Throws the Error for a source without wavelengths.
[[noreturn]] void refuse_without_wavelengths(const std::string& path);

} // namespace hsi::tools
