// SPDX-License-Identifier: MIT
// Texts of files that do not say how they are encoded.
#pragma once

#include <string>
#include <string_view>

namespace hsi {

/// True for valid UTF-8: no byte out of place, no overlong form, no surrogate.
bool is_utf8(std::string_view text);

/// The text in UTF-8: as it is where it is valid, else taken for Windows-1252, whose letters are those of
/// Latin-1. A byte that this leaves open becomes U+FFFD, so that the result is valid whatever comes in.
std::string utf8_text(std::string text);

} // namespace hsi
