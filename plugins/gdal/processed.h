// SPDX-License-Identifier: MIT
// Steps of VRTProcessedDataset (GDAL 3.9 and newer).
#pragma once

#include <cpl_error.h>

#include <functional>

namespace hsi::plugin {

/// gdal: dlopen's handle of GDAL's library; null: look in the whole process. Does nothing when that GDAL has
/// no such steps.
void register_steps(void* gdal);

/// Runs the body; any exception becomes a CPLError that names the function.
CPLErr guarded(const char* function, const std::function<void()>& body);

} // namespace hsi::plugin
