// SPDX-License-Identifier: MIT
// Tiles from the arrays of a product: pieces along the chunks of the file, whatever the order of its axes, so
// that each chunk is decoded once where the tile holds it.
#include "core/error.h"
#include "raster/array_file.h"
#include "raster/gdal_errors.h"
#include "raster/product.h"
#include "raster/source_impl.h"

#include <algorithm>

namespace hsi::raster {
namespace {

constexpr uint64_t array_piece_bytes = uint64_t{8}
                                       << 20; ///< of the file's own type, where chunks are not larger

/// A band of a part that goes to a band of the tile.
struct Wanted {
    int64_t index = 0;
    int target = 0;
};

class ProductReader final : public stream::CubeReader {
  public:
    explicit ProductReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_file(ArrayFile::open(m_source->product->path)) {
        const Product& product = *m_source->product;
        if (!m_file) throw Error("cannot open '" + product.path + "'");
        m_wanted.resize(product.parts.size());
        for (size_t k = 0; k < m_source->bands.size(); ++k) {
            const ProductBand& band = product.bands[static_cast<size_t>(m_source->bands[k] - 1)];
            m_wanted[static_cast<size_t>(band.part)].push_back({band.index, static_cast<int>(k)});
        }
        for (size_t p = 0; p < product.parts.size(); ++p) {
            m_arrays.push_back(m_file->array(product.parts[p].array));
            if (!m_arrays.back())
                throw Error("cannot read " + product.parts[p].array + " of '" + product.path + "'");
            std::sort(m_wanted[p].begin(), m_wanted[p].end(),
                      [](const Wanted& a, const Wanted& b) { return a.index < b.index; });
        }
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect in_file{window.x + m_source->window().x, window.y + m_source->window().y, window.w,
                           window.h};
        for (size_t p = 0; p < m_wanted.size(); ++p)
            if (!m_wanted[p].empty()) read_part(p, in_file, dst);
    }

  private:
    /// Runs of wanted bands: what lies between them is read, too, where that spares nothing.
    void read_part(size_t p, const Rect& r, const CubeView<float>& dst) {
        const CubePart& part = m_source->product->parts[p];
        const int64_t along_bands = part.chunk[static_cast<size_t>(part.band_axis)];
        const int64_t gap = part.band_axis == 0 && along_bands == 0 ? 1 : std::max<int64_t>(along_bands, 16);
        const auto& wanted = m_wanted[p];
        for (size_t a = 0; a < wanted.size();) {
            size_t b = a + 1;
            while (b < wanted.size() && wanted[b].index - wanted[b - 1].index <= gap)
                ++b;
            read_run(p, r, a, b, dst);
            a = b;
        }
    }

    /// Where a piece that begins `at` ends: whole chunks, `count` of them, and not past `end`.
    static int64_t piece_end(int64_t at, int64_t chunk, int64_t count, int64_t end) {
        return std::min(end, (at / chunk + count) * chunk);
    }

