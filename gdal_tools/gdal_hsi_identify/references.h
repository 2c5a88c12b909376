// SPDX-License-Identifier: MIT
// The reference spectra of rules at the bands of a scene, and values of the scene to which limits apply.
#pragma once

#include "identify/identify.h"
#include "raster/raster_source.h"
#include "shared/scene_and_library.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::identify_tool {

struct ReferenceOptions {
    std::string library; ///< path of -library; empty: the libraries that the rule file names
    tools::BandFit fit = tools::BandFit::automatic;
    double unit = 1; ///< value of the scene that stands for reflectance 1
};

/// Returns the spectra that the rules in `choice` refer to. Each spectrum is resampled separately. `path`:
/// path of the rule file. \throws Error with the name of the rule if a spectrum is missing; Error if the
/// scene or a library has no wavelengths.
std::vector<identify::Reference> references_of(tool::Run& run, const ReferenceOptions& options,
                                               const std::string& path, const identify::RuleFile& file,
                                               const identify::Choice& choice,
                                               const raster::RasterSource& scene);

/// Returns all scaled values of the first 65,536 valid pixels.
std::vector<float> first_values(const raster::RasterSource& scene, const std::vector<double>& scale,
                                const std::vector<double>& offset);

} // namespace hsi::identify_tool
