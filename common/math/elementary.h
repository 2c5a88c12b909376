// SPDX-License-Identifier: MIT
// Computes elementary functions of doubles with the same bits everywhere. The last digit of a C library's
// functions differs between versions, processors (with and without fused multiplication and addition) and
// systems. Results that are written to files therefore use the functions of this header. They consist only of
// additions, products, quotients and square roots, which IEEE 754 defines, without fused operations.
//
// Errors are in units in the last place (ulp), rounded up from the largest error found
// (tests/math/elementary_test.cpp). Special values are those of the C library's functions of these names. The
// functions do not set errno or exceptions, and several threads may call them.
#pragma once

namespace hsi::math {

double exp(double x); ///< Error: 0.56 ulp; 1 ulp if the result is subnormal.
double log(double x); ///< Returns the natural logarithm. Error: 0.56 ulp.

/// Returns the decimal logarithm. Error: 2 ulp.
double log10(double x);

/// Returns x^y for x >= 0 and NaN for a negative x. Error: 1.1 ulp.
double pow(double x, double y);

/// Return the sine and the cosine of x in radians. Error: 0.9 ulp for |x| <= 100,000; 1e-15 |x| beyond.
double sin(double x);
double cos(double x);

double asin(double x); ///< Error: 1 ulp.
double acos(double x); ///< Error: 1.2 ulp.

/// Returns the angle of the point (x, y) in (-pi, pi]. Error: 1.6 ulp.
double atan2(double y, double x);

/// Returns the complementary error function. Error: 30 ulp.
double erfc(double x);

/// Returns the logarithm of the gamma function of x > 0. Error: 2e-14 times the larger of 1 and |result|.
double log_gamma(double x);

} // namespace hsi::math
