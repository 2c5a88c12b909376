// SPDX-License-Identifier: MIT
// Counts in words: "1 pixel", "2 pixels".
#pragma once

#include <string>

namespace hsi {

/// Returns `one` if `count` is 1, else `many` (also for 0).
template <class Count>
const char* worded(Count count, const char* one, const char* many) {
    return count == 1 ? one : many;
}

/// Returns "1 pixel" or "12 pixels" for one = "pixel". Give `many` if adding an s is wrong ("spectra").
template <class Count>
std::string counted(Count count, const char* one, const char* many = nullptr) {
    std::string text = std::to_string(count) + " " + worded(count, one, many != nullptr ? many : one);
    if (many == nullptr && count != 1) text += 's';
    return text;
}

} // namespace hsi
