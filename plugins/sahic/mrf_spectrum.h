// SPDX-License-Identifier: MIT
// (H'H + I)^-1 of a plane, applied exactly to rounding, without a two-dimensional transform. An FFT along
// each line gives one tridiagonal system per frequency along the lines,
//   (3 + w) Y_j - Y_(j-1) - Y_(j+1) = R_j,   w = 2 - 2 cos(2 pi k/n),
// whose solution is a causal and an anticausal first-order filter with the pole z = (d - sqrt(d^2 - 4))/2 <=
// 0.382, d = 3 + w.
//
// Distant values along a line do not matter: 0.382^20 is 4e-9, less than the rounding of single precision. So
// a line is divided into segments. Each is extended on both sides by `reach` neighbouring values (mirrored or
// wrapped beyond the border), and the cyclic solution of a segment equals that of the line. Segments have
// equal length, and FFTs process sixteen at once, which together fit into the first-level cache. Two segments
// make a complex one: the same segment of two classes, or two segments of one class.
//
// Along the columns, a block of lines is filtered independently once the values that enter from above and
// from below are known:
//   C_j = R_j + z C_(j-1) above its first line, A_j = R_j + z A_(j+1) below its last.
// Both follow from sums that blocks compute from their own lines, in a recursion over blocks.
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

    int parts = 1;      ///< 2: real and imaginary part are the segments of two classes in turn; 1: of one
                        ///< class
    int64_t lanes = 8;  ///< complex segments of a line
    int64_t length = 0; ///< samples of a segment, a multiple of 4
    int64_t n = 0;      ///< at least length + 2 reach, a multiple of 4 without prime factors above 5
    std::vector<RadixStep> steps;
    std::vector<float> pole, gain, tail; ///< [n]: z, z/n, 1/(1 - z^2)

    SpectrumPlan() = default;
    /// Divides lines with this number of samples; without the data that `prepare()` computes.
    SpectrumPlan(int64_t samples, int classes);
    /// Uses the same division for a line that may be shorter.
    void resize(int64_t samples);
    void prepare();

    int64_t segments() const { return parts == 2 ? lanes : 2 * lanes; }
    int64_t lines() const { return width / lanes; } ///< of a batch
    int64_t extended() const {
        return (segments() - 1) * length + n;
    } ///< values of a line with its
      ///< extensions
    int64_t planes(int classes) const { return (classes + parts - 1) / parts; }
    int64_t part() const { return width * n; }           ///< [n][width]
    int64_t batch() const { return 2 * part() + width; } ///< re, im; not a power of two
    int64_t row() const { return 2 * n * lanes; }        ///< of one line: [re, im][n][lanes]
};

/// The lines of one block and plane.
struct SpectrumBlock {
    int64_t count = 0;
    float* const* line = nullptr;             ///< the position of a line's first value in its batch
    float *above = nullptr, *below = nullptr; ///< row(): incoming sums, or sums of the block
};

/// The rows of all blocks of a plane, which are replaced by the entering values.
struct SpectrumCarry {
    int64_t blocks = 0, stride = 0; ///< floats from one block's row to the next's
    float *above = nullptr, *below = nullptr;
    /// z^lines of a block, of the last one, of all; 1/(1 - z^(2 lines)), or for a wrapping border 1/(1 -
    /// z^lines).
    const float *block = nullptr, *last = nullptr, *all = nullptr, *inverse = nullptr;
    bool periodic = false;
};

struct SpectrumKernels {
    /// Copies segments to a batch, from rows[re, im][width] of extended values, and the next n values.
    void (*gather)(const SpectrumPlan& plan, const float* const rows[2][SpectrumPlan::width], float* batch);
    /// Copies the samples of segments from a batch.
    void (*scatter)(const SpectrumPlan& plan, const float* batch, float* const rows[2][SpectrumPlan::width]);
    /// Transforms in place, both without a scale.
    void (*forward)(const SpectrumPlan& plan, float* batch);
    void (*backward)(const SpectrumPlan& plan, float* batch);
    /// Replaces R by Y in place; beyond[0], beyond[1]: Y of the line above and of the line below, as in a
    /// batch.
    void (*solve)(const SpectrumPlan& plan, const SpectrumBlock& block, float* const beyond[2]);
    /// Computes above, C of the block's last line, and below, A of its first line, for a block alone.
    void (*ends)(const SpectrumPlan& plan, const SpectrumBlock& block);
    /// Computes above, C of the line above each block, and below, A of the line below it, for `count` values
    /// from `from` on.
    void (*carry)(const SpectrumCarry& rows, int64_t from, int64_t count);
};

const SpectrumKernels& spectrum_kernels();

} // namespace hsi::sahic
