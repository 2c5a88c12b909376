// SPDX-License-Identifier: MIT
// Memory sizes as users write them, and the memory that this process has used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hsi {

/// Parses "512MB", "2GB", "1.5GiB", "800000", "25%" (of `whole`). Suffixes are binary (1 MB = 2^20 bytes) as
/// in GDAL_CACHEMAX. Throws UsageError naming `option` when the text is not a positive size.
uint64_t parse_byte_size(std::string_view text, uint64_t whole, std::string_view option);

/// "1.5 GB", "300 MB", "12 kB": for messages.
std::string format_byte_size(uint64_t bytes);

/// Highest resident set of this process so far, in bytes.
uint64_t peak_resident();

} // namespace hsi
