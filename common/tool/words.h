// SPDX-License-Identifier: MIT
// Values as people write them: numbers and lists.
#pragma once

#include "raster/band_choice.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::tool {

/// True for GDAL's name of an integer type: "Byte", "UInt16" .. It knows the types of newer versions, too;
/// complex types are not integer types.
bool is_integer_type(const std::string& name);

/// A text that is entirely a number: digits, nan, inf with a sign; nullopt for other texts.
std::optional<double> parse_number(std::string_view text);
std::optional<long long> parse_integer(std::string_view text);
/// The value of an option as a whole number from `least` to `greatest`. \throws UsageError: the text is not
/// `allowed` ("a whole number from 1 on").
int64_t integer_of(const std::string& text, const std::string& option, int64_t least, int64_t greatest,
                   const std::string& allowed);

/// Reads "1-30,45" into 1-based band numbers.
/// \throws UsageError naming the option.
std::vector<int> parse_band_list(const std::vector<std::string>& texts, const std::string& option = "-b");

/// Reads "1-30,450-900nm,2.1um": bands by number, ranges of wavelengths, and single wavelengths (the nearest
/// band). The unit, nm or um, follows the last number, or both.
/// \throws UsageError naming the option.
std::vector<raster::BandChoice> parse_band_choices(const std::vector<std::string>& texts,
                                                   const std::string& option = "-b");
/// True when one of the items names a wavelength: parse_band_choices() reads them, parse_band_list() the
/// others.
bool names_wavelengths(const std::vector<std::string>& texts);
/// Reads ranges of wavelengths, "1340-1460nm". \throws UsageError naming the option.
std::vector<raster::BandChoice> parse_ranges(const std::vector<std::string>& texts,
                                             const std::string& option);
/// The same for -exclude-range.
std::vector<raster::BandChoice> parse_excluded_ranges(const std::vector<std::string>& texts);

/// "3,17,18"
std::string list_text(const std::vector<int>& numbers);
/// Returns "92 to 99, 120" for rising numbers.
std::string ranges_text(const std::vector<int>& numbers);

/// The text as one line: line ends become blanks.
std::string one_line(std::string text);

} // namespace hsi::tool
