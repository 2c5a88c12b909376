// SPDX-License-Identifier: MIT
// Decoded blocks of a file, shared by all readers of a source. While a block is in the store, or is being
// decoded into it, no other thread decodes the block.
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

/// The range of blocks along one axis that a tile needs, and the blocks of this range that other tiles also
/// need.
struct BlockRange {
    int64_t first = 0, last = 0; ///< indices of the first and the last block
    /// Blocks up to keep_to and blocks from keep_from on are kept for other tiles.
    int64_t keep_to, keep_from;
    bool keeps(int64_t k) const { return k <= keep_to || k >= keep_from; }
    /// Returns the blocks of a tile that covers the samples or lines [begin, end) of a scene, which ends at
    /// `scene_end`. A block has `block` samples or lines. If a tile begins or ends within a block, the
    /// neighbouring tile also needs this block and, if windows overlap, the next block inside the tile.
    static BlockRange of(int64_t begin, int64_t end, int64_t block, int64_t scene_end);
};

/// A row of a file's blocks, over all samples and all bands of a scene.
struct BlockRow {
    uint64_t bytes = 0;   ///< bytes of the whole row after decoding
    uint64_t largest = 0; ///< bytes of the largest block after decoding
    uint64_t blocks = 0;
    int64_t lines = 0; ///< lines of the block with the fewest lines
};

class BlockStore {
  public:
    BlockStore() = default;
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    ~BlockStore() { stop_helpers(); }

    /// Reserves memory for decoded blocks that stay in the store although no reader uses them, in a pass with
    /// `lanes` workers over the lines [first_line, end_line). Returns how many of `most` bytes this memory
    /// takes. Also determines kept_lines(). Call it before the first reader begins.
    uint64_t share_memory(uint64_t most, const BlockRow& row, int64_t first_line, int64_t end_line,
                          int lanes);
    /// Returns how many of `most` bytes may be used for blocks that are decoded while readers wait for a
    /// server; all blocks together have `all` bytes. Call it before the first reader begins.
    uint64_t share_ahead(uint64_t most, uint64_t all);
    /// Returns the number of lines that all tiles in progress may cover together if every block is to be
    /// decoded only once. 0: the tiles should have the borders of the blocks.
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
        BlockStore* m_store = nullptr; ///< null: the samples are in a buffer of the reader
        uint64_t m_block = 0;
        const char* m_samples = nullptr;
    };

    struct Block {
        uint64_t name = 0;  ///< the file's own number of the block
        uint64_t bytes = 0; ///< bytes after decoding
        bool operator==(const Block& o) const { return name == o.name; }
    };

    /// Returns a block. If the block is not in the store, this call decodes it with `hands`: into the store
    /// if `keep` is true and the store has memory for it, otherwise into the buffer `own`. If another thread
    /// is decoding the block, the call waits if `wait` is true; otherwise it returns an empty lease. If
    /// decoding a block into the store fails on any thread, each take() of the block throws the exception.
    Lease take(const Block& block, bool keep, bool wait, BlockHands& hands, char* own);

    /// Returns true if the block is in the store or is being decoded.
    bool holds(const Block& block);

    using MakeHands = std::function<std::unique_ptr<BlockHands>()>;
    /// Starts helper threads, which decode announced blocks in advance: as many as `bytes` allow, at most
    /// `threads`. Each thread gets its own BlockHands from `make`, which take `hands_bytes` bytes. No block
    /// has more than `largest` bytes. The threads may also use the memory of share_memory() if it was too
    /// small to keep blocks. \return the bytes that the threads and their decoded blocks may take; 0 if no
    /// threads are started, because memory is short or blocks are very small.
    uint64_t start_helpers(uint64_t bytes, int threads, uint64_t largest, uint64_t hands_bytes,
                           const MakeHands& make);
    /// Announces blocks that will be taken soon, in this order. Does nothing without helpers.
    void want(const std::vector<Block>& blocks);
    struct Placed {
        Block block;
        RemoteFile::Extent place; ///< position of the block's bytes in the remote file
    };
    /// Announces the blocks that the window `key` will need, so that the bytes of these blocks are fetched
    /// and the blocks can be decoded in advance.
    void await(RemoteFile& file, const RemoteFile::Key& key, const std::vector<Placed>& blocks);
    /// Waits for the bytes of the block at `place`, which the caller takes next, and meanwhile decodes
    /// awaited blocks whose bytes have arrived. Returns early if there is no memory to decode further blocks,
    /// if helper threads decode them, or if the bytes were never requested; the decoder then waits for the
    /// bytes. Throws Cancelled.
    void wait_for(RemoteFile& file, const RemoteFile::Extent& place, BlockHands& hands);
    /// Discards all announcements, and blocks decoded in advance that no reader has taken.
    void forget();
    void stop_helpers();

  private:
    enum class State : uint8_t { decoding, ready, failed };
    struct Entry {
        State state = State::decoding;
        bool kept = false;    ///< the block stays in the store when unused, if there is memory
        bool ahead = false;   ///< the block was decoded in advance, and no reader has requested to keep it
        bool resting = false; ///< the block is kept and unused
        int users = 0;
        uint64_t bytes = 0;
        std::unique_ptr<char[]> few; ///< the samples of a small block
        HostBuffer<char> many;       ///< the samples of a larger block
        std::exception_ptr error;
        std::list<uint64_t>::iterator idle; ///< position in m_idle, if resting

        char* make(std::vector<HostBuffer<char>>& spare);
        const char* samples() const { return few ? few.get() : many.data(); }
    };
    using Entries = std::unordered_map<uint64_t, Entry>;

    void give_back(uint64_t block);
    // The following functions are called with m_mutex locked.
    void drop(Entries::iterator at);
    void make_room(uint64_t bytes);
    void keep(Entry& entry);
    /// Unlocks m_mutex while the block is decoded.
    void decode(uint64_t block, Entry& entry, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void serve(BlockHands& hands);
    void decode_ahead(const Block& block, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void find_arrived(RemoteFile& file);
    std::optional<Block> next_arrived();

    /// The memory that share_memory() has reserved, in bytes. m_most_kept is the limit for kept blocks. If
    /// the memory is too small to keep blocks, it is m_left_over, and m_most_kept is 0.
    uint64_t m_most_kept = 0, m_left_over = 0;
    int64_t m_kept_lines = 0;
    std::mutex m_mutex; ///< guards all members below
    std::condition_variable m_changed;
    Entries m_entries;
    std::list<uint64_t> m_idle; ///< kept unused blocks, the least recently used first
    uint64_t m_kept = 0;        ///< bytes of all kept blocks, in use or not
    std::vector<HostBuffer<char>> m_spare;
    std::deque<Block> m_wanted; ///< announced blocks that no thread has begun to decode
    /// m_largest: bytes of the largest block. m_most_ahead: limit of the bytes of blocks that are decoded in
    /// advance. m_ahead: bytes of such blocks that are now in the store.
    uint64_t m_largest = 0, m_most_ahead = 0, m_ahead = 0;
    int m_busy = 0; ///< threads that decode in advance now
    struct Awaited {
        uint64_t end = 0;
        Block block;
    };
    /// Blocks of a remote file whose bytes have not arrived, by position of the first byte.
    std::map<uint64_t, Awaited> m_awaited;
    /// Blocks whose bytes have arrived and that no thread has begun to decode, by position of the first byte.
    std::map<uint64_t, Block> m_arrived;
    bool m_end = false;
    std::vector<std::thread> m_helpers; ///< initialised last, because the threads use the other members
};

} // namespace hsi::raster
