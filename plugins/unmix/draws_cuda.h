// SPDX-License-Identifier: MIT
// Draws on devices, for the module.
#pragma once

#include "core/cuda_module.h"
#include "unmix/draws.h"

#include <memory>
#include <vector>

namespace hsi::unmix {

/// Works as make_draws() on devices, to the last bit. Adds the seconds of its kernels to kernel_seconds.
std::unique_ptr<DrawUnmixing> make_cuda_draws(std::vector<CudaDevice> devices, const Endmembers& library,
                                              const Classes& classes, const DrawOptions& options,
                                              double& kernel_seconds);

} // namespace hsi::unmix
