// SPDX-License-Identifier: MIT
// Distributions of statistical tests, in double precision.
#pragma once

namespace hsi::math {

/// Returns the probability that a beta-distributed variable with parameters a, b > 0 exceeds x: 1 for x <= 0,
/// and 0 for x >= 1. The relative error is 1e-9, also for small probabilities. Uses the continued fraction of
/// the incomplete beta function (M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.5.8),
/// evaluated as by W. J. Lentz, Applied Optics 15(3), 1976. \throws Error for other a or b, or if the
/// fraction does not converge.
double beta_tail(double x, double a, double b);

/// Returns the x with beta_tail(x, a, b) = tail. Bisection narrows x down to a relative 1e-15, so the
/// accuracy of x is that of beta_tail(). \throws Error unless 0 < tail < 1, and as beta_tail() does.
double beta_quantile_of_tail(double tail, double a, double b);

} // namespace hsi::math
