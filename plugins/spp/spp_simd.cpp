// SPDX-License-Identifier: MIT
#include "spp/spp_simd.h"

#include "core/valid_pixel.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spp/spp_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::spp {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using DoubleTag = hn::ScalableTag<double>;
using HalfTag = hn::Rebind<float, DoubleTag>; // vector of as many floats as a vector has doubles

void unit_row(const float* in, ptrdiff_t in_stride, int bands, int64_t count, float* unit,
              ptrdiff_t unit_stride, float* mask, double* inverse) {
    const DoubleTag dd;
    const HalfTag dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    const int64_t whole = count - count % lanes;
    for (int64_t i = 0; i < count; ++i)
        inverse[i] = 0;
    // The norm is in double precision. In single precision, rounding errors would appear as an angle between
    // parallel spectra.
    for (int b = 0; b < bands; ++b) {
        const float* HWY_RESTRICT x = in + b * in_stride;
        int64_t i = 0;
        for (; i < whole; i += lanes) {
            const auto v = hn::PromoteTo(dd, hn::LoadU(dh, x + i));
            hn::StoreU(hn::MulAdd(v, v, hn::LoadU(dd, inverse + i)), dd, inverse + i);
        }
        for (; i < count; ++i) {
            // The operations are the same as in the vectors, and fused in the same positions. A pixel's value
            // must not depend on where its tile starts.
            const auto v = hn::Set(dd, static_cast<double>(x[i]));
            inverse[i] = hn::GetLane(hn::MulAdd(v, v, hn::Set(dd, inverse[i])));
        }
    }
    bool all_valid = true;
    for (int64_t i = 0; i < count; ++i) {
        const bool valid = is_valid_sum(inverse[i]);
        mask[i] = valid ? 1.0f : 0.0f;
        inverse[i] = valid ? 1.0 / std::sqrt(inverse[i]) : 0.0;
        all_valid = all_valid && valid;
    }
    for (int b = 0; b < bands; ++b) {
        const float* HWY_RESTRICT x = in + b * in_stride;
        float* HWY_RESTRICT u = unit + b * unit_stride;
        int64_t i = 0;
        for (; i < whole; i += lanes) {
            const auto v = hn::PromoteTo(dd, hn::LoadU(dh, x + i));
            hn::StoreU(hn::DemoteTo(dh, hn::Mul(v, hn::LoadU(dd, inverse + i))), dh, u + i);
        }
        for (; i < count; ++i)
            u[i] = static_cast<float>(static_cast<double>(x[i]) * inverse[i]);
        if (!all_valid)
            for (int64_t j = 0; j < count; ++j)
                if (mask[j] == 0.0f) u[j] = 0.0f; // NaN times zero is NaN, so the value is set.
    }
}

/// Adds the squared differences over the bands [from, to) to ROWS lines of COLUMNS adjacent neighbours. Each
/// line has one pointer, and the columns are constant offsets. Twelve pointers would not fit into the
/// registers.
template <int ROWS, int COLUMNS>
void distances_of(const float* HWY_RESTRICT centre, const float* const* neighbour, ptrdiff_t stride, int from,
                  int to, int64_t count, float* HWY_RESTRICT result, ptrdiff_t result_stride) {
    const FloatTag d;
    using V = hn::Vec<FloatTag>;
    constexpr int K = ROWS * COLUMNS;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes) {
        V sum[K];
        for (int k = 0; k < K; ++k)
            sum[k] = from == 0 ? hn::Zero(d) : hn::LoadU(d, result + k * result_stride + i);
        ptrdiff_t at = i + from * stride;
        for (int b = from; b < to; ++b, at += stride) {
            const V c = hn::LoadU(d, centre + at);
#pragma GCC unroll 2
            for (int r = 0; r < ROWS; ++r) {
                const float* HWY_RESTRICT row = neighbour[r] + at;
#pragma GCC unroll 12
                for (int k = 0; k < COLUMNS; ++k) {
                    const V difference = hn::Sub(c, hn::LoadU(d, row + k));
                    sum[r * COLUMNS + k] = hn::MulAdd(difference, difference, sum[r * COLUMNS + k]);
                }
            }
        }
        for (int k = 0; k < K; ++k)
            hn::StoreU(sum[k], d, result + k * result_stride + i);
    }
}

