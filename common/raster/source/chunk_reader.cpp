// SPDX-License-Identifier: MIT
// Tiles from the chunks of a product's arrays, which each reader decodes by itself.
#include "raster/source/chunk_store.h"
#include "raster/source/source_impl.h"

#include "raster/products/product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

constexpr int64_t pixels_at_once = 128; ///< of all bands they stay in the cache

/// A band of a part that goes to a band of the tile.
struct WantedBand {
    int64_t index = 0;
    int target = 0;
};

/// A chunk that a tile needs.
struct NeededChunk {
    ChunkName name;
    std::array<int64_t, 3> begin{}; ///< along the array's axes
    bool keep = false;              ///< neighbours of the tile need it, too
};

/// What of an axis a tile needs of chunks.
struct ChunkRange {
    int64_t first, last;        ///< chunks
    int64_t keep_to, keep_from; ///< those up to here and from here on
    bool keeps(int64_t k) const { return k <= keep_to || k >= keep_from; }
};

/// A tile that ends within a chunk has a neighbour that needs the chunk, too. Where that is so because
/// windows overlap, the neighbour needs what lies within the tile beside that chunk as well.
ChunkRange chunk_range(int64_t begin, int64_t end, int64_t chunk, int64_t size) {
    ChunkRange range{begin / chunk, (end - 1) / chunk, -1, INT64_MAX};
    if (begin % chunk != 0) range.keep_to = range.first + 1;
    if (end % chunk != 0 && end < size) range.keep_from = range.last - 1;
    return range;
}

class ChunkReader final : public stream::CubeReader {
  public:
    explicit ChunkReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_store(*m_source->chunks) {
        const Product& product = *m_source->product;
        m_wanted.resize(product.parts.size());
        for (size_t k = 0; k < m_source->bands.size(); ++k) {
            const ProductBand& band = product.bands[static_cast<size_t>(m_source->bands[k] - 1)];
            m_wanted[static_cast<size_t>(band.part)].push_back({band.index, static_cast<int>(k)});
        }
        for (auto& wanted : m_wanted)
            std::stable_sort(wanted.begin(), wanted.end(),
                             [](const WantedBand& a, const WantedBand& b) { return a.index < b.index; });
    }
    ~ChunkReader() override {
        if (m_helped) m_store.stop_helpers();
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect tile = in_file(window);
        const auto needed = chunks_of(tile);
        if (m_helped) {
            if (m_begun != tile) {
                m_store.forget();
                m_store.want(names_of(needed));
            }
            m_begun.reset(); // if it fails, it is begun anew
            if (m_next) m_store.want(names_of(chunks_of(*m_next)));
        }
        // Those that others decode at this moment come last.
        std::vector<const NeededChunk*> later;
        for (const NeededChunk& chunk : needed)
            if (!take(chunk, false, tile, dst)) later.push_back(&chunk);
        for (const NeededChunk* const chunk : later)
            take(*chunk, true, tile, dst);
        m_begun = std::exchange(m_next, std::nullopt);
    }

    void prefetch(const Rect& window) override { m_next = in_file(window); }

    uint64_t look_ahead(uint64_t bytes, int threads) override {
        const uint64_t taken = m_store.start_helpers(bytes, threads);
        m_helped = taken > 0;
        return taken;
    }

  private:
    Rect in_file(const Rect& window) const {
        return {window.x + m_source->window().x, window.y + m_source->window().y, window.w, window.h};
    }

