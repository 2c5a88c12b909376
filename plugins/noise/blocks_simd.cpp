// SPDX-License-Identifier: MIT
// The noise of several blocks at once.
#include "noise/blocks.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "noise/blocks_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

#ifndef HSI_NOISE_BLOCK_CONSTANTS
#define HSI_NOISE_BLOCK_CONSTANTS
namespace hsi::noise {
namespace {
constexpr size_t most_lanes = 8;
/// A band's neighbours are at most two bands away, so the positions of bands in use never collide.
constexpr size_t kept_bands = 8;
} // namespace
} // namespace hsi::noise
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::noise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, most_lanes>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
constexpr D d;

/// The offsets of a block's pixels from its corner, and of the pixels above them. For the first line, the
/// second list has the pixels to the left.
struct Places {
    Places(const BlockEstimator& all, ptrdiff_t line_stride) {
        const auto place = [&](int64_t pixel) { return pixel / all.size * line_stride + pixel % all.size; };
        const int64_t first = all.method == BlockMethod::ssdc ? 1 : 0;
        for (int64_t pixel = first; pixel < all.size * all.size; ++pixel) {
            own.push_back(place(pixel));
            if (first > 0) above.push_back(place(pixel >= all.size ? pixel - all.size : pixel - 1));
        }
    }
    std::vector<ptrdiff_t> own, above;
};

/// Estimates the blocks in the lanes of one register.
class Lanes {
  public:
    Lanes(BlockEstimator& all, const CubeView<float>& in, const BlockRow& blocks, const Places& places,
          size_t first)
        : m(all), m_in(in), m_blocks(blocks), m_places(places), m_first(first),
          m_count(std::min(hn::Lanes(d), blocks.x.size() - first)), m_above(m.method == BlockMethod::ssdc),
          m_pixels(places.own.size()) {
        std::fill_n(m_band, kept_bands, -1);
    }

    void deviation(int band) {
        row(band);
        const V count = hn::Set(d, static_cast<double>(m_pixels - 1));
        put(band, hn::Sqrt(hn::Div(hn::LoadU(d, m_squares[place(band)]), count)), 0);
        put(band, hn::LoadU(d, m_means[place(band)]), 1);
    }

    void regression(int band) {
        const Neighbours& by = m.neighbours[static_cast<size_t>(band)];
        if (by.first < 0) return;
        const V zero = hn::Zero(d);
        const size_t count = m_above ? 3 : 2;
        const double* x[3] = {row(by.first), row(by.second), m_above ? above(band) : nullptr};
        const double* const y = row(band);
        const V squares[3] = {hn::LoadU(d, m_squares[place(by.first)]),
                              hn::LoadU(d, m_squares[place(by.second)]), m_above ? dot(x[2], x[2]) : zero};
        V g[3][4], length[3];
        M in = hn::Gt(hn::LoadU(d, m_squares[place(band)]), zero);
        for (size_t i = 0; i < count; ++i) {
            length[i] = hn::Sqrt(squares[i]);
            in = hn::And(in, hn::Gt(length[i], zero));
        }
        for (size_t i = 0; i < count; ++i) {
            g[i][i] = hn::Set(d, 1.0);
            for (size_t j = 0; j < i; ++j)
                g[i][j] = g[j][i] = hn::Div(dot(x[i], x[j]), hn::Mul(length[i], length[j]));
            g[i][3] = hn::Div(dot(x[i], y), length[i]);
        }
        V determinant = hn::Set(d, 1.0);
        // The matrix is positive definite, so pivoting is not needed.
        for (size_t p = 0; p < count; ++p) {
            determinant = hn::Mul(determinant, g[p][p]);
            in = hn::And(in, hn::Ge(determinant, hn::Set(d, 1e-12)));
            for (size_t i = 0; i < count; ++i) {
                if (i == p) continue;
                const V f = hn::Div(g[i][p], g[p][p]);
                for (size_t j = p; j < count; ++j)
                    g[i][j] = hn::Sub(g[i][j], hn::Mul(f, g[p][j]));
                g[i][3] = hn::Sub(g[i][3], hn::Mul(f, g[p][3]));
            }
        }
        V c[3] = {zero, zero, zero}, error = zero;
        for (size_t i = 0; i < count; ++i)
            c[i] = hn::Div(hn::Div(g[i][3], g[i][i]), length[i]);
        for (size_t p = 0; p < m_pixels; ++p) {
            V e = at(y, p);
            for (size_t i = 0; i < count; ++i)
                e = hn::Sub(e, hn::Mul(c[i], at(x[i], p)));
            error = hn::Add(error, hn::Mul(e, e));
        }
        const V free = hn::Set(d, static_cast<double>(m_pixels - count - 1));
        put(band, hn::IfThenElse(in, hn::Div(error, free), hn::Set(d, no_estimate)), 0);
        for (size_t i = 0; i < 3; ++i)
            put(band, hn::IfThenElseZero(in, hn::Mul(c[i], c[i])), i + 1);
    }

