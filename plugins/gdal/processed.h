// SPDX-License-Identifier: MIT
// Steps of VRTProcessedDataset (GDAL 3.9 and newer).
#pragma once

#include <cpl_error.h>

#include <functional>

namespace hsi::plugin {

/// Registers the steps. `gdal` is dlopen's handle of the GDAL library; null: search the whole process. Does
/// nothing if this GDAL version does not support steps.
void register_steps(void* gdal);

/// Runs the body. If it throws an exception, reports the exception with a CPLError that names `function`, and
/// returns CE_Failure. Otherwise returns CE_None.
CPLErr guarded(const char* function, const std::function<void()>& body);

} // namespace hsi::plugin
