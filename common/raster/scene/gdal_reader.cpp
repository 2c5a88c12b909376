// SPDX-License-Identifier: MIT
// Reads tiles through GDAL. One RasterIO call reads all bands, so that a format with interleaved bands
// decodes each block only once.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/io/block_store.h"
#include "raster/io/whole_file.h"
#include "raster/scene/band_rows.h"
#include "raster/scene/source_impl.h"
#include "raster/tiff/tiff_decoder.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

namespace hsi::raster {
namespace {

/// Handles with larger buffers are closed after a pass, because the memory estimates of later passes do not
/// include these buffers.
constexpr uint64_t largest_idle = uint64_t{2} << 20;

class GdalReader final : public stream::CubeReader {
  public:
    explicit GdalReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_bands(m_source->bands), m_dataset(m_source->pool->take()),
          m_rows(*m_source), m_wide(m_source->wide()) {
        if (m_source->tiff())
            m_tiff = std::make_unique<TiffDecoder>(*m_dataset, m_source->tiff()->coding,
                                                   !m_source->blocks.bands_apart, m_source->name(),
                                                   m_source->server.file);
        if (m_source->server.file) m_far.emplace(*m_source->server.file, true);
    }
    ~GdalReader() override {
        if (m_far) {
            m_far.reset();
            if (!m_source->server.file->has_readers()) m_source->tiff()->store->forget();
        }
        if (m_source->reader_bytes() <= largest_idle) m_source->pool->give(std::move(m_dataset));
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect in_file = m_source->in_file(window);
        const GdalErrors errors;
        if (m_tiff)
            read_decoded(in_file, dst);
        else if (m_source->blocks.bands_apart && !m_source->blocks.half && covers_blocks(in_file))
            read_blocks(in_file, dst, errors);
        else if (m_wide)
            read_wide(in_file, dst, errors);
        else
            read_floats(in_file, dst, errors);
        if (m_source->masking.kind == MaskKind::dataset) {
            apply_mask(m_bands.front(), 0, dst.bands, in_file, dst, errors);
        } else if (m_source->masking.kind == MaskKind::band) {
            for (int k = 0; k < dst.bands; ++k)
                apply_mask(m_bands[static_cast<size_t>(k)], k, 1, in_file, dst, errors);
        }
    }

    bool expect(const Rect& window) override {
        if (!m_source->server.file || !m_source->server.file->has_room()) return false;
        announce(m_source->in_file(window));
        return true;
    }

  private:
    void check(CPLErr result, const GdalErrors& errors) const {
        // Some drivers report an error for a damaged block, but return success.
        if (result != CE_None || errors.any())
            throw Error("cannot read " + m_source->name() + ": " + errors.text());
    }

    int64_t block_samples() const {
        return m_source->blocks.samples > 0 ? m_source->blocks.samples : m_dataset->GetRasterXSize();
    }

    /// Returns true if the window consists of whole blocks of the file. Each block is then needed only once,
    /// so GDAL's block cache is not useful.
    bool covers_blocks(const Rect& r) const {
        const int64_t bx = block_samples(), by = m_source->blocks.lines;
        return r.x % bx == 0 && r.y % by == 0 &&
               (r.right() % bx == 0 || r.right() == m_dataset->GetRasterXSize()) &&
               (r.bottom() % by == 0 || r.bottom() == m_dataset->GetRasterYSize()) &&
               bx * by <= largest_block;
    }

    /// Returns the index of the next selected band after k, up to `end`, that is a different band of the
    /// file. The bands before it are parts of the same samples.
    size_t behind(size_t k, size_t end) const {
        size_t next = k + 1;
        while (next < end && m_bands[next] == m_bands[k])
            ++next;
        return next;
    }

    /// A block that a tile needs, for the selected bands [first, end).
    struct NeededBlock {
        BlockStore::Block block;
        int64_t x, y; ///< sample and line of its first pixel
        bool keep;
        size_t first, end;
    };

