// SPDX-License-Identifier: MIT
#include "math/row_products.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/row_products.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::math {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowTag = hn::ScalableTag<double>;
using RowVector = hn::Vec<RowTag>;
// 4 rows x 3 registers of pixels: twelve sums hide the latency of multiply-add.
constexpr int row_registers = 3;

constexpr int group_rows = static_cast<int>(RowPanels::group_size);

/// The number of entries per pass. The pixels of these entries stay in the first-level cache while they are
/// multiplied by all rows.
constexpr size_t stay_entries = 64;

/// results[row] = (offset of the row, or 0) + row times x. Incomplete sums are kept in `results`.
HWY_INLINE void row_sums(const RowPanels& panels, const double* offsets, const double* HWY_RESTRICT x,
                         double* HWY_RESTRICT results) {
    const RowTag d;
    const auto lanes = hn::Lanes(d), width = row_registers * lanes;
    for (size_t from = 0; from < panels.length(); from += stay_entries)
        for (size_t g = 0; g < panels.groups(); ++g) {
            const size_t to = std::min(panels.length_of(g), from + stay_entries);
            if (from > 0 && from >= to) continue;
            double* const HWY_RESTRICT result = results + g * group_rows * width;
            RowVector sum[group_rows][row_registers];
#pragma GCC unroll 4
            for (int k = 0; k < group_rows; ++k)
#pragma GCC unroll 3
                for (int r = 0; r < row_registers; ++r)
                    sum[k][r] = from > 0 ? hn::LoadU(d, result + (k * row_registers + r) * lanes)
                                         : hn::Set(d, offsets != nullptr ? offsets[g * group_rows + k] : 0.0);
            const double* HWY_RESTRICT w = panels.weights_of(g) + from * group_rows;
            const double* HWY_RESTRICT at = x + from * width;
            for (size_t b = from; b < to; ++b, w += group_rows, at += width) {
                RowVector pixel[row_registers];
#pragma GCC unroll 3
                for (int r = 0; r < row_registers; ++r)
                    pixel[r] = hn::LoadU(d, at + r * lanes);
#pragma GCC unroll 4
                for (int k = 0; k < group_rows; ++k) {
                    const RowVector weight = hn::Set(d, w[k]);
#pragma GCC unroll 3
                    for (int r = 0; r < row_registers; ++r)
                        sum[k][r] = hn::MulAdd(pixel[r], weight, sum[k][r]);
                }
            }
#pragma GCC unroll 4
            for (int k = 0; k < group_rows; ++k)
#pragma GCC unroll 3
                for (int r = 0; r < row_registers; ++r)
                    hn::StoreU(sum[k][r], d, result + (k * row_registers + r) * lanes);
        }
}

void load(const std::vector<ResampledBand>& bands, const double* scale, const double* offset, const float* in,
          ptrdiff_t stride, size_t count, double* x) {
    const RowTag d;
    const hn::Rebind<float, RowTag> half;
    const auto lanes = hn::Lanes(d), width = row_registers * lanes;
    HWY_ALIGN float padded[row_registers * hn::MaxLanes(d)] = {};
    for (const auto& band : bands) {
        for (size_t k = 0; k < band.sources.size(); ++k) {
            const size_t source = band.sources[k];
            const float* from = in + static_cast<ptrdiff_t>(source) * stride;
            if (count < width) {
                std::copy_n(from, count, padded);
                from = padded;
            }
            const double s = scale != nullptr ? scale[source] : 1, o = offset != nullptr ? offset[source] : 0;
            const RowVector weight = hn::Set(d, band.weights[k]), by = hn::Set(d, s), plus = hn::Set(d, o);
#pragma GCC unroll 3
            for (size_t i = 0; i < width; i += lanes) {
                const auto before = k > 0 ? hn::LoadU(d, x + i) : hn::Zero(d);
                const auto value = hn::MulAdd(hn::PromoteTo(d, hn::LoadU(half, from + i)), by, plus);
                hn::StoreU(hn::MulAdd(value, weight, before), d, x + i);
            }
        }
        if (count < width) std::fill(x + count, x + width, 0.0);
        x += width;
    }
}

