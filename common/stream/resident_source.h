// SPDX-License-Identifier: MIT
// A source that keeps the values of its first scan, for scenes that fit in memory and whose files are slow to
// read again (compressed, remote).
#pragma once

#include "core/host_memory.h"
#include "stream/cube_source.h"

#include <atomic>
#include <memory>

namespace hsi::stream {

/// Until seal(), reads tiles from the source behind it and keeps them. After seal(), all tiles come from
/// memory. Takes shape().float_bytes() bytes of memory.
class ResidentSource final : public CubeSource {
  public:
    explicit ResidentSource(std::shared_ptr<const CubeSource> behind);

    /// Declares that all values are in memory. Throws Error unless every pixel has been read exactly once
    /// (one pass without halo).
    void seal();
    bool sealed() const { return m_sealed.load(std::memory_order_acquire); }
    /// Returns the whole cube, which is complete after seal().
    CubeView<const float> view() const;

    CubeShape shape() const override { return m_behind->shape(); }
    /// Returns the layout of the source behind until seal(), and whole lines afterwards.
    BlockLayout layout() const override { return sealed() ? BlockLayout{} : m_behind->layout(); }
    std::unique_ptr<CubeReader> open_reader() const override;
    uint64_t reader_bytes() const override { return sealed() ? 0 : m_behind->reader_bytes(); }
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        return sealed() ? 0 : m_behind->window_bytes(samples, lines);
    }
    uint64_t device_bytes(int64_t samples, int64_t lines) const override {
        return sealed() ? 0 : m_behind->device_bytes(samples, lines);
    }
    /// Returns 0 after seal(), because the file is not read any more.
    uint64_t stored_bytes_per_pixel() const override {
        return sealed() ? 0 : m_behind->stored_bytes_per_pixel();
    }

  private:
    class Reader;
    std::shared_ptr<const CubeSource> m_behind;
    HostBuffer<float> m_cube;
    mutable std::atomic<int64_t> m_filled{0};
    std::atomic<bool> m_sealed{false};
};

} // namespace hsi::stream