    /// Calls f(NeededBlock) for each block that a window of the file needs.
    template <class F>
    void for_blocks(const Rect& r, F&& f) const {
        const int64_t bx = m_tiff->block_samples(), by = m_tiff->block_lines();
        const Rect scene = m_source->window();
        const BlockRange columns = BlockRange::of(r.x, r.right(), bx, scene.right()),
                         rows = BlockRange::of(r.y, r.bottom(), by, scene.bottom());
        const bool together = !m_source->blocks.bands_apart;
        for (size_t k = 0, next = 0; k < m_bands.size(); k = next) {
            next = together ? m_bands.size() : behind(k, m_bands.size());
            for (int64_t row = rows.first; row <= rows.last; ++row)
                for (int64_t column = columns.first; column <= columns.last; ++column)
                    f(NeededBlock{m_tiff->block(together ? 0 : m_bands[k] - 1, column, row), column * bx,
                                  row * by, rows.keeps(row) || columns.keeps(column), k, next});
        }
    }

    /// Starts fetching the blocks of the window that have not arrived yet.
    void announce(const Rect& r) {
        if (m_source->server.file->is_announced(key_of(r))) return;
        std::vector<BlockStore::Placed> blocks;
        for_blocks(r, [&](const NeededBlock& needed) {
            if (!m_source->tiff()->store->holds(needed.block))
                blocks.push_back({needed.block, m_tiff->place(needed.block.name)});
        });
        m_source->tiff()->store->await(*m_source->server.file, key_of(r), blocks);
    }

    /// Reads a tile from the store of decoded blocks, and decodes missing blocks.
    void read_decoded(const Rect& r, const CubeView<float>& dst) {
        if (m_source->server.file) announce(r);
        // Blocks that other threads are decoding are handled last.
        std::vector<NeededBlock> later;
        for_blocks(r, [&](const NeededBlock& needed) {
            if (!take(needed, false, r, dst)) later.push_back(needed);
        });
        for (const NeededBlock& needed : later)
            take(needed, true, r, dst);
        if (m_source->server.file) m_source->server.file->done(key_of(r));
    }

    /// Copies the samples of a block into the tile. Returns false if another thread is decoding the block and
    /// `wait` is false.
    bool take(const NeededBlock& needed, bool wait, const Rect& r, const CubeView<float>& dst) {
        m_scratch.resize(needed.block.bytes);
        if (m_source->server.file && !m_source->tiff()->store->holds(needed.block))
            m_source->tiff()->store->wait_for(*m_source->server.file, m_tiff->place(needed.block.name),
                                              *m_tiff);
        const auto lease =
            m_source->tiff()->store->take(needed.block, needed.keep, wait, *m_tiff, m_scratch.data());
        if (lease) spread(needed, lease.samples(), r, dst);
        return static_cast<bool>(lease);
    }

    void spread(const NeededBlock& needed, const char* samples, const Rect& r, const CubeView<float>& dst) {
        const int64_t size = m_tiff->sample_bytes(), bands = m_tiff->bands_in_block(), pixel = bands * size;
        const Rect place =
            intersect(Rect{needed.x, needed.y, m_tiff->block_samples(), m_tiff->block_lines()}, r);
        const GDALDataType type = m_source->scene.bands[needed.first].type;
        if (bands > 1 && m_wanted.empty()) {
            for (size_t k = 0; k < m_bands.size(); ++k)
                m_wanted.push_back({m_bands[k] - 1, static_cast<int>(k)});
            sort_bands_of(m_wanted);
        }
        const bool turned = bands > 1 && m_rows.suits(type, static_cast<int64_t>(m_wanted.size()), bands);
        for (int64_t y = place.y; y < place.bottom(); ++y)
            for (int64_t x = place.x; x < place.right(); x += pixels_at_once) {
                const auto count = static_cast<size_t>(std::min(pixels_at_once, place.right() - x));
                const char* const from =
                    samples + ((y - needed.y) * m_tiff->block_samples() + x - needed.x) * pixel;
                const auto row = [&](int k) { return dst.row(k, y - r.y) + (x - r.x); };
                if (turned) {
                    m_rows.turn(from, type, false, bands, count, 0, m_wanted.begin(), m_wanted.end(),
                                [&](const WantedBand& w) { return row(w.target); });
                    continue;
                }
                for (size_t k = needed.first; k < needed.end; ++k)
                    m_source->deliver(k, from + (bands > 1 ? (m_bands[k] - 1) * size : 0), pixel, type, false,
                                      row(static_cast<int>(k)), count);
            }
    }

