// SPDX-License-Identifier: MIT
// Counts in words: "1 pixel", "2 pixels".
#pragma once

#include <string>

namespace hsi {

/// The word for `count` things: `one` of them, or `many` (also of none).
template <class Count>
const char* worded(Count count, const char* one, const char* many) {
    return count == 1 ? one : many;
}

/// "1 pixel", "12 pixels" for one = "pixel"; `many` where an s does not make it ("spectra", "pixels are").
template <class Count>
std::string counted(Count count, const char* one, const char* many = nullptr) {
    std::string text = std::to_string(count) + " " + worded(count, one, many != nullptr ? many : one);
    if (many == nullptr && count != 1) text += 's';
    return text;
}

} // namespace hsi
