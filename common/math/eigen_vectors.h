// SPDX-License-Identifier: MIT
// Computes the two parts of an eigenproblem that take most of its time. The first is the product of the
// reflections that make a matrix tridiagonal, the second the rotations that then make it diagonal. All
// reflections or rotations are applied to one strip of numbers while the strip is in the first-level cache.
// The kernels are compiled for several instruction sets. Every number passes through the same operations as
// in a loop without vectors: one reflection or rotation after another, without fused operations.
#pragma once

#include "math/linear_algebra.h"

#include <cstddef>
#include <vector>

namespace hsi::math {

/// A rotation that replaces columns k and k + 1 of a matrix by c x_k - s x_(k+1) and s x_k + c x_(k+1).
struct PlaneRotation {
    int column = 0; ///< k in these formulas
    double c = 1, s = 0;
};

/// Returns the n x n product H_0 H_1 .. H_(n-3) of the reflections H_k = I - tau[k] v v'. The vector v has
/// the entries 0, .. 0 and a 1 at index k + 1, followed by the entries k + 2 .. n - 1 of column k of
/// `packed`, which is stored column by column. Column j of the product begins at index j * n.
std::vector<double> product_of_reflections(const double* packed, const std::vector<double>& tau, int n,
                                           const Spread& spread);

/// Applies the rotations in their order to the columns of an n x n matrix, whose column k begins at index k *
/// n.
void rotate_columns(std::vector<double>& matrix, int n, const std::vector<PlaneRotation>& rotations,
                    const Spread& spread);

} // namespace hsi::math
