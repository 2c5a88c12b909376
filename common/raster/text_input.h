// SPDX-License-Identifier: MIT
// Reads whole files (core/text_file.h) under GDAL's names: /vsizip/, /vsicurl/, /vsimem/ and
// others.
#pragma once

#include "core/text_file.h"

namespace hsi::raster {

/// Returns the whole file. Throws Error as read_text_file() does.
std::string read_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// Returns the text of an option (a model): from read_file(), or the caller's text if arrays are used
/// instead of files.
std::string read_input(const std::string& path, uint64_t limit);

} // namespace hsi::raster
