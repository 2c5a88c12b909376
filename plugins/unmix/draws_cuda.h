// SPDX-License-Identifier: MIT
// Monte Carlo unmixing on devices, for the CUDA module.
#pragma once

#include "core/cuda_module.h"
#include "unmix/draws.h"

#include <memory>
#include <vector>

namespace hsi::unmix {

/// Creates the same operation as make_draws() on devices, with bitwise equal results. Adds the time of its
/// kernels in seconds to kernel_seconds.
std::unique_ptr<DrawUnmixing> make_cuda_draws(std::vector<CudaDevice> devices, const Endmembers& library,
                                              const Classes& classes, const DrawOptions& options,
                                              double& kernel_seconds);

} // namespace hsi::unmix
