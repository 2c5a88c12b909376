// SPDX-License-Identifier: MIT
// Reads tiles from the arrays of a product through GDAL, for any order of the axes. Tiles are read in pieces
// that follow the chunks of the file, so that each chunk is decoded once if a tile contains it.
#include "core/error.h"
#include "parallel/work_ahead.h"
#include "raster/gdal_errors.h"
#include "raster/products/array_file.h"
#include "raster/products/product.h"
#include "raster/scene/source_impl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

/// array_piece_bytes: the size in bytes for which cut_run() aims when it cuts a piece. A piece is larger if a
/// single chunk, or a line of an array without chunks, is larger. The size includes the values in the data
/// type of the file and, for each chunk, bytes_beside_chunk, which HDF5 needs during a read (measured).
constexpr uint64_t array_piece_bytes = uint64_t{8} << 20, bytes_beside_chunk = 1024;

/// Returns the maximum bytes of the values in a piece of this part.
uint64_t values_in_piece(const CubePart& part) {
    const uint64_t chunk = part.chunk_bytes();
    if (chunk == 0) return array_piece_bytes; // the array is not chunked
    return std::max(chunk, array_piece_bytes / (chunk + bytes_beside_chunk) * chunk);
}

/// The number of pieces that are decoded in advance. It is small because each piece needs memory that must be
/// cleared, and because a piece may leave the processor's caches before it is used.
constexpr uint64_t most_ahead = 8;

/// A wanted band: its index in the part, and its index in the tile.
struct Wanted {
    int64_t index = 0;
    int target = 0;
};

/// The unit of decoding: a box of a part, which contains the wanted bands with indices [first, last).
struct Piece {
    size_t part;
    Rect place; ///< window in the file
    int64_t band, band_end;
    size_t first, last;
};

uint64_t largest_chunk(const Product& product) {
    uint64_t chunk = 0;
    for (const CubePart& part : product.parts)
        chunk = std::max(chunk, part.chunk_bytes());
    return chunk;
}

/// Returns the maximum bytes of a piece: the size for which cut_run() aims, a larger chunk, or a line of an
/// array without chunks.
uint64_t piece_bytes(const Product& product) {
    uint64_t bytes = std::max(array_piece_bytes, largest_chunk(product));
    for (const CubePart& part : product.parts)
        bytes = std::max(bytes, static_cast<uint64_t>(part.chunk_samples(product.samples)) *
                                    static_cast<uint64_t>(GDALGetDataTypeSizeBytes(part.type)));
    return bytes;
}

/// The arrays of a product, opened once for all readers of an HDF5 file. More handles are useless because the
/// HDF5 library decodes on only one thread at a time. Each handle would also keep an index of the chunks,
/// which takes tens of megabytes if chunks are small. For Zarr, each thread has its own handle, because
/// several threads can decode at once.
struct OpenArrays {
    explicit OpenArrays(const Product& product) : file(ArrayFile::open(product.path)) {
        if (!file) throw Error("cannot open '" + product.path + "'");
        for (const CubePart& part : product.parts) {
            parts.push_back(file->array_of(part));
            if (!parts.back()) throw Error("cannot read " + part.array + " of '" + product.path + "'");
        }
    }
    std::shared_ptr<ArrayFile> file;
    std::vector<std::shared_ptr<GDALMDArray>> parts; ///< one array per entry of Product::parts
    std::mutex mutex;                                ///< locked while values are read
};

std::shared_ptr<OpenArrays> arrays_of(const Product& product) {
    if (product.driver != "HDF5") return std::make_shared<OpenArrays>(product);
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<OpenArrays>> open; // a file is closed with its last reader
    const std::lock_guard lock(mutex);
    auto& known = open[product.path];
    auto arrays = known.lock();
    if (!arrays) known = arrays = std::make_shared<OpenArrays>(product);
    return arrays;
}

