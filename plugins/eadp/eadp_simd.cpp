// SPDX-License-Identifier: MIT
#include "eadp/eadp_simd.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eadp/eadp_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::eadp {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool first>
void sweep_rows(const T* HWY_RESTRICT prev, const T* up, const T* mid, const T* down,
                const T* HWY_RESTRICT east, const T* HWY_RESTRICT south, const T* HWY_RESTRICT north,
                int64_t count, T* HWY_RESTRICT out) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes) {
        const auto c = hn::LoadU(d, mid + i);
        auto flux = hn::Mul(hn::LoadU(d, east + i), hn::Sub(hn::LoadU(d, mid + i + 1), c));
        flux = hn::MulAdd(hn::LoadU(d, east + i - 1), hn::Sub(hn::LoadU(d, mid + i - 1), c), flux);
        flux = hn::MulAdd(hn::LoadU(d, south + i), hn::Sub(hn::LoadU(d, down + i), c), flux);
        flux = hn::MulAdd(hn::LoadU(d, north + i), hn::Sub(hn::LoadU(d, up + i), c), flux);
        if (first)
            hn::StoreU(hn::MulAdd(hn::Set(d, T(0.5)), flux, c), d, out + i);
        else
            hn::StoreU(hn::Add(hn::MulSub(hn::Set(d, T(2)), c, hn::LoadU(d, prev + i)), flux), d, out + i);
    }
}

template <class T>
void sweep(const T* prev, const T* up, const T* mid, const T* down, const T* east, const T* south,
           const T* north, int64_t count, bool first, T* out) {
    if (first)
        sweep_rows<T, true>(prev, up, mid, down, east, south, north, count, out);
    else
        sweep_rows<T, false>(prev, up, mid, down, east, south, north, count, out);
}
void sweep_float(const float* prev, const float* up, const float* mid, const float* down, const float* east,
                 const float* south, const float* north, int64_t count, bool first, float* out) {
    sweep<float>(prev, up, mid, down, east, south, north, count, first, out);
}
void sweep_double(const double* prev, const double* up, const double* mid, const double* down,
                  const double* east, const double* south, const double* north, int64_t count, bool first,
                  double* out) {
    sweep<double>(prev, up, mid, down, east, south, north, count, first, out);
}

template <int N, class T>
void accumulate_rows(const T* const* rows, const T* coefficient, int64_t count, bool fresh,
                     T* HWY_RESTRICT sum) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const T* HWY_RESTRICT row[N];
    hn::Vec<decltype(d)> a[N];
    for (int j = 0; j < N; ++j) {
        row[j] = rows[j];
        a[j] = hn::Set(d, coefficient[j]);
    }
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        auto s = fresh ? hn::Zero(d) : hn::LoadU(d, sum + i);
#pragma GCC unroll 9
        for (int j = 0; j < N; ++j)
            s = hn::MulAdd(a[j], hn::LoadU(d, row[j] + i), s);
        hn::StoreU(s, d, sum + i);
    }
    for (; i < count; ++i) { // The remaining elements use the same operations as the vectors.
        auto s = hn::Set(d, fresh ? T(0) : sum[i]);
        for (int j = 0; j < N; ++j)
            s = hn::MulAdd(a[j], hn::Set(d, row[j][i]), s);
        sum[i] = hn::GetLane(s);
    }
}

template <class T>
void accumulate(const T* const* rows, const T* coefficient, int n, int64_t count, bool fresh, T* sum) {
    switch (n) {
#define HSI_ROWS(N)                                                                                          \
    case N:                                                                                                  \
        return accumulate_rows<N, T>(rows, coefficient, count, fresh, sum)
        HSI_ROWS(1);
        HSI_ROWS(2);
        HSI_ROWS(3);
        HSI_ROWS(4);
        HSI_ROWS(5);
        HSI_ROWS(6);
        HSI_ROWS(7);
        HSI_ROWS(8);
        HSI_ROWS(9);
#undef HSI_ROWS
    default:
        return;
    }
}
void accumulate_float(const float* const* rows, const float* a, int n, int64_t count, bool fresh,
                      float* sum) {
    accumulate<float>(rows, a, n, count, fresh, sum);
}
void accumulate_double(const double* const* rows, const double* a, int n, int64_t count, bool fresh,
                       double* sum) {
    accumulate<double>(rows, a, n, count, fresh, sum);
}

// The loops of the setup are plain. The compiler vectorises them for each instruction set without fused
// operations, so their results are bitwise equal on all processors.

void smooth_row(const double* HWY_RESTRICT in, const double* HWY_RESTRICT weights, int radius, int64_t count,
                double* HWY_RESTRICT out) {
    const double w0 = weights[0];
    for (int64_t i = 0; i < count; ++i)
        out[i] = w0 * in[i];
    for (int t = 1; t <= radius; ++t) {
        const double w = weights[t];
        for (int64_t i = 0; i < count; ++i)
            out[i] = out[i] + w * (in[i - t] + in[i + t]);
    }
}

