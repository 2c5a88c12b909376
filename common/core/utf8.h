// SPDX-License-Identifier: MIT
// Texts of files that do not say how they are encoded.
#pragma once

#include <string>
#include <string_view>

namespace hsi {

/// True for valid UTF-8: no byte out of place, no overlong form, no surrogate.
bool is_utf8(std::string_view text);

/// The text in UTF-8 without a byte-order mark: as it is where it is valid, from UTF-16 where its mark says
/// so (spreadsheets' "Unicode text"), else taken for Windows-1252, whose letters are those of Latin-1. What
/// is no character becomes U+FFFD, so that the result is valid whatever comes in.
std::string utf8_text(std::string text);

/// Takes the first character off the text and returns its number; U+FFFD for a byte that begins none.
char32_t take_character(std::string_view& text);

/// True when the two differ in nothing but how letters with marks are put together: as one character each
/// (Unicode's NFC, which most systems write) or as a letter and its marks (NFD, which macOS makes of file
/// names). Which mark a composed letter stands for is not looked up.
bool differ_in_composition(std::string_view a, std::string_view b);

/// Appends the character of that number, 0 to 0x10FFFF.
void append_utf8(std::string& text, char32_t character);

} // namespace hsi
