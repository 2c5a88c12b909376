// SPDX-License-Identifier: MIT
// A fast exponential for kernels that spend most of their time on it.
#pragma once

namespace hsi::cuda {

/// Returns exp(x) for x <= 0 to within two units in the last place, and zero below -708. NaN remains NaN.
/// CUDA's exp() takes more time: it branches on rare arguments, so the compiler does not interleave several
/// calls, and their latency dominates the time.
__device__ __forceinline__ double exp_of_negative(double x) {
    const double magic = 6755399441055744.0; // 1.5 * 2^52: the low word of the sum is the rounded number
    const double shifted = fma(x, 1.4426950408889634, magic);
    const double n = shifted - magic;
    double r = fma(n, -0.6931471805599453, x);
    r = fma(n, -2.3190468138462996e-17, r);
    const double r2 = r * r, r4 = r2 * r2;
    // The Taylor series 1 + r + r^2/2! + .. + r^12/12! for |r| <= ln(2)/2.
    const double a = fma(fma(r, 1.0 / 6, 0.5), r2, r + 1.0);
    const double b = fma(fma(r, 1.0 / 5040, 1.0 / 720), r2, fma(r, 1.0 / 120, 1.0 / 24));
    const double c = fma(1.0 / 479001600, r2 * r2,
                         fma(fma(r, 1.0 / 39916800, 1.0 / 3628800), r2, fma(r, 1.0 / 362880, 1.0 / 40320)));
    const double p = fma(fma(c, r4, b), r4, a);
    const double scaled =
        __hiloint2double(__double2hiint(p) + (__double2loint(shifted) << 20), __double2loint(p));
    return x < -708.0 ? 0.0 : scaled;
}

} // namespace hsi::cuda
