// SPDX-License-Identifier: MIT
#include "unmix/draws_simd.h"

#include "math/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unmix/draws_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::unmix {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::CappedTag<double, 8>;
using WordTag = hn::RebindToUnsigned<Tag>;
using V = hn::Vec<Tag>;
using W = hn::Vec<WordTag>;

/// The vector version of math::PlainNumbers.
struct VectorNumbers {
    using Number = V;
    using Word = W;
    static HWY_INLINE V number(double v) { return hn::Set(Tag(), v); }
    /// Returns 2^52 + w minus 2^52, which converts the word w to a double.
    static HWY_INLINE V of_word(W w) {
        return hn::Sub(hn::BitCast(Tag(), hn::Or(w, hn::Set(WordTag(), 0x4330000000000000u))),
                       number(0x1p52));
    }
    static HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
    static HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
    static HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
    static HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
    static HWY_INLINE V root(V a) { return hn::Sqrt(a); }
    static HWY_INLINE W plus(W w, uint64_t v) { return hn::Add(w, hn::Set(WordTag(), v)); }
    static HWY_INLINE W minus(W a, W b) { return hn::Sub(a, b); }
    template <int Bits>
    static HWY_INLINE W up(W w) {
        return hn::ShiftLeft<Bits>(w);
    }
    template <int Bits>
    static HWY_INLINE W down(W w) {
        return hn::ShiftRight<Bits>(w);
    }
    static HWY_INLINE V choose(W w, V even, V odd) {
        return hn::IfThenElse(hn::RebindMask(Tag(), hn::TestBit(w, hn::Set(WordTag(), uint64_t{1}))), odd,
                              even);
    }
    static HWY_INLINE V negate(W w, V v) { return hn::Xor(v, hn::BitCast(Tag(), hn::ShiftLeft<63>(w))); }
    static HWY_INLINE W bits(V v) { return hn::BitCast(WordTag(), v); }
    static HWY_INLINE V from_bits(W w) { return hn::BitCast(Tag(), w); }
};

#include "math/normal_pair-inl.h"

/// Returns the product of the lower half of each word with `by`.
HWY_INLINE W wide_product(W w, uint32_t by) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(WordTag(), (hn::GetLane(w) & 0xFFFFFFFFu) * by);
#else
    const hn::Repartition<uint32_t, WordTag> halves;
    return hn::MulEven(hn::BitCast(halves, w), hn::Set(halves, by));
#endif
}

/// Computes math::philox() for a vector of counters. Before the last round, the upper halves of the words are
/// undefined.
HWY_INLINE void philox_words(W c0, W c1, W c2, W c3, uint64_t key, W (&words)[4]) {
    const WordTag d;
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < math::philox_rounds; ++round) {
        const W a = wide_product(c0, math::philox_multipliers[0]),
                b = wide_product(c2, math::philox_multipliers[1]);
        c0 = hn::Xor(hn::ShiftRight<32>(b), hn::Xor(c1, hn::Set(d, uint64_t{k0})));
        c1 = b;
        c2 = hn::Xor(hn::ShiftRight<32>(a), hn::Xor(c3, hn::Set(d, uint64_t{k1})));
        c3 = a;
        k0 += math::philox_key_steps[0];
        k1 += math::philox_key_steps[1];
    }
    const W low = hn::Set(d, uint64_t{0xFFFFFFFF});
    words[0] = hn::And(c0, low);
    words[1] = hn::And(c1, low);
    words[2] = hn::And(c2, low);
    words[3] = hn::And(c3, low);
}

