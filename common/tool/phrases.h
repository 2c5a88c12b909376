// SPDX-License-Identifier: MIT
// Set phrases of messages: all tools word the same case in the same way.
#pragma once

#include <string>

namespace hsi::tool {

/// Returns "ONE cannot be used with OTHER", for options that exclude each other. OTHER may state a reason
/// after ": ".
[[nodiscard]] inline std::string cannot_be_used_with(const std::string& one, const std::string& other) {
    return one + " cannot be used with " + other;
}

/// Returns "OPTION requires WHAT", for an option that needs another option.
[[nodiscard]] inline std::string option_requires(const std::string& option, const std::string& what) {
    return option + " requires " + what;
}

} // namespace hsi::tool