    /// Part by part, in the order of the array.
    std::vector<NeededChunk> chunks_of(const Rect& tile) const {
        std::vector<NeededChunk> chunks;
        for (size_t p = 0; p < m_wanted.size(); ++p) {
            if (m_wanted[p].empty()) continue;
            const CubePart& part = m_source->product->parts[p];
            const Hdf5Chunks& array = m_store.arrays()[p];
            std::vector<int64_t> along[3];
            const auto all = [&](int axis, const ChunkRange& range) {
                for (int64_t k = range.first; k <= range.last; ++k)
                    along[axis].push_back(k);
            };
            const Rect scene = m_source->window();
            const ChunkRange lines = chunk_range(tile.y, tile.bottom(), chunk(array, part.line_axis),
                                                 scene.bottom()),
                             samples = chunk_range(tile.x, tile.right(), chunk(array, part.sample_axis),
                                                   scene.right());
            all(part.line_axis, lines);
            all(part.sample_axis, samples);
            for (const WantedBand& band : m_wanted[p])
                if (const int64_t k = band.index / chunk(array, part.band_axis);
                    along[part.band_axis].empty() || along[part.band_axis].back() != k)
                    along[part.band_axis].push_back(k);
            for (const int64_t a : along[0])
                for (const int64_t b : along[1])
                    for (const int64_t c : along[2]) {
                        const int64_t at[3] = {a, b, c};
                        chunks.push_back(
                            {{static_cast<uint32_t>(p), static_cast<uint32_t>(array.number(a, b, c))},
                             {a * array.chunk[0], b * array.chunk[1], c * array.chunk[2]},
                             lines.keeps(at[part.line_axis]) || samples.keeps(at[part.sample_axis])});
                    }
        }
        return chunks;
    }

    std::vector<ChunkName> names_of(const std::vector<NeededChunk>& chunks) const {
        std::vector<ChunkName> names;
        for (const NeededChunk& chunk : chunks)
            if (place_of(chunk).written()) names.push_back(chunk.name);
        return names;
    }

    const ChunkPlace& place_of(const NeededChunk& chunk) const {
        return m_store.arrays()[chunk.name.part].places[chunk.name.number];
    }

    /// False when another thread decodes the chunk, unless `wait`.
    bool take(const NeededChunk& chunk, bool wait, const Rect& tile, const CubeView<float>& dst) {
        if (!place_of(chunk).written()) {
            spread(chunk, nullptr, tile, dst);
            return true;
        }
        if (m_own.size() == 0) m_own = HostBuffer<char>(m_store.largest_chunk());
        const auto lease = m_store.take(chunk.name, chunk.keep, wait, m_hands, m_own.data());
        if (lease) spread(chunk, lease.samples(), tile, dst);
        return static_cast<bool>(lease);
    }

    static int64_t chunk(const Hdf5Chunks& array, int axis) { return array.chunk[static_cast<size_t>(axis)]; }

    /// samples: null for a chunk that holds the fill value throughout.
    void spread(const NeededChunk& needed, const char* samples, const Rect& tile,
                const CubeView<float>& dst) {
        const CubePart& part = m_source->product->parts[needed.name.part];
        const Hdf5Chunks& array = m_store.arrays()[needed.name.part];
        const auto begin = [&](int axis) { return needed.begin[static_cast<size_t>(axis)]; };
        const Rect place = intersect(Rect{begin(part.sample_axis), begin(part.line_axis),
                                          chunk(array, part.sample_axis), chunk(array, part.line_axis)},
                                     tile);
        int64_t step[3]; // from one sample to the next along an axis of the array
        step[2] = array.sample_bytes;
        step[1] = array.chunk[2] * step[2];
        step[0] = array.chunk[1] * step[1];
        const int64_t line = step[part.line_axis], pixel = step[part.sample_axis],
                      band = step[part.band_axis];
        const auto& wanted = m_wanted[needed.name.part];
        const int64_t first = begin(part.band_axis), last = first + chunk(array, part.band_axis);
        const auto low = std::lower_bound(wanted.begin(), wanted.end(), first,
                                          [](const WantedBand& w, int64_t index) { return w.index < index; });
        const auto high =
            std::find_if(low, wanted.end(), [&](const WantedBand& w) { return w.index >= last; });
        const int64_t apart = samples == nullptr ? 0 : pixel;
        // Of pixels whose bands stand together all are turned around at once, unless few of them are wanted.
        const bool turned = samples != nullptr && band == array.sample_bytes && !array.narrow() &&
                            m_source->parts.empty() && exact_in_float(array.type) &&
                            (high - low) * 4 >= last - first;
        for (int64_t y = 0; y < place.h; ++y)
            for (int64_t x = 0; x < place.w; x += pixels_at_once) {
                const auto count = static_cast<size_t>(std::min(pixels_at_once, place.w - x));
                const char* const from = samples == nullptr
                                             ? nullptr
                                             : samples + (place.y + y - begin(part.line_axis)) * line +
                                                   (place.x + x - begin(part.sample_axis)) * pixel;
                const auto to = [&](const WantedBand& w) {
                    return dst.row(w.target, place.y - tile.y + y) + (place.x - tile.x + x);
                };
                if (turned) {
                    turn(array, from, static_cast<size_t>(last - first), count, first, low, high, to);
                    continue;
                }
                for (auto w = low; w != high; ++w)
                    deliver(array, w->target,
                            from == nullptr ? array.fill.data() : from + (w->index - first) * band, apart,
                            to(*w), count);
            }
    }

