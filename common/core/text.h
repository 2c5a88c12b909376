// SPDX-License-Identifier: MIT
// Functions for text: numbers; names that people type, compared without case; the most similar known name;
// and UTF-8 from files that do not state their encoding.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi {

/// Removes the longest number that std::from_chars() would read at the beginning of the text, and returns it.
/// Rounds as std::from_chars() does, in any locale. (Some current standard libraries have no
/// std::from_chars() for real numbers.) Does not accept blanks, a leading '+' or hexadecimal digits. Returns
/// nullopt and does not change the text if it does not begin with a number, or if the number is too large or
/// too small for a double.
std::optional<double> take_number(std::string_view& text);

/// Returns the number if the whole text is a number, else nullopt.
std::optional<double> to_number(std::string_view text);

/// Splits a list into words: "5,Soil" gives 5 and Soil. A word with a comma is in double quotes, in which a
/// quote is written twice: 5,"Corn, young". Removes blanks around words. Returns nullopt if a word is empty
/// or a quote does not end.
std::optional<std::vector<std::string>> listed_words(std::string_view text);

/// Returns the text in double quotes, with each quote in it written twice, as in listed_words() and CSV.
std::string in_double_quotes(std::string_view text);

/// Returns the cell of a CSV file: the text, in double quotes if it contains commas, quotes or line ends.
std::string csv_cell(std::string_view text);

/// Returns the text without these characters at its beginning and end.
std::string_view trimmed(std::string_view text, std::string_view characters = " \t\r\n");

/// Returns "a, b, c" for between = ", ".
std::string joined(const std::vector<std::string>& words, const char* between);

/// Returns true if the text contains one of the parts. Case matters.
bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts);

/// Returns true if the text begins with one of the beginnings. Case matters.
bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings);

/// Works as begins_with_any() but ignores the case of ASCII letters.
bool begins_like_any(std::string_view text, std::initializer_list<std::string_view> beginnings);

/// Returns true if the two names differ at most in the case of ASCII letters.
bool equal_names(std::string_view a, std::string_view b);

/// Returns the element of `names` with the spelling most similar to `name`, ignoring case; empty if none is
/// similar.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

/// Returns "Did you mean -ws?" if nearest_name() is "ws" and `before` is "-"; empty if no name is similar.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names,
                         const char* before = "");

/// Returns true for valid UTF-8: no misplaced byte, no overlong form, no surrogate.
bool is_utf8(std::string_view text);

/// Converts the text to UTF-8 without a byte-order mark. Valid UTF-8 is unchanged. Text with a mark of UTF-16
/// (spreadsheets' "Unicode text") is converted from UTF-16. Other text is read as Windows-1252, which
/// includes the letters of Latin-1. Invalid characters become U+FFFD, so the result is always valid.
std::string utf8_text(std::string text);

/// Removes the first character of the text and returns its code point. A byte that cannot begin a character
/// counts as a character and gives U+FFFD.
char32_t take_character(std::string_view& text);

/// Returns true if the texts differ only in how letters with marks are encoded: as one character (Unicode's
/// NFC, which most systems write) or as a letter and its marks (NFD, which macOS uses for file names). The
/// function has no table of composed letters. It therefore assumes that a composed letter equals the letter
/// with marks of the other text, whatever these are.
bool differ_in_composition(std::string_view a, std::string_view b);

/// Appends the character with this code point (0 to 0x10FFFF).
void append_utf8(std::string& text, char32_t character);

} // namespace hsi
