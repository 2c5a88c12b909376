// SPDX-License-Identifier: MIT
// Keeps computed lines of a cube for later readers, in memory or in an unnamed temporary file. The file
// disappears with the process, however the process ends.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::stream {

/// Returns an allocator of ordinary pages, for memory that is filled once and read a few times. Huge pages
/// suit memory that is used for longer: when a virtual machine returns free memory to its host, clearing huge
/// pages takes more time (0.6 s for 280 MB, 0.1 s with ordinary pages).
std::shared_ptr<HostAllocator> small_page_allocator();

class KeptLines {
  public:
    /// Keeps the lines in memory, which takes shape.float_bytes() bytes.
    explicit KeptLines(const CubeShape& shape);
    /// Keeps the lines in a file in `folder`. Throws Error if the file cannot be created.
    KeptLines(const CubeShape& shape, const std::string& folder);
    ~KeptLines();
    KeptLines(const KeptLines&) = delete;
    KeptLines& operator=(const KeptLines&) = delete;

    const CubeShape& shape() const { return m_shape; }
    bool in_memory() const { return m_file < 0; }
    /// Returns true if all lines are kept.
    bool complete() const { return m_there.load(std::memory_order_acquire) == m_shape.lines; }

    // The following functions are thread-safe.

    /// Keeps whole lines of the scene, with all bands. `values` begins at line `first`. Lines that are
    /// already kept do not change. If the disk is full, no further lines are kept; this is not an error.
    void keep(int64_t first, const CubeView<const float>& values);
    /// Fills `dst` if all lines of the window are kept. \return false, with `dst` undefined, if lines are
    /// missing or the file cannot be read.
    bool read(const Rect& window, const CubeView<float>& dst) const;

  private:
    enum class State : uint8_t { missing, arriving, there };
    size_t line_floats() const {
        return static_cast<size_t>(m_shape.samples) * static_cast<size_t>(m_shape.bands);
    }
    bool put(int64_t line, const float* values);

    const CubeShape m_shape;
    std::vector<std::atomic<State>> m_lines;
    std::atomic<int64_t> m_there{0};
    std::atomic<bool> m_full{false};
    HostBuffer<float> m_values; ///< [line][band][sample]
    int m_file = -1;
};

} // namespace hsi::stream
