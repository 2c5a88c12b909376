// SPDX-License-Identifier: MIT
// An uncompressed file that the kernel can address: the places of its samples, and vectored reading and
// writing. It also has the names under which GDAL sees a pair of ENVI's files (metadata/envi_file.h).
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

/// Owner of a file descriptor.
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
    /// True when the system holds the file in its memory now: every page of it, or every one of `probes`
    /// pages spread over it.
    bool held_by_system(size_t probes = 0) const;
    int release() {
        const int fd = m_fd;
        m_fd = -1;
        return fd;
    }

  private:
    int m_fd = -1;
};

/// Sample (band, line, sample), all counted from 0, is at origin + band * band_step + line * line_step +
/// sample * pixel_step bytes.
struct RawLayout {
    std::string path;
    GDALDataType type = GDT_Unknown;
    bool swapped = false; ///< not in this machine's byte order
    int64_t origin = 0, pixel_step = 0, line_step = 0, band_step = 0;
    int64_t sample_bytes = 0;

    /// True if the samples of a band's line follow one another.
    bool packed_rows() const { return pixel_step == sample_bytes; }
    int64_t at(int64_t band, int64_t line, int64_t sample) const {
        return origin + band * band_step + line * line_step + sample * pixel_step;
    }
};

/// The storage of a dataset according to GDAL, if it is a plain uncompressed file: local, or remote
/// (remote_file.h).
std::optional<RawLayout> raw_layout(GDALDataset& dataset);

/// Gathers pieces of a file, in ascending order, into as few preadv calls as there can be.
class ScatterReader {
  public:
    explicit ScatterReader(int fd) : m_fd(fd), m_skip(max_skip) {}
    void add(int64_t offset, void* to, size_t length);
    void flush(); ///< throws Error at a read error or when the file ends early

  private:
    static constexpr size_t max_skip = 16384; ///< a gap up to this is cheaper read than jumped
    int m_fd;
    int64_t m_begin = 0, m_end = 0;
    std::vector<iovec> m_pieces;
    std::vector<char> m_skip;
};

/// The same for writing; gaps are never touched.
class GatherWriter {
  public:
    explicit GatherWriter(int fd) : m_fd(fd) {}
    void add(int64_t offset, const void* from, size_t length);
    void flush(); ///< throws Error naming the system's reason

  private:
    int m_fd;
    int64_t m_begin = 0, m_end = 0;
    std::vector<iovec> m_pieces;
};

struct EnviFile {
    std::string data, header;
};

/// "/vsihsi_envi/10,/a/old.hdr//a/scene.img" is /a/scene.img with the header /a/old.hdr: any name that ends
/// in .hdr is that header, in lines that GDAL reads; any other name is a file next to the data.
inline constexpr const char* shown_envi = "/vsihsi_envi/";
std::string shown_name(const EnviFile& file);
/// Splits a name without the prefix; nullopt if it is not of this form.
std::optional<EnviFile> shown_parts(const std::string& name);

/// The file itself, for a name of a dataset that was opened so; other names are returned unchanged.
std::string file_behind(const std::string& name);

bool is_header_name(const std::string& name); ///< by its extension

} // namespace hsi::raster
