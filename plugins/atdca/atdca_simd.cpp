// SPDX-License-Identifier: MIT
#include "atdca/atdca_simd.h"

#include "core/valid_pixel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "atdca/atdca_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::atdca {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A SIMD vector has at most half a group of doubles or a whole group of floats, as in registers of AVX-512.
using DoubleTag = hn::CappedTag<double, group / 2>;
using HalfTag = hn::Rebind<float, DoubleTag>;
using FloatTag = hn::CappedTag<float, group>;

int64_t pack(const float* in, ptrdiff_t band_stride, int bands, int64_t count, float* groups, double* norm) {
    const DoubleTag dd;
    const HalfTag dh;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
    constexpr int parts = group / lanes;
    int64_t valid = 0;
    for (int64_t first = 0; first < count; first += group) {
        float* HWY_RESTRICT out = groups + first * bands;
        const int64_t present = count - first < group ? count - first : group;
        if (present == group) {
            hn::Vec<DoubleTag> sum[parts];
            for (int k = 0; k < parts; ++k)
                sum[k] = hn::Zero(dd);
            const float* x = in + first;
            for (int b = 0; b < bands; ++b, x += band_stride, out += group)
#pragma GCC unroll 8
                for (int k = 0; k < parts; ++k) {
                    const auto f = hn::LoadU(dh, x + k * lanes);
                    hn::StoreU(f, dh, out + k * lanes);
                    const auto v = hn::PromoteTo(dd, f);
                    sum[k] = hn::MulAdd(v, v, sum[k]); // v * v is exact, so fusing changes nothing
                }
            for (int k = 0; k < parts; ++k)
                hn::StoreU(sum[k], dd, norm + first + k * lanes);
        } else {
            for (int i = 0; i < group; ++i)
                norm[first + i] = 0;
            const float* x = in + first;
            for (int b = 0; b < bands; ++b, x += band_stride, out += group)
                for (int64_t i = 0; i < group; ++i) {
                    const float f = i < present ? x[i] : 0.0f;
                    out[i] = f;
                    norm[first + i] += static_cast<double>(f) * static_cast<double>(f);
                }
        }
        for (int i = 0; i < group; ++i) {
            if (is_valid_sum(norm[first + i])) {
                ++valid;
                continue;
            }
            norm[first + i] = invalid_norm;
            float* spoiled = groups + first * bands + i;
            for (int b = 0; b < bands; ++b)
                spoiled[b * group] = 0.0f; // removes NaN, which would remain in every product
        }
    }
    return valid;
}

/// The number of pixels that are multiplied with three or more vectors at a time. Half a group fills the
/// registers of AVX2. AVX-512 has registers twice as long and twice as many. There, half a group would give
/// too few sums to hide the latency of an addition.
constexpr int dots_width = hn::MaxLanes(DoubleTag()) < group / 2 ? group / 2 : group;

/// Multiplies N vectors with the pixels of a group, WIDTH pixels at a time.
template <int N, int WIDTH>
void dots_of(const float* HWY_RESTRICT one_group, int bands, const double* const* q, double* HWY_RESTRICT c) {
    const DoubleTag dd;
    const HalfTag dh;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
    constexpr int parts = WIDTH / lanes;
    const double* HWY_RESTRICT row[N];
    for (int j = 0; j < N; ++j)
        row[j] = q[j];
    for (int first = 0; first < group; first += WIDTH) {
        hn::Vec<DoubleTag> sum[N][parts];
        for (auto& s : sum)
            for (auto& v : s)
                v = hn::Zero(dd);
        const float* HWY_RESTRICT x = one_group + first;
        for (int b = 0; b < bands; ++b, x += group) {
            hn::Vec<DoubleTag> value[parts];
#pragma GCC unroll 8
            for (int k = 0; k < parts; ++k)
                value[k] = hn::PromoteTo(dd, hn::LoadU(dh, x + k * lanes));
#pragma GCC unroll 5
            for (int j = 0; j < N; ++j) {
                const auto factor = hn::Set(dd, row[j][b]);
#pragma GCC unroll 8
                for (int k = 0; k < parts; ++k)
                    sum[j][k] = hn::MulAdd(factor, value[k], sum[j][k]);
            }
        }
        for (int j = 0; j < N; ++j)
            for (int k = 0; k < parts; ++k)
                hn::StoreU(sum[j][k], dd, c + j * group + first + k * lanes);
    }
}

void dots(const float* one_group, int bands, const double* const* q, int count, double* c) {
    switch (count) {
    case 1:
        return dots_of<1, group>(one_group, bands, q, c);
    case 2:
        return dots_of<2, group>(one_group, bands, q, c);
    case 3:
        return dots_of<3, dots_width>(one_group, bands, q, c);
    case 4:
        return dots_of<4, dots_width>(one_group, bands, q, c);
    case 5:
        return dots_of<5, dots_width>(one_group, bands, q, c);
    default:
        return;
    }
}

