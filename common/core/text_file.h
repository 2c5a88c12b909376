// SPDX-License-Identifier: MIT
// Reads whole files: models, libraries, lists of options. The size limit of each type is far above the
// size of real files, so that a wrong name (a scene, a device, an endless pipe) does not fill the
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hsi {

/// Limits in bytes, about ten times the size of the largest real files.
namespace largest_file {
inline constexpr uint64_t model = uint64_t{1} << 30; ///< 60,000 support vectors of 200 bands take 110 MB
inline constexpr uint64_t library = uint64_t{512}
                                    << 20; ///< all 2,500 spectra of splib07 as a table take 60 MB
inline constexpr uint64_t product_text = uint64_t{64} << 20; ///< metadata in XML take up to 4 MB
inline constexpr uint64_t options = uint64_t{16} << 20;      ///< more than any system's command line
} // namespace largest_file

/// The contents of a file. Text must not contain zero bytes: reading text stops with an error at the first
/// zero byte.
enum class FileHolds { text, bytes };

/// Returns the whole file. Throws Error with size and name if the file is larger than `limit` bytes; such a
/// file is not read, and a device or pipe is read only up to the limit. Also throws Error if the file cannot
/// be read or is not text. Throws Cancelled if a signal that the process handles arrives while the function
/// waits for the other end of a pipe.
std::string read_text_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// Works as read_text_file(), but reads the file with the function `read` instead of the C library. `size` is
/// the size of the file if known, else 0. read(buffer, bytes) returns the number of bytes that it has stored,
/// 0 at the end of the file.
std::string read_whole(const std::string& path, uint64_t limit, FileHolds holds, uint64_t size,
                       const std::function<size_t(char* buffer, size_t bytes)>& read);

} // namespace hsi
