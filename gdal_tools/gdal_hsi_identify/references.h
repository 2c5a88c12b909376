// SPDX-License-Identifier: MIT
// The reference spectra of rules at the bands of a scene, and the values of a scene that limits are on.
#pragma once

#include "identify/identify.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::identify_tool {

struct ReferenceOptions {
    std::string library; ///< empty: those of the rule file
    tools::BandFit fit = tools::BandFit::automatic;
    double unit = 1; ///< value of the scene at reflectance 1
};

/// The spectra that the rules of a choice name, each resampled separately. `path`: of the rule file. \throws
/// Error where one is missing, naming the rule, and where scene or library have no wavelengths.
std::vector<identify::Reference> references_of(tool::Run& run, const ReferenceOptions& options,
                                               const std::string& path, const identify::RuleFile& file,
                                               const identify::Choice& choice,
                                               const raster::RasterSource& scene);

/// All values (by scale and offset) of the first 65,536 valid pixels.
std::vector<float> first_values(const raster::RasterSource& scene, const std::vector<double>& scale,
                                const std::vector<double>& offset);

} // namespace hsi::identify_tool