    void read_blocks(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        const int64_t bx = block_samples(), by = m_source->blocks.lines;
        for (size_t k = 0, next = 0; k < m_bands.size(); k = next) {
            next = behind(k, m_bands.size());
            GDALRasterBand* const band = m_dataset->GetRasterBand(m_bands[k]);
            const GDALDataType type = m_source->scene.bands[k].type;
            const int64_t size = GDALGetDataTypeSizeBytes(type);
            m_scratch.resize(static_cast<size_t>(bx * by * size));
            for (int64_t y = 0; y < r.h; y += by)
                for (int64_t x = 0; x < r.w; x += bx) {
                    const auto column = static_cast<int>((r.x + x) / bx),
                               row = static_cast<int>((r.y + y) / by);
                    check(band->ReadBlock(column, row, m_scratch.data()), errors);
                    for (int64_t line = 0; line < std::min(by, r.h - y); ++line)
                        for (size_t part = k; part < next; ++part)
                            m_source->deliver(part, m_scratch.data() + line * bx * size, size, type, false,
                                              dst.row(static_cast<int>(part), y + line) + x,
                                              static_cast<size_t>(std::min(bx, r.w - x)));
                }
        }
    }

    void read_floats(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        check(m_dataset->RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y),
                                  static_cast<int>(r.w), static_cast<int>(r.h), dst.data,
                                  static_cast<int>(r.w), static_cast<int>(r.h), GDT_Float32,
                                  static_cast<int>(m_bands.size()), m_bands.data(), sizeof(float),
                                  dst.line_stride * static_cast<GSpacing>(sizeof(float)),
                                  dst.band_stride * static_cast<GSpacing>(sizeof(float)), nullptr),
              errors);
        for (int k = 0; k < dst.bands; ++k) {
            const NodataMatch& nodata = m_source->nodata[static_cast<size_t>(k)];
            const GDALDataType type = m_source->scene.bands[static_cast<size_t>(k)].type;
            for (int64_t line = 0; line < dst.lines; ++line)
                blank(dst.row(k, line), static_cast<size_t>(dst.samples), nodata, sample_type(type));
        }
    }

    /// Reads a tile in the data type of the file, in pieces that fit into the scratch buffer. A piece has
    /// consecutive bands of the same type. Pieces follow the blocks of the file, because a block would
    /// otherwise be decoded repeatedly.
    void read_wide(const Rect& r, const CubeView<float>& dst, const GdalErrors& errors) {
        const int64_t bx = std::min(block_samples(), r.w), by = std::min(m_source->blocks.lines, r.h);
        for (size_t a = 0; a < m_bands.size();) {
            const GDALDataType type = m_source->scene.bands[a].type;
            const int64_t size = GDALGetDataTypeSizeBytes(type);
            size_t most = m_bands.size();
            if (m_source->blocks.bands_apart) // if bands share blocks, all bands are read together
                most = a + static_cast<size_t>(std::max<int64_t>(1, wide_scratch_bytes / (size * bx * by)));
            size_t b = a + 1;
            while (b < std::min(most, m_bands.size()) && m_source->scene.bands[b].type == type)
                ++b;
            const int64_t pixel = size * static_cast<int64_t>(b - a);
            // If a row of blocks fits into the scratch buffer, pieces consist of whole lines.
            const bool rows = r.w * by * pixel <= wide_scratch_bytes;
            const int64_t lines =
                rows ? std::max<int64_t>(by, wide_scratch_bytes / (r.w * pixel) / by * by) : by;
            for (int64_t y = 0; y < r.h;) {
                const int64_t h = piece(r.y + y, lines, m_source->blocks.lines, r.h - y);
                for (int64_t x = 0; x < r.w;) {
                    const int64_t w = rows ? r.w : piece(r.x + x, bx, block_samples(), r.w - x);
                    read_piece(Rect{r.x + x, r.y + y, w, h}, a, b, dst, x, y, errors);
                    x += w;
                }
                y += h;
            }
            a = b;
        }
    }

    /// Returns the length of a piece that begins `at` and ends at the end of a block. The length is about
    /// `most` or less, and at most `left`.
    static int64_t piece(int64_t at, int64_t most, int64_t block, int64_t left) {
        const int64_t past = (at + most) / block * block;
        return std::min(left, past > at ? past - at : most);
    }