class ProductReader final : public stream::CubeReader {
  public:
    explicit ProductReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_arrays(arrays_of(*m_source->product)) {
        const Product& product = *m_source->product;
        m_wanted.resize(product.parts.size());
        for (size_t k = 0; k < m_source->bands.size(); ++k) {
            const ProductBand& band = product.bands[static_cast<size_t>(m_source->bands[k] - 1)];
            m_wanted[static_cast<size_t>(band.part)].push_back({band.index, static_cast<int>(k)});
        }
        for (auto& wanted : m_wanted)
            std::sort(wanted.begin(), wanted.end(),
                      [](const Wanted& a, const Wanted& b) { return a.index < b.index; });
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        read_file(m_source->in_file(window), m_source->lines_in_file(dst));
        m_source->turn_samples(dst);
    }

    void read_file(const Rect& tile, const CubeView<float>& dst) {
        const std::vector<Piece> pieces = pieces_of(tile);
        if (!m_ahead) {
            for (const Piece& piece : pieces) {
                m_scratch.resize(values_of(piece) * type_bytes(piece));
                decode(piece, m_scratch.data());
                spread(piece, m_scratch.data(), tile, dst);
            }
            return;
        }
        if (m_begun != tile) {
            m_ahead->clear();
            m_ahead->add(pieces);
        }
        m_begun.reset(); // after an error, the next call must add its pieces again
        if (m_next) m_ahead->add(pieces_of(*m_next));
        for (const Piece& piece : pieces)
            spread(piece, m_ahead->take(), tile, dst);
        m_begun = std::exchange(m_next, std::nullopt);
    }

    void prefetch(const Rect& window) override { m_next = m_source->in_file(window); }

    uint64_t look_ahead(uint64_t bytes, int /*threads: the library works on one*/) override {
        // The first piece is not counted. At least one more piece is needed, so that decoding and reading can
        // overlap.
        const uint64_t piece = piece_bytes(*m_source->product), more = std::min(bytes / piece, most_ahead);
        if (more == 0) return 0;
        try {
            m_ahead = std::make_unique<parallel::WorkAhead<Piece>>(
                more + 1, piece, [this](const Piece& one, char* values) { decode(one, values); });
        } catch (const std::system_error&) {
            // No more threads can be started, so the reader continues without.
            return 0;
        }
        return more * piece;
    }

  private:
    std::vector<Piece> pieces_of(const Rect& tile) const {
        std::vector<Piece> pieces;
        for (size_t p = 0; p < m_wanted.size(); ++p)
            if (!m_wanted[p].empty()) cut_part(p, tile, pieces);
        return pieces;
    }

    /// Cuts the wanted bands of a part into runs. Bands between wanted bands are also read if leaving them
    /// out would not save time.
    void cut_part(size_t p, const Rect& r, std::vector<Piece>& pieces) const {
        const CubePart& part = m_source->product->parts[p];
        const int64_t along_bands = part.chunk[static_cast<size_t>(part.band_axis)];
        const int64_t gap = part.band_axis == 0 && along_bands == 0 ? 1 : std::max<int64_t>(along_bands, 16);
        const auto& wanted = m_wanted[p];
        for (size_t a = 0; a < wanted.size();) {
            size_t b = a + 1;
            while (b < wanted.size() && wanted[b].index - wanted[b - 1].index <= gap)
                ++b;
            cut_run(p, r, a, b, pieces);
            a = b;
        }
    }

    /// Returns the end of a piece that begins `at` and covers `count` whole chunks, but not more than `end`.
    static int64_t piece_end(int64_t at, int64_t chunk, int64_t count, int64_t end) {
        return std::min(end, (at / chunk + count) * chunk);
    }

