// SPDX-License-Identifier: MIT
// Where gdal_hsi_detect computes its scores, and what that costs.
#pragma once

#include "detect/detect.h"
#include "detect_inputs.h"
#include "stream/cube_source.h"
#include "tool/devices.h"
#include "tool/run.h"

#include <cstddef>

namespace hsi::tools {

using DetectComputing = tool::Computing<detect::Backend>;

/// Scores of `targets` (rx: 0), with the statistics of the background where the method wants them: these are
/// the CPU's, wherever the scores are computed.
tool::Work detect_work(const DetectSettings& settings, const stream::CubeShape& scene, size_t targets,
                       int threads);

/// Starts the backend, or, for a VRT, which computes nothing, that of the CPU. Tells the user where scores
/// and statistics are computed.
DetectComputing detect_computing(tool::Run& run, const DetectSettings& settings,
                                 const stream::CubeShape& scene, size_t targets);

/// A detector of the right size, for a plan.
detect::Detector any_detector(detect::Method method, int bands, size_t targets);

/// A pass's memory without the mask, which stays there.
stream::PassOptions beside(const detect::PixelMask* mask, stream::PassOptions pass);

} // namespace hsi::tools
