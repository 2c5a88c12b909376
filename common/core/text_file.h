// SPDX-License-Identifier: MIT
// Files that are read whole: models, libraries, lists of options. Each kind has a size that no real one comes
// near, beyond which it is refused: a wrong name (a scene, a device, a pipe without an end) is not read until
// memory is full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hsi {

/// In bytes, about ten times what the largest real ones have.
namespace largest_file {
inline constexpr uint64_t model = uint64_t{1} << 30;     ///< 60,000 support vectors of 200 bands: 110 MB
inline constexpr uint64_t library = uint64_t{512} << 20; ///< all 2,500 spectra of splib07 as a table: 60 MB
inline constexpr uint64_t product_text = uint64_t{64} << 20; ///< metadata in XML: 4 MB
inline constexpr uint64_t options = uint64_t{16} << 20;      ///< more than any system's command line
} // namespace largest_file

/// Text has no zero bytes: a file that holds one is refused where the first one stands.
enum class FileHolds { text, bytes };

/// The whole file. Throws Error, with the size and the name, when it is larger than `limit` bytes (a file is
/// then not read at all, a device or pipe no further), and when it cannot be read or is no text; Cancelled
/// when a signal comes that the process handles while it waits for the other end of a pipe.
std::string read_text_file(const std::string& path, uint64_t limit, FileHolds holds = FileHolds::text);

/// The same by other means than the C library's: `size` as far as it is known beforehand, 0 where it is not;
/// read(buffer, bytes) returns how many bytes it has put there, 0 at the end.
std::string read_whole(const std::string& path, uint64_t limit, FileHolds holds, uint64_t size,
                       const std::function<size_t(char* buffer, size_t bytes)>& read);

} // namespace hsi
