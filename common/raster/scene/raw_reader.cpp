// SPDX-License-Identifier: MIT
// Reads tiles directly from a raw file. Rows of native floats are read straight to their destination. Other
// types, byte orders and interleaves are converted in a buffer that fits into the level 2 cache.
#include "core/counted.h"
#include "core/error.h"
#include "core/system.h"
#include "raster/gdal_type.h"
#include "raster/scene/source_impl.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

namespace hsi::raster {
namespace {

constexpr size_t read_scratch_bytes = 256 * 1024;
constexpr size_t direct_batch_bytes = 512 * 1024;

class RawReader final : public stream::CubeReader {
  public:
    explicit RawReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_raw(m_source->raw()->layout),
          m_scatter(m_source->raw()->file->get()), m_order(m_source->bands.size()) {
        std::iota(m_order.begin(), m_order.end(), size_t{0});
        std::stable_sort(m_order.begin(), m_order.end(),
                         [&](size_t a, size_t b) { return m_source->bands[a] < m_source->bands[b]; });
        m_lowest = m_source->bands[m_order.front()] - 1;
        m_highest = m_source->bands[m_order.back()] - 1;
        m_same_nodata = std::all_of(m_source->nodata.begin(), m_source->nodata.end(),
                                    [&](const NodataMatch& n) { return n == m_source->nodata.front(); });
        // The bands of a pixel are next to each other (BIP), possibly with gaps.
        m_pixel_interleaved = m_highest > m_lowest && m_raw.band_step < m_raw.pixel_step;
        if (m_source->server.file)
            m_far.emplace(*m_source->server.file, false);
        else
            m_in_memory = m_source->raw()->file->held_by_system(64);
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect in_file = m_source->in_file(window);
        RemoteFile::Hold hold;
        if (m_far) {
            const RemoteFile::Extents extents = extents_of(in_file);
            // The extents are announced first, so that several connections fetch them.
            m_source->server.file->announce(key_of(in_file), extents);
            hold = m_source->server.file->need(extents);
            m_source->server.file->done(key_of(in_file));
        }
        try {
            if (m_pixel_interleaved)
                read_pixels(in_file, dst);
            else if (m_raw.packed_rows() && m_raw.type == GDT_Float32 && !m_raw.swapped && !in_parts())
                read_floats(in_file, dst);
            else
                read_rows(in_file, dst);
        } catch (const Error& e) {
            throw Error("cannot read " + m_source->name() + ": " + e.what(), e.advice());
        }
    }

    bool expect(const Rect& window) override {
        if (!m_far || !m_source->server.file->has_room()) return false;
        const Rect r = m_source->in_file(window);
        m_source->server.file->announce(key_of(r), extents_of(r));
        return true;
    }

    void prefetch(const Rect& window) override {
        if (m_far || m_in_memory) return; // system::read_ahead() would only cost time
        const int64_t x = window.x + m_source->window().x, y = window.y + m_source->window().y;
        const auto advise = [&](int64_t first_band, int64_t last_band) {
            const int64_t begin = m_raw.at(first_band, y, x);
            const int64_t end = m_raw.at(last_band, y + window.h - 1, x + window.w - 1) + m_raw.sample_bytes;
            system::read_ahead(m_source->raw()->file->get(), begin, end);
        };
        // Only a band-sequential file has the bands of a window far apart; in other files, the window is one
        // range.
        if (m_raw.band_step > m_raw.line_step) {
            for (const int band : m_source->bands)
                advise(band - 1, band - 1);
        } else {
            advise(m_lowest, m_highest);
        }
    }

  private:
    /// Returns the byte ranges of the file that the window needs.
    RemoteFile::Extents extents_of(const Rect& r) const {
        RemoteFile::Extents extents;
        const auto add = [&](int64_t first_band, int64_t last_band, int64_t first_line, int64_t last_line) {
            extents.push_back(
                {static_cast<uint64_t>(m_raw.at(first_band, first_line, r.x)),
                 static_cast<uint64_t>(m_raw.at(last_band, last_line, r.right() - 1) + m_raw.sample_bytes)});
        };
        // If the window has whole lines, its lines are one range.
        const bool whole = r.w == m_source->file.samples;
        if (m_raw.band_step > m_raw.line_step) {
            for (const size_t k : m_order)
                for (int64_t line = r.y; line < r.bottom(); line = whole ? r.bottom() : line + 1)
                    add(m_source->bands[k] - 1, m_source->bands[k] - 1, line, whole ? r.bottom() - 1 : line);
        } else {
            for (int64_t line = r.y; line < r.bottom(); ++line) {
                if (m_pixel_interleaved)
                    add(m_lowest, m_highest, line, line);
                else
                    for (const size_t k : m_order)
                        add(m_source->bands[k] - 1, m_source->bands[k] - 1, line, line);
            }
        }
        return extents;
    }

