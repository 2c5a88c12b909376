// SPDX-License-Identifier: MIT
#include "stream/covariance_scan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/covariance_scan.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/block_sum-inl.h"

#include <hwy/highway.h>

#ifndef HSI_COVARIANCE_CONSTANTS
#define HSI_COVARIANCE_CONSTANTS
namespace hsi::stream {
/// Pixels whose products are added in single precision before they join the block's double: with 224 bands
/// they fill most of a second-level cache of 512 kB.
inline constexpr int64_t chunk_pixels = 384;
/// Bands of one register tile (rows x columns: 12 accumulators, 3 + 1 operands, the 16 registers of AVX2) and
/// of a panel of columns that stays in the first-level cache.
inline constexpr int tile_rows = 4, tile_columns = 3, panel_columns = 12;
} // namespace hsi::stream
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// out[i] = in[i] - centre
void subtract(const float* HWY_RESTRICT in, float centre, int64_t count, float* HWY_RESTRICT out) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto c = hn::Set(d, centre);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::Sub(hn::LoadU(d, in + i), c), d, out + i);
    for (; i < count; ++i)
        out[i] = in[i] - centre;
}

/// scatter[a * rows + b] += x_a . x_b for b <= a (and some b > a), over `count` pixels, a multiple of 16 (the
/// widest vector). x: `rows` bands (a multiple of panel_columns), chunk_pixels apart.
void add_scatter(const float* HWY_RESTRICT x, int rows, int64_t count, double* HWY_RESTRICT scatter) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int panel = 0; panel < rows; panel += panel_columns)
        for (int a = panel; a < rows; a += tile_rows)
            for (int b = panel; b < panel + panel_columns; b += tile_columns) {
                if (b > a + tile_rows - 1) break; // above the diagonal
                const float* HWY_RESTRICT r0 = x + a * chunk_pixels;
                const float* HWY_RESTRICT r1 = r0 + chunk_pixels;
                const float* HWY_RESTRICT r2 = r1 + chunk_pixels;
                const float* HWY_RESTRICT r3 = r2 + chunk_pixels;
                const float* HWY_RESTRICT c0 = x + b * chunk_pixels;
                const float* HWY_RESTRICT c1 = c0 + chunk_pixels;
                const float* HWY_RESTRICT c2 = c1 + chunk_pixels;
                auto s00 = hn::Zero(d), s01 = hn::Zero(d), s02 = hn::Zero(d);
                auto s10 = hn::Zero(d), s11 = hn::Zero(d), s12 = hn::Zero(d);
                auto s20 = hn::Zero(d), s21 = hn::Zero(d), s22 = hn::Zero(d);
                auto s30 = hn::Zero(d), s31 = hn::Zero(d), s32 = hn::Zero(d);
                for (int64_t i = 0; i < count; i += lanes) {
                    const auto v0 = hn::LoadU(d, c0 + i), v1 = hn::LoadU(d, c1 + i),
                               v2 = hn::LoadU(d, c2 + i);
                    auto u = hn::LoadU(d, r0 + i);
                    s00 = hn::MulAdd(u, v0, s00);
                    s01 = hn::MulAdd(u, v1, s01);
                    s02 = hn::MulAdd(u, v2, s02);
                    u = hn::LoadU(d, r1 + i);
                    s10 = hn::MulAdd(u, v0, s10);
                    s11 = hn::MulAdd(u, v1, s11);
                    s12 = hn::MulAdd(u, v2, s12);
                    u = hn::LoadU(d, r2 + i);
                    s20 = hn::MulAdd(u, v0, s20);
                    s21 = hn::MulAdd(u, v1, s21);
                    s22 = hn::MulAdd(u, v2, s22);
                    u = hn::LoadU(d, r3 + i);
                    s30 = hn::MulAdd(u, v0, s30);
                    s31 = hn::MulAdd(u, v1, s31);
                    s32 = hn::MulAdd(u, v2, s32);
                }
                const auto total = [&](decltype(s00) v) {
                    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v)));
                };
                double* HWY_RESTRICT out = scatter + static_cast<ptrdiff_t>(a) * rows + b;
                out[0] += total(s00), out[1] += total(s01), out[2] += total(s02);
                out += rows;
                out[0] += total(s10), out[1] += total(s11), out[2] += total(s12);
                out += rows;
                out[0] += total(s20), out[1] += total(s21), out[2] += total(s22);
                out += rows;
                out[0] += total(s30), out[1] += total(s31), out[2] += total(s32);
            }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::stream {
namespace {

HWY_EXPORT(block_sum);
HWY_EXPORT(subtract);
HWY_EXPORT(add_scatter);

int padded(int bands) { return (bands + panel_columns - 1) / panel_columns * panel_columns; }

uint64_t worker_bytes(int bands) {
    const auto rows = static_cast<uint64_t>(padded(bands));
    return CovarianceSums::bytes(bands) + rows * rows * 8 + rows * chunk_pixels * 4 +
           static_cast<uint64_t>(covariance_block_samples * covariance_block_lines) * 5;
}

class ScanWorker final : public Worker {
  public:
    explicit ScanWorker(int bands)
        : sums(bands), m_rows(padded(bands)), m_sum(static_cast<size_t>(bands)),
          m_centre(static_cast<size_t>(bands)), m_chunk(static_cast<size_t>(m_rows * chunk_pixels)),
          m_scatter(static_cast<size_t>(m_rows) * static_cast<size_t>(m_rows)),
          m_magnitude(static_cast<size_t>(covariance_block_samples * covariance_block_lines)),
          m_valid(m_magnitude.size()) {
        std::fill_n(m_chunk.data(), m_chunk.size(), 0.0f);
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t y = 0; y < tile.window.h; y += covariance_block_lines)
            for (int64_t x = 0; x < tile.window.w; x += covariance_block_samples)
                add_block(in.cut(x, y, std::min(covariance_block_samples, tile.window.w - x),
                                 std::min(covariance_block_lines, tile.window.h - y)));
    }

    CovarianceSums sums;

  private:
    void add_block(const CubeView<float>& block) {
        const int64_t pixels = block.lines * block.samples;
        std::fill_n(m_magnitude.begin(), pixels, 0.0f);
        for (int b = 0; b < block.bands; ++b)
            m_sum[static_cast<size_t>(b)] =
                HWY_DYNAMIC_DISPATCH(block_sum)(block.row(b, 0), block.line_stride, block.lines,
                                                block.samples, m_magnitude.data(), block.samples);
        const bool all = std::all_of(m_magnitude.begin(), m_magnitude.begin() + pixels, [](float m) {
            return m > 0 && m <= std::numeric_limits<float>::max(); // false for NaN
        });
        int64_t count = pixels;
        if (all) {
            sums.valid += pixels;
            for (auto& f : sums.finite)
                f += pixels;
        } else {
            count = sum_valid_only(block);
        }
        if (count == 0) return;
        for (size_t b = 0; b < m_sum.size(); ++b)
            m_centre[b] = static_cast<float>(m_sum[b] / static_cast<double>(count));
        std::fill(m_scatter.begin(), m_scatter.end(), 0.0);
        const int64_t lines = std::max<int64_t>(1, chunk_pixels / block.samples);
        for (int64_t line = 0; line < block.lines; line += lines)
            add_chunk(block, line, std::min(lines, block.lines - line), all);
        sums.add_block(count, m_sum.data(), m_centre.data(), m_scatter.data(), m_rows);
    }

    void add_chunk(const CubeView<float>& block, int64_t first, int64_t lines, bool all_valid) {
        const int64_t pixels = lines * block.samples, whole = (pixels + 15) / 16 * 16;
        for (int b = 0; b < block.bands; ++b) {
            float* const row = m_chunk.data() + b * chunk_pixels;
            for (int64_t line = 0; line < lines; ++line)
                HWY_DYNAMIC_DISPATCH(subtract)
            (block.row(b, first + line), m_centre[static_cast<size_t>(b)], block.samples,
             row + line * block.samples);
            if (!all_valid) {
                const char* const valid = m_valid.data() + first * block.samples;
                for (int64_t i = 0; i < pixels; ++i)
                    if (!valid[i]) row[i] = 0.0f;
            }
            std::fill(row + pixels, row + whole, 0.0f);
        }
        HWY_DYNAMIC_DISPATCH(add_scatter)(m_chunk.data(), m_rows, whole, m_scatter.data());
    }

    /// The block's sums again, leaving out invalid pixels and counting finite values a band. Returns how many
    /// are valid.
    int64_t sum_valid_only(const CubeView<float>& block) {
        int64_t count = 0;
        for (int64_t line = 0; line < block.lines; ++line)
            for (int64_t i = 0; i < block.samples; ++i) {
                const size_t at = static_cast<size_t>(line * block.samples + i);
                bool valid = m_magnitude[at] > 0;  // false for NaN as well
                if (std::isinf(m_magnitude[at])) { // an infinity, or an overflow of the sum
                    for (int b = 0; b < block.bands && valid; ++b)
                        valid = std::isfinite(block.at(b, line, i));
                }
                m_valid[at] = valid;
                count += valid;
            }
        sums.valid += count;
        sums.invalid += block.lines * block.samples - count;
        for (int b = 0; b < block.bands; ++b) {
            double total = 0;
            int64_t finite = 0;
            for (int64_t line = 0; line < block.lines; ++line) {
                const float* x = block.row(b, line);
                const char* valid = m_valid.data() + line * block.samples;
                for (int64_t i = 0; i < block.samples; ++i) {
                    finite += std::isfinite(x[i]);
                    if (valid[i]) total += static_cast<double>(x[i]);
                }
            }
            m_sum[static_cast<size_t>(b)] = total;
            sums.finite[static_cast<size_t>(b)] += finite;
        }
        return count;
    }

    const int m_rows; ///< bands, rounded up to whole panels; the rows beyond are zero
    std::vector<double> m_sum;
    std::vector<float> m_centre;
    HostBuffer<float> m_chunk; ///< m_rows x chunk_pixels
    std::vector<double> m_scatter;
    std::vector<float> m_magnitude;
    std::vector<char> m_valid;
};

size_t at_lower(int a, int b) {
    return static_cast<size_t>(a) * (static_cast<size_t>(a) + 1) / 2 + static_cast<size_t>(b);
}

} // namespace

