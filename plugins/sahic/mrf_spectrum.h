// SPDX-License-Identifier: MIT
// Applies (H'H + I)^-1 to a plane without a two-dimensional transform. The result is exact except for
// rounding. An FFT along each line gives one tridiagonal system per frequency along the lines,
//   (3 + w) Y_j - Y_(j-1) - Y_(j+1) = R_j,   w = 2 - 2 cos(2 pi k/n).
// Its solution is a filter along the column, made of a causal and an anticausal first-order filter with the
// pole z = (d - sqrt(d^2 - 4))/2 <= 0.382, d = 3 + w.
//
// Distant values along a line have no effect: 0.382^20 is 4e-9, less than the rounding errors of single
// precision. A line is therefore divided into segments. Each segment is extended on both sides by `reach`
// neighbouring values (mirrored or wrapped beyond the border). The cyclic solution of an extended segment
// equals the solution of the line. All segments have equal length. An FFT processes sixteen segments at a
// time, which fit into the first-level cache. Two real segments form a complex segment: the same segment of
// two classes, or two segments of one class.
//
// Along the columns, a block of lines is filtered independently once the values that enter from above and
// from below are known:
//   C_j = R_j + z C_(j-1) above its first line, A_j = R_j + z A_(j+1) below its last.
// To find these values, each block first computes sums from its own lines alone (C of its last line, A of its
// first). A recursion over the blocks then gives the values that enter each block.
//
// The FFT (decimation in frequency) returns the frequencies in permuted order. They are not sorted, since no
// step depends on their order.
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::sahic {

struct SpectrumPlan {
    static constexpr int64_t reach = 20, width = 16; ///< width: number of segments in a batch
    struct RadixStep {
        int radix = 0;
        int64_t m = 0, blocks = 0; ///< number of butterflies in a block
        std::vector<float> re, im; ///< [m][radix - 1]
    };

    /// 2: the real and imaginary parts are the same segment of two classes; 1: they are two segments of one
    /// class.
    int parts = 1;
    int64_t lanes = 8;  ///< number of complex segments of a line
    int64_t length = 0; ///< number of samples in a segment, a multiple of 4
    int64_t n = 0;      ///< at least length + 2 reach, a multiple of 4 without prime factors above 5
    std::vector<RadixStep> steps;
    std::vector<float> pole, gain, tail; ///< [n]: z, z/n, 1/(1 - z^2)

    SpectrumPlan() = default;
    /// Divides lines with this number of samples into segments. prepare() computes the other data.
    SpectrumPlan(int64_t samples, int classes);
    /// Adapts the segments to a line of another, possibly smaller, number of samples. The number of segments
    /// stays the same.
    void resize(int64_t samples);
    void prepare();

    int64_t segments() const { return parts == 2 ? lanes : 2 * lanes; }
    /// Returns the number of lines in a batch.
    int64_t lines() const { return width / lanes; }
    /// Returns the number of values of a line with its extensions.
    int64_t extended() const { return (segments() - 1) * length + n; }
    int64_t planes(int classes) const { return (classes + parts - 1) / parts; }
    int64_t part() const { return width * n; } ///< [n][width]
    /// Returns the floats of a batch: real and imaginary parts, and padding so that the size is not a power
    /// of two.
    int64_t batch() const { return 2 * part() + width; }
    int64_t row() const { return 2 * n * lanes; } ///< spectrum of one line: [re, im][n][lanes]
};

/// The lines of one block and plane.
struct SpectrumBlock {
    int64_t count = 0;
    float* const* line = nullptr; ///< position of each line's first value in its batch
    /// row() values each. solve() reads the values that enter the block; ends() writes the block's own sums.
    float *above = nullptr, *below = nullptr;
};

/// The sums of all blocks of a plane, one row per block. carry() replaces the blocks' own sums by the values
/// that enter the blocks.
struct SpectrumCarry {
    /// stride: number of floats from the row of a block to the row of the next block.
    int64_t blocks = 0, stride = 0;
    float *above = nullptr, *below = nullptr;
    /// z^lines of a block, of the last block, and of all lines together. `inverse` is 1/(1 - z^(2 lines)), or
    /// 1/(1 - z^lines) for a wrapping border.
    const float *block = nullptr, *last = nullptr, *all = nullptr, *inverse = nullptr;
    bool periodic = false;
};

struct SpectrumKernels {
    /// Copies segments to a batch. rows[re, im][width] point to the first of n extended values of each
    /// segment.
    void (*gather)(const SpectrumPlan& plan, const float* const rows[2][SpectrumPlan::width], float* batch);
    /// Copies the samples of segments from a batch.
    void (*scatter)(const SpectrumPlan& plan, const float* batch, float* const rows[2][SpectrumPlan::width]);
    /// Transform in place. Neither direction scales the values.
    void (*forward)(const SpectrumPlan& plan, float* batch);
    void (*backward)(const SpectrumPlan& plan, float* batch);
    /// Replaces R by Y in place. beyond[0] and beyond[1] receive Y of the line above and of the line below,
    /// in the layout of a batch.
    void (*solve)(const SpectrumPlan& plan, const SpectrumBlock& block, float* const beyond[2]);
    /// Computes a block's own sums: `above` becomes C of its last line, and `below` A of its first line, as
    /// if nothing entered the block.
    void (*ends)(const SpectrumPlan& plan, const SpectrumBlock& block);
    /// Computes the values that enter the blocks, for `count` values of each row from `from` on: `above`
    /// becomes C of the line above each block, and `below` A of the line below each block.
    void (*carry)(const SpectrumCarry& rows, int64_t from, int64_t count);
};

const SpectrumKernels& spectrum_kernels();

} // namespace hsi::sahic
