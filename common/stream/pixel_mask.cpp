// SPDX-License-Identifier: MIT
#include "stream/pixel_mask.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace hsi::stream {
namespace {

struct Run {
    int64_t begin, end;
};

class MaskedReader final : public CubeReader {
  public:
    MaskedReader(std::unique_ptr<CubeReader> behind, std::shared_ptr<const PixelMask> mask)
        : m_behind(std::move(behind)), m_mask(std::move(mask)) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_behind->read(window, dst);
        for (int64_t line = 0; line < window.h; ++line) {
            find_outside(window, line);
            if (m_outside.empty()) continue;
            for (int b = 0; b < dst.bands; ++b) {
                float* const row = dst.row(b, line);
                for (const Run& r : m_outside)
                    std::fill(row + r.begin, row + r.end, std::numeric_limits<float>::quiet_NaN());
            }
        }
    }
    /// A view of values in memory is not masked. So a view is possible only if the mask excludes no pixel of
    /// the window.
    std::optional<CubeView<float>> view(const Rect& window) override {
        for (int64_t y = window.y; y < window.bottom(); ++y)
            if (m_mask->find(y, window.x, window.right(), false) < window.right()) return std::nullopt;
        return m_behind->view(window);
    }
    void prefetch(const Rect& window) override { m_behind->prefetch(window); }
    bool expect(const Rect& window) override { return m_behind->expect(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_behind->look_ahead(bytes, threads); }

  private:
    /// Finds the runs of a line of the window that are outside of the mask. Samples are counted from the
    /// first sample of the window.
    void find_outside(const Rect& window, int64_t line) {
        m_outside.clear();
        const int64_t y = window.y + line;
        for (int64_t x = window.x; x < window.right();) {
            const int64_t begin = m_mask->find(y, x, window.right(), false);
            if (begin == window.right()) break;
            x = m_mask->find(y, begin, window.right(), true);
            m_outside.push_back({begin - window.x, x - window.x});
        }
    }

    std::unique_ptr<CubeReader> m_behind;
    std::shared_ptr<const PixelMask> m_mask;
    std::vector<Run> m_outside;
};

} // namespace

int64_t PixelMask::find(int64_t line, int64_t from, int64_t to, bool inside) const {
    const size_t end = place(line, to);
    for (size_t i = place(line, from); i < end; i = (i / 64 + 1) * 64) {
        const uint64_t word = (inside ? m_bits[i / 64] : ~m_bits[i / 64]) >> (i % 64);
        if (word != 0)
            return from +
                   static_cast<int64_t>(std::min(i + static_cast<size_t>(std::countr_zero(word)), end) -
                                        place(line, from));
    }
    return to;
}

void PixelMask::keep_only(const PixelMask& other) {
    for (size_t k = 0; k < m_bits.size(); ++k)
        m_bits[k] &= other.m_bits[k];
}

void PixelMask::invert() {
    for (uint64_t& word : m_bits)
        word = ~word;
    if (m_pixels % 64 != 0) m_bits.back() &= (uint64_t{1} << (m_pixels % 64)) - 1;
}

int64_t PixelMask::count() const {
    int64_t pixels = 0;
    for (const uint64_t word : m_bits)
        pixels += std::popcount(word);
    return pixels;
}

std::unique_ptr<CubeReader> masked_reader(std::unique_ptr<CubeReader> behind,
                                          std::shared_ptr<const PixelMask> mask) {
    return std::make_unique<MaskedReader>(std::move(behind), std::move(mask));
}

uint64_t masked_reader_bytes(int64_t samples) {
    return (static_cast<uint64_t>(samples) + 1) / 2 * sizeof(Run);
}

MaskedSource::MaskedSource(std::shared_ptr<const CubeSource> behind, std::shared_ptr<const PixelMask> mask)
    : m_behind(std::move(behind)), m_mask(std::move(mask)) {}

MaskedSource::MaskedSource(const CubeSource& behind, std::shared_ptr<const PixelMask> mask)
    : MaskedSource(std::shared_ptr<const CubeSource>(std::shared_ptr<void>(), &behind), std::move(mask)) {}

std::unique_ptr<CubeReader> MaskedSource::open_reader() const {
    return masked_reader(m_behind->open_reader(), m_mask);
}

uint64_t MaskedSource::reader_bytes() const {
    return m_behind->reader_bytes() + masked_reader_bytes(shape().samples);
}

} // namespace hsi::stream
