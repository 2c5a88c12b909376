// SPDX-License-Identifier: MIT
// Functions with so much arithmetic that a GPU is faster, although every pixel is copied to the GPU and back.
#pragma once

#include "stream/operation.h"
#include "svm/svm.h"

#include <memory>

namespace hsi::plugin {

/// The device that GDAL_HSI_DEVICE selects for a classification.
enum class Place {
    cpu,
    device, ///< a GPU is requested
    /// `auto` is requested, and a GPU may exist. The CPU computes until starting a GPU is worthwhile.
    either,
};
/// Returns the device for classification with this model. Throws Error if the requested device is unavailable
/// and this can be detected without starting it.
Place svm_place(const svm::Model& model);

/// Starts a GPU and creates the classification on it. Throws Error if there is no GPU.
std::unique_ptr<svm::Classification> svm_on_device(const std::shared_ptr<const svm::Model>& model,
                                                   const svm::ClassifyOptions& options);

/// The cost of starting a GPU, in operations of the CPU backend on one thread.
inline constexpr double device_start_cost = 1.5e10;

} // namespace hsi::plugin
