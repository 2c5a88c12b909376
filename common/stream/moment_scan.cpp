// SPDX-License-Identifier: MIT
#include "stream/moment_scan.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/moment_scan.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/scatter-inl.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#ifndef HSI_MOMENT_CONSTANTS
#define HSI_MOMENT_CONSTANTS
namespace hsi::stream {
namespace {
/// Pixels whose products are added in registers before they join the block's sums.
constexpr int64_t run_pixels = chunk_of<double>;

/// Eight pixels of a line side by side, an octet, make eight cosines, of which a run has four kinds at a
/// time.
constexpr int64_t octet = 8, kinds = 4;
constexpr int64_t run_octets = run_pixels / kinds;

// The sum over pixels and that over neighbours have most of their products in common. In the basis of the
// discrete cosines over eight pixels, X = DCT-II of x_0 .. x_7,
//   sum of x x' = sum of X_k X_k',
//   sum of d d' = sum of l_k X_k X_k',  d = x_(i + 1) - x_i,  l_k = 2 - 2 cos(pi k/8),
// so that only the pair between one octet and the next has a product of its own: nine for eight pixels. X_1
// to X_7 are made from differences: no digit of theirs is lost on a high level. X_0 and X_4 are left smaller
// by the root of 2, so that their factors are exact: their products count twice.
constexpr double cosine_1 = 0.49039264020161522456, cosine_3 = 0.41573480615127261853,
                 cosine_5 = 0.27778511650980111237, cosine_7 = 0.09754516100806413392; ///< of i pi/16, by 2
constexpr double cosine_2 = 0.46193976625564337806, cosine_6 = 0.19134171618254488586; ///< likewise
constexpr double share_1 = 0.15224093497742648774, share_2 = 0.58578643762690495119,
                 share_3 = 1.23463313526982045654, share_5 = 2.76536686473017954346,
                 share_6 = 3.41421356237309504880, share_7 = 3.84775906502257351226; ///< l_k; l_4 is 2

/// Pixels of a block, or octets of them, counted line by line: where a band's values begin, and how they
/// lie.
struct PixelRun {
    ptrdiff_t line_stride; ///< of the band's values
    int64_t samples;       ///< of a line of the block
    int64_t first, count;
    int64_t step = 1; ///< values from one to the next

    /// f(values of a stretch within one line, its pixels, pixel of the run).
    template <class F>
    void for_stretches(const float* band, F f) const {
        int64_t line = first / samples, sample = first % samples;
        for (int64_t done = 0; done < count; ++line, sample = 0) {
            const int64_t n = std::min(samples - sample, count - done);
            f(band + line * line_stride + sample * step, n, done);
            done += n;
        }
    }
};
} // namespace
} // namespace hsi::stream
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// magnitude[i] += |x_i|: NaN and infinities stay visible, and so does a pixel that is zero in all bands.
void add_magnitudes(const float* HWY_RESTRICT x, const float* next, int64_t count,
                    float* HWY_RESTRICT magnitude) {
    const hn::CappedTag<float, 16> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        hwy::Prefetch(next + i);
        hn::StoreU(hn::Add(hn::LoadU(d, magnitude + i), hn::Abs(hn::LoadU(d, x + i))), d, magnitude + i);
    }
    for (; i < count; ++i)
        magnitude[i] += std::fabs(x[i]);
}

/// out[i] = x_i - centre for the pixels of a run with keep[i] > 0, 0 for the others.
void centre_band(const float* band, const PixelRun& run, float centre, const double* HWY_RESTRICT keep,
                 double* HWY_RESTRICT out) {
    const hn::CappedTag<double, 4> d;
    const hn::Rebind<float, decltype(d)> df;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const double c = static_cast<double>(centre);
    const auto centres = hn::Set(d, c);
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const auto wanted = hn::Gt(hn::LoadU(d, keep + at + i), hn::Zero(d));
            const auto v = hn::Sub(hn::PromoteTo(d, hn::LoadU(df, x + i)), centres);
            hn::StoreU(hn::IfThenElseZero(wanted, v), d, out + at + i);
        }
        for (; i < n; ++i)
            out[at + i] = keep[at + i] > 0 ? static_cast<double>(x[i]) - c : 0.0;
    });
}

