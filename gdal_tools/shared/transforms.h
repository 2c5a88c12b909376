// SPDX-License-Identifier: MIT
// The output of tools that transform every spectrum separately: gdal_hsi_smooth and gdal_hsi_reflect.
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

/// The meaning of the result's values.
struct Meaning {
    std::optional<double> scale;
    std::string unit;
};

/// How a tool transforms a scene.
struct SpectrumWork {
    std::string pass;      ///< its name: "smoothing"
    double share = 1;      ///< of the progress
    std::string undefined; ///< why pixels have no result: "since a value is not above 0"
    Meaning meaning;
    /// Returns the transform for the bands of a scene, which may have lost some since the last call.
    std::function<smooth::Transform(const raster::RasterSource&)> make;
};

/// Writes dst with the bands of the transform, or with their definition, which is computed when it is read.
/// \throws Error if no pixel is valid, and if no valid pixel has a result.
void write_transformed(tool::Run& run, tool::Scene& scene, const SpectrumWork& work);

/// Returns the mean of each band over the counted pixels, after `first` if it is given (logarithms). Bands
/// without a value are left out of the scene.
std::vector<double> counted_means(tool::Run& run, tool::Scene& scene,
                                  const std::optional<smooth::Transform>& first = {});

/// \throws Error if the source has no wavelengths.
[[noreturn]] void refuse_without_wavelengths(const std::string& path);

} // namespace hsi::tools
