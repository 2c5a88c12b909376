// SPDX-License-Identifier: MIT
// The inner loops of local RX with bands x bands sums. Products and sums are in double precision, the factor
// is in single precision. The loops are compiled for every instruction set. Their results do not depend on
// the width of a register.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace hsi::detect {

/// The layout of the upper triangle of a symmetric matrix of `bands` rows, with one more column. It is stored
/// in panels of six rows. A panel begins at the column of its first row's diagonal element, and has blocks of
/// 16 columns, each stored row by row. So a panel also contains some entries left of the diagonal, and zeros
/// after the last column.
struct Triangle {
    static constexpr int rows = 6, columns = 16, block = rows * columns;
    static int panels(int bands) { return (bands + rows - 1) / rows; }
    static int blocks(int bands, int panel) { return (bands + 1 - panel * rows + columns - 1) / columns; }
    static size_t size(int bands) {
        size_t count = 0;
        for (int p = 0; p < panels(bands); ++p)
            count += static_cast<size_t>(blocks(bands, p));
        return count * block;
    }
    /// Returns the number of values to allocate for a vector of `bands` values: enough for whole panels and
    /// blocks, and some padding.
    static size_t room(int bands) { return static_cast<size_t>((bands + rows) / 16 * 16 + 48); }
};

/// The changes of the sums in one step, for pixels below each other whose windows share all but a few lines.
/// The step adds the products of a new column, and adds or subtracts products of other columns.
struct RingStep {
    /// Maximum number of pixels; 0 and 1 are a pair, 2 and 3 are a pair.
    static constexpr int pixels = 4, pairs = (pixels + 1) / 2;
    struct Part {
        const double* products; ///< a Triangle
        double sign;            ///< 1, or -1 to subtract
    };
    struct Single {
        const double* vector; ///< a vector v whose products v v' are added
        double sign;
    };
    /// The single vectors of a step. A step has at most four columns, and a pixel has at most pixels - 1
    /// lines per column that not all pixels share.
    struct Singles {
        std::array<Single, 4 * std::max(1, pixels - 1)> of{};
        int count = 0;
        void add(const Single& single) { of[static_cast<size_t>(count++)] = single; }
    };
    /// The shared vectors of the new column, `pitch` apart: first the lines of the inner squares, then the
    /// other lines. of_inner receives the products of the inner lines; of_all, which may be null, receives
    /// the products of all lines. of_all may be the memory of a part: the part's products are used first, and
    /// then replaced.
    const double* vectors = nullptr;
    ptrdiff_t pitch = 0;
    int inner = 0, outer = 0;
    double *of_inner = nullptr, *of_all = nullptr;
    /// Signs with which the products of the inner lines and of all lines are added to the sums: 1, 0 or -1
    double inner_sign = 0, all_sign = 0;
    std::array<Part, 3> parts{};
    int count = 0;
    std::array<Singles, pairs> shared{}; ///< the change of the sums of both pixels of a pair
    std::array<Singles, pixels> own{};   ///< the change of the sums of one pixel
};

struct RingKernels {
    /// Computes out[i * pitch + b] = x - centre, where pitch is Triangle::room(bands); values after the bands
    /// become zero. Adds the vectors to `sum`.
    void (*deviations)(const float* const* spectra, int count, int bands, const double* centre, double* out,
                       ptrdiff_t pitch, double* sum);
    /// Computes the new column's products, and adds them, the parts and the single vectors to the sums of
    /// `pixels` pixels, one Triangle per pixel.
    void (*slide)(int bands, const RingStep& step, double* const* sums, int pixels);
    /// Returns d'M^-1 d, where M = (sums - apart apart' / count) / (count - 1) + ridge I, by a factor in
    /// single precision and one correction of the solution y by M in double precision. Column `bands` of sums
    /// becomes d (count - 1). `factor`: memory for a Triangle, in which the rows of a panel are written one
    /// after another. work and singles: memory for twice Triangle::room(bands) values. bound: receives r'r /
    /// ridge, where r = d - M y. Apart from rounding in double precision, the result is too small by at most
    /// this bound.
    double (*solve)(int bands, double* sums, const double* apart, double count, double ridge, const double* d,
                    float* factor, double* work, float* singles, double* bound);
};

const RingKernels& ring_kernels();

} // namespace hsi::detect
