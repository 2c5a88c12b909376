// SPDX-License-Identifier: MIT
// Lists of numbers as arguments of pixel functions, with all digits of a double.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace hsi::tools {

/// Returns a list of numbers such as "0.1 2 3".
inline std::string number_list(const double* values, size_t count) {
    std::string text;
    char one[32];
    for (size_t i = 0; i < count; ++i) {
        std::snprintf(one, sizeof one, "%.17g", values[i]);
        text += (i ? " " : "") + std::string(one);
    }
    return text;
}
inline std::string number_list(const std::vector<double>& values) {
    return number_list(values.data(), values.size());
}

/// Returns rows of `length` numbers each, separated by semicolons.
inline std::string number_rows(const std::vector<double>& values, size_t length) {
    std::string text;
    for (size_t at = 0; at < values.size(); at += length)
        text += (at ? "; " : "") + number_list(values.data() + at, length);
    return text;
}

} // namespace hsi::tools
