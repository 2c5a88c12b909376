// SPDX-License-Identifier: MIT
#include "synth/values_simd.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "synth/values_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::synth::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;

/// Returns nearly normal numbers with mean 0 and variance 1. First, four 16-bit uniform numbers are added
/// (excess kurtosis -0.3). Then the first Cornish-Fisher correction x + (x^3 - 3x)/80 is applied, which
/// brings the fourth moment to within a few per cent of the normal distribution's. The arithmetic is in
/// integers until the conversion, so each processor computes the same bits.
template <class VU>
HWY_INLINE hn::Vec<F> noise(VU low, VU high, VU key1, VU key2) {
    const F f;
    const U u;
    const I s;
    // h1 and h2: two rounds of multiplication and folding of the pixel's 64-bit hash and the band's keys
    auto h1 = hn::Xor(low, key1);
    h1 = hn::Mul(hn::Xor(h1, hn::ShiftRight<16>(h1)), hn::Set(u, 0x7feb352du));
    h1 = hn::Mul(hn::Xor(h1, hn::ShiftRight<15>(h1)), hn::Set(u, 0x846ca68bu));
    h1 = hn::Xor(h1, hn::ShiftRight<16>(h1));
    auto h2 = hn::Xor(hn::Add(high, key2), h1);
    h2 = hn::Mul(hn::Xor(h2, hn::ShiftRight<16>(h2)), hn::Set(u, 0x9e3779b1u));
    h2 = hn::Xor(h2, hn::ShiftRight<15>(h2));
    const auto mask = hn::Set(u, 0xffffu);
    const auto sum = hn::Add(hn::Add(hn::And(h1, mask), hn::ShiftRight<16>(h1)),
                             hn::Add(hn::And(h2, mask), hn::ShiftRight<16>(h2)));
    const auto centred = hn::Sub(hn::BitCast(s, sum), hn::Set(s, 2 * 65535));
    const auto x = hn::Mul(hn::ConvertTo(f, centred), hn::Set(f, 2.642911e-5f)); // sqrt(3)/65536
    // (0.9625 + 0.0125 x^2) x, divided by its standard deviation sqrt(0.993083)
    const auto c = hn::Add(hn::Set(f, 0.965846f), hn::Mul(hn::Set(f, 0.01254346f), hn::Mul(x, x)));
    return hn::Mul(x, c);
}

void Values(const RunInput& in, float* HWY_RESTRICT dst, ptrdiff_t band_stride) {
    const F f;
    const U u;
    const size_t n = hn::Lanes(f);
    constexpr size_t unroll = 4;
    const size_t step = unroll * n; // The step divides run_pixels for every vector of up to 4096 bits.
    alignas(64) float tail[run_pixels];
    const size_t whole = in.pixels - in.pixels % step;
    for (int b = 0; b < in.bands; ++b) {
        const float* e = in.spectra + static_cast<size_t>(b) * static_cast<size_t>(in.active);
        const BandModel& model = in.model[b];
        const auto key1 = hn::Set(u, model.key1), key2 = hn::Set(u, model.key2);
        const auto sigma = hn::Set(f, model.sigma);
        float* out = dst + b * band_stride;
        for (size_t x = 0; x < in.pixels; x += step) {
            auto v0 = hn::Zero(f), v1 = v0, v2 = v0, v3 = v0;
            // Multiplications and additions are separate, because fused operations would make the bits depend
            // on the processor.
            for (int k = 0; k < in.active; ++k) {
                const float* a = in.abundance[k] + x;
                const auto ek = hn::Set(f, e[k]);
                v0 = hn::Add(v0, hn::Mul(hn::Load(f, a), ek));
                v1 = hn::Add(v1, hn::Mul(hn::Load(f, a + n), ek));
                v2 = hn::Add(v2, hn::Mul(hn::Load(f, a + 2 * n), ek));
                v3 = hn::Add(v3, hn::Mul(hn::Load(f, a + 3 * n), ek));
            }
            const auto add = [&](size_t at) {
                return hn::Mul(sigma, noise(hn::Load(u, in.low + at), hn::Load(u, in.high + at), key1, key2));
            };
            if (model.sigma > 0) {
                v0 = hn::Add(v0, add(x));
                v1 = hn::Add(v1, add(x + n));
                v2 = hn::Add(v2, add(x + 2 * n));
                v3 = hn::Add(v3, add(x + 3 * n));
            }
            float* to = x < whole ? out + x : tail;
            hn::StoreU(v0, f, to);
            hn::StoreU(v1, f, to + n);
            hn::StoreU(v2, f, to + 2 * n);
            hn::StoreU(v3, f, to + 3 * n);
            if (x >= whole) std::memcpy(out + x, tail, (in.pixels - whole) * sizeof(float));
        }
    }
}

} // namespace hsi::synth::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "synth/synth.h"

#include <hwy/targets.h>

namespace hsi::synth {

HWY_EXPORT(Values);

void run_values(const RunInput& in, float* dst, ptrdiff_t band_stride) {
    HWY_DYNAMIC_DISPATCH(Values)(in, dst, band_stride);
}

const char* simd_target() {
    // SupportedTargets() lists the targets of this processor. The dispatch selects the lowest bit, which is
    // the best target.
    const auto best = hwy::SupportedTargets() & HWY_TARGETS;
    return hwy::TargetName(best & -best);
}

} // namespace hsi::synth
#endif
