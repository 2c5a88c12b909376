// SPDX-License-Identifier: MIT
// Values as people write them: numbers and lists.
#pragma once

#include "raster/source/band_choice.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hsi::tool {

/// A number in full: digits, nan, inf with a sign; nothing when the text is anything else.
std::optional<double> parse_number(std::string_view text);
std::optional<long long> parse_integer(std::string_view text);

/// Reads "1-30,45" into 1-based band numbers.
/// \throws UsageError naming the option.
std::vector<int> parse_band_list(const std::vector<std::string>& texts, const std::string& option = "-b");

/// Reads "1-30,450-900nm,2.1um": bands by number, ranges of wavelengths, and single wavelengths (the nearest
/// band). The unit, nm or um, stands behind the last number, or behind both.
/// \throws UsageError naming the option.
std::vector<raster::BandChoice> parse_band_choices(const std::vector<std::string>& texts,
                                                   const std::string& option = "-b");
/// True when one of the items names a wavelength: parse_band_choices() reads them, parse_band_list() the
/// others.
bool names_wavelengths(const std::vector<std::string>& texts);
/// Reads "1340-1460nm" for -exclude-range. \throws UsageError.
std::vector<raster::BandChoice> parse_excluded_ranges(const std::vector<std::string>& texts);

/// "3,17,18"
std::string list_text(const std::vector<int>& numbers);

/// One line of it: line ends become blanks.
std::string one_line(std::string text);

/// Threads when -threads does not say it: GDAL's configuration option GDAL_NUM_THREADS (a number or
/// ALL_CPUS), else all processors that the process may keep busy, and at most `most`.
/// \throws UsageError when the configuration option is neither.
int default_threads(int most);

} // namespace hsi::tool
