// SPDX-License-Identifier: MIT
// Functions with so much arithmetic that a GPU pays although every pixel travels to it and back.
#pragma once

#include "stream/operation.h"
#include "svm/svm.h"

#include <memory>

namespace hsi::plugin {

/// The device that GDAL_HSI_DEVICE selects for a classification.
enum class Place {
    cpu,
    device, ///< a GPU was requested
    either, ///< auto, and a GPU may be there: on the CPU until a GPU's start pays
};
/// Throws Error for a device that cannot be had, as far as is known without starting it.
Place svm_place(const svm::Model& model);

/// The classification on a GPU. Throws Error without a GPU.
std::unique_ptr<svm::Classification> svm_on_device(const std::shared_ptr<const svm::Model>& model,
                                                   const svm::ClassifyOptions& options);

/// The cost of the start of a GPU, in operations of the CPU backend on one thread.
inline constexpr double device_start_cost = 1.5e10;

} // namespace hsi::plugin