void smooth_column(const double* const* rows, const double* HWY_RESTRICT weights, int radius, int64_t count,
                   double* HWY_RESTRICT out) {
    const double w0 = weights[0];
    const double* HWY_RESTRICT centre = rows[radius];
    for (int64_t i = 0; i < count; ++i)
        out[i] = w0 * centre[i];
    for (int t = 1; t <= radius; ++t) {
        const double w = weights[t];
        const double* above = rows[radius - t];
        const double* below = rows[radius + t];
        for (int64_t i = 0; i < count; ++i)
            out[i] = out[i] + w * (above[i] + below[i]);
    }
}

void divide(const double* HWY_RESTRICT numerator, const double* HWY_RESTRICT denominator,
            const double* HWY_RESTRICT valid, int64_t count, double* HWY_RESTRICT out) {
    for (int64_t i = 0; i < count; ++i)
        out[i] = valid[i] != 0 ? numerator[i] / denominator[i] : 0.0;
}

void scharr(const double* const* smooth, const double* const* valid, int64_t count,
            double* HWY_RESTRICT squared) {
    const double *up = smooth[0], *mid = smooth[1], *down = smooth[2];
    const double *vu = valid[0], *vm = valid[1], *vd = valid[2];
    for (int64_t i = 0; i < count; ++i) {
        const double c = mid[i];
        const double ul = vu[i - 1] != 0 ? up[i - 1] : c, u = vu[i] != 0 ? up[i] : c,
                     ur = vu[i + 1] != 0 ? up[i + 1] : c;
        const double l = vm[i - 1] != 0 ? mid[i - 1] : c, r = vm[i + 1] != 0 ? mid[i + 1] : c;
        const double dl = vd[i - 1] != 0 ? down[i - 1] : c, dn = vd[i] != 0 ? down[i] : c,
                     dr = vd[i + 1] != 0 ? down[i + 1] : c;
        const double gx = (3.0 * ((ur - ul) + (dr - dl)) + 10.0 * (r - l)) * 0.03125;
        const double gy = (3.0 * ((dl - ul) + (dr - ur)) + 10.0 * (dn - u)) * 0.03125;
        squared[i] = gx * gx + gy * gy;
    }
}

double maximum(const double* HWY_RESTRICT squared, const double* HWY_RESTRICT valid, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const double m = valid[i] != 0 ? squared[i] : 0.0;
        largest = m > largest ? m : largest;
    }
    return largest;
}

void diffusivity(const double* HWY_RESTRICT squared, double k2, Diffusivity kind, int64_t count,
                 double* HWY_RESTRICT g) {
    switch (kind) {
    case Diffusivity::g1:
        for (int64_t i = 0; i < count; ++i)
            g[i] = math::exp(-(squared[i] / k2));
        break;
    case Diffusivity::g2:
        for (int64_t i = 0; i < count; ++i)
            g[i] = k2 / (k2 + squared[i]);
        break;
    case Diffusivity::g3:
        for (int64_t i = 0; i < count; ++i) {
            const double q = squared[i] / k2, q4 = (q * q) * (q * q);
            g[i] = q4 > 0 ? 1.0 - math::exp(-3.31488 / q4) : 1.0;
        }
        break;
    }
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace hsi::eadp
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::eadp {
namespace {
HWY_EXPORT(sweep_float);
HWY_EXPORT(sweep_double);
HWY_EXPORT(accumulate_float);
HWY_EXPORT(accumulate_double);
HWY_EXPORT(smooth_row);
HWY_EXPORT(smooth_column);
HWY_EXPORT(divide);
HWY_EXPORT(scharr);
HWY_EXPORT(maximum);
HWY_EXPORT(diffusivity);
HWY_EXPORT(target);
} // namespace

// The first call detects the instruction sets of this processor. HWY_DYNAMIC_DISPATCH then selects the
// function.
const char* simd_target() {
    static const char* const name = HWY_DYNAMIC_DISPATCH(target)();
    return name;
}

template <>
const SweepKernels<float>& sweep_kernels<float>() {
    simd_target();
    static const SweepKernels<float> kernels{HWY_DYNAMIC_DISPATCH(sweep_float),
                                             HWY_DYNAMIC_DISPATCH(accumulate_float)};
    return kernels;
}

template <>
const SweepKernels<double>& sweep_kernels<double>() {
    simd_target();
    static const SweepKernels<double> kernels{HWY_DYNAMIC_DISPATCH(sweep_double),
                                              HWY_DYNAMIC_DISPATCH(accumulate_double)};
    return kernels;
}

const SetupKernels& setup_kernels() {
    simd_target();
    static const SetupKernels kernels{HWY_DYNAMIC_DISPATCH(smooth_row), HWY_DYNAMIC_DISPATCH(smooth_column),
                                      HWY_DYNAMIC_DISPATCH(divide),     HWY_DYNAMIC_DISPATCH(scharr),
                                      HWY_DYNAMIC_DISPATCH(maximum),    HWY_DYNAMIC_DISPATCH(diffusivity)};
    return kernels;
}

} // namespace hsi::eadp
#endif