void distances_of_group(int rows, int columns, const float* centre, const float* const* neighbour,
                        ptrdiff_t stride, int from, int to, int64_t count, float* result,
                        ptrdiff_t result_stride) {
    switch (16 * rows + columns) {
#define HSI_GROUP(ROWS, COLUMNS)                                                                             \
    case 16 * ROWS + COLUMNS:                                                                                \
        return distances_of<ROWS, COLUMNS>(centre, neighbour, stride, from, to, count, result, result_stride)
        HSI_GROUP(1, 1);
        HSI_GROUP(1, 2);
        HSI_GROUP(1, 3);
        HSI_GROUP(1, 4);
        HSI_GROUP(1, 5);
        HSI_GROUP(1, 6);
        HSI_GROUP(1, 7);
        HSI_GROUP(1, 8);
        HSI_GROUP(1, 9);
        HSI_GROUP(1, 10);
        HSI_GROUP(1, 11);
        HSI_GROUP(1, 12);
        HSI_GROUP(2, 3);
        HSI_GROUP(2, 5);
#undef HSI_GROUP
    default:
        HWY_ABORT("a group of %d x %d neighbours", rows, columns);
    }
}

void squared_distances(const float* centre, const float* const* neighbour, int rows, int columns,
                       ptrdiff_t stride, int bands, int64_t count, float* result, ptrdiff_t result_stride) {
    // A few bands are processed at a time. Their rows stay in the first-level cache while the vectors of the
    // run pass over them, one group of columns after the other.
    constexpr int bands_at_once = 16;
    const int groups = rows > 1 ? 1 : (columns + max_group - 1) / max_group;
    for (int from = 0; from < bands; from += bands_at_once)
        for (int g = 0; g < groups; ++g) {
            const int begin = columns * g / groups, end = columns * (g + 1) / groups;
            const float* const first[2] = {neighbour[0] + begin, rows > 1 ? neighbour[1] : nullptr};
            distances_of_group(rows, end - begin, centre, first, stride, from,
                               std::min(bands, from + bands_at_once), count, result + begin * result_stride,
                               result_stride);
        }
}

void weighted_angles(const float* squared, const float* mask_a, const float* mask_b, float beta,
                     int64_t count, float* angle, float* weight) {
    const FloatTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f),
               vbeta = hn::Set(d, beta);
    for (int64_t i = 0; i < count; i += lanes) {
        const auto sine = hn::Min(one, hn::Mul(half, hn::Sqrt(hn::LoadU(d, squared + i))));
        const auto w = hn::Mul(vbeta, hn::Mul(hn::LoadU(d, mask_a + i), hn::LoadU(d, mask_b + i)));
        hn::StoreU(hn::Mul(w, hn::Mul(two, hn::Asin(d, sine))), d, angle + i);
        hn::StoreU(w, d, weight + i);
    }
}

void accumulate(const float* term, int64_t count, double* sum) {
    const DoubleTag dd;
    const HalfTag dh;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::Add(hn::LoadU(dd, sum + i), hn::PromoteTo(dd, hn::LoadU(dh, term + i))), dd, sum + i);
    for (; i < count; ++i)
        sum[i] += static_cast<double>(term[i]);
}

void displace_row(const float* in, ptrdiff_t in_stride, const float* inverse_rho, const float* centroid,
                  int bands, int64_t count, float* out, ptrdiff_t out_stride) {
    const FloatTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int b = 0; b < bands; ++b) {
        const float* HWY_RESTRICT x = in + b * in_stride;
        float* HWY_RESTRICT y = out + b * out_stride;
        const auto c = hn::Set(d, centroid[b]);
        int64_t i = 0;
        for (; i + lanes <= count; i += lanes)
            hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, x + i), c), hn::LoadU(d, inverse_rho + i), c), d,
                       y + i);
        for (; i < count; ++i)
            y[i] = hn::GetLane(hn::MulAdd(hn::Sub(hn::Set(d, x[i]), c), hn::Set(d, inverse_rho[i]), c));
    }
}

void inverse_rho(const float* alpha, int64_t count, float* inverse) {
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> df;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    const auto one = hn::Set(dd, 1.0), largest = hn::Set(dd, 3.4e38);
    const auto nothing = hn::Set(dd, std::numeric_limits<double>::quiet_NaN());
    float rest[hn::MaxLanes(df)] = {};
    for (int64_t i = 0; i < count; i += lanes) {
        const bool whole = i + lanes <= count;
        if (!whole) std::copy(alpha + i, alpha + count, rest);
        const auto a = hn::PromoteTo(dd, hn::LoadU(df, whole ? alpha + i : rest));
        const auto root = hn::Add(one, hn::Sqrt(a)); // NaN for a negative alpha
        const auto value = hn::IfThenElse(hn::Le(a, largest), hn::Div(one, hn::Mul(root, root)), nothing);
        hn::StoreU(hn::DemoteTo(df, value), df, whole ? inverse + i : rest);
        if (!whole) std::copy(rest, rest + (count - i), inverse + i);
    }
}

