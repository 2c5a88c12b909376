// SPDX-License-Identifier: MIT
// Decoded blocks of a file, shared by all readers of a source. No block is decoded twice at the same time, or
// again while it is kept.
#pragma once

#include "core/host_memory.h"
#include "raster/io/remote_file.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hsi::raster {

/// Reads and decodes blocks with its own buffers. Use one object per thread.
class BlockHands {
  public:
    virtual ~BlockHands() = default;
    /// Reads and decodes a block to `samples`. Throws Error.
    virtual void decode(uint64_t block, char* samples) = 0;
};

/// The range of blocks along an axis that a tile needs.
struct BlockRange {
    int64_t first = 0, last = 0; ///< blocks
    int64_t keep_to, keep_from;  ///< blocks up to keep_to and from keep_from on are kept for other tiles
    bool keeps(int64_t k) const { return k <= keep_to || k >= keep_from; }
    /// Returns the blocks of a tile from `begin` to `end` in a scene that ends at `scene_end`. If a tile ends
    /// within a block, its neighbour also needs the block. If the tile ends there because windows overlap,
    /// the neighbour also needs the next block.
    static BlockRange of(int64_t begin, int64_t end, int64_t block, int64_t scene_end);
};

/// A row of a file's blocks, over all samples and all bands of a scene.
struct BlockRow {
    uint64_t bytes = 0;   ///< of the whole row, decoded
    uint64_t largest = 0; ///< of one block
    uint64_t blocks = 0;
    int64_t lines = 0; ///< of the lowest block
};

class BlockStore {
  public:
    BlockStore() = default;
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    ~BlockStore() { stop_helpers(); }

    /// Returns how many of `most` bytes kept decoded blocks will take, in addition to blocks in use. Also
    /// determines kept_lines(). Call it before the first reader begins.
    uint64_t share_memory(uint64_t most, const BlockRow& row, int64_t first_line, int64_t end_line,
                          int lanes);
    /// Returns how many of `most` bytes may be used for blocks that are decoded while readers wait for a
    /// server; all blocks together have `all` bytes. Call it before the first reader begins.
    uint64_t share_ahead(uint64_t most, uint64_t all);
    /// Returns the number of lines that tiles in progress may cover together while every block is decoded
    /// once; 0: tiles should follow the blocks.
    int64_t kept_lines() const { return m_kept_lines; }

    // The following functions are thread-safe.

    /// A decoded block for a reader. The block is kept while the lease exists.
    class Lease {
      public:
        Lease() = default;
        explicit Lease(const char* own) : m_samples(own) {}
        Lease(Lease&& o) noexcept
            : m_store(std::exchange(o.m_store, nullptr)), m_block(o.m_block), m_samples(o.m_samples) {}
        Lease& operator=(Lease&& o) noexcept {
            std::swap(m_store, o.m_store);
            std::swap(m_block, o.m_block);
            std::swap(m_samples, o.m_samples);
            return *this;
        }
        ~Lease();
        explicit operator bool() const { return m_samples != nullptr; }
        const char* samples() const { return m_samples; }

      private:
        friend class BlockStore;
        BlockStore* m_store = nullptr; ///< null: the samples belong to the reader
        uint64_t m_block = 0;
        const char* m_samples = nullptr;
    };

    struct Block {
        uint64_t name = 0;  ///< the file's own number of the block
        uint64_t bytes = 0; ///< decoded
        bool operator==(const Block& o) const { return name == o.name; }
    };

    /// Returns a block. If it is not in the store, the caller decodes it now with `hands`: into `own`, unless
    /// it is kept for others (`keep`). Returns an empty lease while another thread decodes the block, unless
    /// `wait`. Throws the exceptions of decoding the block on any thread.
    Lease take(const Block& block, bool keep, bool wait, BlockHands& hands, char* own);

    /// Returns true if the block is in the store or is being decoded.
    bool holds(const Block& block);

    using MakeHands = std::function<std::unique_ptr<BlockHands>()>;
    /// Starts threads that decode blocks which are needed soon: as many as `bytes` allow, at most `threads`.
    /// Each thread has hands with `hands_bytes` bytes; no block has more than `largest` bytes. The threads
    /// also get the part of share_memory()'s bytes that is too small to keep blocks in. \return the bytes
    /// that these threads and their decoded blocks may take; 0: no threads are started.
    uint64_t start_helpers(uint64_t bytes, int threads, uint64_t largest, uint64_t hands_bytes,
                           const MakeHands& make);
    /// Announces blocks that will be taken soon, in this order. Does nothing without helpers.
    void want(const std::vector<Block>& blocks);
    struct Placed {
        Block block;
        RemoteFile::Extent place; ///< in a server's file
    };
    /// Announces the blocks that window `key` will need, and fetches their bytes.
    void await(RemoteFile& file, const RemoteFile::Key& key, const std::vector<Placed>& blocks);
    /// Waits for the bytes of the block at `place`, which the caller takes next. Meanwhile decodes awaited
    /// blocks whose bytes have arrived, if there is memory. Throws Cancelled.
    void wait_for(RemoteFile& file, const RemoteFile::Extent& place, BlockHands& hands);
    /// Discards announcements of blocks that were not taken.
    void forget();
    void stop_helpers();

  private:
    enum class State : uint8_t { decoding, ready, failed };
    struct Entry {
        State state = State::decoding;
        bool kept = false;    ///< it remains when it is unused, if there is room
        bool ahead = false;   ///< decoded ahead by a helper, and no reader has requested to keep it
        bool resting = false; ///< kept, and unused
        int users = 0;
        uint64_t bytes = 0;
        std::unique_ptr<char[]> few; ///< the samples of a small block
        HostBuffer<char> many;       ///< the samples of a larger block
        std::exception_ptr error;
        std::list<uint64_t>::iterator idle; ///< its position in m_idle

        char* make(std::vector<HostBuffer<char>>& spare);
        const char* samples() const { return few ? few.get() : many.data(); }
    };
    using Entries = std::unordered_map<uint64_t, Entry>;

    void give_back(uint64_t block);
    // With the lock held:
    void drop(Entries::iterator at);
    void make_room(uint64_t bytes);
    void keep(Entry& entry);
    /// Releases the lock during the decoding.
    void decode(uint64_t block, Entry& entry, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void serve(BlockHands& hands);
    void decode_ahead(const Block& block, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void find_arrived(RemoteFile& file);
    std::optional<Block> next_arrived();

    uint64_t m_most_kept = 0, m_left_over = 0; ///< parts of the memory of share_memory()
    int64_t m_kept_lines = 0;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    Entries m_entries;
    std::list<uint64_t> m_idle; ///< kept and unused, the least recently used first
    uint64_t m_kept = 0;        ///< bytes of kept blocks, used or not
    std::vector<HostBuffer<char>> m_spare;
    std::deque<Block> m_wanted;                            ///< not yet begun
    uint64_t m_largest = 0, m_most_ahead = 0, m_ahead = 0; ///< m_ahead: bytes that were or are decoded ahead
    int m_busy = 0;                                        ///< threads that decode ahead
    struct Awaited {
        uint64_t end = 0;
        Block block;
    };
    std::map<uint64_t, Awaited> m_awaited; ///< blocks of a server's file, by their first bytes,
    std::map<uint64_t, Block> m_arrived; ///< and those whose bytes have arrived and that no thread has begun
    bool m_end = false;
    std::vector<std::thread> m_helpers; ///< initialised after all members that they use
};

} // namespace hsi::raster
