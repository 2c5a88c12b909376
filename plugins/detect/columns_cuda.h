// SPDX-License-Identifier: MIT
// Columns on devices, for the module.
#pragma once

#include "core/cuda_module.h"
#include "detect/column_task.h"

#include <memory>
#include <vector>

namespace hsi::detect {

/// make_column_detection() of mf on devices; null for what is the processor's alone (columns_on_devices()).
std::unique_ptr<GroupedDetection> make_cuda_columns(std::vector<CudaDevice> devices, ColumnTask task,
                                                    double& kernel_seconds);

} // namespace hsi::detect