/// Computes alpha of hn::Lanes(dd) pixels, starting at column i of the run. Each lane does the operations of
/// a single pixel in the same order, so the grouping of pixels does not matter. Columns outside the scene are
/// left out. With more than one lane, all columns must be inside.
template <class D>
void exact_pixels(D dd, const ExactWindow& w, int64_t i, double* alpha) {
    using V = hn::Vec<D>;
    const hn::Rebind<float, D> df;
    constexpr int group = 12;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    const float* const centre = w.row[w.d] + i;
    const V centre_inverse = hn::LoadU(dd, w.inverse[w.d] + i);
    HWY_ALIGN double square[group][HWY_MAX_BYTES / sizeof(double)];
    double num[HWY_MAX_BYTES / sizeof(double)] = {}, den[HWY_MAX_BYTES / sizeof(double)] = {};

    const float* pixel[group];
    const double* inverse[group];
    double beta[group];
    int filled = 0;
    const auto flush = [&] {
        V sum[group], scale[group];
        for (int k = 0; k < filled; ++k) {
            sum[k] = hn::Zero(dd);
            scale[k] = hn::LoadU(dd, inverse[k]);
        }
        for (int b = 0; b < w.bands; ++b) {
            const ptrdiff_t at = b * w.band_stride;
            const V u = hn::Mul(hn::PromoteTo(dd, hn::LoadU(df, centre + at)), centre_inverse);
            for (int k = 0; k < filled; ++k) {
                const V v = hn::Mul(hn::PromoteTo(dd, hn::LoadU(df, pixel[k] + at)), scale[k]);
                const V difference = hn::Sub(u, v);
                sum[k] = hn::MulAdd(difference, difference, sum[k]);
            }
        }
        for (int k = 0; k < filled; ++k) {
            hn::StoreU(sum[k], dd, square[k]);
            for (int64_t j = 0; j < lanes; ++j)
                if (inverse[k][j] > 0) {
                    num[j] += beta[k] * (2.0 * math::asin(std::min(1.0, 0.5 * std::sqrt(square[k][j]))));
                    den[j] += beta[k];
                }
        }
        filled = 0;
    };
    for (int a = -w.d; a <= w.d; ++a) {
        const float* const row = w.row[a + w.d];
        if (!row) continue;
        for (int b = -w.d; b <= w.d; ++b) {
            if ((a == 0 && b == 0) || i + b < -w.left || i + b >= w.right) continue;
            pixel[filled] = row + i + b;
            inverse[filled] = w.inverse[a + w.d] + i + b;
            beta[filled] = 1.0 / (a * a + b * b);
            if (++filled == group) flush();
        }
    }
    flush();
    for (int64_t j = 0; j < lanes; ++j)
        alpha[j] = den[j] > 0 ? num[j] / den[j] : 0.0;
}

void exact_alpha(const ExactWindow& w, int64_t count, double below, double* alpha) {
    const DoubleTag dd;
    const auto lanes = static_cast<int64_t>(hn::Lanes(dd));
    for (int64_t i = 0; i < count; i += lanes) {
        const int64_t n = std::min(lanes, count - i);
        double chosen[HWY_MAX_BYTES / sizeof(double)];
        bool any = false;
        for (int64_t j = 0; j < n; ++j) {
            chosen[j] = alpha[i + j];
            any = any || alpha[i + j] < below;
        }
        if (!any) continue;
        if (n == lanes && i - w.d >= -w.left && i + lanes + w.d <= w.right) {
            exact_pixels(dd, w, i, chosen);
        } else {
            for (int64_t j = 0; j < n; ++j)
                if (alpha[i + j] < below) exact_pixels(hn::CappedTag<double, 1>(), w, i + j, chosen + j);
        }
        for (int64_t j = 0; j < n; ++j)
            if (alpha[i + j] < below) alpha[i + j] = chosen[j];
    }
}

const SimdKernels& kernels() {
    static const SimdKernels table{
        unit_row,     squared_distances, weighted_angles, accumulate,
        displace_row, inverse_rho,       exact_alpha,     hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::spp
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::spp {
HWY_EXPORT(kernels);

const SimdKernels& simd_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

} // namespace hsi::spp
#endif