    /// Bands wanted[a, b), a piece of the scratch's size at a time: as many bands as fit, then samples, then
    /// lines.
    void read_run(size_t p, const Rect& r, size_t a, size_t b, const CubeView<float>& dst) {
        const CubePart& part = m_source->product->parts[p];
        const auto& wanted = m_wanted[p];
        const int64_t bands_chunk = std::max<int64_t>(1, part.chunk[static_cast<size_t>(part.band_axis)]);
        const int64_t cw = std::min(part.chunk_samples(m_source->file_samples), r.w),
                      ch = std::min(part.chunk_lines(), r.h);
        const auto size = static_cast<int64_t>(GDALGetDataTypeSizeBytes(part.type));
        const auto limit = static_cast<int64_t>(std::max(array_piece_bytes, part.chunk_bytes()));
        const int64_t first = wanted[a].index, last = wanted[b - 1].index + 1;
        const int64_t unit = cw * ch * size;
        const int64_t bands = std::max(bands_chunk, limit / unit / bands_chunk * bands_chunk);
        for (int64_t i = first; i < last;) {
            const int64_t i_end = piece_end(i, bands_chunk, std::max<int64_t>(1, bands / bands_chunk), last);
            const int64_t pixel = (i_end - i) * size;
            const int64_t across = std::max<int64_t>(1, limit / (pixel * ch * cw));
            const int64_t width = std::min(r.w, across * cw);
            const int64_t down = std::max<int64_t>(1, limit / (pixel * ch * width));
            for (int64_t y = r.y; y < r.bottom();) {
                const int64_t y_end = piece_end(y, part.chunk_lines(), down, r.bottom());
                for (int64_t x = r.x; x < r.right();) {
                    const int64_t x_end =
                        piece_end(x, part.chunk_samples(m_source->file_samples), across, r.right());
                    read_piece(p, {x, y, x_end - x, y_end - y}, i, i_end, r, a, b, dst);
                    x = x_end;
                }
                y = y_end;
            }
            i = i_end;
        }
    }

    void read_piece(size_t p, const Rect& piece, int64_t i, int64_t i_end, const Rect& tile, size_t a,
                    size_t b, const CubeView<float>& dst) {
        const CubePart& part = m_source->product->parts[p];
        GUInt64 start[3];
        size_t count[3];
        const auto set = [&](int axis, int64_t from, int64_t n) {
            start[axis] = static_cast<GUInt64>(from);
            count[axis] = static_cast<size_t>(n);
        };
        set(part.line_axis, piece.y, piece.h);
        set(part.sample_axis, piece.x, piece.w);
        set(part.band_axis, i, i_end - i);
        const auto size = static_cast<size_t>(GDALGetDataTypeSizeBytes(part.type));
        const size_t steps[3] = {count[1] * count[2] * size, count[2] * size, size};
        m_scratch.resize(count[0] * count[1] * count[2] * size);
        const GdalErrors errors;
        if (!m_arrays[p]->Read(start, count, nullptr, nullptr, GDALExtendedDataType::Create(part.type),
                               m_scratch.data()) ||
            errors.any())
            throw Error("cannot read " + m_source->name() + ": " + errors.text());
        const size_t line = steps[part.line_axis], pixel = steps[part.sample_axis],
                     band = steps[part.band_axis];
        constexpr int64_t block = 128; // pixels: of all bands they stay in the cache
        for (int64_t y = 0; y < piece.h; ++y)
            for (int64_t x = 0; x < piece.w; x += block)
                for (size_t k = a; k < b; ++k) {
                    const Wanted& w = m_wanted[p][k];
                    if (w.index < i || w.index >= i_end) continue;
                    const char* const from = m_scratch.data() + static_cast<size_t>(y) * line +
                                             static_cast<size_t>(x) * pixel +
                                             static_cast<size_t>(w.index - i) * band;
                    to_floats(from, static_cast<ptrdiff_t>(pixel), part.type, false,
                              m_source->nodata[static_cast<size_t>(w.target)],
                              dst.row(w.target, piece.y - tile.y + y) + (piece.x - tile.x + x),
                              static_cast<size_t>(std::min(block, piece.w - x)));
                }
    }

    const std::shared_ptr<const SourceState> m_source;
    const std::shared_ptr<ArrayFile> m_file;
    std::vector<std::shared_ptr<GDALMDArray>> m_arrays; ///< a part each
    std::vector<std::vector<Wanted>> m_wanted;          ///< likewise, by index
    std::vector<char> m_scratch;
};

} // namespace

uint64_t product_reader_bytes(const Product& product) {
    uint64_t chunk = 0;
    for (const CubePart& part : product.parts)
        chunk = std::max(chunk, part.chunk_bytes());
    return 2 * chunk + std::max(chunk, array_piece_bytes); // decoded, as stored, and the scratch
}

std::unique_ptr<stream::CubeReader> make_product_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<ProductReader>(std::move(source));
}

} // namespace hsi::raster