    bool in_parts() const { return !m_source->parts.empty(); }

    /// Calls f(index of the selected band, line of the window) in the order of the file.
    template <class F>
    void for_rows(int64_t lines, F&& f) const {
        if (m_raw.band_step > m_raw.line_step) {
            for (const size_t k : m_order)
                for (int64_t line = 0; line < lines; ++line)
                    f(k, line);
        } else {
            for (int64_t line = 0; line < lines; ++line)
                for (const size_t k : m_order)
                    f(k, line);
        }
    }

    struct Pending {
        size_t band;
        const char* from; ///< position in the scratch buffer; not used for floats
        float* row;
    };

    void read_floats(const Rect& r, const CubeView<float>& dst) {
        const size_t row_bytes = static_cast<size_t>(r.w) * sizeof(float);
        size_t batched = 0;
        m_pending.clear();
        const auto finish = [&] {
            m_scatter.flush();
            for (const Pending& p : m_pending)
                blank(p.row, static_cast<size_t>(r.w), m_source->nodata[p.band], SampleType::float32);
            m_pending.clear();
            batched = 0;
        };
        for_rows(r.h, [&](size_t k, int64_t line) {
            float* row = dst.row(static_cast<int>(k), line);
            m_scatter.add(m_raw.at(m_source->bands[k] - 1, r.y + line, r.x), row, row_bytes);
            if (m_source->nodata[k].active) m_pending.push_back({k, nullptr, row});
            batched += row_bytes;
            if (batched >= direct_batch_bytes) finish();
        });
        finish();
    }

    void read_rows(const Rect& r, const CubeView<float>& dst) {
        const size_t row_bytes = static_cast<size_t>((r.w - 1) * m_raw.pixel_step + m_raw.sample_bytes);
        m_scratch.resize(std::max(read_scratch_bytes, row_bytes));
        size_t used = 0;
        m_pending.clear();
        const auto finish = [&] {
            m_scatter.flush();
            for (const Pending& p : m_pending)
                m_source->deliver(p.band, p.from, m_raw.pixel_step, m_raw.type, m_raw.swapped, p.row,
                                  static_cast<size_t>(r.w));
            m_pending.clear();
            used = 0;
        };
        for_rows(r.h, [&](size_t k, int64_t line) {
            if (used + row_bytes > m_scratch.size()) finish();
            m_scatter.add(m_raw.at(m_source->bands[k] - 1, r.y + line, r.x), m_scratch.data() + used,
                          row_bytes);
            m_pending.push_back({k, m_scratch.data() + used, dst.row(static_cast<int>(k), line)});
            used += row_bytes;
        });
        finish();
    }

    void read_pixels(const Rect& r, const CubeView<float>& dst) {
        const size_t span =
            static_cast<size_t>((m_highest - m_lowest) * m_raw.band_step + m_raw.sample_bytes);
        const size_t step = static_cast<size_t>(m_raw.pixel_step);
        const size_t across = static_cast<size_t>(r.w);
        const size_t chunk = std::min(
            across,
            std::max<size_t>(1, read_scratch_bytes > span ? (read_scratch_bytes - span) / step + 1 : 1));
        m_scratch.resize((chunk - 1) * step + span);
        const bool dense = m_raw.band_step == m_raw.sample_bytes;
        // Converting all bands between the lowest and the highest selected band is faster, unless few of them
        // are selected.
        const size_t between = static_cast<size_t>(m_highest - m_lowest) + 1;
        const bool turn = dense && m_order.size() * 4 >= between &&
                          (m_same_nodata || exact_in_float(sample_type(m_raw.type))) && !in_parts();
        const bool as_is = m_raw.type == GDT_Float32 && !m_raw.swapped && step % sizeof(float) == 0;
        for (int64_t line = 0; line < r.h; ++line)
            for (size_t x = 0; x < across; x += chunk) {
                const size_t n = std::min(chunk, across - x);
                m_scatter.add(m_raw.at(m_lowest, r.y + line, r.x + static_cast<int64_t>(x)), m_scratch.data(),
                              (n - 1) * step + span);
                m_scatter.flush();
                if (!turn) {
                    for (size_t k = 0; k < m_source->bands.size(); ++k)
                        m_source->deliver(
                            k, m_scratch.data() + (m_source->bands[k] - 1 - m_lowest) * m_raw.band_step,
                            m_raw.pixel_step, m_raw.type, m_raw.swapped,
                            dst.row(static_cast<int>(k), line) + x, n);
                    continue;
                }
                const float* floats = reinterpret_cast<const float*>(m_scratch.data());
                size_t float_step = step / sizeof(float);
                if (!as_is) {
                    m_floats.resize(n * between);
                    // Wide types are compared with nodata before the conversion loses digits. All bands then
                    // have the same nodata value.
                    const NodataMatch match =
                        exact_in_float(sample_type(m_raw.type)) ? NodataMatch{} : m_source->nodata.front();
                    if (step == between * static_cast<size_t>(m_raw.sample_bytes)) {
                        to_floats(m_scratch.data(), m_raw.sample_bytes, sample_type(m_raw.type),
                                  m_raw.swapped, match, m_floats.data(), n * between);
                    } else {
                        for (size_t i = 0; i < n; ++i)
                            to_floats(m_scratch.data() + i * step, m_raw.sample_bytes,
                                      sample_type(m_raw.type), m_raw.swapped, match,
                                      m_floats.data() + i * between, between);
                    }
                    floats = m_floats.data();
                    float_step = between;
                }
                turn_chunk(floats, float_step, n, line, x, dst);
            }
    }

