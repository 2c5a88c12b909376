// SPDX-License-Identifier: MIT
// A set of pixels of a scene, one bit per pixel, and a source in which all other pixels are missing, so that
// statistics cover only the set.
#pragma once

#include "stream/cube_source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::stream {

class PixelMask {
  public:
    /// Makes an empty mask.
    PixelMask(int64_t samples, int64_t lines)
        : m_samples(samples), m_pixels(static_cast<size_t>(samples * lines)), m_bits((m_pixels + 63) / 64) {}

    void set(int64_t line, int64_t sample) {
        const size_t i = place(line, sample);
        m_bits[i / 64] |= uint64_t{1} << (i % 64);
    }
    void clear(int64_t line, int64_t sample) {
        const size_t i = place(line, sample);
        m_bits[i / 64] &= ~(uint64_t{1} << (i % 64));
    }
    bool at(int64_t line, int64_t sample) const {
        const size_t i = place(line, sample);
        return m_bits[i / 64] >> (i % 64) & 1;
    }
    /// Returns whether the pixel with the number line * samples + sample is in the mask.
    bool at(int64_t pixel) const {
        const auto i = static_cast<size_t>(pixel);
        return m_bits[i / 64] >> (i % 64) & 1;
    }
    /// Returns the first sample in [from, to) of a line that is in the mask (inside = true) or outside of it
    /// (inside = false); `to` if there is no such sample.
    int64_t find(int64_t line, int64_t from, int64_t to, bool inside) const;
    /// Removes the pixels that are not in `other`, which has the same size.
    void keep_only(const PixelMask& other);
    /// Replaces the mask by all other pixels.
    void invert();
    int64_t count() const; ///< pixels in the mask
    int64_t pixels() const { return static_cast<int64_t>(m_pixels); }
    uint64_t bytes() const { return m_bits.size() * sizeof(uint64_t); }
    /// Returns the bytes of a mask of this size.
    static uint64_t bytes(int64_t samples, int64_t lines) {
        return (static_cast<uint64_t>(samples) * static_cast<uint64_t>(lines) + 63) / 64 * sizeof(uint64_t);
    }

  private:
    size_t place(int64_t line, int64_t sample) const {
        return static_cast<size_t>(line * m_samples + sample);
    }

    int64_t m_samples;
    size_t m_pixels;
    std::vector<uint64_t> m_bits; ///< bits beyond the last pixel are 0
};

/// Returns a reader of the values of `behind`, with NaN in all bands of the pixels outside of the mask.
std::unique_ptr<CubeReader> masked_reader(std::unique_ptr<CubeReader> behind,
                                          std::shared_ptr<const PixelMask> mask);
/// Returns the host bytes that masked_reader() adds to a reader, for windows of this number of samples.
uint64_t masked_reader_bytes(int64_t samples);

/// A source whose pixels outside of the mask are missing. The source keeps no values itself. If `behind` is a
/// ResidentSource, it keeps the scene without the mask.
class MaskedSource final : public CubeSource {
  public:
    MaskedSource(std::shared_ptr<const CubeSource> behind, std::shared_ptr<const PixelMask> mask);
    /// `behind` must outlive this object.
    MaskedSource(const CubeSource& behind, std::shared_ptr<const PixelMask> mask);

    CubeShape shape() const override { return m_behind->shape(); }
    BlockLayout layout() const override { return m_behind->layout(); }
    std::unique_ptr<CubeReader> open_reader() const override;
    uint64_t reader_bytes() const override;
    uint64_t window_bytes(int64_t samples, int64_t lines) const override {
        return m_behind->window_bytes(samples, lines);
    }
    uint64_t device_bytes(int64_t samples, int64_t lines) const override {
        return m_behind->device_bytes(samples, lines);
    }
    uint64_t stored_bytes_per_pixel() const override { return m_behind->stored_bytes_per_pixel(); }

  private:
    std::shared_ptr<const CubeSource> m_behind;
    std::shared_ptr<const PixelMask> m_mask;
};

} // namespace hsi::stream
