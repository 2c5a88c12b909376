// SPDX-License-Identifier: MIT
// The chunks of a product's arrays, read and decoded by whoever needs them, and shared by all readers of a
// source: no chunk is decoded by two at once, nor again while it is kept.
#pragma once

#include "core/host_memory.h"
#include "raster/gdal/chunk_codec.h"
#include "raster/gdal/raw_file.h"
#include "raster/products/hdf5_chunks.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hsi::raster {

/// One chunk of one of the arrays.
struct ChunkName {
    uint32_t part = 0;   ///< index of the array
    uint32_t number = 0; ///< Hdf5Chunks::number()
    bool operator==(const ChunkName& o) const { return part == o.part && number == o.number; }
};

class ChunkStore;

/// Reads and decodes, with buffers of its own. One for each thread.
class ChunkHands {
  public:
    /// Samples of the chunk, as they are stored. Throws Error naming the chunk and its place.
    void decode(const ChunkStore& store, const ChunkName& chunk, char* samples);

  private:
    HostBuffer<char> m_stored;
    std::vector<std::unique_ptr<ChunkDecoder>> m_decoders;
};

class ChunkStore {
  public:
    /// `names`: of the arrays, for messages. Throws Error when the file cannot be opened.
    ChunkStore(std::string path, std::vector<std::string> names, std::vector<Hdf5Chunks> arrays);
    ChunkStore(const ChunkStore&) = delete;
    ChunkStore& operator=(const ChunkStore&) = delete;
    ~ChunkStore();

    const std::vector<Hdf5Chunks>& arrays() const { return m_arrays; }
    uint64_t largest_chunk() const { return m_largest; }
    /// Of the lists of places.
    uint64_t list_bytes() const;

    /// From now on decoded chunks that are asked to be kept take so many bytes at most, beside those in use.
    /// Before the first reader begins.
    void keep(uint64_t bytes);
    uint64_t kept_bytes() const { return m_most_kept; }

    // What follows is thread-safe.

    /// A decoded chunk for a reader. It stays while the lease lives.
    class Lease {
      public:
        Lease() = default;
        Lease(Lease&& o) noexcept
            : m_store(std::exchange(o.m_store, nullptr)), m_key(o.m_key), m_samples(o.m_samples) {}
        Lease& operator=(Lease&& o) noexcept {
            std::swap(m_store, o.m_store);
            std::swap(m_key, o.m_key);
            std::swap(m_samples, o.m_samples);
            return *this;
        }
        ~Lease();
        explicit operator bool() const { return m_samples != nullptr; }
        const char* samples() const { return m_samples; }

      private:
        friend class ChunkStore;
        ChunkStore* m_store = nullptr; ///< null: the samples are the reader's own
        uint64_t m_key = 0;
        const char* m_samples = nullptr;
    };

    /// The chunk, decoded now by the caller with `hands` where it is not there: into `own`, of
    /// largest_chunk() bytes, unless it is to be kept for others (`keep`). Nothing while another thread
    /// decodes it, unless `wait`. Throws what decoding it threw, whoever did that.
    Lease take(const ChunkName& chunk, bool keep, bool wait, ChunkHands& hands, char* own);

    /// Starts threads that decode what is wanted soon, so many as `bytes` allow and `threads` at most.
    /// \return bytes that these and what they have decoded may take; 0: none are started.
    uint64_t start_helpers(uint64_t bytes, int threads);
    /// These chunks will be taken soon, in this order. Nothing happens without helpers.
    void want(const std::vector<ChunkName>& chunks);
    /// Whatever is wanted and not taken is not wanted any more.
    void forget();
    /// Ends the helpers.
    void stop_helpers();

  private:
    friend class ChunkHands;
    enum class State : uint8_t { wanted, decoding, ready, failed };
    struct Entry {
        State state = State::wanted;
        bool kept = false;    ///< it stays where there is room, when nobody uses it
        bool ahead = false;   ///< a helper decodes or has decoded it, and nobody has asked to keep it
        bool resting = false; ///< kept, and nobody uses it
        int users = 0;
        std::unique_ptr<char[]> few; ///< the samples of a small chunk
        HostBuffer<char> many;       ///< of others
        std::exception_ptr error;
        std::list<uint64_t>::iterator idle; ///< where it rests

        char* make(uint64_t bytes, std::vector<HostBuffer<char>>& spare);
        const char* samples() const { return few ? few.get() : many.data(); }
    };
    using Entries = std::unordered_map<uint64_t, Entry>;
    static uint64_t key_of(const ChunkName& chunk) { return uint64_t{chunk.part} << 32 | chunk.number; }
    static ChunkName name_of(uint64_t key) {
        return {static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)};
    }
    uint64_t bytes_of(uint64_t key) const { return m_arrays[key >> 32].chunk_bytes(); }

    void give_back(uint64_t key);
    // With the lock held:
    void drop(Entries::iterator at);
    void make_room(uint64_t bytes);
    /// Opens the lock meanwhile.
    void decode(uint64_t key, Entry& entry, ChunkHands& hands, std::unique_lock<std::mutex>& lock);
    void serve();

    const std::string m_path;
    const std::vector<std::string> m_names;
    const std::vector<Hdf5Chunks> m_arrays;
    uint64_t m_largest = 0, m_file_bytes = 0;
    FileHandle m_file;
    uint64_t m_most_kept = 0;

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    Entries m_entries;
    std::list<uint64_t> m_idle; ///< kept and unused, the longest first
    uint64_t m_kept = 0;        ///< bytes of kept ones, used or not
    std::vector<HostBuffer<char>> m_spare;
    std::deque<uint64_t> m_wanted;
    uint64_t m_most_ahead = 0, m_ahead = 0; ///< bytes that helpers have decoded or are decoding
    int m_busy = 0;                         ///< helpers that decode
    bool m_end = false;
    std::vector<std::thread> m_helpers; ///< after all that they touch
};

} // namespace hsi::raster