void add_noise(const double* HWY_RESTRICT values, const double* HWY_RESTRICT sigma, int bands, uint32_t draw,
               uint64_t seed, uint64_t first, double* HWY_RESTRICT noisy, double* HWY_RESTRICT squared) {
    const Tag d;
    const WordTag words;
    const size_t lanes = hn::Lanes(d);
    for (size_t i = 0; i < draw_pixels; i += lanes) {
        HWY_ALIGN uint64_t numbers[8];
        for (size_t k = 0; k < lanes; ++k)
            numbers[k] = first + i + k;
        const W pixel = hn::Load(words, numbers), high = hn::ShiftRight<32>(pixel);
        V sum = hn::Zero(d);
        for (int b = 0; b < bands; b += 4) {
            W w[4];
            philox_words(hn::Set(words, static_cast<uint64_t>(b / 4)),
                         hn::Set(words, uint64_t{noise_of_draw + draw}), pixel, high, seed, w);
            V z[4];
            normal_pair<VectorNumbers>(w[0], w[1], z[0], z[1]);
            normal_pair<VectorNumbers>(w[2], w[3], z[2], z[3]);
            for (int k = 0; k < 4 && b + k < bands; ++k) {
                const size_t at = static_cast<size_t>(b + k) * draw_pixels + i;
                const V x = hn::Add(hn::LoadU(d, values + at), hn::Mul(hn::LoadU(d, sigma + at), z[k]));
                hn::StoreU(x, d, noisy + at);
                sum = hn::Add(sum, hn::Mul(x, x));
            }
        }
        hn::StoreU(sum, d, squared + i);
    }
}

/// Multiplies K spectra with two vectors of pixels. The K x 2 sums stay in registers.
template <size_t K>
HWY_INLINE void multiply_some(const double* HWY_RESTRICT x, int bands, const double* const* spectra,
                              double* HWY_RESTRICT products) {
    const Tag d;
    const size_t lanes = hn::Lanes(d);
    V low[K], high[K];
    for (size_t k = 0; k < K; ++k)
        low[k] = high[k] = hn::Zero(d);
    for (int b = 0; b < bands; ++b, x += draw_pixels) {
        const V x0 = hn::LoadU(d, x), x1 = hn::LoadU(d, x + lanes);
#pragma GCC unroll 4
        for (size_t k = 0; k < K; ++k) {
            const V e = hn::Set(d, spectra[k][b]);
            low[k] = hn::Add(low[k], hn::Mul(e, x0));
            high[k] = hn::Add(high[k], hn::Mul(e, x1));
        }
    }
    for (size_t k = 0; k < K; ++k) {
        hn::StoreU(low[k], d, products + k * draw_pixels);
        hn::StoreU(high[k], d, products + k * draw_pixels + lanes);
    }
}

void multiply(const double* HWY_RESTRICT x, int bands, const double* const* spectra, size_t count,
              double* HWY_RESTRICT products) {
    const size_t step = 2 * hn::Lanes(Tag());
    for (size_t i = 0; i < draw_pixels; i += step) {
        size_t k = 0;
        for (; k + 4 <= count; k += 4)
            multiply_some<4>(x + i, bands, spectra + k, products + k * draw_pixels + i);
        for (; k + 2 <= count; k += 2)
            multiply_some<2>(x + i, bands, spectra + k, products + k * draw_pixels + i);
        if (k < count) multiply_some<1>(x + i, bands, spectra + k, products + k * draw_pixels + i);
    }
}

} // namespace HWY_NAMESPACE
} // namespace hsi::unmix
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::unmix {
namespace {
HWY_EXPORT(add_noise);
HWY_EXPORT(multiply);
} // namespace

const DrawKernels& draw_kernels() {
    static const DrawKernels kernels{
        [](const double* values, const double* sigma, int bands, uint32_t draw, uint64_t seed, uint64_t first,
           double* noisy, double* squared) {
            HWY_DYNAMIC_DISPATCH(add_noise)(values, sigma, bands, draw, seed, first, noisy, squared);
        },
        [](const double* x, int bands, const double* const* spectra, size_t count, double* products) {
            HWY_DYNAMIC_DISPATCH(multiply)(x, bands, spectra, count, products);
        }};
    return kernels;
}

} // namespace hsi::unmix
#endif
