// SPDX-License-Identifier: MIT
// Writes tiles into a compressed TIFF, from any number of threads at once.
#pragma once

#include "core/cancel.h"
#include "core/cube_view.h"
#include "core/host_memory.h"
#include "core/rect.h"
#include "raster/codec/block_codec.h"
#include "raster/io/ordered_blocks.h"
#include "raster/io/raw_file.h"
#include "raster/sample_convert.h"
#include "raster/tiff/tiff_blocks.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hsi::raster {

/// Assembles rows of blocks from the tiles in any order: as many as `memory` allows in memory, the others in
/// an unnamed file next to the output. A thread that has delivered a tile compresses the blocks of complete
/// rows before it continues. The file gets its blocks in one order: row by row, in each row band by band,
/// from left to right. So its bytes do not depend on tiles, threads or memory. Most of its members are one
/// state under one mutex.
class CompressedWriter {
  public:
    struct Options {
        std::string path;    ///< a TIFF that GDAL has created and closed without blocks
        std::string scratch; ///< a name for creating the unnamed file
        TiffShape shape;
        BlockCoding coding;
        uint64_t memory = 0; ///< bytes for unfinished rows and for the threads' blocks
        int threads = 1;     ///< threads that compress
        /// Tiles arrive from one thread at a time: further threads are started to compress.
        bool helped = false;
        const CancelFlag* cancel = nullptr; ///< must outlive the writer
    };
    /// Throws Error if the file differs from what GDAL writes.
    CompressedWriter(Options options, StoreRule rule);
    CompressedWriter(const CompressedWriter&) = delete;
    CompressedWriter& operator=(const CompressedWriter&) = delete;
    ~CompressedWriter();

    /// Writes a tile. Thread-safe. Changes `src` (nodata instead of NaN). Throws Error.
    void write(const Rect& core, const CubeView<float>& src);
    /// Compresses the rest on all threads, and enters the blocks into the file. Call it after the last tile.
    /// Pixels that no tile has covered are 0. Throws Error and Cancelled.
    void finish();

    /// Returns the part of options.memory that it normally uses at most.
    uint64_t wanted_bytes() const;

  private:
    /// A row of unfinished blocks: block k is at k * block bytes.
    struct Row {
        HostBuffer<char> bytes; ///< empty: they are in the scratch file
        int64_t pixels = 0;     ///< filled so far
        int64_t written = 0;    ///< blocks
        bool in_memory() const { return bytes.size() > 0; }
    };
    /// A block that a thread has begun to compress.
    struct Job {
        int64_t row = 0, block = 0;
        Row* from = nullptr;
        std::unique_ptr<BlockCoder> coder;
        explicit operator bool() const { return from != nullptr; }
    };

    int64_t across() const { return m_options.shape.across(); }
    int64_t row_lines(int64_t row) const;
    uint64_t row_bytes() const;
    int64_t blocks_in_row() const { return m_options.shape.planes() * across(); }
    int64_t rows() const { return m_options.shape.down(); }

    Row& open_row(int64_t row); ///< with the lock held
    void deposit(int64_t row, Row& to, const Rect& core, const CubeView<float>& src);

    bool row_is_ready(int64_t row); ///< with the lock held
    bool job_is_ready();            ///< with the lock held
    Job take_job();                 ///< with the lock held; empty if no job is ready
    void do_job(Job job, std::unique_lock<std::mutex>& lock);
    void clear_beyond(char* block, const Job& job) const;
    void give_back(int64_t row, const HostBuffer<char>& bytes);
    void serve();
    void join_helpers();
    int scratch_file();
    bool cancelled() const;

    const Options m_options;
    const StoreRule m_rule;
    BlockForm m_form;
    int64_t m_block_bytes = 0;
    int m_most_coders = 1;
    int64_t m_most_rows = 0; ///< in memory
    uint64_t m_most_waiting = 0;

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    FileHandle m_scratch;
    std::map<int64_t, Row> m_rows;
    int64_t m_rows_in_memory = 0;
    std::vector<HostBuffer<char>> m_spare; ///< of finished rows
    int64_t m_missing = 0;                 ///< pixels that no tile has covered yet
    bool m_all = false;                    ///< no more tiles will arrive
    int64_t m_row = 0, m_block = 0;        ///< the next block to compress
    std::vector<std::unique_ptr<BlockCoder>> m_coders;
    int m_coders_made = 0;
    std::optional<OrderedBlocks> m_file; ///< row by row, as they are compressed
    std::exception_ptr m_error;          ///< of a helper
    bool m_stop = false;
    std::vector<std::thread> m_helpers; ///< initialised after all members that they use
};

} // namespace hsi::raster
