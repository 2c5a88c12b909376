// SPDX-License-Identifier: MIT
// Reads tiles from the chunks of a product's arrays. The chunks are decoded without the HDF5 library.
#include "raster/scene/band_rows.h"
#include "raster/scene/chunk_arrays.h"
#include "raster/scene/source_impl.h"

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

/// A chunk that a tile needs.
struct NeededChunk {
    size_t part = 0, number = 0;
    std::array<int64_t, 3> begin{}; ///< index of the first sample along each axis of the array
    bool keep = false;              ///< neighbouring tiles also need the chunk
};

class ChunkReader final : public stream::CubeReader {
  public:
    explicit ChunkReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_arrays(*m_source->chunks()), m_store(m_arrays.store()),
          m_rows(*m_source), m_hands(m_arrays.make_hands()) {
        const Product& product = *m_source->product;
        m_wanted.resize(product.parts.size());
        for (size_t k = 0; k < m_source->bands.size(); ++k) {
            const ProductBand& band = product.bands[static_cast<size_t>(m_source->bands[k] - 1)];
            m_wanted[static_cast<size_t>(band.part)].push_back({band.index, static_cast<int>(k)});
        }
        for (auto& wanted : m_wanted)
            sort_bands_of(wanted);
        if (m_arrays.remote()) m_far.emplace(*m_arrays.remote(), true);
    }
    ~ChunkReader() override {
        if (m_helped) m_store.stop_helpers();
        if (!m_far) return;
        m_far.reset();
        if (!m_arrays.remote()->has_readers()) m_store.forget();
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        read_file(m_source->in_file(window), m_source->lines_in_file(dst));
        m_source->turn_samples(dst);
    }

    void read_file(const Rect& tile, const CubeView<float>& dst) {
        const auto needed = chunks_of(tile);
        if (m_far) announce(tile, needed);
        if (m_helped) {
            if (m_begun != tile) {
                m_store.forget();
                m_store.want(blocks_of(needed));
            }
            m_begun.reset(); // after an error, the next call must announce its chunks again
            if (m_next) m_store.want(blocks_of(chunks_of(*m_next)));
        }
        // Chunks that other threads are decoding are handled last.
        std::vector<const NeededChunk*> later;
        for (const NeededChunk& chunk : needed)
            if (!take(chunk, false, tile, dst)) later.push_back(&chunk);
        for (const NeededChunk* const chunk : later)
            take(*chunk, true, tile, dst);
        if (m_far) m_arrays.remote()->done(key_of(tile));
        m_begun = std::exchange(m_next, std::nullopt);
    }

    void prefetch(const Rect& window) override { m_next = m_source->in_file(window); }

    bool expect(const Rect& window) override {
        if (!m_far || !m_arrays.remote()->has_room()) return false;
        const Rect tile = m_source->in_file(window);
        announce(tile, chunks_of(tile));
        return true;
    }

    uint64_t look_ahead(uint64_t bytes, int threads) override {
        const uint64_t taken =
            m_store.start_helpers(bytes, threads, m_arrays.largest_chunk(), m_arrays.hands_bytes(),
                                  [this] { return m_arrays.make_hands(); });
        m_helped = taken > 0;
        return taken;
    }

  private:
    /// Starts fetching the chunks of the window that have not arrived yet.
    void announce(const Rect& tile, const std::vector<NeededChunk>& chunks) {
        if (m_arrays.remote()->is_announced(key_of(tile))) return;
        std::vector<BlockStore::Placed> blocks;
        for (const NeededChunk& chunk : chunks) {
            const auto block = m_arrays.block(chunk.part, chunk.number);
            if (is_written(chunk) && !m_store.holds(block))
                blocks.push_back({block, m_arrays.place(chunk.part, chunk.number)});
        }
        m_store.await(*m_arrays.remote(), key_of(tile), blocks);
    }