    /// Cuts the wanted bands [a, b) into pieces of limited size. A piece has as many bands as fit, then as
    /// many samples, then as many lines.
    void cut_run(size_t p, const Rect& r, size_t a, size_t b, std::vector<Piece>& pieces) const {
        const CubePart& part = m_source->product->parts[p];
        const auto& wanted = m_wanted[p];
        const int64_t bands_chunk = std::max<int64_t>(1, part.chunk[static_cast<size_t>(part.band_axis)]);
        const int64_t cw = std::min(part.chunk_samples(m_source->file.samples), r.w),
                      ch = std::min(part.chunk_lines(), r.h);
        const auto size = static_cast<int64_t>(GDALGetDataTypeSizeBytes(part.type));
        const auto limit = static_cast<int64_t>(values_in_piece(part));
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
                        piece_end(x, part.chunk_samples(m_source->file.samples), across, r.right());
                    pieces.push_back({p, {x, y, x_end - x, y_end - y}, i, i_end, a, b});
                    x = x_end;
                }
                y = y_end;
            }
            i = i_end;
        }
    }

    const CubePart& part_of(const Piece& piece) const { return m_source->product->parts[piece.part]; }
    size_t type_bytes(const Piece& piece) const {
        return static_cast<size_t>(GDALGetDataTypeSizeBytes(part_of(piece).type));
    }
    static size_t values_of(const Piece& piece) {
        return static_cast<size_t>(piece.place.area() * (piece.band_end - piece.band));
    }

    /// Reads the values of a piece in the order of the array's axes and in the array's type.
    void decode(const Piece& piece, char* values) {
        const CubePart& part = part_of(piece);
        GUInt64 start[3];
        size_t count[3];
        const auto set = [&](int axis, int64_t from, int64_t n) {
            start[axis] = static_cast<GUInt64>(from);
            count[axis] = static_cast<size_t>(n);
        };
        set(part.line_axis, piece.place.y, piece.place.h);
        set(part.sample_axis, piece.place.x, piece.place.w);
        set(part.band_axis, piece.band, piece.band_end - piece.band);
        const GdalErrors errors;
        const std::lock_guard lock(m_arrays->mutex);
        if (!read_samples(*m_arrays->parts[piece.part], part, start, count, values) || errors.any())
            throw Error("cannot read " + m_source->name() + ": " + errors.text());
    }

    void spread(const Piece& piece, const char* values, const Rect& tile, const CubeView<float>& dst) const {
        const CubePart& part = part_of(piece);
        const Rect& place = piece.place;
        size_t step[3]; // bytes from one value to the next along each axis of the array
        size_t count[3];
        count[part.line_axis] = static_cast<size_t>(place.h);
        count[part.sample_axis] = static_cast<size_t>(place.w);
        count[part.band_axis] = static_cast<size_t>(piece.band_end - piece.band);
        step[2] = type_bytes(piece);
        step[1] = count[2] * step[2];
        step[0] = count[1] * step[1];
        const size_t line = step[part.line_axis], pixel = step[part.sample_axis], band = step[part.band_axis];
        // Number of pixels whose bands all fit into the processor's cache.
        constexpr int64_t block = 128;
        for (int64_t y = 0; y < place.h; ++y)
            for (int64_t x = 0; x < place.w; x += block)
                for (size_t k = piece.first; k < piece.last; ++k) {
                    const Wanted& w = m_wanted[piece.part][k];
                    if (w.index < piece.band || w.index >= piece.band_end) continue;
                    const char* const from = values + static_cast<size_t>(y) * line +
                                             static_cast<size_t>(x) * pixel +
                                             static_cast<size_t>(w.index - piece.band) * band;
                    m_source->deliver(static_cast<size_t>(w.target), from, static_cast<ptrdiff_t>(pixel),
                                      part.type, false,
                                      dst.row(w.target, place.y - tile.y + y) + (place.x - tile.x + x),
                                      static_cast<size_t>(std::min(block, place.w - x)));
                }
    }

    const std::shared_ptr<const SourceState> m_source;
    const std::shared_ptr<OpenArrays> m_arrays;
    std::vector<std::vector<Wanted>> m_wanted; ///< wanted bands of each part, sorted by index
    std::vector<char> m_scratch;
    /// Windows in the file: the next window, and the window that is already being decoded.
    std::optional<Rect> m_next, m_begun;
    /// The decoding thread, which uses the members above.
    std::unique_ptr<parallel::WorkAhead<Piece>> m_ahead;
};

} // namespace

uint64_t product_reader_bytes(const Product& product) {
    // Two chunks (decoded and as stored) and the scratch buffer.
    return 2 * largest_chunk(product) + piece_bytes(product);
}

std::unique_ptr<stream::CubeReader> make_product_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<ProductReader>(std::move(source));
}

} // namespace hsi::raster
