// SPDX-License-Identifier: MIT
// The message for an output that already exists.
#pragma once

#include "core/error.h"

#include <string>

namespace hsi::raster {

/// Returns the error "output 'PATH' already exists" with the advice to use -overwrite. `more` is appended to
/// the first line.
[[nodiscard]] inline Error already_exists(const std::string& path, const std::string& more = "") {
    return Error("output '" + path + "' already exists" + more, "Use -overwrite to replace it.");
}

} // namespace hsi::raster
