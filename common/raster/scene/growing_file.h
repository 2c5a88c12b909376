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

/// Lines count from the beginning of the file, and only when all of their bytes are there. GDAL needs a
/// header with the count of lines, so it gets one in memory. One thread uses it at a time. Its members are
/// the findings of the last look.
class GrowingFile final : public Growth {
  public:
    /// `path`: the data, or their header. \throws UsageError for a file that is not local. \throws Error
    /// without an ENVI header, if the header lacks needed fields, or if lines do not follow one another in
    /// the file: bands one after another (BSQ), or compressed.
    GrowingFile(const std::string& path, double patience, const CancelFlag* cancel);
    GrowingFile(const GrowingFile&) = delete;
    GrowingFile& operator=(const GrowingFile&) = delete;
    ~GrowingFile() override;

    const EnviFile& file() const { return m_file; }             ///< on the disk
    const std::string& shown_header() const { return m_shown; } ///< in memory, from show() on
    /// From now on the header in memory states so many lines.
    void show(int64_t lines) const;

    /// Waits until more than `lines` lines are there, and returns their count; `lines` itself when no more
    /// will come: all lines of the header are there, or nothing has come for `patience` seconds. If another
    /// program writes the count of lines into the header meanwhile, it counts from then on. \throws
    /// Cancelled; Error when the file was replaced, removed or cut off, when earlier lines have changed (as
    /// far as a few of their bytes show), or when its header now describes another scene.
    int64_t wait(int64_t lines) override;
    /// Lines that the header states; nullopt if it states none, or 0.
    std::optional<int64_t> promised() const override { return m_promised; }
    /// The bytes of the file after its last whole line, in words, after wait() has found the end; empty:
    /// nothing.
    std::string rest() const override;
    /// True if the last of so many lines holds only zeros.
    bool ends_with_zeros(int64_t lines) const override;
    /// The later fault of the header that stated the lines, in words; empty if it is there.
    std::string header_fault() const override { return m_header_fault; }
    /// Fields that describe the scene and that the header did not have when the run began, in quotes.
    std::vector<std::string> late_fields() const override { return m_late_fields; }
    std::vector<std::string> files() const override { return {m_file.data, m_file.header}; }

  private:
    /// Distinguishes a header from a changed one, also a missing header.
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
    /// Bytes of the file that distinguish a line from a changed one.
    struct Mark {
        int64_t begin = 0;
        std::string bytes;
    };
    std::string bytes_at(int64_t begin) const;
    void mark(int64_t line);
    void check_marks() const;
    EnviFile m_file;
    std::vector<Mark> m_marks;                            ///< in the order of lines
    int64_t m_marked_each = 1;                            ///< one of so many lines is marked
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
