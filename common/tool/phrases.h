// SPDX-License-Identifier: MIT
// Set phrases of messages: one case is worded once, in all tools.
#pragma once

#include <string>

namespace hsi::tool {

/// Returns "ONE cannot be used with OTHER": for options that exclude each other. OTHER may state a reason
/// after ": ".
[[nodiscard]] inline std::string cannot_be_used_with(const std::string& one, const std::string& other) {
    return one + " cannot be used with " + other;
}

/// Returns "OPTION requires WHAT": for an option without another one that it needs.
[[nodiscard]] inline std::string option_requires(const std::string& option, const std::string& what) {
    return option + " requires " + what;
}

} // namespace hsi::tool
