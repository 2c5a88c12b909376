// SPDX-License-Identifier: MIT
// The reference spectra of rules at the bands of a scene, and the scene's values, to which limits apply.
#pragma once

#include "identify/identify.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::identify_tool {

struct ReferenceOptions {
    std::string library; ///< empty: the libraries of the rule file
    tools::BandFit fit = tools::BandFit::automatic;
    double unit = 1; ///< value of the scene for reflectance 1
};

/// Returns the spectra that the rules of a choice name, each resampled separately. `path`: path of the rule
/// file. \throws Error that names the rule if a spectrum is missing, and if scene or library have no
/// wavelengths.
std::vector<identify::Reference> references_of(tool::Run& run, const ReferenceOptions& options,
                                               const std::string& path, const identify::RuleFile& file,
                                               const identify::Choice& choice,
                                               const raster::RasterSource& scene);

/// Returns all values (by scale and offset) of the first 65,536 valid pixels.
std::vector<float> first_values(const raster::RasterSource& scene, const std::vector<double>& scale,
                                const std::vector<double>& offset);

} // namespace hsi::identify_tool
