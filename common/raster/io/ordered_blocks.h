// SPDX-License-Identifier: MIT
// Writes compressed blocks into a TIFF in the order of their indices, whichever worker has compressed them
// and when.
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

/// Blocks that come before their turn wait in memory. All members are called with the owner's lock held,
/// always the same lock.
class OrderedBlocks {
  public:
    struct Form {
        bool big = true;     ///< a BigTIFF; places beyond 4 GiB are refused elsewhere
        bool framed = false; ///< each stands between its size (32 bits) and its last four bytes
    };
    /// `blocks` of them, from byte `begin` of `file` on.
    OrderedBlocks(FileHandle file, int64_t begin, int64_t blocks, Form form);

    /// Block `number`, from 0 on, each once. The bytes are the caller's again afterwards. `lock` is open
    /// while the disk is written to. Throws Error with the system's reason, or too_large().
    void place(int64_t number, std::span<const char> bytes, std::unique_lock<std::mutex>& lock);

    uint64_t waiting_bytes() const { return m_waiting_bytes; }
    /// The offsets in the file and the sizes of all blocks, by index; 0 before they are written.
    const std::vector<uint64_t>& offsets() const { return m_offsets; }
    const std::vector<uint64_t>& sizes() const { return m_sizes; }

    const FileHandle& file() const { return m_file; }
    /// Throws Error.
    void close();

    static Error too_large();

  private:
    struct Frame;
    FileHandle m_file;
    const Form m_form;
    int64_t m_end; ///< of the file
    size_t m_placed = 0;
    std::map<int64_t, std::vector<char>> m_waiting;
    uint64_t m_waiting_bytes = 0;
    std::vector<uint64_t> m_offsets, m_sizes;
};

} // namespace hsi::raster
