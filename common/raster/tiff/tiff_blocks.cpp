// SPDX-License-Identifier: MIT
#include "raster/tiff/tiff_blocks.h"

#include "core/error.h"
#include "raster/tiff/tiff_tags.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

// Source for the structure of a TIFF: TIFF revision 6.0 (Adobe, 1992), section 2. A BigTIFF has the same
// structure with 64-bit positions, as libtiff documents it.
namespace hsi::raster {
namespace {

using namespace tiff;

class TiffFile {
  public:
    explicit TiffFile(const std::string& path)
        : m_path(path), m_file(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
        if (!m_file) throw Error("cannot open '" + path + "': " + std::strerror(errno));
        const std::vector<unsigned char> head = read(0, 16);
        const bool little = head[0] == 'I';
        if (head[0] != head[1] || (!little && head[0] != 'M')) throw unknown();
        m_swapped = little != (std::endian::native == std::endian::little);
        const uint64_t version = number(head.data() + 2, 2);
        if (version != 42 && version != 43) throw unknown();
        m_big = version == 43;
        m_directory = m_big ? number(head.data() + 8, 8) : number(head.data() + 4, 4);
        m_entries = number(read(m_directory, m_big ? 8 : 2).data(), m_big ? 8 : 2);
        const uint64_t behind = m_directory + (m_big ? 8 : 2) + m_entries * entry_bytes();
        // A second directory would belong to another image, which was not requested.
        if (m_entries > 4096 || number(read(behind, places_bytes()).data(), places_bytes()) != 0)
            throw unknown();
    }

    bool swapped() const { return m_swapped; }
    bool big() const { return m_big; }
    Error unknown() const { return Error("'" + m_path + "' does not have the layout of GDAL's TIFFs"); }

    int64_t end() const {
        const off_t at = ::lseek(m_file.get(), 0, SEEK_END);
        if (at < 0) throw Error("cannot read '" + m_path + "': " + std::strerror(errno));
        return at;
    }

    /// Replaces the values of a directory entry. The entry must have the same number of values, and its type
    /// must be wide enough.
    void replace(int tag, const std::vector<uint64_t>& values) {
        for (uint64_t k = 0; k < m_entries; ++k) {
            const uint64_t at = m_directory + (m_big ? 8 : 2) + k * entry_bytes();
            const std::vector<unsigned char> entry = read(at, entry_bytes());
            if (number(entry.data(), 2) != static_cast<uint64_t>(tag)) continue;
            const uint64_t type = number(entry.data() + 2, 2);
            const size_t size = type == type_short ? 2 : type == type_long ? 4 : type == type_long8 ? 8 : 0;
            if (size == 0 || number(entry.data() + 4, places_bytes()) != values.size()) throw unknown();
            std::vector<unsigned char> bytes(values.size() * size);
            for (size_t i = 0; i < values.size(); ++i) {
                if (size < 8 && values[i] >> (8 * size) != 0)
                    throw Error("'" + m_path + "' is too large for a TIFF that is not a BigTIFF",
                                "Use -co BIGTIFF=YES.");
                put(values[i], bytes.data() + i * size, size);
            }
            const uint64_t value = at + 4 + places_bytes();
            const bool inside = bytes.size() <= places_bytes();
            write(inside ? value : number(read(value, places_bytes()).data(), places_bytes()), bytes);
            return;
        }
        throw unknown();
    }

    void close() {
        if (::close(m_file.release()) != 0)
            throw Error("cannot write '" + m_path + "': " + std::strerror(errno));
    }

  private:
    size_t places_bytes() const { return m_big ? 8 : 4; }
    size_t entry_bytes() const { return m_big ? 20 : 12; }

