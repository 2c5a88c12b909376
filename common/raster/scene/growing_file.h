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

/// Lines are counted from the beginning of the file, and only when all of their bytes exist. GDAL needs a
/// header with the number of lines, so it gets a header in memory. One thread uses the object at a time. Its
/// members are the findings of the last check.
class GrowingFile final : public Growth {
  public:
    /// `path`: the data, or their header. \throws UsageError for a file that is not local. \throws Error
    /// without an ENVI header, if the header lacks required fields, or if lines are not contiguous in the
    /// file: band by band (BSQ), or compressed.
    GrowingFile(const std::string& path, double patience, const CancelFlag* cancel);
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;
    ~GrowingFile() override;

    const EnviFile& file() const { return m_file; }             ///< on the disk
    const std::string& shown_header() const { return m_shown; } ///< in memory, from show() on
    /// Makes the header in memory state `lines` lines.
    void show(int64_t lines) const;

    /// Waits until more than `lines` lines exist, and returns their number. Returns `lines` if no more will
    /// arrive: all lines of the header exist, or no data have arrived for `patience` seconds. If another
    /// program writes the number of lines into the header meanwhile, that number is used from then on.
    /// \throws Cancelled; Error if the file was replaced, removed or truncated, if earlier lines have changed
    /// (detected from a few of their bytes), or if its header now describes another scene.
    int64_t wait(int64_t lines) override;
    /// Returns the number of lines that the header states; nullopt if it states none, or 0.
    std::optional<int64_t> promised() const override { return m_promised; }
    /// Describes the bytes after the file's last whole line, after wait() has found the end; empty if there
    /// are none.
    std::string rest() const override;
    /// Returns true if the last of `lines` lines contains only zeros.
    bool ends_with_zeros(int64_t lines) const override;
    /// Describes the later fault of the header that stated the lines; empty if there is none.
    std::string header_fault() const override { return m_header_fault; }
    /// Returns the fields that describe the scene and that the header did not have when the run began, in
    /// quotes.
    std::vector<std::string> late_fields() const override { return m_late_fields; }
    std::vector<std::string> files() const override { return {m_file.data, m_file.header}; }

  private:
    /// The state of a header, including a missing header, to detect changes.
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
    /// Bytes of the file from which a change of a line is detected.
    struct Mark {
        int64_t begin = 0;
        std::string bytes;
    };
    std::string bytes_at(int64_t begin) const;
    void mark(int64_t line);
    void check_marks() const;
    EnviFile m_file;
    std::vector<Mark> m_marks;                            ///< in the order of lines
    int64_t m_marked_each = 1;                            ///< one of this number of lines is marked
    int64_t m_comings = 0;                                ///< such times
    HeaderState m_header_state;                           ///< at the last check
    bool m_header_is_read = true;                         ///< in that state
    std::chrono::steady_clock::time_point m_header_since; ///< since when it is in that state
    EnviHeader m_header;                                  ///< when the run began
    std::vector<std::string> m_late_fields;
    std::string m_shown, m_header_fault;
    const std::chrono::duration<double> m_patience;
    const CancelFlag* m_cancel;
    int64_t m_offset = 0, m_line_bytes = 0, m_row_bytes = 0, m_size = 0;
    uint64_t m_device = 0, m_inode = 0;
    std::optional<int64_t> m_promised;
    std::chrono::steady_clock::time_point m_grown =
        std::chrono::steady_clock::now(); ///< time of the last growth
};

} // namespace hsi::raster
