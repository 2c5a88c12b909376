// SPDX-License-Identifier: MIT
// Lines of a cube that readers compute, kept for those who need them again: in memory, or in a temporary file
// that has no name, so that it is gone with the process however that ends.
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::stream {

/// Ordinary pages. Huge ones are asked for what is used for long; for what is filled once and read a few
/// times clearing them costs more where a virtual machine gives free memory back to its host (0.6 s for 280
/// MB, 0.1 s of ordinary ones).
std::shared_ptr<HostAllocator> small_page_allocator();

class KeptLines {
  public:
    /// In memory. Costs shape.float_bytes().
    explicit KeptLines(const CubeShape& shape);
    /// In a file in `folder`. Throws Error where none can be made.
    KeptLines(const CubeShape& shape, const std::string& folder);
    ~KeptLines();
    KeptLines(const KeptLines&) = delete;
    KeptLines& operator=(const KeptLines&) = delete;

    const CubeShape& shape() const { return m_shape; }
    bool in_memory() const { return m_file < 0; }
    /// All lines are there.
    bool complete() const { return m_there.load(std::memory_order_acquire) == m_shape.lines; }

    // Thread-safe:

    /// Lines of the scene from `first` on, whole ones, with all bands. What is there already stays. Where the
    /// disk is full nothing more is kept, and nothing is wrong.
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
