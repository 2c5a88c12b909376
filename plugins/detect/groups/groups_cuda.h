// SPDX-License-Identifier: MIT
// Backgrounds by group on devices, for the module.
#pragma once

#include "core/cuda_module.h"
#include "detect/groups/column_task.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::detect {

/// make_column_detection() on devices; null where groups_on_devices() says so.
std::unique_ptr<GroupedDetection> make_cuda_columns(std::vector<CudaDevice> devices, ColumnTask task,
                                                    double& kernel_seconds);
/// Backend::make_group_scene()
std::unique_ptr<GroupScene> make_cuda_group_scene(const CudaDevice& device, const stream::CubeShape& scene,
                                                  const GroupPlane& plane, const GroupOptions& options,
                                                  const PixelMask* mask, uint64_t memory,
                                                  double& kernel_seconds);

} // namespace hsi::detect
