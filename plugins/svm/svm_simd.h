// SPDX-License-Identifier: MIT
// The inner loops of classification, compiled for several instruction sets (Highway).
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::svm {

inline constexpr int group_size = 4; ///< support vectors that are evaluated together

/// The machine as the kernel reads it: the support vectors of each class in groups of four, the last group of
/// a class filled up with vectors whose coefficients are zero.
struct Panels {
    int features = 0, classes = 0;
    double gamma = 1;
    std::vector<int64_t> group_begin; ///< [class + 1]
    std::vector<double> vectors;      ///< [group][feature][4]
    std::vector<double> squares;      ///< [group][4], |s|^2
    std::vector<double> coefficients; ///< [group][class - 1][4]
};

struct SimdKernels {
    int width; ///< pixels that are evaluated together
    /// x: [feature][width], x2: [width], sums: [class][class - 1][width], overwritten: for each class i and
    /// each other class in order, the sum of coefficient times kernel value over the support vectors of i.
    void (*class_sums)(const Panels& panels, const double* x, const double* x2, double* sums);
    const char* target;
};

const SimdKernels& simd_kernels();

} // namespace hsi::svm
