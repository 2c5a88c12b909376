// SPDX-License-Identifier: MIT
// Parses values as users write them: numbers, lists, and choices of bands such as 1-30 or 450-900nm.
#pragma once

#include "raster/band_choice.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::tool {

/// Returns true for GDAL's name of an integer type: "Byte", "UInt16" ..., also types of newer versions.
/// Complex types are not integer types.
bool is_integer_type(const std::string& name);

/// Returns the number if the whole text is a number: digits, nan, inf with a sign; nullopt for other texts.
std::optional<double> parse_number(std::string_view text);
std::optional<long long> parse_integer(std::string_view text);
/// Returns the value of an option as a whole number from `least` to `greatest`. \throws UsageError: the text
/// is not `allowed` ("a whole number from 1 on").
int64_t integer_of(const std::string& text, const std::string& option, int64_t least, int64_t greatest,
                   const std::string& allowed);

/// Parses "1-30,45" to 1-based band numbers.
/// \throws UsageError that names the option.
std::vector<int> parse_band_list(const std::vector<std::string>& texts, const std::string& option = "-b");

/// Parses "1-30,450-900nm,2.1um": bands by number, ranges of wavelengths, and single wavelengths (the nearest
/// band). The unit, nm or um, follows the last number, or both.
/// \throws UsageError that names the option.
std::vector<raster::BandChoice> parse_band_choices(const std::vector<std::string>& texts,
                                                   const std::string& option = "-b");
/// Returns true if an item contains a wavelength. Parse the texts with parse_band_choices() in this case,
/// else with parse_band_list().
bool names_wavelengths(const std::vector<std::string>& texts);
/// Parses ranges of wavelengths, "1340-1460nm". \throws UsageError that names the option.
std::vector<raster::BandChoice> parse_ranges(const std::vector<std::string>& texts,
                                             const std::string& option);
/// Parses the ranges of -exclude-range.
std::vector<raster::BandChoice> parse_excluded_ranges(const std::vector<std::string>& texts);

/// Returns "3,17,18".
std::string list_text(const std::vector<int>& numbers);
/// Returns "92 to 99, 120" for rising numbers.
std::string ranges_text(const std::vector<int>& numbers);

/// Returns the text as one text line: line ends become blanks.
std::string one_line(std::string text);

} // namespace hsi::tool
