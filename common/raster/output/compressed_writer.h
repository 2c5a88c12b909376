// SPDX-License-Identifier: MIT
// Writes tiles into a compressed TIFF; several threads can write at the same time.
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

/// Assembles rows of blocks from tiles that arrive in any order. As many rows as Options::memory allows are
/// in memory. The other rows are in an unnamed file next to the output. After a thread has delivered a tile,
/// it compresses blocks of complete rows before it continues. Blocks are always written in the same order:
/// row by row, within a row band by band, and from left to right. The bytes of the file therefore do not
/// depend on tiles, threads or memory. One mutex guards most members.
class CompressedWriter {
  public:
    struct Options {
        std::string path;    ///< a TIFF without blocks, which GDAL has created and closed
        std::string scratch; ///< temporary name of the unnamed file
        TiffShape shape;
        BlockCoding coding;
        uint64_t memory = 0; ///< bytes for unfinished rows and for the blocks of the threads
        int threads = 1;     ///< number of threads that compress
        /// True: only one thread at a time calls write(), so this class starts further threads for
        /// compression.
        bool helped = false;
        const CancelFlag* cancel = nullptr; ///< must outlive the writer
    };
    /// \throws Error if the file is not as GDAL writes it.
    CompressedWriter(Options options, StoreRule rule);
    CompressedWriter(const CompressedWriter&) = delete;
    CompressedWriter& operator=(const CompressedWriter&) = delete;
    ~CompressedWriter();

    /// Writes a tile. Thread-safe. The call may change the values in `src` to the stored ones (StoreRule).
    /// \throws Error.
    void write(const Rect& core, const CubeView<float>& src);
    /// Compresses the remaining blocks on all threads, and enters the positions of all blocks into the file.
    /// Call it after the last tile. Pixels that no tile has covered become 0. \throws Error and Cancelled.
    void finish();

    /// Returns how many of Options::memory bytes the writer uses: for rows of unfinished blocks and for the
    /// blocks of the threads.
    uint64_t wanted_bytes() const;

  private:
    /// A row of unfinished blocks. Block k begins at k * m_block_bytes.
    struct Row {
        HostBuffer<char> bytes; ///< empty: the blocks are in the scratch file
        int64_t pixels = 0;     ///< number of pixels that tiles have filled
        int64_t written = 0;    ///< number of blocks that have been written
        bool in_memory() const { return bytes.size() > 0; }
    };
    /// A block that a thread compresses.
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

    Row& open_row(int64_t row); ///< call with the lock held
    void deposit(int64_t row, Row& to, const Rect& core, const CubeView<float>& src);

    bool row_is_ready(int64_t row); ///< call with the lock held
    bool job_is_ready();            ///< call with the lock held
    Job take_job();                 ///< call with the lock held; empty if no job is ready
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
    int64_t m_most_rows = 0; ///< maximum number of rows in memory
    uint64_t m_most_waiting = 0;

    std::mutex m_mutex; ///< guards the members below
    std::condition_variable m_changed;
    FileHandle m_scratch;
    std::map<int64_t, Row> m_rows;
    int64_t m_rows_in_memory = 0;
    std::vector<HostBuffer<char>> m_spare; ///< buffers of finished rows, for reuse
    int64_t m_missing = 0;                 ///< number of pixels that no tile has covered yet
    bool m_all = false;                    ///< true: no more tiles will arrive
    int64_t m_row = 0, m_block = 0;        ///< the next block to compress
    std::vector<std::unique_ptr<BlockCoder>> m_coders;
    int m_coders_made = 0;
    /// The output, which receives compressed blocks in the order of the file.
    std::optional<OrderedBlocks> m_file;
    std::exception_ptr m_error; ///< error of a helper thread
    bool m_stop = false;
    std::vector<std::thread> m_helpers; ///< the last member, because the threads use all other members
};

} // namespace hsi::raster