/// Stores a float that is not less than value + error.
HWY_INLINE void store_up(hn::Vec<DoubleTag> value, hn::Vec<DoubleTag> error, float* to) {
    const DoubleTag dd;
    const HalfTag dh;
    const auto zero = hn::Zero(dd);
    // Rounding to the nearest float changes a value by at most 2^-24 of it, or by less than 2^-120 if the
    // value is tiny.
    const auto raised =
        hn::MulAdd(hn::Max(value, zero), hn::Set(dd, 1.0 + 0x1p-22), hn::Add(error, hn::Set(dd, 0x1p-120)));
    hn::StoreU(hn::DemoteTo(dh, hn::Add(raised, hn::Mul(error, hn::Set(dd, 0x1p-22)))), dh, to);
}

double subtract_squares(const double* HWY_RESTRICT c, double error, double* HWY_RESTRICT s,
                        float* HWY_RESTRICT up) {
    const DoubleTag dd;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
    const auto verror = hn::Set(dd, error);
    auto greatest = hn::Set(dd, invalid_norm);
    for (int i = 0; i < group; i += lanes) {
        const auto v = hn::LoadU(dd, c + i);
        const auto r = hn::NegMulAdd(v, v, hn::LoadU(dd, s + i));
        hn::StoreU(r, dd, s + i);
        store_up(r, verror, up + i);
        greatest = hn::Max(greatest, r);
    }
    return hn::GetLane(hn::MaxOfLanes(dd, greatest));
}

double projections(const double* HWY_RESTRICT c, const double* HWY_RESTRICT norm, bool sign, double error,
                   double* HWY_RESTRICT f, float* HWY_RESTRICT up) {
    const DoubleTag dd;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(DoubleTag()));
    const auto verror = hn::Set(dd, error), none = hn::Set(dd, invalid_norm), zero = hn::Zero(dd);
    auto greatest = none;
    for (int i = 0; i < group; i += lanes) {
        const auto v = hn::LoadU(dd, c + i);
        const auto r = hn::IfThenElse(hn::Gt(hn::LoadU(dd, norm + i), zero), sign ? v : hn::Abs(v), none);
        hn::StoreU(r, dd, f + i);
        store_up(r, verror, up + i);
        greatest = hn::Max(greatest, r);
    }
    return hn::GetLane(hn::MaxOfLanes(dd, greatest));
}

void rough_dots(const float* one_group, int bands, const float* q, float* c) {
    const FloatTag d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(FloatTag()));
    constexpr int parts = group / lanes, unroll = 4;
    hn::Vec<FloatTag> sum[unroll][parts];
    for (auto& row : sum)
        for (auto& s : row)
            s = hn::Zero(d);
    const float* HWY_RESTRICT x = one_group;
    int b = 0;
    for (; b + unroll <= bands; b += unroll, x += unroll * group)
#pragma GCC unroll 4
        for (int u = 0; u < unroll; ++u) {
            const auto factor = hn::Set(d, q[b + u]);
#pragma GCC unroll 4
            for (int k = 0; k < parts; ++k)
                sum[u][k] = hn::MulAdd(factor, hn::LoadU(d, x + u * group + k * lanes), sum[u][k]);
        }
    for (; b < bands; ++b, x += group)
        for (int k = 0; k < parts; ++k)
            sum[0][k] = hn::MulAdd(hn::Set(d, q[b]), hn::LoadU(d, x + k * lanes), sum[0][k]);
    for (int k = 0; k < parts; ++k)
        hn::StoreU(hn::Add(hn::Add(sum[0][k], sum[1][k]), hn::Add(sum[2][k], sum[3][k])), d, c + k * lanes);
}

float rough_dot(const float* a, const float* b, int count) {
    // SIMD vectors have at most eight floats here. With wider ones, AVX-512 would find other candidates than
    // AVX2, and would need other scans.
    const hn::CappedTag<float, 8> d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, 8>()));
    auto s0 = hn::Zero(d), s1 = hn::Zero(d);
    int i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
        s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
    }
    float rest = 0;
    for (; i < count; ++i)
        rest += a[i] * b[i];
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))) + rest;
}

const SimdKernels& kernels() {
    static const SimdKernels table{pack,       dots,      subtract_squares,           projections,
                                   rough_dots, rough_dot, hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::atdca
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::atdca {
HWY_EXPORT(kernels);

const SimdKernels& simd_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

} // namespace hsi::atdca
#endif