void standardise(const double* x, const double* centre, const double* factor, size_t entries, double* z,
                 double* squares) {
    const RowTag d;
    const auto lanes = hn::Lanes(d), width = row_registers * lanes;
    RowVector sum[row_registers];
#pragma GCC unroll 3
    for (int r = 0; r < row_registers; ++r)
        sum[r] = hn::Zero(d);
    for (size_t b = 0; b < entries; ++b, x += width, z += width) {
        const RowVector c = hn::Set(d, centre[b]), f = hn::Set(d, factor[b]);
#pragma GCC unroll 3
        for (int r = 0; r < row_registers; ++r) {
            const size_t i = static_cast<size_t>(r) * lanes;
            const auto value = hn::Mul(hn::Sub(hn::LoadU(d, x + i), c), f);
            hn::StoreU(value, d, z + i);
            sum[r] = hn::MulAdd(value, value, sum[r]);
        }
    }
#pragma GCC unroll 3
    for (int r = 0; r < row_registers; ++r)
        hn::StoreU(sum[r], d, squares + static_cast<size_t>(r) * lanes);
}

void multiply(const RowPanels& panels, const double* x, double* results) {
    row_sums(panels, nullptr, x, results);
}

void sum_squares(const RowPanels& panels, const double* offsets, const double* x, double* results,
                 double* sums) {
    const RowTag d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    row_sums(panels, offsets, x, results);
    RowVector all[row_registers];
#pragma GCC unroll 3
    for (int r = 0; r < row_registers; ++r)
        all[r] = hn::Zero(d);
    for (size_t k = 0; k < panels.results(); ++k, results += row_registers * lanes)
#pragma GCC unroll 3
        for (int r = 0; r < row_registers; ++r) {
            const RowVector sum = hn::LoadU(d, results + r * lanes);
            all[r] = hn::MulAdd(sum, sum, all[r]);
        }
#pragma GCC unroll 3
    for (int r = 0; r < row_registers; ++r)
        hn::StoreU(all[r], d, sums + r * lanes);
}

template <bool squared>
void add_rows(const double* values, const double* weights, size_t rows, double* sums) {
    const RowTag d;
    const auto lanes = hn::Lanes(d), width = row_registers * lanes;
    for (size_t k = 0; k < rows; ++k) {
        const RowVector weight = hn::Set(d, weights[k]);
        for (size_t i = 0; i < width; i += lanes) {
            const auto value = hn::LoadU(d, values + k * width + i);
            hn::StoreU(hn::MulAdd(squared ? hn::Mul(value, value) : value, weight, hn::LoadU(d, sums + i)), d,
                       sums + i);
        }
    }
}

void kernels(double* values, const double* of_pixels, const double* of_rows, size_t rows, double gamma) {
    const RowTag d;
    const auto lanes = hn::Lanes(d), width = row_registers * lanes;
    const RowVector by = hn::Set(d, -gamma), minus_two = hn::Set(d, -2.0);
    for (size_t k = 0; k < rows; ++k, values += width) {
        const RowVector of_row = hn::Set(d, of_rows[k]);
        for (size_t i = 0; i < width; i += lanes) {
            const auto squared =
                hn::MulAdd(hn::LoadU(d, values + i), minus_two, hn::Add(hn::LoadU(d, of_pixels + i), of_row));
            hn::StoreU(hn::Exp(d, hn::Mul(by, hn::Max(hn::Zero(d), squared))), d, values + i);
        }
    }
}

const RowKernels& row_kernels_here() {
    static const RowKernels table{row_registers * static_cast<int>(hn::Lanes(RowTag())),
                                  load,
                                  standardise,
                                  multiply,
                                  sum_squares,
                                  add_rows<false>,
                                  add_rows<true>,
                                  kernels,
                                  hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::math
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::math {
HWY_EXPORT(row_kernels_here);

const RowKernels& row_kernels() { return HWY_DYNAMIC_DISPATCH(row_kernels_here)(); }

} // namespace hsi::math
#endif