    /// Reads the bands [a, b), which have one type, to position (x, y) of the tile.
    void read_piece(const Rect& r, size_t a, size_t b, const CubeView<float>& dst, int64_t x, int64_t y,
                    const GdalErrors& errors) {
        const GDALDataType type = m_source->scene.bands[a].type;
        const int64_t size = GDALGetDataTypeSizeBytes(type);
        m_of_file.clear();
        for (size_t k = a; k < b; k = behind(k, b))
            m_of_file.push_back(m_bands[k]);
        m_scratch.resize(static_cast<size_t>(r.area() * size) * m_of_file.size());
        check(m_dataset->RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y),
                                  static_cast<int>(r.w), static_cast<int>(r.h), m_scratch.data(),
                                  static_cast<int>(r.w), static_cast<int>(r.h), type,
                                  static_cast<int>(m_of_file.size()), m_of_file.data(), size, r.w * size,
                                  r.area() * size, nullptr),
              errors);
        const char* from = m_scratch.data();
        for (size_t k = a, next = 0; k < b; k = next) {
            next = behind(k, b);
            for (int64_t line = 0; line < r.h; ++line, from += r.w * size)
                for (size_t part = k; part < next; ++part)
                    m_source->deliver(part, from, size, type, false,
                                      dst.row(static_cast<int>(part), y + line) + x,
                                      static_cast<size_t>(r.w));
        }
    }

    /// Sets the bands [first, first + count) of the tile to NaN where the mask of file band `band` is 0.
    void apply_mask(int band, int first, int count, const Rect& r, const CubeView<float>& dst,
                    const GdalErrors& errors) {
        m_mask.resize(static_cast<size_t>(r.w * r.h));
        check(m_source->mask_of(*m_dataset, band)
                  .RasterIO(GF_Read, static_cast<int>(r.x), static_cast<int>(r.y), static_cast<int>(r.w),
                            static_cast<int>(r.h), m_mask.data(), static_cast<int>(r.w),
                            static_cast<int>(r.h), GDT_Byte, 0, 0, nullptr),
              errors);
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        for (int k = first; k < first + count; ++k)
            for (int64_t line = 0; line < r.h; ++line) {
                float* row = dst.row(k, line);
                const uint8_t* mask = m_mask.data() + line * r.w;
                for (int64_t i = 0; i < r.w; ++i)
                    row[i] = mask[i] == 0 ? nan : row[i];
            }
    }

    const std::shared_ptr<const SourceState> m_source;
    std::vector<int> m_bands; ///< not const because RasterIO() takes a non-const pointer
    DatasetHandle m_dataset;
    BandRows m_rows;
    std::unique_ptr<TiffDecoder> m_tiff;     ///< null: GDAL decodes the blocks
    std::optional<RemoteFile::Reader> m_far; ///< reader of the remote file; empty: the file is local
    std::vector<WantedBand> m_wanted;        ///< wanted bands if blocks contain all bands
    bool m_wide = false;
    std::vector<int> m_of_file; ///< file bands of one RasterIO() call
    std::vector<char> m_scratch;
    std::vector<uint8_t> m_mask;
};

/// Checks after each read that a server has delivered all requested bytes to GDAL.
class WholeReader final : public stream::CubeReader {
  public:
    WholeReader(ReaderMaker make, std::shared_ptr<const SourceState> source) : m_source(std::move(source)) {
        m_source->server.losses.check_after([&] { m_reader = make(m_source); });
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_source->server.losses.check_after([&] { m_reader->read(window, dst); });
    }
    bool expect(const Rect& window) override { return m_reader->expect(window); }
    void prefetch(const Rect& window) override { m_reader->prefetch(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    const std::shared_ptr<const SourceState> m_source;
    std::unique_ptr<stream::CubeReader> m_reader;
};

} // namespace

std::unique_ptr<stream::CubeReader> whole_reader(ReaderMaker make,
                                                 std::shared_ptr<const SourceState> source) {
    if (source->server.file || VSIIsLocal(source->server.asked.path.c_str())) return make(std::move(source));
    return std::make_unique<WholeReader>(make, std::move(source));
}

std::unique_ptr<stream::CubeReader> make_gdal_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<GdalReader>(std::move(source));
}

} // namespace hsi::raster
