// SPDX-License-Identifier: MIT
// Distributions of statistical tests, in double precision.
#pragma once

namespace hsi::math {

/// Returns P(B > x) of a beta distribution with a, b > 0; x outside of 0..1 is clamped. The relative error is
/// 1e-9, also for small probabilities. Uses the continued fraction of the incomplete beta function (M.
/// Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.5.8), evaluated as by W. J. Lentz,
/// Applied Optics 15(3), 1976. \throws Error for other a or b, or if the fraction does not converge.
double beta_tail(double x, double a, double b);

/// Returns the x with beta_tail(x, a, b) = tail (0 < tail < 1), exact to the last significant bits.
double beta_quantile_of_tail(double tail, double a, double b);

} // namespace hsi::math
