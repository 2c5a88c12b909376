// SPDX-License-Identifier: MIT
// Long texts (models) inside other texts: deflated, then encoded in base 64.
#pragma once

#include <string>

namespace hsi::raster {

std::string pack_text(const std::string& text);
/// Throws Error that names `name` if the text was not made by pack_text(), or would be larger than `limit`
/// bytes.
std::string unpack_text(const std::string& packed, const std::string& name, size_t limit = size_t{1} << 30);

} // namespace hsi::raster
