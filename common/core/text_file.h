// SPDX-License-Identifier: MIT
// Files that are read whole: models, libraries, lists of options. Each kind has a limit far above the size of
// real files, beyond which it is refused: a wrong name (a scene, a device, a pipe without an end) is not read
// until memory is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hsi {

/// In bytes, about ten times the size of the largest real files.
namespace largest_file {
inline constexpr uint64_t model = uint64_t{1} << 30;     ///< 60,000 support vectors of 200 bands: 110 MB
inline constexpr uint64_t library = uint64_t{512} << 20; ///< all 2,500 spectra of splib07 as a table: 60 MB
inline constexpr uint64_t product_text = uint64_t{64} << 20; ///< metadata in XML: 4 MB
inline constexpr uint64_t options = uint64_t{16} << 20;      ///< more than any system's command line
} // namespace largest_file

/// Text has no zero bytes: a file with one is refused at the first.
enum class FileHolds { text, bytes };

/// The whole file. Throws Error with the size and the name when the file is larger than `limit` bytes (a file
/// is then not read, a device or pipe is read no further). Throws Error when the file cannot be read or is
/// not text. Throws Cancelled when a signal that the process handles comes during the wait for the other end
/// of a pipe.
std::string read_text_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// The same with another reader than the C library's: `size` is the size if known, else 0; read(buffer,
/// bytes) returns the count of bytes that it has put there, 0 at the end.
std::string read_whole(const std::string& path, uint64_t limit, FileHolds holds, uint64_t size,
                       const std::function<size_t(char* buffer, size_t bytes)>& read);

} // namespace hsi
