// SPDX-License-Identifier: MIT
// An uncompressed file that is read and written without GDAL: the positions of its samples, and vectored
// reading and writing. Also contains the names under which GDAL sees a pair of ENVI files
// (metadata/envi_file.h).
#pragma once

#include <gdal_priv.h>

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// Owns a file descriptor.
class FileHandle {
  public:
    FileHandle() = default;
    explicit FileHandle(int fd) : m_fd(fd) {}
    FileHandle(FileHandle&& o) noexcept : m_fd(o.m_fd) { o.m_fd = -1; }
    FileHandle& operator=(FileHandle&& o) noexcept {
        std::swap(m_fd, o.m_fd);
        return *this;
    }
    ~FileHandle();
    int get() const { return m_fd; }
    explicit operator bool() const { return m_fd >= 0; }
    /// Returns true if the file is in the system's cache: checks every page, or only `probes` pages spread
    /// over the file.
    bool held_by_system(size_t probes = 0) const;
    int release() {
        const int fd = m_fd;
        m_fd = -1;
        return fd;
    }

  private:
    int m_fd = -1;
};

/// Sample (band, line, sample), counted from 0, is at byte origin + band * band_step + line * line_step +
/// sample * pixel_step.
struct RawLayout {
    std::string path;
    GDALDataType type = GDT_Unknown;
    bool swapped = false; ///< samples are not in the CPU's byte order
    int64_t origin = 0, pixel_step = 0, line_step = 0, band_step = 0;
    int64_t sample_bytes = 0;

    /// Returns true if the samples of a band's line are contiguous.
    bool packed_rows() const { return pixel_step == sample_bytes; }
    int64_t at(int64_t band, int64_t line, int64_t sample) const {
        return origin + band * band_step + line * line_step + sample * pixel_step;
    }
};

/// Returns the positions of a dataset's samples, as GDAL states them. nullopt unless the dataset is an
/// uncompressed file, local or remote (remote_file.h), whose bands have the same type.
std::optional<RawLayout> raw_layout(GDALDataset& dataset);

/// Reads pieces of a file in ascending order with as few preadv calls as possible.
class ScatterReader {
  public:
    explicit ScatterReader(int fd) : m_fd(fd), m_skip(max_skip) {}
    void add(int64_t offset, void* to, size_t length);
    void flush(); ///< throws Error on a read error or if the file ends early

  private:
    /// A gap of up to this number of bytes between two pieces is also read, because this is faster than
    /// another call.
    static constexpr size_t max_skip = 16384;
    int m_fd;
    int64_t m_begin = 0, m_end = 0;
    std::vector<iovec> m_pieces;
    std::vector<char> m_skip;
};

/// Writes pieces of a file in ascending order with as few pwritev calls as possible. Bytes between the pieces
/// are never changed.
class GatherWriter {
  public:
    explicit GatherWriter(int fd) : m_fd(fd) {}
    void add(int64_t offset, const void* from, size_t length);
    void flush(); ///< throws Error with the system's reason

  private:
    int m_fd;
    int64_t m_begin = 0, m_end = 0;
    std::vector<iovec> m_pieces;
};

struct EnviFile {
    std::string data, header;
};

/// The prefix of names under which GDAL sees a pair of ENVI files. "/vsihsi_envi/10,/a/old.hdr//a/scene.img"
/// means /a/scene.img with the header /a/old.hdr; 10 is the length of the header's name. If the part after
/// the header ends in .hdr, the name means the header, in a form that GDAL reads. Otherwise it means the
/// data, or a file next to them.
inline constexpr const char* shown_envi = "/vsihsi_envi/";
std::string shown_name(const EnviFile& file);
/// Splits a name without the prefix shown_envi into its files; nullopt if the name does not have this form.
std::optional<EnviFile> shown_parts(const std::string& name);

/// Returns the path of the real file for a name that begins with shown_envi; other names are returned
/// unchanged.
std::string file_behind(const std::string& name);

bool is_header_name(const std::string& name); ///< true if the extension is .hdr

} // namespace hsi::raster
