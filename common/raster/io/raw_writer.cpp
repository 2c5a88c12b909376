// SPDX-License-Identifier: MIT
#include "raster/io/raw_writer.h"

#include "core/error.h"
#include "core/system.h"
#include "raster/gdal_type.h"
#include "raster/sample_convert.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

namespace hsi::raster {
namespace {

constexpr size_t write_piece_bytes = 256 * 1024;

/// Zeros for the padding at the end of a line's last block. The padding is written so that lines are
/// contiguous, although the file has zeros there anyway. Padding of more than 4096 bytes is skipped.
constexpr std::array<char, 4096> beyond{};

std::string reason() { return std::strerror(errno); }

/// Acquires a semaphore while the object exists.
template <class Semaphore>
class Turn {
  public:
    explicit Turn(Semaphore& semaphore) : m_semaphore(semaphore) { m_semaphore.acquire(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { m_semaphore.release(); }

  private:
    Semaphore& m_semaphore;
};

} // namespace

RawWriter::RawWriter(WriteLayout layout, int bands, StoreRule rule, bool claimed)
    : m_raw(std::move(layout)), m_bands(bands), m_rule(rule),
      m_pixel_interleaved(bands > 1 && m_raw.band_step < m_raw.pixel_step),
      m_file(::open(m_raw.path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (!m_file) throw Error("cannot write '" + m_raw.path + "': " + reason());
    if (claimed) return;
    int result = system::claim(m_file.get(), m_raw.bytes);
    // Not every file system can reserve space. If it cannot, only the length is set, and a full disk is
    // detected while writing.
    if (result == EOPNOTSUPP) result = ::ftruncate(m_file.get(), m_raw.bytes) == 0 ? 0 : errno;
    if (result != 0) throw Error(std::strerror(result));
}

void RawWriter::close(bool flush) {
    const int fd = m_file.release();
    if (fd >= 0 && flush && ::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP) {
        const Error error(reason());
        ::close(fd);
        throw error;
    }
    if (fd >= 0 && ::close(fd) != 0) throw Error(reason());
}

void RawWriter::write(const Rect& core, const CubeView<float>& src) {
    if (m_pixel_interleaved)
        write_pixels(core, src);
    else
        write_rows(0, core, src);
}

void RawWriter::write_band(int band, const Rect& core, const CubeView<float>& src) {
    write_rows(band, core, src);
}

template <class F>
void RawWriter::for_stretches(int bands, const Rect& core, F&& f) const {
    const int64_t across = m_raw.blocks.samples ? m_raw.blocks.samples : core.right(),
                  down = m_raw.blocks.lines ? m_raw.blocks.lines : core.bottom();
    const auto lines_of_band = [&](int band, int64_t begin, int64_t end) {
        // Rows of blocks from top to bottom, and the blocks of a row from left to right.
        for (int64_t y = begin; y < end;) {
            const int64_t below = std::min(end, (y / down + 1) * down);
            for (int64_t x = core.x; x < core.right();) {
                const int64_t right = std::min(core.right(), (x / across + 1) * across);
                for (int64_t line = y; line < below; ++line)
                    f(band, line - core.y, x - core.x, right - x);
                x = right;
            }
            y = below;
        }
    };
    if (m_raw.band_step > m_raw.line_step) {
        for (int band = 0; band < bands; ++band)
            lines_of_band(band, core.y, core.bottom());
    } else {
        for (int64_t line = core.y; line < core.bottom(); ++line)
            for (int band = 0; band < bands; ++band)
                lines_of_band(band, line, line + 1);
    }
}

void RawWriter::write_rows(int first, const Rect& core, const CubeView<float>& src) {
    GatherWriter out(m_file.get());
    const size_t samples = static_cast<size_t>(core.w), row_bytes = samples * m_rule.sample_bytes();
    const bool direct = m_rule.floats() && !m_raw.swapped;
    std::vector<char> scratch(direct ? 0 : std::max(row_bytes, write_piece_bytes));
    size_t used = 0;
    if (direct)
        for (int band = 0; band < src.bands; ++band)
            for (int64_t line = 0; line < core.h; ++line)
                m_rule.finish(src.row(band, line), samples);
    std::optional<Turn<decltype(m_turn)>> turn;
    if (direct) turn.emplace(m_turn); // the samples are ready; only writing remains
    const auto flush = [&] {
        if (direct) return out.flush();
        const Turn mine(m_turn);
        out.flush();
    };
    const int parts = m_rule.parts();
    for_stretches(src.bands / parts, core, [&](int band, int64_t line, int64_t x, int64_t columns) {
        const auto count = static_cast<size_t>(columns);
        const size_t bytes = count * m_rule.sample_bytes();
        const void* from = src.row(band * parts, line) + x;
        if (!direct) {
            if (used + bytes > scratch.size()) {
                flush();
                used = 0;
            }
            char* stored = scratch.data() + used;
            m_rule.store_line(src, band, line, x, count, stored);
            if (m_raw.swapped) swap_bytes(stored, sample_type(m_raw.type), count);
            used += bytes;
            from = stored;
        }
        const int64_t place = m_raw.place(first + band, core.y + line, core.x + x);
        out.add(place, from, bytes);
        if (const int64_t gap = m_raw.padding(core.x + x + columns); gap > 0 && gap <= std::ssize(beyond))
            out.add(place + static_cast<int64_t>(bytes), beyond.data(), static_cast<size_t>(gap));
    });
    flush();
}

void RawWriter::write_pixels(const Rect& core, const CubeView<float>& src) {
    GatherWriter out(m_file.get());
    const size_t bands = static_cast<size_t>(m_bands), across = static_cast<size_t>(core.w);
    const size_t chunk = std::clamp<size_t>(write_piece_bytes / (bands * sizeof(float)), 1, across);
    // Doubles, so that the buffer is aligned for every type.
    std::vector<double> stored((chunk * bands * m_rule.sample_bytes() + 7) / 8);
    StoreRule::Scratch scratch;
    for (int64_t line = 0; line < core.h; ++line)
        for (size_t x = 0, n = 0; x < across; x += n) {
            n = std::min(chunk, across - x);
            if (m_raw.blocks.samples) { // n is limited to the end of the block
                const int64_t inside = (core.x + static_cast<int64_t>(x)) % m_raw.blocks.samples;
                n = std::min(n, static_cast<size_t>(m_raw.blocks.samples - inside));
            }
            m_rule.store_pixels(src, line, static_cast<int64_t>(x), n, stored.data(), scratch);
            if (m_raw.swapped) swap_bytes(stored.data(), sample_type(m_raw.type), n * bands);
            out.add(m_raw.place(0, core.y + line, core.x + static_cast<int64_t>(x)), stored.data(),
                    n * bands * m_rule.sample_bytes());
            const Turn mine(m_turn);
            out.flush();
        }
}

} // namespace hsi::raster