    /// Converts pixels to rows, for each run of consecutive bands of the file. A band that is selected twice
    /// begins a new run.
    void turn_chunk(const float* floats, size_t step, size_t pixels, int64_t line, size_t x,
                    const CubeView<float>& dst) {
        for (size_t a = 0; a < m_order.size();) {
            m_rows.clear();
            const int first = m_source->bands[m_order[a]];
            size_t b = a;
            for (; b < m_order.size() && m_source->bands[m_order[b]] == first + static_cast<int>(b - a); ++b)
                m_rows.push_back(dst.row(static_cast<int>(m_order[b]), line) + x);
            pixels_to_rows(floats + (first - 1 - m_lowest), step, m_rows.size(), pixels, m_rows.data());
            if (exact_in_float(sample_type(m_raw.type))) {
                for (; a < b; ++a)
                    blank(dst.row(static_cast<int>(m_order[a]), line) + x, pixels,
                          m_source->nodata[m_order[a]], sample_type(m_raw.type));
            }
            a = b;
        }
    }

    const std::shared_ptr<const SourceState> m_source;
    const RawLayout m_raw;
    ScatterReader m_scatter;
    std::vector<size_t> m_order;         ///< indices of the selected bands, in the order of the file
    int64_t m_lowest = 0, m_highest = 0; ///< lowest and highest selected file band, from 0
    bool m_same_nodata = true, m_pixel_interleaved = false;
    bool m_in_memory = false;                ///< the file is in memory, judged by a sample of its pages
    std::optional<RemoteFile::Reader> m_far; ///< reader of the remote file; empty: the file is local
    std::vector<char> m_scratch;
    std::vector<float> m_floats;
    std::vector<float*> m_rows;
    std::vector<Pending> m_pending;
};

} // namespace

std::unique_ptr<stream::CubeReader> make_raw_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<RawReader>(std::move(source));
}

void check_raw_span(const SourceState& source) {
    struct stat info {};
    if (::fstat(source.raw()->file->get(), &info) != 0)
        throw Error("cannot read " + source.name() + ": " + std::strerror(errno));
    const Rect w = source.window();
    int64_t end = 0;
    for (const int band : source.bands)
        end = std::max(end, source.raw()->layout.at(band - 1, w.bottom() - 1, w.right() - 1) +
                                source.raw()->layout.sample_bytes);
    if (end > info.st_size)
        throw Error(source.name() + " is truncated: its header describes data up to byte " +
                        std::to_string(end) + ", but the file has " + std::to_string(info.st_size),
                    "The copy may be incomplete, or the header belongs to another file.");
}

void check_raw_end(const SourceState& source) {
    struct stat info {};
    if (::fstat(source.raw()->file->get(), &info) != 0)
        throw Error("cannot read " + source.name() + ": " + std::strerror(errno));
    const RawLayout& raw = source.raw()->layout;
    const int64_t end = raw.at(source.scene.file_bands - 1, source.file.lines - 1, source.file.samples - 1) +
                        raw.sample_bytes;
    if (info.st_size - end >= source.file.samples * raw.sample_bytes)
        throw Error(source.name() + " has " + counted(info.st_size, "byte") + ", but its header states " +
                        std::to_string(end),
                    "The header may be cut off or belong to another file. If the other bytes are not part of "
                    "the scene, use gdal_translate -of VRT to make a source of the described part.");
}

} // namespace hsi::raster