/// The pixels of Lanes(d) octets from x on: pixel[j] has the one of each that is number j.
template <class D, class V>
HWY_INLINE void load_octets(D d, const float* HWY_RESTRICT x, V (&pixel)[octet]) {
    const hn::Rebind<float, D> df;
    hn::Vec<decltype(df)> a0, a1, a2, a3, b0, b1, b2, b3;
    hn::LoadInterleaved4(df, x, a0, a1, a2, a3);
    hn::LoadInterleaved4(df, x + 4 * hn::Lanes(d), b0, b1, b2, b3);
    const auto take = [&](int j, auto a, auto b) HWY_ATTR {
#if HWY_TARGET != HWY_SCALAR // which has no halves: there a and b are it
        if constexpr (hn::MaxLanes(D()) > 1) {
            pixel[j] = hn::PromoteTo(d, hn::ConcatEven(df, b, a));
            pixel[4 + j] = hn::PromoteTo(d, hn::ConcatOdd(df, b, a));
            return;
        }
#endif
        pixel[j] = hn::PromoteTo(d, a);
        pixel[4 + j] = hn::PromoteTo(d, b);
    };
    take(0, a0, b0);
    take(1, a1, b1);
    take(2, a2, b2);
    take(3, a3, b3);
}

/// X_1, X_3, X_5 and X_7 of octets.
template <class D, class V>
HWY_INLINE void odd_cosines(D d, const V (&x)[octet], V (&out)[kinds]) {
    const V d0 = hn::Sub(x[0], x[7]), d1 = hn::Sub(x[1], x[6]), d2 = hn::Sub(x[2], x[5]),
            d3 = hn::Sub(x[3], x[4]);
    const V c1 = hn::Set(d, cosine_1), c3 = hn::Set(d, cosine_3), c5 = hn::Set(d, cosine_5),
            c7 = hn::Set(d, cosine_7);
    out[0] = hn::MulAdd(c1, d0, hn::MulAdd(c3, d1, hn::MulAdd(c5, d2, hn::Mul(c7, d3))));
    out[1] = hn::MulSub(c3, d0, hn::MulAdd(c7, d1, hn::MulAdd(c1, d2, hn::Mul(c5, d3))));
    out[2] = hn::MulAdd(c5, d0, hn::NegMulAdd(c1, d1, hn::MulAdd(c7, d2, hn::Mul(c3, d3))));
    out[3] = hn::MulAdd(c7, d0, hn::NegMulAdd(c5, d1, hn::MulSub(c3, d2, hn::Mul(c1, d3))));
}

/// X_0 and X_4 by the root of 2, X_2 and X_6 of octets; level: eight times the band's centre.
template <class D, class V>
HWY_INLINE void even_cosines(D d, const V (&x)[octet], V level, V (&out)[kinds]) {
    const V s0 = hn::Add(x[0], x[7]), s1 = hn::Add(x[1], x[6]), s2 = hn::Add(x[2], x[5]),
            s3 = hn::Add(x[3], x[4]);
    const V outer = hn::Add(s0, s3), inner = hn::Add(s1, s2), o = hn::Sub(s0, s3), i = hn::Sub(s1, s2);
    const V c2 = hn::Set(d, cosine_2), c6 = hn::Set(d, cosine_6), quarter = hn::Set(d, 0.25);
    out[0] = hn::Mul(quarter, hn::Sub(hn::Add(outer, inner), level));
    out[1] = hn::MulAdd(c2, o, hn::Mul(c6, i));
    out[2] = hn::Mul(quarter, hn::Sub(outer, inner));
    out[3] = hn::MulSub(c6, o, hn::Mul(c2, i));
}

/// Fetches `count` values of the band that follows: it lies too far away for the processor to guess.
HWY_INLINE void fetch(const float* next, int64_t count) {
    for (int64_t i = 0; i < count; i += 16)
        hwy::Prefetch(next + i);
}

