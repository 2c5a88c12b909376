// SPDX-License-Identifier: MIT
// Elementary functions of doubles that have the same bits everywhere. The last digit of a C library's
// functions differs between its versions, between processors (with and without fused multiplication and
// addition) and between systems; results that are written to files use these functions instead. They consist
// only of additions, products, quotients and square roots, which IEEE 754 defines; none is fused.
//
// Errors in units in the last place (ulp), above the largest found (tests/math/elementary_test.cpp). Special
// values are as in the C library's functions of these names; errno and exceptions are not set. Safe to call
// from several threads.
#pragma once

namespace hsi::math {

double exp(double x); ///< 0.56 ulp; 1 ulp where the result is subnormal
double log(double x); ///< natural; 0.56 ulp

/// 2 ulp.
double log10(double x);

/// x^y for x >= 0: 1.1 ulp. NaN for a negative x.
double pow(double x, double y);

/// x in radians: 0.9 ulp for |x| <= 100,000, beyond that to 1e-15 |x|.
double sin(double x);
double cos(double x);

double asin(double x); ///< 1 ulp
double acos(double x); ///< 1.2 ulp

/// The angle of the point (x, y), in (-pi, pi]: 1.6 ulp.
double atan2(double y, double x);

/// The complementary error function: 30 ulp.
double erfc(double x);

/// The logarithm of the gamma function of x > 0, to 2e-14 of the larger of 1 and its size.
double log_gamma(double x);

} // namespace hsi::math
