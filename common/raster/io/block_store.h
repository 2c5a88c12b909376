// SPDX-License-Identifier: MIT
// Decoded blocks of a file, shared by all readers of a source: no block is decoded twice at the same time, or
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

/// Reads and decodes blocks, with its own buffers. Use one object per thread.
class BlockHands {
  public:
    virtual ~BlockHands() = default;
    /// The samples of a block. Throws Error.
    virtual void decode(uint64_t block, char* samples) = 0;
};

/// A range of blocks along an axis, as a tile needs them.
struct BlockRange {
    int64_t first = 0, last = 0; ///< blocks
    int64_t keep_to, keep_from;  ///< those up to here and from here on are to be kept for other tiles
    bool keeps(int64_t k) const { return k <= keep_to || k >= keep_from; }
    /// The blocks of a tile from `begin` to `end` in a scene that ends at `scene_end`. A tile that ends
    /// within a block has a neighbour that needs the block, too; if that is because windows overlap, the
    /// neighbour also needs the next block.
    static BlockRange of(int64_t begin, int64_t end, int64_t block, int64_t scene_end);
};

/// A row of a file's blocks, over all samples of a scene and all of its bands.
struct BlockRow {
    uint64_t bytes = 0;   ///< of the whole row, decoded
    uint64_t largest = 0; ///< of one
    uint64_t blocks = 0;
    int64_t lines = 0; ///< of the lowest
};

class BlockStore {
  public:
    BlockStore() = default;
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    ~BlockStore() { stop_helpers(); }

    /// Returns how many of `most` bytes kept decoded blocks will take, in addition to blocks in use. Also
    /// fixes kept_lines(). Call it before the first reader begins.
    uint64_t share_memory(uint64_t most, const BlockRow& row, int64_t first_line, int64_t end_line,
                          int lanes);
    /// Returns how many of `most` bytes may go to blocks that are decoded while readers wait for a server;
    /// all blocks together have `all` bytes. Call it before the first reader begins.
    uint64_t share_ahead(uint64_t most, uint64_t all);
    /// Lines that tiles in work may cover together while every block is decoded once; 0: tiles should follow
    /// the blocks.
    int64_t kept_lines() const { return m_kept_lines; }

    // The following functions are thread-safe.

    /// A decoded block for a reader. It stays while the lease lives.
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
        BlockStore* m_store = nullptr; ///< null: the samples are the reader's own
        uint64_t m_block = 0;
        const char* m_samples = nullptr;
    };

    struct Block {
        uint64_t name = 0;  ///< the file's own number for it
        uint64_t bytes = 0; ///< decoded
        bool operator==(const Block& o) const { return name == o.name; }
    };

    /// Returns the block; if it is not there, the caller decodes it now with `hands`: into `own`, unless it
    /// is kept for others (`keep`). Empty while another thread decodes it, unless `wait`. Throws what
    /// decoding the block threw, on any thread.
    Lease take(const Block& block, bool keep, bool wait, BlockHands& hands, char* own);

    /// True if it is there, or is being decoded.
    bool holds(const Block& block);

    using MakeHands = std::function<std::unique_ptr<BlockHands>()>;
    /// Starts threads that decode blocks which are needed soon: as many as `bytes` allow and `threads` at
    /// most, each with hands that hold `hands_bytes`; no block has more than `largest`. They also get the
    /// part of share_memory()'s bytes that is too little to keep blocks in. \return the bytes that these
    /// threads and their decoded blocks may take; 0: no threads are started.
    uint64_t start_helpers(uint64_t bytes, int threads, uint64_t largest, uint64_t hands_bytes,
                           const MakeHands& make);
    /// These blocks will be taken soon, in this order. Nothing happens without helpers.
    void want(const std::vector<Block>& blocks);
    struct Placed {
        Block block;
        RemoteFile::Extent place; ///< in a server's file
    };
    /// A window that is announced as `key` will need these blocks: their bytes are fetched.
    void await(RemoteFile& file, const RemoteFile::Key& key, const std::vector<Placed>& blocks);
    /// The caller is about to take the block at `place`. Until its bytes are here, it decodes awaited blocks
    /// whose bytes have come, as many as there is memory for. Throws Cancelled.
    void wait_for(RemoteFile& file, const RemoteFile::Extent& place, BlockHands& hands);
    /// Whatever is wanted or awaited and not taken is not any more.
    void forget();
    void stop_helpers();

  private:
    enum class State : uint8_t { decoding, ready, failed };
    struct Entry {
        State state = State::decoding;
        bool kept = false;    ///< it stays when it is unused, if there is room
        bool ahead = false;   ///< a helper decodes or has decoded it, and no reader has asked to keep it
        bool resting = false; ///< kept, and unused
        int users = 0;
        uint64_t bytes = 0;
        std::unique_ptr<char[]> few; ///< the samples of a small block
        HostBuffer<char> many;       ///< of others
        std::exception_ptr error;
        std::list<uint64_t>::iterator idle; ///< where it rests

        char* make(std::vector<HostBuffer<char>>& spare);
        const char* samples() const { return few ? few.get() : many.data(); }
    };
    using Entries = std::unordered_map<uint64_t, Entry>;

    void give_back(uint64_t block);
    // With the lock held:
    void drop(Entries::iterator at);
    void make_room(uint64_t bytes);
    void keep(Entry& entry);
    /// Opens the lock meanwhile.
    void decode(uint64_t block, Entry& entry, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void serve(BlockHands& hands);
    void decode_ahead(const Block& block, BlockHands& hands, std::unique_lock<std::mutex>& lock);
    void find_arrived(RemoteFile& file);
    std::optional<Block> next_arrived();

    uint64_t m_most_kept = 0, m_left_over = 0; ///< of what share_memory() took
    int64_t m_kept_lines = 0;
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    Entries m_entries;
    std::list<uint64_t> m_idle; ///< kept and unused, the longest first
    uint64_t m_kept = 0;        ///< bytes of kept ones, used or not
    std::vector<HostBuffer<char>> m_spare;
    std::deque<Block> m_wanted;                            ///< not yet begun
    uint64_t m_largest = 0, m_most_ahead = 0, m_ahead = 0; ///< m_ahead: bytes that were or are made ahead
    int m_busy = 0;                                        ///< threads that decode ahead
    struct Awaited {
        uint64_t end = 0;
        Block block;
    };
    std::map<uint64_t, Awaited> m_awaited; ///< of a server's file, by their first bytes,
    std::map<uint64_t, Block>
        m_arrived; ///< those among them whose bytes have arrived and that no thread has begun
    bool m_end = false;
    std::vector<std::thread> m_helpers; ///< after all that they touch
};

} // namespace hsi::raster
