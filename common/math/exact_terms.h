// SPDX-License-Identifier: MIT
// Adds several terms to math::ExactSums at a time. Only exact_sum.cpp uses this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsi::math {

/// Returns the address of a digit (core/exact_digits.h) of the first term's sum. The same digit of the
/// following sums is stored after it.
using FindDigit = int64_t* (*)(void* sums, size_t digit);

/// Adds x[k] to sum k, one register of terms at a time. Stops before a register with a term that is not
/// finite, and before an incomplete last register. Returns the number of terms added.
size_t add_terms(const double* x, size_t count, void* sums, FindDigit find);

} // namespace hsi::math
