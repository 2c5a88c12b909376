// SPDX-License-Identifier: MIT
// The fields of a source's ENVI header, and which of them go by bands.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <string>
#include <vector>

namespace hsi::raster {

/// Fields whose lists never go by bands, however many elements they happen to have.
bool scene_list(const std::string& key);

/// The elements of the kept bands in the kept order, of a list of one element a file band.
std::vector<std::string> cut_list(const std::vector<std::string>& list, const SceneMetadata& scene);

} // namespace hsi::raster
