// SPDX-License-Identifier: MIT
#include "stream/band_statistics.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/band_statistics.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/block_sum-inl.h"

#include <hwy/highway.h>

#if HWY_ONCE
namespace hsi::stream {
namespace {

HWY_EXPORT(block_sum);

class ScanWorker final : public Worker {
  public:
    explicit ScanWorker(size_t bands)
        : sum(bands), finite(bands), m_block(bands),
          m_magnitude(static_cast<size_t>(statistics_block_lines * statistics_block_samples)),
          m_valid(m_magnitude.size()) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t y = 0; y < tile.window.h; y += statistics_block_lines)
            for (int64_t x = 0; x < tile.window.w; x += statistics_block_samples)
                add_block(in.cut(x, y, std::min(statistics_block_samples, tile.window.w - x),
                                 std::min(statistics_block_lines, tile.window.h - y)));
    }

    std::vector<math::ExactSum> sum;
    std::vector<int64_t> finite;
    int64_t valid = 0, invalid = 0;

  private:
    void add_block(const CubeView<float>& block) {
        std::fill(m_magnitude.begin(), m_magnitude.end(), 0.0f);
        for (int b = 0; b < block.bands; ++b)
            m_block[static_cast<size_t>(b)] =
                HWY_DYNAMIC_DISPATCH(block_sum)(block.row(b, 0), block.line_stride, block.lines,
                                                block.samples, m_magnitude.data(), statistics_block_samples);
        bool all = true;
        for (int64_t line = 0; line < block.lines; ++line)
            for (int64_t i = 0; i < block.samples; ++i)
                all = all &&
                      is_valid_sum(m_magnitude[static_cast<size_t>(line * statistics_block_samples + i)]);
        const int64_t pixels = block.lines * block.samples;
        if (all) {
            valid += pixels;
            for (auto& f : finite)
                f += pixels;
        } else {
            sum_valid_only(block);
        }
        for (size_t b = 0; b < sum.size(); ++b)
            sum[b].add(m_block[b]);
    }

    /// The block again, leaving out invalid pixels and counting finite values a band.
    void sum_valid_only(const CubeView<float>& block) {
        for (int64_t line = 0; line < block.lines; ++line)
            for (int64_t i = 0; i < block.samples; ++i) {
                const size_t at = static_cast<size_t>(line * statistics_block_samples + i);
                m_valid[at] =
                    is_valid_sum(m_magnitude[at], block.row(0, line) + i, block.bands, block.band_stride);
                ++(m_valid[at] ? valid : invalid);
            }
        for (int b = 0; b < block.bands; ++b) {
            double total = 0;
            int64_t count = 0;
            for (int64_t line = 0; line < block.lines; ++line) {
                const float* x = block.row(b, line);
                for (int64_t i = 0; i < block.samples; ++i) {
                    count += std::isfinite(x[i]);
                    if (m_valid[static_cast<size_t>(line * statistics_block_samples + i)])
                        total += static_cast<double>(x[i]);
                }
            }
            m_block[static_cast<size_t>(b)] = total;
            finite[static_cast<size_t>(b)] += count;
        }
    }

    std::vector<double> m_block;
    std::vector<float> m_magnitude;
    std::vector<char> m_valid;
};

} // namespace

std::vector<int> BandStatistics::empty_bands() const {
    std::vector<int> empty;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    return empty;
}

std::unique_ptr<Worker> BandStatisticsScan::start(int, const TileLimits&) {
    return std::make_unique<ScanWorker>(m_sum.size());
}

void BandStatisticsScan::stop(Worker& worker) {
    const auto& scan = static_cast<const ScanWorker&>(worker);
    merge(scan.sum, scan.finite, scan.valid, scan.invalid);
}

void BandStatisticsScan::merge(const std::vector<math::ExactSum>& sums, const std::vector<int64_t>& finite,
                               int64_t valid, int64_t invalid) {
    for (size_t b = 0; b < m_sum.size(); ++b) {
        m_sum[b].add(sums[b]);
        m_finite[b] += finite[b];
    }
    m_valid += valid;
    m_invalid += invalid;
}

void BandStatisticsScan::exchange(parallel::Group& ranks) {
    const auto packed = [](const BandStatisticsScan& s) {
        return BytePacker().put(s.m_sum).put(s.m_finite).put(s.m_valid).put(s.m_invalid).take();
    };
    const auto unpacked = [bands = static_cast<int>(m_sum.size())](const std::string& bytes) {
        BandStatisticsScan s(bands);
        ByteUnpacker in(bytes);
        in.get(s.m_sum);
        in.get(s.m_finite);
        in.get(s.m_valid);
        in.get(s.m_invalid);
        return s;
    };
    const BandStatisticsScan whole = unpacked(
        ranks.reduce("band statistics", packed(*this), [&](const std::string& a, const std::string& b) {
            BandStatisticsScan both = unpacked(a);
            const BandStatisticsScan other = unpacked(b);
            both.merge(other.m_sum, other.m_finite, other.m_valid, other.m_invalid);
            return packed(both);
        }));
    m_sum = whole.m_sum;
    m_finite = whole.m_finite;
    m_valid = whole.m_valid;
    m_invalid = whole.m_invalid;
}

BandStatistics BandStatisticsScan::result() const {
    BandStatistics r;
    r.valid_pixels = m_valid;
    r.invalid_pixels = m_invalid;
    r.finite = m_finite;
    for (const auto& s : m_sum)
        r.mean.push_back(m_valid > 0 ? s.value() / static_cast<double>(m_valid)
                                     : std::numeric_limits<double>::quiet_NaN());
    return r;
}

} // namespace hsi::stream
#endif
