// SPDX-License-Identifier: MIT
// Writes compressed blocks into a TIFF in the order of their indices. The order does not depend on the
// workers that compress them.
#pragma once

#include "core/error.h"
#include "raster/io/raw_file.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace hsi::raster {

/// Writes blocks in order. A block that arrives before its turn is copied, and stays in memory until all
/// earlier blocks have arrived. Call all members with the same mutex locked.
class OrderedBlocks {
  public:
    struct Form {
        bool big = true; ///< true: a BigTIFF; false: positions beyond 4 GiB throw too_large()
        /// Each block is preceded by its size (32 bits) and followed by a copy of its last four bytes.
        bool framed = false;
    };
    /// Writes `blocks` blocks from byte `begin` of `file` on.
    OrderedBlocks(FileHandle file, int64_t begin, int64_t blocks, Form form);

    /// Receives block `number`, counted from 0; call it once per block. Writes the block if it is the next
    /// one, and the waiting blocks that follow it. The caller may change the bytes after the call. `lock` is
    /// unlocked while data are written. Throws Error with the system's reason, or too_large().
    void place(int64_t number, std::span<const char> bytes, std::unique_lock<std::mutex>& lock);

    uint64_t waiting_bytes() const { return m_waiting_bytes; }
    /// Return the offsets in the file and the sizes of all blocks, by index; 0 for blocks that have no
    /// position yet.
    const std::vector<uint64_t>& offsets() const { return m_offsets; }
    const std::vector<uint64_t>& sizes() const { return m_sizes; }

    const FileHandle& file() const { return m_file; }
    /// Closes the file. Throws Error if the system could not write everything.
    void close();

    static Error too_large();

  private:
    struct Frame;
    FileHandle m_file;
    const Form m_form;
    int64_t m_end; ///< end of the file so far
    size_t m_placed = 0;
    std::map<int64_t, std::vector<char>> m_waiting;
    uint64_t m_waiting_bytes = 0;
    std::vector<uint64_t> m_offsets, m_sizes;
};

} // namespace hsi::raster
