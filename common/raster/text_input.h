// SPDX-License-Identifier: MIT
// Files that are read whole (core/text_file.h) under GDAL's names: /vsizip/, /vsicurl/, /vsimem/ and the
// rest.
#pragma once

#include "core/text_file.h"

namespace hsi::raster {

/// The whole file. Throws Error as read_text_file() does.
std::string read_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// The text behind an option (a model): read_text_file(), or for arrays in place of files the caller's text.
std::string read_input(const std::string& path, uint64_t limit);

} // namespace hsi::raster
