// SPDX-License-Identifier: MIT
// Workers that score the pixels of a tile in blocks of neighbouring pixels of a line, and count valid and
// invalid pixels.
#pragma once

#include "detect/detect.h"
#include "detect/detect_simd.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hsi::detect {

class BlockWorker : public stream::Worker {
  public:
    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) final {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t sample = 0; sample < in.samples; sample += block_pixels)
                process_block(in, line, sample, std::min(block_pixels, in.samples - sample), out);
    }

    int64_t valid = 0, invalid = 0;

  protected:
    /// bands: number of bands that whole_block() copies
    explicit BlockWorker(int bands) : m_tail(static_cast<size_t>(bands) * block_pixels) {}
    /// Processes at most block_pixels pixels from `sample` on.
    virtual void process_block(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count,
                               const std::vector<CubeView<float>>& out) = 0;
    /// A block with block_pixels readable values per band. If whole_block() gets fewer pixels at the end of a
    /// line, it copies them and pads them with zeros, since SIMD vectors must not read past the tile.
    struct Block {
        const float* first;
        ptrdiff_t band_stride;
    };
    Block whole_block(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count) {
        if (count == block_pixels) return {in.row(0, line) + sample, in.band_stride};
        for (int b = 0; b < in.bands; ++b) {
            float* const row = m_tail.data() + b * block_pixels;
            std::memcpy(row, in.row(b, line) + sample, static_cast<size_t>(count) * sizeof(float));
            std::fill(row + count, row + block_pixels, 0.0f);
        }
        return {m_tail.data(), block_pixels};
    }

  private:
    std::vector<float> m_tail;
};

/// The common part of operations whose workers are BlockWorkers. Base: Detection, or a class derived from it.
template <class Base>
class OfBlocks : public Base {
  public:
    /// A tile of this size stays in the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const BlockWorker&>(worker);
        this->m_valid += w.valid;
        this->m_invalid += w.invalid;
    }
};

} // namespace hsi::detect