    void deliver(const Hdf5Chunks& array, int target, const char* from, int64_t apart, float* to,
                 size_t count) {
        const auto k = static_cast<size_t>(target);
        if (!array.narrow()) return m_source->deliver(k, from, apart, array.type, array.swapped, to, count);
        char wide[pixels_at_once * sizeof(float)];
        array.widen(from, apart, wide, count);
        m_source->deliver(k, wide, GDALGetDataTypeSizeBytes(array.type), array.type, false, to, count);
    }

    /// Pixels of `bands` samples each, the first of band `first`, to rows of the wanted bands [low, high).
    template <class Wanted, class To>
    void turn(const Hdf5Chunks& array, const char* from, size_t bands, size_t pixels, int64_t first,
              Wanted low, Wanted high, const To& to) {
        const auto* floats = reinterpret_cast<const float*>(from);
        if (array.type != GDT_Float32 || array.swapped) {
            m_floats.resize(bands * pixels_at_once);
            to_floats(from, array.sample_bytes, array.type, array.swapped, NodataMatch{}, m_floats.data(),
                      bands * pixels);
            floats = m_floats.data();
        }
        while (low != high) {
            m_rows.clear();
            auto next = low;
            for (; next != high && next->index == low->index + (next - low); ++next)
                m_rows.push_back(to(*next));
            pixels_to_rows(floats + (low->index - first), bands, m_rows.size(), pixels, m_rows.data());
            for (; low != next; ++low) {
                const NodataMatch& nodata = m_source->nodata[static_cast<size_t>(low->target)];
                if (!nodata.active) continue;
                float value;
                to_floats(nodata.bytes, 0, array.type, false, NodataMatch{}, &value, 1);
                blank(to(*low), pixels, value);
            }
        }
    }

    const std::shared_ptr<const SourceState> m_source;
    ChunkStore& m_store;
    std::vector<std::vector<WantedBand>> m_wanted; ///< a part each, by index
    ChunkHands m_hands;
    HostBuffer<char> m_own;
    std::vector<float> m_floats;
    std::vector<float*> m_rows;
    bool m_helped = false;               ///< helpers decode ahead of this reader
    std::optional<Rect> m_next, m_begun; ///< in the file: what is read soon, and what helpers know of already
};

} // namespace

uint64_t chunk_reader_bytes(const ChunkStore& store) {
    const uint64_t chunk = store.largest_chunk();
    return 2 * chunk + ChunkDecoder::held_bytes(chunk); // as stored and decoded, and the decoder's
}

std::unique_ptr<stream::CubeReader> make_chunk_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<ChunkReader>(std::move(source));
}

} // namespace hsi::raster