/// The odd or the even cosines of a run's octets, a quarter of `out` each; 0 where keep[i] is not positive.
/// next: how far away the next band lies.
template <bool odd>
void octet_band(const float* band, ptrdiff_t next, const PixelRun& run, float centre,
                const double* HWY_RESTRICT keep, double* HWY_RESTRICT out) {
    const auto some = [&](auto d, const float* x, int64_t at) HWY_ATTR {
        using V = hn::Vec<decltype(d)>;
        V pixel[octet], cosines[kinds];
        load_octets(d, x, pixel);
        if constexpr (odd)
            odd_cosines(d, pixel, cosines);
        else
            even_cosines(d, pixel, hn::Set(d, static_cast<double>(octet) * static_cast<double>(centre)),
                         cosines);
        const auto wanted = hn::Gt(hn::LoadU(d, keep + at), hn::Zero(d));
        for (int k = 0; k < kinds; ++k)
            hn::StoreU(hn::IfThenElseZero(wanted, cosines[k]), d, out + k * run_octets + at);
    };
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        const hn::CappedTag<double, 8> d;
        const hn::CappedTag<double, 1> one;
        const auto lanes = static_cast<int64_t>(hn::Lanes(d));
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            fetch(x + next + octet * i, octet * lanes);
            some(d, x + octet * i, at + i);
        }
        for (; i < n; ++i)
            some(one, x + octet * i, at + i);
    });
}
void even_octet_band(const float* band, ptrdiff_t next, const PixelRun& run, float centre, const double* keep,
                     double* out) {
    octet_band<false>(band, next, run, centre, keep, out);
}
void odd_octet_band(const float* band, ptrdiff_t next, const PixelRun& run, const double* keep, double* out) {
    octet_band<true>(band, next, run, 0.0f, keep, out);
}

/// out[i] = x_1 - x_0 for each eight values with keep[i] > 0, 0 for the others. Behind the last x_1 nothing
/// is looked at.
void difference_band(const float* band, ptrdiff_t next, const PixelRun& run, const double* HWY_RESTRICT keep,
                     double* HWY_RESTRICT out) {
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        for (int64_t i = 0; i < n; ++i) {
            const float* const pair = x + octet * i;
            hwy::Prefetch(pair + next);
            out[at + i] =
                keep[at + i] > 0 ? static_cast<double>(pair[1]) - static_cast<double>(pair[0]) : 0.0;
        }
    });
}

/// Of the quarters of a run, four kinds of cosines: pixels += their products, pairs += their shares of them.
template <bool odd>
HWY_INLINE void add_octets(const double* HWY_RESTRICT x, int used, int rows, int64_t count,
                           double* HWY_RESTRICT pixels, double* HWY_RESTRICT pairs) {
    using TileSums = double[tile_rows][tile_columns];
    const auto take = [&](const TileSums(&sums)[kinds], int a, int b) HWY_ATTR {
        const hn::CappedTag<double, tile_columns> d;
        const auto two = hn::Set(d, 2.0), four = hn::Set(d, 4.0);
        for (int k = 0; k < tile_rows; ++k) {
            const ptrdiff_t to = static_cast<ptrdiff_t>(a + k) * rows + b;
            for (size_t at = 0; at < tile_columns; at += hn::Lanes(d)) {
                const auto m0 = hn::LoadU(d, sums[0][k] + at), m1 = hn::LoadU(d, sums[1][k] + at),
                           m2 = hn::LoadU(d, sums[2][k] + at), m3 = hn::LoadU(d, sums[3][k] + at);
                double *const of_pixels = pixels + to + at, *const of_pairs = pairs + to + at;
                auto all = hn::Add(m1, m3), shared = all;
                if constexpr (odd) {
                    all = hn::Add(all, hn::Add(m0, m2));
                    shared = hn::MulAdd(hn::Set(d, share_5), m2, hn::Mul(hn::Set(d, share_7), m3));
                    shared = hn::MulAdd(hn::Set(d, share_3), m1, shared);
                    shared = hn::MulAdd(hn::Set(d, share_1), m0, shared);
                } else {
                    all = hn::MulAdd(two, hn::Add(m0, m2), all);
                    shared = hn::MulAdd(four, m2, hn::Mul(hn::Set(d, share_6), m3));
                    shared = hn::MulAdd(hn::Set(d, share_2), m1, shared);
                }
                hn::StoreU(hn::Add(hn::LoadU(d, of_pixels), all), d, of_pixels);
                hn::StoreU(hn::Add(hn::LoadU(d, of_pairs), shared), d, of_pairs);
            }
        }
    };
    add_products_of_parts<kinds>(x, used, rows, count, take);
}
void add_even_octets(const double* x, int used, int rows, int64_t count, double* pixels, double* pairs) {
    add_octets<false>(x, used, rows, count, pixels, pairs);
}
void add_odd_octets(const double* x, int used, int rows, int64_t count, double* pixels, double* pairs) {
    add_octets<true>(x, used, rows, count, pixels, pairs);
}

