// SPDX-License-Identifier: MIT
// Small text outputs (models, tables) that appear complete or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace hsi {

/// Everything that can be refused before work is done: an existing file without `overwrite`, a folder in its
/// place, a place that cannot be written. Throws Error naming the file.
void check_text_file(const std::string& path, bool overwrite);

/// Writes under a temporary name beside `path` and renames. Throws Error; the old file, if any, is then
/// untouched.
void write_text_file(const std::string& path, const std::string& text);

/// The whole file. Throws Error when it cannot be read or is larger than `limit` bytes.
std::string read_text_file(const std::string& path, uint64_t limit);

} // namespace hsi
