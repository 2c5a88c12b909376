// SPDX-License-Identifier: MIT
// Lines of a cube that readers compute, kept for later readers: in memory, or in an unnamed temporary file,
// which disappears with the process in any case.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::stream {

/// An allocator of ordinary pages. Huge pages suit memory that is used for long. For memory that is filled
/// once and read a few times, clearing them costs more if a virtual machine gives free memory back to its
/// host (0.6 s for 280 MB, 0.1 s with ordinary pages).
std::shared_ptr<HostAllocator> small_page_allocator();

class KeptLines {
  public:
    /// In memory. Costs shape.float_bytes().
    explicit KeptLines(const CubeShape& shape);
    /// Keeps them in a file in `folder`. Throws Error if it cannot be made.
    KeptLines(const CubeShape& shape, const std::string& folder);
    ~KeptLines();
    KeptLines(const KeptLines&) = delete;
    KeptLines& operator=(const KeptLines&) = delete;

    const CubeShape& shape() const { return m_shape; }
    bool in_memory() const { return m_file < 0; }
    /// All lines are there.
    bool complete() const { return m_there.load(std::memory_order_acquire) == m_shape.lines; }

    // Thread-safe:

    /// Lines of the scene from `first` on, whole ones, with all bands. Lines that are already kept stay. If
    /// the disk is full, no further lines are kept; this is not an error.
    void keep(int64_t first, const CubeView<const float>& values);
    /// Fills `dst` where all lines of the window are there. \return false, dst undefined, where they are not,
    /// or the file cannot be read.
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
