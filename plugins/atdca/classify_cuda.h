// SPDX-License-Identifier: MIT
// Classification on a device, for the CUDA module.
#pragma once

#include "atdca/classify.h"

#include <memory>

namespace hsi::atdca {

/// Works as make_classification() on the device `ordinal`.
std::unique_ptr<stream::Operation> make_cuda_classification(int ordinal, Classifier classifier);

} // namespace hsi::atdca