/// scatter[a * rows + b] += sum of x_a x_b for b <= a (and some b > a), over `count` pixels. x as
/// add_products() has it.
void add_scatter(const double* HWY_RESTRICT x, int used, int rows, int64_t count,
                 double* HWY_RESTRICT scatter) {
    add_products(
        x, used, rows, count, [&](const double(&sums)[tile_rows][tile_columns], int a, int b) HWY_ATTR {
            const hn::CappedTag<double, tile_columns> d;
            for (int k = 0; k < tile_rows; ++k) {
                double* HWY_RESTRICT out = scatter + static_cast<ptrdiff_t>(a + k) * rows + b;
                for (size_t at = 0; at < tile_columns; at += hn::Lanes(d))
                    hn::StoreU(hn::Add(hn::LoadU(d, out + at), hn::LoadU(d, sums[k] + at)), d, out + at);
            }
        });
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::stream {
namespace {

HWY_EXPORT(add_magnitudes);
HWY_EXPORT(centre_band);
HWY_EXPORT(even_octet_band);
HWY_EXPORT(odd_octet_band);
HWY_EXPORT(add_even_octets);
HWY_EXPORT(add_odd_octets);
HWY_EXPORT(difference_band);
HWY_EXPORT(add_scatter);

size_t at_lower(int a, int b) {
    return static_cast<size_t>(a) * (static_cast<size_t>(a) + 1) / 2 + static_cast<size_t>(b);
}

/// Rows of a run: the bands and one of ones, whose products are the bands' sums, in whole panels.
int padded(int bands) { return (bands + panel_columns) / panel_columns * panel_columns; }

constexpr int64_t block_row = covariance_block_samples;
/// Of all ranks together, in one message.
constexpr uint64_t message_bytes = uint64_t{1} << 20;

/// Zeros behind a run that does not fill the last register; returns the pixels to be added then.
int64_t end_rows(double* run, int bands, int64_t count) {
    const int64_t whole = (count + scatter_sums<double> - 1) / scatter_sums<double> * scatter_sums<double>;
    for (int b = 0; b <= bands; ++b)
        std::fill(run + b * run_pixels + count, run + b * run_pixels + whole, 0.0);
    return whole;
}

uint64_t worker_bytes(int bands, bool differences) {
    const auto rows = static_cast<uint64_t>(padded(bands));
    const auto matrices = static_cast<uint64_t>(differences ? 2 : 1);
    return matrices * (CovarianceSums::bytes(bands) + rows * rows * 8) + rows * run_pixels * 8 +
           static_cast<uint64_t>(block_row * covariance_block_lines) * (differences ? 21 : 5) +
           run_pixels * 8 + rows * 28;
}

} // namespace

MomentSums::MomentSums(int n, bool with_differences)
    : CovarianceSums(n), differences(with_differences ? at_lower(n, 0) : 0) {}

void MomentSums::add_pixels(int64_t count, const float* centre, const double* total,
                            const LowerRows& scatter) {
    std::vector<double> of_centres(centre, centre + bands);
    for (double& c : of_centres)
        c *= static_cast<double>(count); // exact: 24 and 13 bits
    sum.add(0, of_centres.data(), of_centres.size());
    sum.add(0, total, of_centres.size());
    add_products(count, centre, total, scatter);
}

void MomentSums::add_pairs(int64_t count, const LowerRows& scatter) {
    pairs += count;
    for (int a = 0; a < bands; ++a)
        differences.add(at_lower(a, 0), scatter.row(a), static_cast<size_t>(a) + 1);
}

std::vector<float> BorderColumns::meet(const Border& border, Column&& column) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_waiting.find(border);
    if (found == m_waiting.end()) {
        m_waiting.emplace(border, std::move(column));
        return {};
    }
    auto other = std::move(found->second.values);
    m_waiting.erase(found);
    return other;
}

uint64_t BorderColumns::bytes(const CubeShape& scene, const TileLimits& limits) {
    // Columns that wait for a neighbour: those of a tile, and of the one beside it.
    int64_t pixels = (limits.core_samples / block_row + 2) * 2 * limits.core_lines;
    // With several ranks a tile's neighbours may be another's: its columns then wait to the end.
    if (limits.ranks > 1 && limits.core_samples < scene.samples)
        pixels += scene.samples / limits.core_samples * 2 * scene.lines;
    return static_cast<uint64_t>(pixels) * static_cast<uint64_t>(scene.bands) * sizeof(float);
}

BorderPairs::BorderPairs(BorderColumns& columns, int64_t scene_samples, int bands, double* run,
                         double* scatter)
    : m_columns(columns), m_samples(scene_samples), m_bands(bands), m_run(run), m_scatter(scatter) {}

size_t BorderPairs::run_size(int bands) { return static_cast<size_t>(padded(bands) * run_pixels); }

size_t BorderPairs::scatter_size(int bands) {
    return static_cast<size_t>(padded(bands)) * static_cast<size_t>(padded(bands));
}

void BorderPairs::add(const CubeView<float>& block, int64_t x, int64_t y, MomentSums& sums) {
    if (x > 0) meet(block, 0, {x, y}, false, sums);
    if (x + block.samples < m_samples) meet(block, block.samples - 1, {x + block.samples, y}, true, sums);
}

void BorderPairs::meet(const CubeView<float>& block, int64_t sample, const BorderColumns::Border& border,
                       bool left, MomentSums& sums) {
    std::vector<float> column(static_cast<size_t>(m_bands) * static_cast<size_t>(block.lines));
    for (int b = 0; b < m_bands; ++b)
        for (int64_t line = 0; line < block.lines; ++line)
            column[static_cast<size_t>(b * block.lines + line)] = block.at(b, line, sample);
    auto mine = column;
    const auto other = m_columns.meet(border, {left, std::move(column)});
    if (!other.empty()) add_border(left ? mine : other, left ? other : mine, sums);
}

void BorderPairs::add_border(const std::vector<float>& left, const std::vector<float>& right,
                             MomentSums& sums) {
    const int64_t lines = static_cast<int64_t>(right.size()) / m_bands;
    const auto valid = [&](const std::vector<float>& column, int64_t line) {
        return is_valid_pixel(column.data() + line, m_bands, lines);
    };
    int64_t count = 0;
    const int64_t whole = end_rows(m_run, m_bands, lines);
    for (int64_t line = 0; line < lines; ++line) {
        const bool both = valid(left, line) && valid(right, line);
        count += both;
        for (int b = 0; b < m_bands; ++b) {
            const auto at = static_cast<size_t>(b * lines + line);
            m_run[b * run_pixels + line] =
                both ? static_cast<double>(right[at]) - static_cast<double>(left[at]) : 0.0;
        }
    }
    if (count == 0) return;
    const int rows = padded(m_bands);
    std::fill_n(m_scatter, scatter_size(m_bands), 0.0);
    HWY_DYNAMIC_DISPATCH(add_scatter)(m_run, m_bands, rows, whole, m_scatter);
    sums.add_pairs(count, {m_scatter, rows});
}

class MomentScan::ScanWorker final : public Worker {
  public:
    ScanWorker(int bands, bool with_differences, BorderColumns& columns, int64_t samples)
        : sums(bands, with_differences), m_bands(bands), m_rows(padded(bands)),
          m_with_differences(with_differences), m_run(BorderPairs::run_size(bands)),
          m_scatter(BorderPairs::scatter_size(bands)),
          m_difference_scatter(with_differences ? m_scatter.size() : 0),
          m_borders(columns, samples, bands, m_run.data(), m_difference_scatter.data()),
          m_magnitude(static_cast<size_t>(block_row)),
          m_valid(static_cast<size_t>(block_row * covariance_block_lines)),
          m_keep(static_cast<size_t>(run_pixels)), m_centre(static_cast<size_t>(bands)) {
        std::fill_n(m_run.data(), m_run.size(), 0.0);
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t y = 0; y < tile.window.h; y += covariance_block_lines)
            for (int64_t x = 0; x < tile.window.w; x += block_row) {
                const auto block = in.cut(x, y, std::min(block_row, tile.window.w - x),
                                          std::min(covariance_block_lines, tile.window.h - y));
                add_block(block);
                if (m_with_differences) m_borders.add(block, tile.window.x + x, tile.window.y + y, sums);
            }
    }

    MomentSums sums;

  private:
    void add_block(const CubeView<float>& block) {
        const int64_t pixels = block.lines * block.samples;
        const int64_t before = sums.valid, first = find_valid(block);
        if (first == pixels) return;
        for (int b = 0; b < m_bands; ++b)
            m_centre[static_cast<size_t>(b)] = block.at(b, first / block.samples, first % block.samples);
        std::fill(m_scatter.begin(), m_scatter.end(), 0.0);
        std::fill(m_difference_scatter.begin(), m_difference_scatter.end(), 0.0);
        int64_t found = 0;
        if (m_with_differences)
            found = add_octets(block);
        else
            for (int64_t from = 0; from < pixels; from += run_pixels)
                add_run(block, {block.line_stride, block.samples, from, std::min(run_pixels, pixels - from)});
        sums.add_pixels(sums.valid - before, m_centre.data(),
                        m_scatter.data() + static_cast<ptrdiff_t>(m_bands) * m_rows,
                        {m_scatter.data(), m_rows});
        if (found > 0) sums.add_pairs(found, {m_difference_scatter.data(), m_rows});
    }

    /// Which pixels of the block are valid; the first of them, or their number.
    int64_t find_valid(const CubeView<float>& block) {
        int64_t valid = 0;
        for (int64_t line = 0; line < block.lines; ++line) {
            std::fill_n(m_magnitude.begin(), block.samples, 0.0f);
            for (int b = 0; b < m_bands; ++b)
                HWY_DYNAMIC_DISPATCH(add_magnitudes)
            (block.row(b, line), block.row(std::min(b + 1, m_bands - 1), line), block.samples,
             m_magnitude.data());
            char* const row = m_valid.data() + line * block.samples;
            for (int64_t i = 0; i < block.samples; ++i) {
                row[i] = is_valid_sum(m_magnitude[static_cast<size_t>(i)], block.row(0, line) + i, m_bands,
                                      block.band_stride);
                valid += row[i];
            }
        }
        const int64_t pixels = block.lines * block.samples;
        sums.valid += valid;
        sums.invalid += pixels - valid;
        for (int b = 0; b < m_bands; ++b) {
            int64_t finite = pixels;
            if (valid < pixels) {
                finite = 0;
                for (int64_t line = 0; line < block.lines; ++line)
                    finite += std::count_if(block.row(b, line), block.row(b, line) + block.samples,
                                            [](float x) { return std::isfinite(x); });
            }
            sums.finite[static_cast<size_t>(b)] += finite;
        }
        return std::find_if(m_valid.begin(), m_valid.begin() + pixels, [](char v) { return v != 0; }) -
               m_valid.begin();
    }

    void add_run(const CubeView<float>& block, const PixelRun& run) {
        bool any = false;
        for (int64_t i = 0; i < run.count; ++i) {
            const char v = m_valid[static_cast<size_t>(run.first + i)];
            m_keep[static_cast<size_t>(i)] = v;
            any = any || v;
        }
        if (!any) return;
        const int64_t whole = end_rows(m_run.data(), m_bands, run.count);
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(centre_band)
        (block.row(b, 0), run, m_centre[static_cast<size_t>(b)], m_keep.data(),
         m_run.data() + b * run_pixels);
        std::copy_n(m_keep.begin(), run.count, m_run.data() + m_bands * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_scatter)(m_run.data(), m_bands + 1, m_rows, whole, m_scatter.data());
    }

    /// Pixels and pairs of a block; returns how many pairs. Lines are cut in octets from the block's left;
    /// pixels of octets that are not valid throughout, and what is left of a line, are added one by one.
    int64_t add_octets(const CubeView<float>& block) {
        m_single.clear();
        m_pair.clear();
        int64_t pairs = 0;
        for (int64_t line = 0; line < block.lines; ++line)
            for (int64_t sample = 0; sample < block.samples; sample += octet) {
                const int64_t first = line * block.samples + sample,
                              end = first + std::min(octet, block.samples - sample);
                if (sample + octet < block.samples) pairs += is_pair(end - 1); // with the next
                if (is_octet(block, first)) {
                    pairs += octet - 1;
                    continue;
                }
                for (int64_t at = first; at < end; ++at) {
                    if (m_valid[static_cast<size_t>(at)]) m_single.push_back(at);
                    if (at + 1 < end && is_pair(at)) m_pair.push_back(at);
                }
            }
        pairs += static_cast<int64_t>(m_pair.size());
        const int64_t per_line = block.samples / octet, octets = block.lines * per_line;
        for (int64_t from = 0; from < octets; from += run_octets)
            add_octet_run(block,
                          {block.line_stride, per_line, from, std::min(run_octets, octets - from), octet});
        // From the last pixel of an octet to the first of the next, or of what is left of the line.
        const int64_t between = (block.samples - 1) / octet, gaps = block.lines * between;
        for (int64_t from = 0; from < gaps; from += run_pixels)
            add_gap_run(block, {block.line_stride, between, from, std::min(run_pixels, gaps - from), octet});
        add_list(block, m_single, false);
        add_list(block, m_pair, true);
        return pairs;
    }

    /// Pixel `at` and the seven after it: in its line, and valid.
    bool is_octet(const CubeView<float>& block, int64_t at) const {
        const auto v = m_valid.begin() + at;
        return at % block.samples + octet <= block.samples &&
               std::all_of(v, v + octet, [](char one) { return one != 0; });
    }
    bool is_pair(int64_t at) const {
        return m_valid[static_cast<size_t>(at)] && m_valid[static_cast<size_t>(at + 1)];
    }
    /// From a band to the next; there is none after the last.
    ptrdiff_t next_of(const CubeView<float>& block, int band) const {
        return band + 1 < m_bands ? block.band_stride : 0;
    }

    void add_octet_run(const CubeView<float>& block, const PixelRun& run) {
        bool any = false;
        for (int64_t i = 0; i < run.count; ++i) {
            const int64_t number = run.first + i,
                          at = number / run.samples * block.samples + number % run.samples * run.step;
            const bool whole = is_octet(block, at);
            m_keep[static_cast<size_t>(i)] = whole;
            any = any || whole;
        }
        if (!any) return;
        int64_t whole = 0;
        for (int64_t k = 0; k < kinds; ++k)
            whole = end_rows(m_run.data() + k * run_octets, m_bands, run.count);
        // An octet's sum is four times what stands for X_0, whose products count twice.
        double* const ones = m_run.data() + m_bands * run_pixels;
        std::fill_n(ones, run_pixels, 0.0);
        for (int64_t i = 0; i < run.count; ++i)
            ones[i] = 2 * m_keep[static_cast<size_t>(i)];
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(even_octet_band)
        (block.row(b, 0), next_of(block, b), run, m_centre[static_cast<size_t>(b)], m_keep.data(),
         m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_even_octets)
        (m_run.data(), m_bands + 1, m_rows, whole, m_scatter.data(), m_difference_scatter.data());
        std::fill_n(ones, run_pixels, 0.0); // differences do not count in sums
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(odd_octet_band)
        (block.row(b, 0), next_of(block, b), run, m_keep.data(), m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_odd_octets)
        (m_run.data(), m_bands, m_rows, whole, m_scatter.data(), m_difference_scatter.data());
    }

    void add_gap_run(const CubeView<float>& block, const PixelRun& run) {
        constexpr int64_t last = octet - 1;
        bool any = false;
        for (int64_t i = 0; i < run.count; ++i) {
            const int64_t gap = run.first + i,
                          at = gap / run.samples * block.samples + gap % run.samples * run.step + last;
            const bool both = is_pair(at);
            m_keep[static_cast<size_t>(i)] = both;
            any = any || both;
        }
        if (!any) return;
        const int64_t whole = end_rows(m_run.data(), m_bands, run.count);
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(difference_band)
        (block.row(b, 0) + last, next_of(block, b), run, m_keep.data(), m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_scatter)
        (m_run.data(), m_bands, m_rows, whole, m_difference_scatter.data());
    }

    /// Pixels of a block, or pairs with the pixel to the right of each.
    void add_list(const CubeView<float>& block, const std::vector<int64_t>& list, bool pairs) {
        const auto size = static_cast<int64_t>(list.size());
        for (int64_t from = 0; from < size; from += run_pixels) {
            const int64_t count = std::min(run_pixels, size - from);
            const int64_t whole = end_rows(m_run.data(), m_bands, count);
            for (int b = 0; b < m_bands; ++b)
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t at = list[static_cast<size_t>(from + i)];
                    const float* const x = block.row(b, at / block.samples) + at % block.samples;
                    m_run[static_cast<size_t>(b * run_pixels + i)] =
                        pairs ? static_cast<double>(x[1]) - static_cast<double>(x[0])
                              : static_cast<double>(x[0]) -
                                    static_cast<double>(m_centre[static_cast<size_t>(b)]);
                }
            if (!pairs) std::fill_n(m_run.data() + m_bands * run_pixels, count, 1.0);
            HWY_DYNAMIC_DISPATCH(add_scatter)
            (m_run.data(), pairs ? m_bands : m_bands + 1, m_rows, whole,
             pairs ? m_difference_scatter.data() : m_scatter.data());
        }
    }

    const int m_bands, m_rows;
    const bool m_with_differences;
    HostBuffer<double> m_run; ///< m_rows x run_pixels; the rows beyond the ones are zero
    std::vector<double> m_scatter, m_difference_scatter; ///< of the block, m_rows x m_rows
    BorderPairs m_borders;
    std::vector<float> m_magnitude;        ///< of a line of the block
    std::vector<char> m_valid;             ///< of the block's pixels
    std::vector<double> m_keep;            ///< of a run's pixels: 1 or 0
    std::vector<int64_t> m_single, m_pair; ///< of the block: what no octet has
    std::vector<float> m_centre;
};

