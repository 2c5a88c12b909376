// SPDX-License-Identifier: MIT
// The inner loops of local RX with sums of bands x bands: products and sums in double precision, the factor
// in single. Compiled for every instruction set; the width of a register changes no bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace hsi::detect {

/// The upper triangle of a symmetric matrix of `bands` rows, with one column more: panels of six rows, in
/// each the columns from its first row on, cut into blocks of 16 columns, in each the rows one after another.
/// So a panel holds the numbers left of the diagonal, and zeros beyond the last column.
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
    /// Numbers that an additional vector has room for: whole panels and blocks of columns, and some more.
    static size_t room(int bands) { return static_cast<size_t>((bands + rows) / 16 * 16 + 48); }
};

/// A step of the sums of some pixels, one below the other, whose windows share all but a few lines: a new
/// column's products come, and those of others come or go.
struct RingStep {
    /// Pixels at most, in pairs: 0 and 1, 2 and 3.
    static constexpr int pixels = 4, pairs = (pixels + 1) / 2;
    struct Part {
        const double* products; ///< a Triangle
        double sign;            ///< 1, or -1: taken away
    };
    struct Single {
        const double* vector; ///< whose product with itself it is
        double sign;
    };
    /// A pixel has as many lines of a column, no more, that not all have; and of columns, no more than four.
    struct Singles {
        std::array<Single, 4 * std::max(1, pixels - 1)> of{};
        int count = 0;
        void add(const Single& single) { of[static_cast<size_t>(count++)] = single; }
    };
    /// The new column's shared vectors, `pitch` apart: the inner squares' lines, then those beyond them; and
    /// the place for their products (null: nowhere for the whole column's). The products of the whole column
    /// may replace a part.
    const double* vectors = nullptr;
    ptrdiff_t pitch = 0;
    int inner = 0, outer = 0;
    double *of_inner = nullptr, *of_all = nullptr;
    double inner_sign = 0, all_sign = 0; ///< the sign of their addition to the sums: 1, 0, or -1
    std::array<Part, 3> parts{};
    int count = 0;
    std::array<Singles, pairs> shared{}; ///< the addition to the sums of both pixels of a pair
    std::array<Singles, pixels> own{};   ///< and a pixel's alone
};

struct RingKernels {
    /// out[i * pitch + b] = x - centre; pitch is Triangle::room(bands), numbers beyond the bands become zero.
    /// Adds the vectors up.
    void (*deviations)(const float* const* spectra, int count, int bands, const double* centre, double* out,
                       ptrdiff_t pitch, double* sum);
    /// Makes the new column's products, and adds them, the parts and the singles to the sums of `pixels`
    /// pixels, one Triangle each.
    void (*slide)(int bands, const RingStep& step, double* const* sums, int pixels);
    /// d'M^-1 d, M = (sums - apart apart' / count) / (count - 1) + ridge I, by a factor in single precision
    /// and one correction by M in double. Column `bands` of sums becomes d (count - 1). `factor`: a Triangle,
    /// whose rows become one after another in each panel; work and singles: twice Triangle::room(bands)
    /// numbers. bound: the most by which the result is too small, without rounding of double precision: r'r /
    /// ridge, with r = d - M y.
    double (*solve)(int bands, double* sums, const double* apart, double count, double ridge, const double* d,
                    float* factor, double* work, float* singles, double* bound);
};

const RingKernels& ring_kernels();

} // namespace hsi::detect
