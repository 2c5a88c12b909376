// SPDX-License-Identifier: MIT
// A scene to the planes of its principal components, for tools that profile these (gdal_hsi_eadp,
// gdal_hsi_profile).
#pragma once

#include "pca_stage.h"
#include "stream/plane_store.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hsi::tools {

struct ComponentRequest {
    int components = 7;
    bool given = false; ///< -nc was, and is not cut down to the number of bands
    uint64_t most = 0;  ///< planes of more bytes go into a temporary file
    std::string folder; ///< for this file
    double share = 0.3; ///< of the progress
};

struct ComponentPlanes {
    std::unique_ptr<stream::PlaneStore> planes; ///< NaN where a pixel is invalid
    pca::Model model;
    int components() const { return planes->shape().bands; }
    uint64_t held_bytes() const { return planes->in_memory() ? planes->shape().float_bytes() : 0; }
};

/// Covariance and projection. Bands without values are left out of the scene; its copy in memory is released.
ComponentPlanes project_scene(tool::Scene& scene, PcaComputing& computing, const ComponentRequest& request);

/// "PC1", "PC2" ...
std::vector<std::string> component_names(int components);

} // namespace hsi::tools
