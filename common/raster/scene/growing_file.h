// SPDX-License-Identifier: MIT
// A raw ENVI file that is read while another program appends lines (-follow).
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

/// A growing file. A line exists as soon as all of its bytes are in the file. GDAL needs a header that states
/// the number of lines, so GDAL gets a modified header in memory. Only one thread may use an object at a
/// time. rest(), header_fault() and late_fields() return what the last wait() has found.
class GrowingFile final : public Growth {
  public:
    /// `path` is the data file or its header. \throws UsageError if the file is not local. \throws Error if
    /// there is no ENVI header, if the header lacks required fields, or if lines are not contiguous in the
    /// file (BSQ, or compressed).
    GrowingFile(const std::string& path, double patience, const CancelFlag* cancel);
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;
    ~GrowingFile() override;

    const EnviFile& file() const { return m_file; } ///< data file and header on the disk
    /// Path of the header in memory; it exists after show().
    const std::string& shown_header() const { return m_shown; }
    /// Sets the number of lines in the header in memory.
    void show(int64_t lines) const;

    /// Waits until more than `lines` lines exist, and returns their number. Returns `lines` if no more lines
    /// will arrive: all lines that the header states exist, or no data have arrived for `patience` seconds.
    /// If another program writes the number of lines into the header during the wait, this number is used
    /// from then on. \throws Cancelled. \throws Error if the file was replaced, removed or truncated, if
    /// earlier lines have changed (a few of their bytes are compared), or if the header now describes another
    /// scene.
    int64_t wait(int64_t lines) override;
    /// Returns the number of lines that the header states; nullopt if the header does not state it or states
    /// 0.
    std::optional<int64_t> promised() const override { return m_promised; }
    /// Returns a message for the user about bytes after the last complete line; empty if there are none.
    /// After the lines that the header states, bytes of less than a row are ignored. Call it after wait() has
    /// found the end.
    std::string rest() const override;
    /// Returns true if the last of `lines` lines contains only zeros.
    bool ends_with_zeros(int64_t lines) const override;
    /// Returns a message for the user if the header was removed, or is no longer an ENVI header; otherwise
    /// empty.
    std::string header_fault() const override { return m_header_fault; }
    /// Returns the names, in quotes, of fields that describe the scene and were added to the header after the
    /// run began.
    std::vector<std::string> late_fields() const override { return m_late_fields; }
    std::vector<std::string> files() const override { return {m_file.data, m_file.header}; }

  private:
    /// Inode, size and time of a header file, which reveal a change; all 0 if the file does not exist.
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
    /// The first bytes of a line when it arrived. If the file has other bytes later, the line was
    /// overwritten.
    struct Mark {
        int64_t begin = 0;
        std::string bytes;
    };
    std::string bytes_at(int64_t begin) const;
    void mark(int64_t line);
    void check_marks() const;
    EnviFile m_file;
    std::vector<Mark> m_marks;    ///< in the order of the lines
    int64_t m_marked_each = 1;    ///< every m_marked_each-th call of mark() stores a mark
    int64_t m_comings = 0;        ///< number of calls of mark()
    HeaderState m_header_state;   ///< state of the header file at the last check
    bool m_header_is_read = true; ///< the header file has been read in this state
    std::chrono::steady_clock::time_point m_header_since; ///< time since which the header file has this state
    EnviHeader m_header;                                  ///< the header when the run began
    std::vector<std::string> m_late_fields;
    std::string m_shown, m_header_fault;
    const std::chrono::duration<double> m_patience;
    const CancelFlag* m_cancel;
    int64_t m_offset = 0, m_line_bytes = 0, m_row_bytes = 0, m_size = 0;
    uint64_t m_device = 0, m_inode = 0;
    std::optional<int64_t> m_promised;
    std::chrono::steady_clock::time_point m_grown =
        std::chrono::steady_clock::now(); ///< time at which the file was last seen to grow
};

} // namespace hsi::raster
