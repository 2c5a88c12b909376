// SPDX-License-Identifier: MIT
// Small texts: models, libraries.
#pragma once

#include <cstdint>
#include <string>

namespace hsi {

/// The whole file. Throws Error when it cannot be read or is larger than `limit` bytes.
std::string read_text_file(const std::string& path, uint64_t limit);

} // namespace hsi
