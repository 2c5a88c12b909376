// SPDX-License-Identifier: MIT
/// What GDAL's file systems know of a path before it is opened.
#pragma once

#include <cstddef>
#include <string>

namespace hsi::raster {

/// Whether there is a file with a length. Pipes, devices and folders are none: what only looks whether it
/// knows a format must not open them, for a pipe can be read but once, and opening one waits for the other
/// end.
bool is_regular_file(const std::string& path);

/// Whether there is anything with that name.
bool is_there(const std::string& path);

/// Whether there is something with that name that is neither a regular file nor a folder.
bool is_pipe_or_device(const std::string& path);

/// The header beside `path` that would say what the samples in it are, where it is there and may not be read;
/// empty: there is none. GDAL then knows nothing of the file, and does not say why.
std::string unreadable_header(const std::string& path);

/// The first bytes of a regular file, as many as there are of those asked for; empty for anything else.
std::string beginning_of_file(const std::string& path, size_t bytes);

} // namespace hsi::raster
