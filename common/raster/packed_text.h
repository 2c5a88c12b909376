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
/// Throws Error that names `name` if the text was not made by pack_text(), or would be larger than `limit`
/// bytes.
std::string unpack_text(const std::string& packed, const std::string& name, size_t limit = size_t{1} << 30);

/// Returns `bytes` as a zlib stream. \throws Error where they are more than a file holds.
std::string deflated(const std::string& bytes);
/// Returns a PNG file in base 64: `colours` (red, green, blue) are the pixels line by line, width times
/// height of them. \throws Error where there are more than a file holds.
std::string packed_picture(int64_t width, int64_t height, const std::vector<std::array<uint8_t, 3>>& colours);

} // namespace hsi::raster
