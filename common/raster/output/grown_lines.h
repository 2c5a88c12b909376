// SPDX-License-Identifier: MIT
// The lines of an output that others may open while it grows: checks whether its file still has the written
// lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

class GrownLines {
  public:
    /// The lines are contiguous from the first byte of the file on, with `line_bytes` per line.
    explicit GrownLines(int64_t line_bytes) : m_line_bytes(line_bytes) {}

    /// Adds the first `lines` lines of `path`, which have been written. \throws Error if another process has
    /// truncated the file or has written into its first line or the last of the earlier ones.
    void add(const std::string& path, int64_t lines);
    /// \throws Error if another process has truncated the file, changed any of its lines, or appended to
    /// it.
    void check(const std::string& path) const;

  private:
    /// Returns the CRC-32 of each of these lines; the list ends at the first line that is missing in the
    /// file.
    std::vector<uint32_t> sums_of(const std::string& path, int64_t first, int64_t last) const;
    void check(const std::string& path, int64_t first, int64_t last) const;

    int64_t m_line_bytes;
    std::vector<uint32_t> m_sums; ///< of each line, as it was written
};

} // namespace hsi::raster
