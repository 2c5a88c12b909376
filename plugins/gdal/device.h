// SPDX-License-Identifier: MIT
// Functions with so much arithmetic that a GPU pays although every pixel travels to it and back.
#pragma once

#include "stream/operation.h"
#include "svm/svm.h"

#include <memory>

namespace hsi::plugin {

/// The classification on a GPU, or null: on the CPU. GDAL_HSI_DEVICE decides; auto takes a GPU when the
/// module and a device are there, and the model is so large that it pays. Throws Error when a GPU was asked
/// for and cannot be had.
std::unique_ptr<svm::Classification> svm_on_device(const std::shared_ptr<const svm::Model>& model,
                                                   const svm::ClassifyOptions& options);

} // namespace hsi::plugin