MomentScan::MomentScan(const CubeShape& shape, bool differences)
    : CovarianceScan(shape.bands), m_scene(shape), m_with_differences(differences),
      m_difference(differences ? at_lower(shape.bands, 0) : 0) {}

MomentScan::~MomentScan() = default;

uint64_t MomentScan::scratch_bytes(const TileLimits& limits) const {
    return worker_bytes(bands(), m_with_differences) +
           (m_with_differences ? BorderColumns::bytes(m_scene, limits) : 0);
}

/// Tiles that both lanes of a small machine keep in its last-level cache between reading and adding up.
uint64_t MomentScan::preferred_bytes() const {
    return worker_bytes(bands(), m_with_differences) + (uint64_t{8} << 20);
}

std::unique_ptr<Worker> MomentScan::start(int, const TileLimits&) {
    return std::make_unique<ScanWorker>(bands(), m_with_differences, m_columns, m_scene.samples);
}

void MomentScan::stop(Worker& worker) { merge_moments(static_cast<const ScanWorker&>(worker).sums); }

void MomentScan::merge_moments(const MomentSums& sums) {
    merge(sums);
    m_difference.add(sums.differences);
    m_pairs += sums.pairs;
}

/// Columns whose neighbours were another rank's: those right of a border go to all ranks, and the one that
/// has the left one adds up their pairs.
void MomentScan::meet_other_ranks(parallel::Group& ranks) {
    auto waiting = m_columns.take_waiting();
    MomentSums sums(bands(), true);
    std::vector<double> run(BorderPairs::run_size(bands())), scatter(BorderPairs::scatter_size(bands()));
    BorderPairs pairs(m_columns, m_scene.samples, bands(), run.data(), scatter.data());
    auto next = waiting.begin();
    const auto piece = [&] {
        BytePacker out;
        for (uint64_t bytes = 0;
             next != waiting.end() && bytes * static_cast<uint64_t>(ranks.size()) < message_bytes; ++next) {
            if (next->second.left) continue;
            out.put(next->first.first).put(next->first.second).put(next->second.values);
            bytes += next->second.values.size() * sizeof(float);
        }
        return out.take();
    };
    ranks.all_in_pieces("columns", piece, [&](int, const std::string& bytes) {
        for (ByteUnpacker in(bytes); !in.empty();) {
            BorderColumns::Border border;
            in.get(border.first);
            in.get(border.second);
            const auto right = in.one<std::vector<float>>();
            const auto mine = waiting.find(border);
            if (mine != waiting.end() && mine->second.left)
                pairs.add_border(mine->second.values, right, sums);
        }
    });
    merge_moments(sums);
}

void MomentScan::exchange(parallel::Group& ranks) {
    if (m_with_differences) {
        meet_other_ranks(ranks);
        m_pairs = ranks.sum("pairs", m_pairs);
        unite(ranks, "differences", m_difference);
    }
    CovarianceScan::exchange(ranks);
}

SceneMoments MomentScan::result() const {
    SceneMoments r;
    const int n = bands();
    const auto size = static_cast<size_t>(n);
    const auto& sums = total();
    r.bands = n;
    r.valid_pixels = sums.valid;
    r.invalid_pixels = sums.invalid;
    r.finite = sums.finite;
    r.pairs = m_pairs;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    r.mean.assign(size, nan);
    r.covariance.assign(size * size, nan);
    if (m_with_differences) r.differences.assign(size * size, nan);
    if (sums.valid == 0) return r;
    r.mean = sums.means();
    r.covariance = sums.covariance();
    if (!m_with_differences || m_pairs == 0) return r;
    for (int a = 0; a < n; ++a)
        for (int b = 0; b <= a; ++b) {
            const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
            r.differences[i * size + j] = r.differences[j * size + i] =
                m_difference.value(at_lower(a, b)) / static_cast<double>(m_pairs);
        }
    return r;
}

} // namespace hsi::stream
#endif