    /// Returns the chunks that a tile needs, part by part in the order of each array.
    std::vector<NeededChunk> chunks_of(const Rect& tile) const {
        std::vector<NeededChunk> chunks;
        for (size_t p = 0; p < m_wanted.size(); ++p) {
            if (m_wanted[p].empty()) continue;
            const CubePart& part = m_source->product->parts[p];
            const Hdf5Chunks& array = m_arrays.array(p);
            std::vector<int64_t> along[3];
            const auto all = [&](int axis, const BlockRange& range) {
                for (int64_t k = range.first; k <= range.last; ++k)
                    along[axis].push_back(k);
            };
            const Rect scene = m_source->file_window();
            const BlockRange lines = BlockRange::of(tile.y, tile.bottom(), chunk(array, part.line_axis),
                                                    scene.bottom()),
                             samples = BlockRange::of(tile.x, tile.right(), chunk(array, part.sample_axis),
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
                            {p,
                             array.number(a, b, c),
                             {a * array.chunk[0], b * array.chunk[1], c * array.chunk[2]},
                             lines.keeps(at[part.line_axis]) || samples.keeps(at[part.sample_axis])});
                    }
        }
        return chunks;
    }

    std::vector<BlockStore::Block> blocks_of(const std::vector<NeededChunk>& chunks) const {
        std::vector<BlockStore::Block> blocks;
        for (const NeededChunk& chunk : chunks)
            if (is_written(chunk)) blocks.push_back(m_arrays.block(chunk.part, chunk.number));
        return blocks;
    }

    bool is_written(const NeededChunk& chunk) const {
        return m_arrays.array(chunk.part).places[chunk.number].written();
    }

    /// Copies the samples of a chunk into the tile. Returns false if another thread is decoding the chunk and
    /// `wait` is false.
    bool take(const NeededChunk& chunk, bool wait, const Rect& tile, const CubeView<float>& dst) {
        if (!is_written(chunk)) {
            spread(chunk, nullptr, tile, dst);
            return true;
        }
        if (m_own.size() == 0) m_own = HostBuffer<char>(m_arrays.largest_chunk());
        const auto block = m_arrays.block(chunk.part, chunk.number);
        if (m_far && !m_store.holds(block))
            m_store.wait_for(*m_arrays.remote(), m_arrays.place(chunk.part, chunk.number), *m_hands);
        const auto lease = m_store.take(block, chunk.keep, wait, *m_hands, m_own.data());
        if (lease) spread(chunk, lease.samples(), tile, dst);
        return static_cast<bool>(lease);
    }

    static int64_t chunk(const Hdf5Chunks& array, int axis) { return array.chunk[static_cast<size_t>(axis)]; }

    /// Copies the samples of a chunk into the tile. `samples` is null if the whole chunk has the fill value.
    void spread(const NeededChunk& needed, const char* samples, const Rect& tile,
                const CubeView<float>& dst) {
        const CubePart& part = m_source->product->parts[needed.part];
        const Hdf5Chunks& array = m_arrays.array(needed.part);
        const auto begin = [&](int axis) { return needed.begin[static_cast<size_t>(axis)]; };
        const Rect place = intersect(Rect{begin(part.sample_axis), begin(part.line_axis),
                                          chunk(array, part.sample_axis), chunk(array, part.line_axis)},
                                     tile);
        int64_t step[3]; // bytes from one sample to the next along each axis of the array
        step[2] = array.sample_bytes;
        step[1] = array.chunk[2] * step[2];
        step[0] = array.chunk[1] * step[1];
        const int64_t line = step[part.line_axis], pixel = step[part.sample_axis],
                      band = step[part.band_axis];
        const auto& wanted = m_wanted[needed.part];
        const int64_t first = begin(part.band_axis), last = first + chunk(array, part.band_axis);
        const auto low = std::lower_bound(wanted.begin(), wanted.end(), first,
                                          [](const WantedBand& w, int64_t index) { return w.index < index; });
        const auto high =
            std::find_if(low, wanted.end(), [&](const WantedBand& w) { return w.index >= last; });
        const int64_t apart = samples == nullptr ? 0 : pixel;
        const bool turned = samples != nullptr && band == array.sample_bytes && !array.narrow() &&
                            m_rows.suits(array.type, high - low, last - first);
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
                    m_rows.turn(from, array.type, array.swapped, last - first, count, first, low, high, to);
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

    const std::shared_ptr<const SourceState> m_source;
    const ChunkArrays& m_arrays;
    BlockStore& m_store;
    std::vector<std::vector<WantedBand>> m_wanted; ///< wanted bands of each part, sorted by index
    BandRows m_rows;
    const std::unique_ptr<BlockHands> m_hands;
    HostBuffer<char> m_own;
    std::optional<RemoteFile::Reader> m_far; ///< reader of the remote file; empty: the file is local
    bool m_helped = false;                   ///< helper threads decode chunks in advance
    /// Windows in the file: the next window, and the window whose chunks the helper threads have begun.
    std::optional<Rect> m_next, m_begun;
};

} // namespace

uint64_t chunk_reader_bytes(const ChunkArrays& arrays) {
    return arrays.largest_chunk() + arrays.hands_bytes();
}

std::unique_ptr<stream::CubeReader> make_chunk_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<ChunkReader>(std::move(source));
}

} // namespace hsi::raster