std::vector<double> SceneCovariance::mean_products() const {
    std::vector<double> products = covariance;
    const auto n = static_cast<size_t>(bands);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            products[a * n + b] += mean[a] * mean[b];
    return products;
}

std::vector<int> SceneCovariance::empty_bands() const {
    std::vector<int> empty;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    return empty;
}

CovarianceSums::CovarianceSums(int n)
    : bands(n), finite(static_cast<size_t>(n)), sum(static_cast<size_t>(n)), product(at_lower(n, 0)) {}

uint64_t CovarianceSums::bytes(int bands) {
    return (static_cast<uint64_t>(at_lower(bands, 0)) + static_cast<uint64_t>(bands)) *
           sizeof(math::ExactSum);
}

void CovarianceSums::add_block(int64_t count, const double* block_sum_, const float* centre,
                               const double* scatter, int64_t pitch) {
    const auto n = static_cast<double>(count);
    for (int a = 0; a < bands; ++a)
        sum[static_cast<size_t>(a)].add(block_sum_[a]);
    for (int a = 0; a < bands; ++a) {
        const auto ca = static_cast<double>(centre[a]);
        const double rest_a = block_sum_[a] - n * ca; // sum of x_a - c_a: the rounding of the centre
        for (int b = 0; b <= a; ++b) {
            const auto cb = static_cast<double>(centre[b]);
            const double rest_b = block_sum_[b] - n * cb;
            // x_a x_b = (x_a - c_a)(x_b - c_b) + c_a (x_b - c_b) + c_b (x_a - c_a) + c_a c_b
            product[at_lower(a, b)].add(scatter[a * pitch + b] + (ca * rest_b + cb * rest_a) + n * (ca * cb));
        }
    }
}

