// SPDX-License-Identifier: MIT
// The scan of moments on devices (part of hsi_cuda_pca.so: the scene stays there for the projection).
#pragma once

#include "core/cuda_module.h"
#include "pca/pca_cuda_scene.cuh"
#include "stream/moment_scan.h"

#include <memory>
#include <vector>

namespace hsi::pca {

/// With differences. Lanes take turns on the devices. held: where to keep what is read; may be null.
std::unique_ptr<stream::MomentScan> make_cuda_moments(const std::vector<CudaDevice>& devices,
                                                      const stream::CubeShape& scene,
                                                      std::shared_ptr<HeldScene> held);

} // namespace hsi::pca
