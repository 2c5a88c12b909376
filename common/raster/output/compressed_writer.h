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

/// Rows of blocks are put together from the tiles in any order: as many as `memory` holds in memory, the
/// others in an unnamed file next to the output. A thread that has handed over a tile compresses the blocks
/// of complete rows before it goes on. The file gets its blocks in one order: row after row, in each band
/// after band, from left to right; so its bytes depend on neither tiles nor threads nor memory. Most of its
/// members are one state under one mutex.
class CompressedWriter {
  public:
    struct Options {
        std::string path;    ///< of a TIFF that GDAL has made and closed without blocks
        std::string scratch; ///< a name for the file without a name
        TiffShape shape;
        BlockCoding coding;
        uint64_t memory = 0; ///< bytes for unfinished rows and for the threads' blocks
        int threads = 1;     ///< that compress
        /// Tiles come from one thread at a time: further threads are started to compress.
        bool helped = false;
        const CancelFlag* cancel = nullptr; ///< must outlive the writer
    };
    /// Throws Error when the file is not as GDAL leaves it.
    CompressedWriter(Options options, StoreRule rule);
    CompressedWriter(const CompressedWriter&) = delete;
    CompressedWriter& operator=(const CompressedWriter&) = delete;
    ~CompressedWriter();

    /// Thread-safe. Changes `src` (nodata in place of NaN). Throws Error.
    void write(const Rect& core, const CubeView<float>& src);
    /// Call it after the last tile: compresses the rest on all threads, and enters the blocks into the file.
    /// Pixels that no tile has covered are 0. Throws Error and Cancelled.
    void finish();

    /// The part of options.memory that it will hold at most, as a rule.
    uint64_t wanted_bytes() const;

  private:
    /// A row of unfinished blocks: block k at k * block bytes.
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
    Job take_job();                 ///< with the lock held; an empty job if there is none now
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
    std::vector<HostBuffer<char>> m_spare; ///< of rows that are done
    int64_t m_missing = 0;                 ///< pixels that no tile has brought yet
    bool m_all = false;                    ///< there will be no more tiles
    int64_t m_row = 0, m_block = 0;        ///< the next to be compressed
    std::vector<std::unique_ptr<BlockCoder>> m_coders;
    int m_coders_made = 0;
    std::optional<OrderedBlocks> m_file; ///< row after row, as they are compressed
    std::exception_ptr m_error;          ///< of a helper
    bool m_stop = false;
    std::vector<std::thread> m_helpers; ///< after all that they touch
};

} // namespace hsi::raster
