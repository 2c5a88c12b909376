// SPDX-License-Identifier: MIT
// (H'H + I)^-1 of a plane, applied exactly to rounding, without a two-dimensional transform: an FFT along
// each line turns it into one tridiagonal system a frequency along the lines,
//   (3 + w) Y_j - Y_(j-1) - Y_(j+1) = R_j,   w = 2 - 2 cos(2 pi k/n),
// whose solution is a causal and an anticausal first-order filter with the pole
// z = (d - sqrt(d^2 - 4))/2 <= 0.382, d = 3 + w.
//
// Distant values along a line do not count: 0.382^20 is 4e-9, under the rounding of single precision. So a
// line is cut into segments, each continued on both sides by `reach` of the neighbouring values (beyond the
// border mirrored or wrapped ones), and a segment's cyclic solution is the line's. Segments have the same
// length, and FFTs go through sixteen at once, which fit the first-level cache together. Two of them make a
// complex one: the same segment of two classes, or two segments of one class.
//
// Along the lines, a block of them filters by itself once it knows the values that enter from above and from
// below:
//   C_j = R_j + z C_(j-1) above its first line, A_j = R_j + z A_(j+1) below its last.
// Both follow from sums that blocks make of their own lines, in a recursion over blocks.
//
// Frequencies are in the order in which decimation in frequency leaves them, since no step depends on it.
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::sahic {

struct SpectrumPlan {
    static constexpr int64_t reach = 20, width = 16; ///< width: segments of a batch
    struct RadixStep {
        int radix = 0;
        int64_t m = 0, blocks = 0; ///< butterflies of a block
        std::vector<float> re, im; ///< [m][radix - 1]
    };

    int parts = 1;      ///< 2: the segments of two classes in turn are real and imaginary part; 1: of one
    int64_t lanes = 8;  ///< complex segments of a line
    int64_t length = 0; ///< samples of a segment, a multiple of 4
    int64_t n = 0;      ///< at least length + 2 reach, a multiple of 4 without prime factors above 5
    std::vector<RadixStep> steps;
    std::vector<float> pole, gain, tail; ///< [n]: z, z/n, 1/(1 - z^2)

    SpectrumPlan() = default;
    /// The division of lines of so many samples; without the data that `prepare()` makes.
    SpectrumPlan(int64_t samples, int classes);
    /// The same cut for a line that may be shorter.
    void resize(int64_t samples);
    void prepare();

    int64_t segments() const { return parts == 2 ? lanes : 2 * lanes; }
    int64_t lines() const { return width / lanes; }                    ///< of a batch
    int64_t extended() const { return (segments() - 1) * length + n; } ///< values of a line with its ends
    int64_t planes(int classes) const { return (classes + parts - 1) / parts; }
    int64_t part() const { return width * n; }           ///< [n][width]
    int64_t batch() const { return 2 * part() + width; } ///< re, im; no power of two
    int64_t row() const { return 2 * n * lanes; }        ///< of one line: [re, im][n][lanes]
};

/// Lines of one block and plane.
struct SpectrumBlock {
    int64_t count = 0;
    float* const* line = nullptr;             ///< the place of a line's first value in its batch
    float *above = nullptr, *below = nullptr; ///< row(): incoming sums, or sums of the block
};

/// Rows of all blocks of a plane, which are replaced by the entering values.
struct SpectrumCarry {
    int64_t blocks = 0, stride = 0; ///< floats from one block's row to the next's
    float *above = nullptr, *below = nullptr;
    /// z^lines of a block, of the last one, of all; 1/(1 - z^(2 lines)), or wrapping round 1/(1 - z^lines).
    const float *block = nullptr, *last = nullptr, *all = nullptr, *inverse = nullptr;
    bool periodic = false;
};

struct SpectrumKernels {
    /// Segments to a batch, from rows[re, im][width] of extended values, and n values on.
    void (*gather)(const SpectrumPlan& plan, const float* const rows[2][SpectrumPlan::width], float* batch);
    /// The samples of segments from a batch.
    void (*scatter)(const SpectrumPlan& plan, const float* batch, float* const rows[2][SpectrumPlan::width]);
    /// In place, both without a scale.
    void (*forward)(const SpectrumPlan& plan, float* batch);
    void (*backward)(const SpectrumPlan& plan, float* batch);
    /// R to Y in place; beyond[0], beyond[1]: Y of the line above and of the line below, as in a batch.
    void (*solve)(const SpectrumPlan& plan, const SpectrumBlock& block, float* const beyond[2]);
    /// above: C of the block's last line and below: A of its first, were there nothing but the block.
    void (*ends)(const SpectrumPlan& plan, const SpectrumBlock& block);
    /// above: C of the line above each block and below: A of the line below it, for `count` values from
    /// `from` on.
    void (*carry)(const SpectrumCarry& rows, int64_t from, int64_t count);
};

const SpectrumKernels& spectrum_kernels();

} // namespace hsi::sahic
