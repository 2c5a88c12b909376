// SPDX-License-Identifier: MIT
// The inner loop of math::ExactSums, for private use of exact_sum.cpp: several terms at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::math {

/// Digits of neighbouring sums: of a digit (core/exact_digits.h) the place of the first term's sum.
using FindDigit = int64_t* (*)(void* sums, size_t digit);

/// Adds x[k] to sum k in whole registers, up to a register with a term that is not finite; returns how many
/// terms were added.
size_t add_terms(const double* x, size_t count, void* sums, FindDigit find);

} // namespace hsi::math
