// SPDX-License-Identifier: MIT
// Functions for text: numbers; names that people type, compared without case, and the nearest known name;
// UTF-8 from files that do not state their encoding.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi {

/// Takes the number off the front of the text: the longest that std::from_chars() reads there, rounded as it
/// rounds, in any locale. (Not all of today's standard libraries can read fractions.) No blanks, no '+'
/// before it, no hexadecimal digits. Returns nullopt and leaves the text as it was if no number is there, or
/// if it is too large or too small for a double.
std::optional<double> take_number(std::string_view& text);

/// The number that the whole text is.
std::optional<double> to_number(std::string_view text);

/// The words of a list: "5,Soil" is 5 and Soil. A word with a comma is in double quotes, in which a quote is
/// written twice: 5,"Corn, young". Blanks around words are removed; nullopt if a word is empty or a quote
/// does not end.
std::optional<std::vector<std::string>> listed_words(std::string_view text);

/// The text in double quotes, in which a quote is written twice, as listed_words() and CSV have it.
std::string in_double_quotes(std::string_view text);

/// A cell of a CSV file: the text, in double quotes where it has commas, quotes or line ends.
std::string csv_cell(std::string_view text);

/// The text without these characters at both of its ends.
std::string_view trimmed(std::string_view text, std::string_view characters = " \t\r\n");

/// "a, b, c" for between = ", ".
std::string joined(const std::vector<std::string>& words, const char* between);

/// True if the text contains one of the parts. Case matters.
bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts);

/// True if the text begins with one of the beginnings. Case matters.
bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings);

/// As begins_with_any(), in any case of ASCII letters.
bool begins_like_any(std::string_view text, std::initializer_list<std::string_view> beginnings);

/// True when the two are equal but for the case of ASCII letters.
bool equal_names(std::string_view a, std::string_view b);

/// The element of `names` with the spelling nearest to `name`, in any case; empty if none is near.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

/// "Did you mean -ws?" for nearest_name() with `before` in front; empty when none is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names,
                         const char* before = "");

/// True for valid UTF-8: no byte out of place, no overlong form, no surrogate.
bool is_utf8(std::string_view text);

/// The text in UTF-8 without a byte-order mark: unchanged if it is valid, from UTF-16 if its mark says so
/// (spreadsheets' "Unicode text"), else taken for Windows-1252, which includes Latin-1's letters. Invalid
/// characters become U+FFFD, so the result is always valid.
std::string utf8_text(std::string text);

/// Takes the first character off the text and returns its number; U+FFFD for a byte that cannot begin a
/// character.
char32_t take_character(std::string_view& text);

/// True when the two differ in nothing but how letters with marks are put together: as one character each
/// (Unicode's NFC, which most systems write) or as a letter and its marks (NFD, which macOS makes of file
/// names). The function does not look up which mark a composed letter has.
bool differ_in_composition(std::string_view a, std::string_view b);

/// Appends the character of that number, 0 to 0x10FFFF.
void append_utf8(std::string& text, char32_t character);

} // namespace hsi
