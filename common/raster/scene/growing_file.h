// SPDX-License-Identifier: MIT
// A raw ENVI file to which another program adds lines while it is read (-follow).
#pragma once

#include "core/cancel.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/envi_header.h"
#include "raster/raster_source.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Lines count from the beginning of the file, and only when all of their bytes are there. GDAL, which wants
/// a header that tells how many there are, is shown one in memory. One thread uses it at a time. Its members
/// are what was found at the last look.
class GrowingFile final : public Growth {
  public:
    /// `path`: the data, or their header. \throws UsageError for a file that is not local, Error for one that
    /// has no ENVI header beside it, whose header tells too little, or whose lines do not lie one after
    /// another: bands one after another (BSQ), or compressed.
    GrowingFile(const std::string& path, double patience, const CancelFlag* cancel);
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;
    ~GrowingFile() override;

    const EnviFile& file() const { return m_file; }             ///< on the disk
    const std::string& shown_header() const { return m_shown; } ///< in memory, from show() on
    /// From now on the header in memory tells of so many lines.
    void show(int64_t lines) const;

    /// Waits until more than `lines` lines are there, and tells how many; `lines` itself when no more will
    /// come: those that the header tells are there, or nothing has come for `patience` seconds. Where another
    /// program writes the number of lines into the header on the way, it counts from then on. \throws
    /// Cancelled; Error when the file was replaced, removed or cut off, when lines that had come are other
    /// ones now (as far as a few of their bytes tell), or its header tells of another scene now.
    int64_t wait(int64_t lines) override;
    /// Lines that the header tells of; none: it does not tell, or 0.
    std::optional<int64_t> promised() const override { return m_promised; }
    /// What the file holds behind its last whole line, in words, after wait() has found the end; empty:
    /// nothing.
    std::string rest() const override;
    /// True when nothing but zeros stands in the last of so many lines.
    bool ends_with_zeros(int64_t lines) const override;
    /// What has become of the header that told of the lines, in words; empty: it is there.
    std::string header_fault() const override { return m_header_fault; }
    /// Fields that tell what the scene is and which the header did not have when the run began, in quotes.
    std::vector<std::string> late_fields() const override { return m_late_fields; }
    std::vector<std::string> files() const override { return {m_file.data, m_file.header}; }

  private:
    /// By which it is seen that a header is another one; that of a header that is not there.
    struct HeaderState {
        uint64_t inode = 0;
        int64_t size = 0, time = 0;
        bool operator==(const HeaderState&) const = default;
    };
    HeaderState header_state() const;
    bool look_at_header();
    bool read_header();
    void take_promise(const EnviHeader& header);
    void look();
    /// Bytes of the file by which it is seen that a line is another one.
    struct Mark {
        int64_t begin = 0;
        std::string bytes;
    };
    std::string bytes_at(int64_t begin) const;
    void mark(int64_t line);
    void check_marks() const;
    EnviFile m_file;
    std::vector<Mark> m_marks;                            ///< in the order of lines
    int64_t m_marked_each = 1;                            ///< of how many times that lines come one is marked
    int64_t m_comings = 0;                                ///< such times
    HeaderState m_header_state;                           ///< at the last look
    bool m_header_is_read = true;                         ///< in that state
    std::chrono::steady_clock::time_point m_header_since; ///< it is in that state
    EnviHeader m_header;                                  ///< when the run began
    std::vector<std::string> m_late_fields;
    std::string m_shown, m_header_fault;
    const std::chrono::duration<double> m_patience;
    const CancelFlag* m_cancel;
    int64_t m_offset = 0, m_line_bytes = 0, m_row_bytes = 0, m_size = 0;
    uint64_t m_device = 0, m_inode = 0;
    std::optional<int64_t> m_promised;
    std::chrono::steady_clock::time_point m_grown = std::chrono::steady_clock::now(); ///< when it last did
};

} // namespace hsi::raster
