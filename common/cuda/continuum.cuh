// SPDX-License-Identifier: MIT
// Computes the continuum of one pixel with one thread (math/continuum.h). The hull is a stack of indices, and
// the ratios are recomputed whenever they are needed instead of being stored. In files that are compiled with
// -fmad=false, all bits equal those of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::cuda {

/// With up to this number of bands, the hull is in a thread's local memory; with more bands, in global
/// memory.
inline constexpr int own_hull = 512;

/// A stack of indices in a thread's local memory (stride 1), or interleaved by thread in global memory.
struct HullStack {
    uint16_t* first = nullptr;
    int64_t stride = 1;
    __device__ uint16_t& operator[](int i) const { return first[i * stride]; }
};

/// The values of a pixel in a range of n bands: value i is x[band[i] * stride].
struct RangeValues {
    const float* x = nullptr; ///< the pixel's value in the first band
    int64_t stride = 0;
    const int* band = nullptr;
    const double* at = nullptr; ///< wavelengths of the n bands, rising
    int n = 0;
    __device__ double operator()(int i) const { return static_cast<double>(x[band[i] * stride]); }
};

/// Puts the hull's vertices on the stack and returns their number. Returns 0 if the first or last value is
/// not above 0, since the continuum does not exist then.
__device__ inline int upper_hull(const RangeValues& v, const HullStack& hull) {
    const double first = v(0);
    if (!(first > 0 && v(v.n - 1) > 0)) return 0;
    int count = 0;
    double xa = 0, va = 0, xb = 0, vb = 0; // wavelengths and values of the two topmost vertices of the stack
    for (int i = 0; i < v.n; ++i) {
        const double xi = v.at[i], vi = v(i);
        while (count >= 2) {
            if ((vb - va) * (xi - xa) > (vi - va) * (xb - xa)) break;
            --count;
            xb = xa;
            vb = va;
            if (count < 2) break;
            const int a = hull[count - 2];
            xa = v.at[a];
            va = v(a);
        }
        hull[count++] = static_cast<uint16_t>(i);
        if (count > 1) {
            xa = xb;
            va = vb;
        }
        xb = xi;
        vb = vi;
    }
    return count;
}

/// Calls f(i, ratio) for each band i in order. `ratio` is the value divided by the continuum, and at most 1.
/// The hull must have at least two vertices.
template <class F>
__device__ inline void for_each_ratio(const RangeValues& v, const HullStack& hull, int count, const F& f) {
    int a = 0;
    double va = v(0);
    f(0, 1.0);
    for (int k = 1; k < count; ++k) {
        const int b = hull[k];
        const double xa = v.at[a], vb = v(b), slope = (vb - va) / (v.at[b] - xa);
        for (int i = a + 1; i < b; ++i) {
            const double ratio = v(i) / (va + slope * (v.at[i] - xa));
            f(i, 1.0 < ratio ? 1.0 : ratio);
        }
        f(b, 1.0);
        a = b;
        va = vb;
    }
}

} // namespace hsi::cuda
