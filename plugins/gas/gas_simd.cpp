// SPDX-License-Identifier: MIT
#include "gas/gas_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gas/gas_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::gas {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
using V = hn::Vec<D>;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
HWY_INLINE V load(const double* from) { return hn::LoadU(D(), from); }
HWY_INLINE V load(const float* from) { return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<float, D>(), from)); }

constexpr int together = 8; ///< number of sum registers, which hides the latency of multiply-add

/// Computes w'x of the pixels of a block.
template <class T>
HWY_INLINE void project_block(const T* HWY_RESTRICT x, int bands, const double* HWY_RESTRICT w,
                              double* HWY_RESTRICT out) {
    const D d;
    const int64_t n = lanes();
    for (int64_t i = 0; i < block_pixels; i += together * n) {
        V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
        const T* at = x + i;
        for (int b = 0; b < bands; ++b, at += block_pixels) {
            const V v = hn::Set(d, w[b]);
            s0 = hn::MulAdd(v, load(at), s0);
            s1 = hn::MulAdd(v, load(at + n), s1);
            s2 = hn::MulAdd(v, load(at + 2 * n), s2);
            s3 = hn::MulAdd(v, load(at + 3 * n), s3);
            s4 = hn::MulAdd(v, load(at + 4 * n), s4);
            s5 = hn::MulAdd(v, load(at + 5 * n), s5);
            s6 = hn::MulAdd(v, load(at + 6 * n), s6);
            s7 = hn::MulAdd(v, load(at + 7 * n), s7);
        }
        double* to = out + i;
        hn::StoreU(s0, d, to);
        hn::StoreU(s1, d, to + n);
        hn::StoreU(s2, d, to + 2 * n);
        hn::StoreU(s3, d, to + 3 * n);
        hn::StoreU(s4, d, to + 4 * n);
        hn::StoreU(s5, d, to + 5 * n);
        hn::StoreU(s6, d, to + 6 * n);
        hn::StoreU(s7, d, to + 7 * n);
    }
}

template <class T>
HWY_INLINE void project_all(const T* x, int64_t blocks, int bands, const double* w, double* out) {
    for (int64_t k = 0; k < blocks; ++k)
        project_block(x + k * bands * block_pixels, bands, w, out + k * block_pixels);
}
void project(const float* x, int64_t blocks, int bands, const double* w, double* out) {
    project_all(x, blocks, bands, w, out);
}
void project_doubles(const double* x, int64_t blocks, int bands, const double* w, double* out) {
    project_all(x, blocks, bands, w, out);
}

/// Adds d x of a block to the sums of products.
HWY_INLINE void add_products(const float* HWY_RESTRICT x, int bands, const double* HWY_RESTRICT d,
                             double* HWY_RESTRICT products) {
    const D tag;
    const int64_t n = lanes();
    for (int b = 0; b < bands; ++b, x += block_pixels, products += sums)
        for (int64_t i = 0; i < sums; i += n) {
            V sum = hn::LoadU(tag, products + i);
            for (int64_t k = i; k < block_pixels; k += sums)
                sum = hn::MulAdd(hn::LoadU(tag, d + k), load(x + k), sum);
            hn::StoreU(sum, tag, products + i);
        }
}

void sweep(const Sweep& t) {
    const D tag;
    const int64_t n = lanes();
    const V level = hn::Set(tag, t.level), over_q = hn::Set(tag, 1 / t.q), zero = hn::Zero(tag),
            least = hn::Set(tag, 1e-9), penalty = hn::Set(tag, t.penalty);
    HWY_ALIGN double part[block_pixels];
    for (int64_t k = 0; k < t.blocks; ++k) {
        const float* const x = t.x + k * t.bands * block_pixels;
        const int64_t first = k * block_pixels;
        project_block(x, t.bands, t.w, part);
        for (int64_t i = 0; i < block_pixels; i += n) {
            const V inverse = hn::LoadU(tag, t.inverse + first + i);
            V a = hn::LoadU(tag, t.a + first + i);
            const V p = hn::Div(hn::Mul(penalty, inverse), hn::Add(a, least));
            a = hn::Max(zero, hn::Mul(hn::Mul(hn::Sub(hn::Sub(hn::LoadU(tag, part + i), level), p), inverse),
                                      over_q));
            hn::StoreU(a, tag, t.a + first + i);
            if (t.products == nullptr) continue;
            const V d = hn::Mul(hn::LoadU(tag, t.r + first + i), a);
            hn::StoreU(d, tag, part + i);
            double *const d1 = t.d + i % sums, *const d2 = t.d2 + i % sums;
            hn::StoreU(hn::Add(hn::LoadU(tag, d1), d), tag, d1);
            hn::StoreU(hn::MulAdd(d, d, hn::LoadU(tag, d2)), tag, d2);
        }
        if (t.products != nullptr) add_products(x, t.bands, part, t.products);
    }
}

void form_matrix(const double* HWY_RESTRICT covariance, ptrdiff_t pitch, int bands,
                 const double* HWY_RESTRICT c, const double* HWY_RESTRICT t, double b, double keep,
                 double* HWY_RESTRICT m) {
    const D tag;
    const int64_t n = lanes();
    const V factor = hn::Set(tag, keep);
    for (int i = 0; i < bands; ++i) {
        const double own = covariance[i * pitch + i] - 2 * c[i] * t[i] + b * t[i] * t[i];
        const V ti = hn::Set(tag, t[i]), left = hn::Set(tag, b * t[i] - c[i]);
        for (int64_t j = i; j < bands; j += n) {
            V v = hn::LoadU(tag, covariance + i * pitch + j);
            v = hn::NegMulAdd(ti, hn::LoadU(tag, c + j), v);
            v = hn::MulAdd(left, hn::LoadU(tag, t + j), v);
            hn::StoreU(hn::Mul(factor, v), tag, m + i * pitch + j);
        }
        m[i * pitch + i] = own;
    }
}

const SimdKernels& gas_table() {
    static const SimdKernels table{sweep, project, project_doubles, form_matrix, hwy::TargetName(HWY_TARGET)};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::gas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::gas {
HWY_EXPORT(gas_table);

const SimdKernels& simd_kernels() { return HWY_DYNAMIC_DISPATCH(gas_table)(); }

} // namespace hsi::gas
#endif
