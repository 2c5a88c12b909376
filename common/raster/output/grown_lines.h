// SPDX-License-Identifier: MIT
// Checks that an output which grows line by line still contains the lines that this process has written.
// Other processes may open such an output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

class GrownLines {
  public:
    /// `line_bytes`: bytes per line. The lines are contiguous from the beginning of the file.
    explicit GrownLines(int64_t line_bytes) : m_line_bytes(line_bytes) {}

    /// Records the check sums of lines that were written since the last call; `lines` is the number of all
    /// lines written so far. \throws Error if another process has truncated the file, or has changed the
    /// first or the last of the lines that were recorded before.
    void add(const std::string& path, int64_t lines);
    /// Checks all recorded lines. \throws Error if another process has truncated the file, changed a line, or
    /// appended data.
    void check(const std::string& path) const;

  private:
    /// Returns the CRC-32 of each line in [first, last). The list is shorter if the file ends before the last
    /// of these lines.
    std::vector<uint32_t> sums_of(const std::string& path, int64_t first, int64_t last) const;
    void check(const std::string& path, int64_t first, int64_t last) const;

    int64_t m_line_bytes;
    std::vector<uint32_t> m_sums; ///< CRC-32 of each line when it was written
};

} // namespace hsi::raster
