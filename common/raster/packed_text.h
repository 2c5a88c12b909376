// SPDX-License-Identifier: MIT
// Long texts (models) and pictures inside other texts: deflated, then encoded in base 64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

std::string pack_text(const std::string& text);
/// Returns the text that pack_text() has packed. Throws Error that begins with `name` if `packed` was not
/// made by pack_text(), or if the text has `limit` bytes or more.
std::string unpack_text(const std::string& packed, const std::string& name, size_t limit = size_t{1} << 30);

/// Returns `bytes` compressed as a zlib stream. \throws Error if the stream is larger than INT_MAX / 2 bytes,
/// because its text in base 64, which is longer, must not exceed INT_MAX bytes.
std::string deflated(const std::string& bytes);
/// Returns a PNG file, encoded in base 64. `colours` has width * height pixels (red, green, blue), line by
/// line. \throws Error if the picture is too large, as deflated() does.
std::string packed_picture(int64_t width, int64_t height, const std::vector<std::array<uint8_t, 3>>& colours);

} // namespace hsi::raster