    uint64_t number(const unsigned char* bytes, size_t size) const {
        uint64_t value = 0;
        for (size_t i = 0; i < size; ++i)
            value |= uint64_t{bytes[big_endian() ? size - 1 - i : i]} << (8 * i);
        return value;
    }
    void put(uint64_t value, unsigned char* bytes, size_t size) const {
        for (size_t i = 0; i < size; ++i)
            bytes[big_endian() ? size - 1 - i : i] = static_cast<unsigned char>(value >> (8 * i));
    }
    bool big_endian() const { return m_swapped == (std::endian::native == std::endian::little); }

    std::vector<unsigned char> read(uint64_t at, size_t count) const {
        std::vector<unsigned char> bytes(count);
        size_t done = 0;
        while (done < count) {
            const ssize_t got =
                ::pread(m_file.get(), bytes.data() + done, count - done, static_cast<off_t>(at + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw Error("cannot read '" + m_path + "': " + std::strerror(errno));
            if (got == 0) throw unknown();
            done += static_cast<size_t>(got);
        }
        return bytes;
    }
    void write(uint64_t at, const std::vector<unsigned char>& bytes) const {
        GatherWriter out(m_file.get());
        out.add(static_cast<int64_t>(at), bytes.data(), bytes.size());
        out.flush();
    }

    std::string m_path;
    FileHandle m_file;
    bool m_swapped = false, m_big = false;
    uint64_t m_directory = 0, m_entries = 0;
};

void enter(TiffFile& file, const TiffShape& shape, const std::vector<uint64_t>& offsets,
           const std::vector<uint64_t>& counts) {
    file.replace(shape.tiled ? tile_offsets : strip_offsets, offsets);
    file.replace(shape.tiled ? tile_byte_counts : strip_byte_counts, counts);
    file.close();
}

} // namespace

TiffStart start_of_tiff_blocks(const std::string& path) {
    const TiffFile file(path);
    return {file.end(), file.swapped(), file.big()};
}

void enter_tiff_blocks(const std::string& path, const TiffShape& shape, const std::vector<uint64_t>& offsets,
                       const std::vector<uint64_t>& counts) {
    TiffFile file(path);
    enter(file, shape, offsets, counts);
}

WriteLayout place_tiff_blocks(WriteLayout layout, const TiffShape& shape) {
    // The first block begins at a page boundary. If blocks consist of whole pages, as usual, writers of
    // different blocks never use the same page.
    constexpr int64_t page = 4096;
    TiffFile file(layout.path);
    layout.swapped = file.swapped() && layout.sample_bytes > 1;
    const int64_t planes = shape.planes(), in_pixel = shape.apart ? 1 : shape.bands;
    const int64_t across = shape.across(), down = shape.down();
    layout.pixel_step = in_pixel * layout.sample_bytes;
    layout.line_step = shape.block_samples * layout.pixel_step;
    const int64_t block_bytes = shape.block_lines * layout.line_step;
    const int64_t plane_bytes = shape.tiled ? across * down * block_bytes : shape.lines * layout.line_step;
    layout.origin = (file.end() + page - 1) / page * page;
    layout.band_step = shape.apart ? plane_bytes : layout.sample_bytes;
    layout.blocks = {shape.block_samples, shape.block_lines, block_bytes, across * block_bytes,
                     shape.samples};
    layout.bytes = layout.origin + planes * plane_bytes;

    std::vector<uint64_t> offsets, counts;
    for (int64_t plane = 0; plane < planes; ++plane)
        for (int64_t y = 0; y < down; ++y)
            for (int64_t x = 0; x < across; ++x) {
                offsets.push_back(static_cast<uint64_t>(layout.origin + plane * plane_bytes +
                                                        (y * across + x) * block_bytes));
                const int64_t lines = shape.tiled
                                          ? shape.block_lines
                                          : std::min(shape.block_lines, shape.lines - y * shape.block_lines);
                counts.push_back(static_cast<uint64_t>(lines * layout.line_step));
            }
    enter(file, shape, offsets, counts);
    return layout;
}

} // namespace hsi::raster
