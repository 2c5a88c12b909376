// SPDX-License-Identifier: MIT
// Reads whole files (core/text_file.h) under GDAL's names: /vsizip/, /vsicurl/, /vsimem/ and
// others.
#pragma once

#include "core/text_file.h"

namespace hsi::raster {

/// Returns the whole file. Throws Error as read_text_file() does.
std::string read_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// Returns the text that an option of a tool names, such as a model. In a run on files, `path` is the file
/// (read_file()). In a run on arrays, `path` is the name of a text that the calling program has passed.
std::string read_input(const std::string& path, uint64_t limit);

} // namespace hsi::raster