void CovarianceSums::add(const CovarianceSums& other) {
    valid += other.valid;
    invalid += other.invalid;
    for (size_t b = 0; b < sum.size(); ++b) {
        sum[b].add(other.sum[b]);
        finite[b] += other.finite[b];
    }
    for (size_t i = 0; i < product.size(); ++i)
        product[i].add(other.product[i]);
}

uint64_t CovarianceScan::scratch_bytes(const TileLimits&) const { return worker_bytes(bands()); }

std::unique_ptr<Worker> CovarianceScan::start(int, const TileLimits&) {
    return std::make_unique<ScanWorker>(bands());
}

void CovarianceScan::stop(Worker& worker) { merge(static_cast<const ScanWorker&>(worker).sums); }

SceneCovariance CovarianceScan::result() const {
    SceneCovariance r;
    const int n = bands();
    r.bands = n;
    r.valid_pixels = m_total.valid;
    r.invalid_pixels = m_total.invalid;
    r.finite = m_total.finite;
    const auto count = static_cast<double>(m_total.valid);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const auto& s : m_total.sum)
        r.mean.push_back(m_total.valid > 0 ? s.value() / count : nan);
    r.covariance.assign(static_cast<size_t>(n) * static_cast<size_t>(n), nan);
    if (m_total.valid == 0) return r;
    for (int a = 0; a < n; ++a)
        for (int b = 0; b <= a; ++b) {
            const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
            const double value = m_total.product[at_lower(a, b)].value() / count - r.mean[i] * r.mean[j];
            r.covariance[i * static_cast<size_t>(n) + j] = r.covariance[j * static_cast<size_t>(n) + i] =
                value;
        }
    return r;
}

} // namespace hsi::stream
#endif