  private:
    static constexpr double no_estimate = std::numeric_limits<double>::quiet_NaN();

    static size_t place(int band) { return static_cast<size_t>(band) % kept_bands; }
    static V at(const double* row, size_t pixel) { return hn::LoadU(d, row + pixel * hn::Lanes(d)); }
    static size_t row_size(const BlockEstimator& all) {
        return static_cast<size_t>(all.size * all.size) * most_lanes;
    }
    void put(int band, V values, size_t what) {
        HWY_ALIGN double list[most_lanes] = {};
        hn::Store(values, d, list);
        for (size_t k = 0; k < m_count; ++k)
            m_blocks.said[m_first + k][band][what] = static_cast<float>(list[k]);
    }

    /// Returns the centred values of a band.
    const double* row(int band) {
        double* const to = m.rows.data() + place(band) * row_size(m);
        if (m_band[place(band)] == band) return to;
        m_band[place(band)] = band;
        take(band, m_places.own, to);
        hn::StoreU(centre(to), d, m_means[place(band)]);
        hn::StoreU(dot(to, to), d, m_squares[place(band)]);
        return to;
    }
    const double* above(int band) {
        double* const to = m.rows.data() + kept_bands * row_size(m);
        take(band, m_places.above, to);
        centre(to);
        return to;
    }
    void take(int band, const std::vector<ptrdiff_t>& places, double* HWY_RESTRICT to) const {
        const size_t lanes = hn::Lanes(d);
        for (size_t k = 0; k < lanes; ++k) {
            const size_t block = m_first + std::min(k, m_count - 1); // The last block fills the unused lanes.
            const float* const from = m_in.row(band, m_blocks.y) + m_blocks.x[block];
            for (size_t p = 0; p < m_pixels; ++p)
                to[p * lanes + k] = static_cast<double>(from[places[p]]);
        }
    }
    V centre(double* row) const {
        V sum = hn::Zero(d);
        for (size_t p = 0; p < m_pixels; ++p)
            sum = hn::Add(sum, at(row, p));
        const V mean = hn::Div(sum, hn::Set(d, static_cast<double>(m_pixels)));
        for (size_t p = 0; p < m_pixels; ++p)
            hn::StoreU(hn::Sub(at(row, p), mean), d, row + p * hn::Lanes(d));
        return mean;
    }
    V dot(const double* a, const double* b) const {
        V sum = hn::Zero(d);
        for (size_t p = 0; p < m_pixels; ++p)
            sum = hn::Add(sum, hn::Mul(at(a, p), at(b, p)));
        return sum;
    }

    BlockEstimator& m;
    const CubeView<float>& m_in;
    const BlockRow& m_blocks;
    const Places& m_places;
    const size_t m_first, m_count;
    const bool m_above;
    const size_t m_pixels;
    int m_band[kept_bands]; ///< band in each position; -1: no band
    double m_means[kept_bands][most_lanes] = {}, m_squares[kept_bands][most_lanes] = {};
};

void estimate_blocks(BlockEstimator& all, const CubeView<float>& in, const BlockRow& blocks) {
    const Places places(all, in.line_stride);
    for (size_t first = 0; first < blocks.x.size(); first += hn::Lanes(d)) {
        Lanes lanes(all, in, blocks, places, first);
        for (int b = 0; b < in.bands; ++b)
            all.method == BlockMethod::deviations ? lanes.deviation(b) : lanes.regression(b);
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::noise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::noise {

HWY_EXPORT(estimate_blocks);

uint64_t BlockEstimator::bytes(int64_t size) {
    return (kept_bands + 1) * static_cast<uint64_t>(size * size) * most_lanes * sizeof(double);
}

BlockEstimator::BlockEstimator(BlockMethod by, int64_t block, const std::vector<Neighbours>& pairs)
    : method(by), size(block), neighbours(pairs),
      rows(by == BlockMethod::none ? 0 : bytes(block) / sizeof(double)) {}

void BlockEstimator::estimate(const CubeView<float>& in, const BlockRow& blocks) {
    HWY_DYNAMIC_DISPATCH(estimate_blocks)(*this, in, blocks);
}

} // namespace hsi::noise
#endif
