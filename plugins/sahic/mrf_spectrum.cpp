// SPDX-License-Identifier: MIT
#include "sahic/mrf_spectrum.h"
#include "math/elementary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sahic/mrf_spectrum.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::sahic {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t width = SpectrumPlan::width;
using Wide = hn::CappedTag<float, 16>;
using Quad = hn::CappedTag<float, 4>;

/// Transposes a 4 x 4 matrix of rows.
HWY_INLINE void transpose(const float* const from[4], float* const to[4]) {
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 4; ++k)
            to[i][k] = from[k][i];
#else
    const Quad d;
    const auto a = hn::LoadU(d, from[0]), b = hn::LoadU(d, from[1]), c = hn::LoadU(d, from[2]),
               e = hn::LoadU(d, from[3]);
    const auto ab = hn::InterleaveLower(d, a, b), ce = hn::InterleaveLower(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, to[0]);
    hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, to[1]);
    const auto ab2 = hn::InterleaveUpper(d, a, b), ce2 = hn::InterleaveUpper(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, ce2, ab2), d, to[2]);
    hn::StoreU(hn::ConcatUpperUpper(d, ce2, ab2), d, to[3]);
#endif
}

void gather(const SpectrumPlan& plan, const float* const rows[2][width], float* batch) {
    for (int part = 0; part < 2; ++part) {
        float* to = batch + part * plan.part();
        for (int64_t i = 0; i < plan.n; i += 4)
            for (int64_t lane = 0; lane < width; lane += 4) {
                const float* const* r = rows[part] + lane;
                const float* const from[4] = {r[0] + i, r[1] + i, r[2] + i, r[3] + i};
                float* const out = to + i * width + lane;
                float* const into[4] = {out, out + width, out + 2 * width, out + 3 * width};
                transpose(from, into);
            }
    }
}

void scatter(const SpectrumPlan& plan, const float* batch, float* const rows[2][width]) {
    for (int part = 0; part < 2; ++part) {
        const float* in = batch + part * plan.part() + SpectrumPlan::reach * width;
        for (int64_t i = 0; i < plan.length; i += 4)
            for (int64_t lane = 0; lane < width; lane += 4) {
                const float* const at = in + i * width + lane;
                const float* const from[4] = {at, at + width, at + 2 * width, at + 3 * width};
                float* const* r = rows[part] + lane;
                float* const into[4] = {r[0] + i, r[1] + i, r[2] + i, r[3] + i};
                transpose(from, into);
            }
    }
}

using W = hn::Vec<Wide>;
struct Complex {
    W re, im;
};
HWY_INLINE Complex operator+(const Complex& a, const Complex& b) {
    return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE Complex operator-(const Complex& a, const Complex& b) {
    return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
HWY_INLINE Complex minus_i(const Complex& v) { return {v.im, hn::Neg(v.re)}; }
HWY_INLINE Complex times(float f, const Complex& v) {
    const W c = hn::Set(Wide(), f);
    return {hn::Mul(c, v.re), hn::Mul(c, v.im)};
}
/// Returns a + f v. The operation is fused explicitly, since the compiler does not fuse operations here.
HWY_INLINE Complex plus(const Complex& a, float f, const Complex& v) {
    const W c = hn::Set(Wide(), f);
    return {hn::MulAdd(c, v.re, a.re), hn::MulAdd(c, v.im, a.im)};
}
HWY_INLINE Complex turned(const Complex& v, float wr, float wi) {
    const W c = hn::Set(Wide(), wr), s = hn::Set(Wide(), wi);
    return {hn::NegMulAdd(v.im, s, hn::Mul(v.re, c)), hn::MulAdd(v.im, c, hn::Mul(v.re, s))};
}

/// Computes the DFT of x in place.
template <int radix>
HWY_INLINE void dft(Complex* x) {
    if constexpr (radix == 2) {
        const Complex a = x[0], b = x[1];
        x[0] = a + b;
        x[1] = a - b;
    } else if constexpr (radix == 4) {
        const Complex s0 = x[0] + x[2], s1 = x[0] - x[2], s2 = x[1] + x[3], s3 = minus_i(x[1] - x[3]);
        x[0] = s0 + s2;
        x[1] = s1 + s3;
        x[2] = s0 - s2;
        x[3] = s1 - s3;
    } else if constexpr (radix == 3) {
        constexpr float sine = 0.86602540378443864676f;
        const Complex sum = x[1] + x[2], turn = minus_i(x[1] - x[2]), half = plus(x[0], -0.5f, sum);
        x[0] = x[0] + sum;
        x[1] = plus(half, sine, turn);
        x[2] = plus(half, -sine, turn);
    } else {
        constexpr float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f;
        constexpr float n1 = 0.95105651629515357212f, n2 = 0.58778525229247312917f;
        const Complex s1 = x[1] + x[4], s2 = x[2] + x[3], d1 = minus_i(x[1] - x[4]),
                      d2 = minus_i(x[2] - x[3]);
        const Complex m1 = plus(plus(x[0], c1, s1), c2, s2), m2 = plus(plus(x[0], c2, s1), c1, s2);
        const Complex t1 = plus(times(n1, d1), n2, d2), t2 = plus(times(n2, d1), -n1, d2);
        x[0] = x[0] + s1 + s2;
        x[1] = m1 + t1;
        x[2] = m2 + t2;
        x[3] = m2 - t2;
        x[4] = m1 - t1;
    }
}

/// Transforms x[p + m k] of each block, k < radix, in place. The forward step is w^(p j) DFT(x)_j; the
/// backward step is DFT(w^(p j) x_j).
template <int radix, bool back>
void radix_step(const SpectrumPlan::RadixStep& st, float* re, float* im) {
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t leap = st.m * width;
    for (int64_t block = 0; block < st.blocks; ++block)
        for (int64_t p = 0; p < st.m; ++p) {
            const float *wr = st.re.data() + p * (radix - 1), *wi = st.im.data() + p * (radix - 1);
            const int64_t at = (block * radix * st.m + p) * width;
            for (int64_t i = at; i < at + width; i += lanes) {
                Complex x[radix];
                for (int k = 0; k < radix; ++k) {
                    x[k] = {hn::LoadU(d, re + i + k * leap), hn::LoadU(d, im + i + k * leap)};
                    if (back && k > 0 && p > 0) x[k] = turned(x[k], wr[k - 1], wi[k - 1]);
                }
                dft<radix>(x);
                for (int k = 0; k < radix; ++k) {
                    if (!back && k > 0 && p > 0) x[k] = turned(x[k], wr[k - 1], wi[k - 1]);
                    hn::StoreU(x[k].re, d, re + i + k * leap);
                    hn::StoreU(x[k].im, d, im + i + k * leap);
                }
            }
        }
}

template <bool back>
void any_radix_step(const SpectrumPlan::RadixStep& st, float* re, float* im) {
    switch (st.radix) {
    case 2:
        return radix_step<2, back>(st, re, im);
    case 3:
        return radix_step<3, back>(st, re, im);
    case 4:
        return radix_step<4, back>(st, re, im);
    default:
        return radix_step<5, back>(st, re, im);
    }
}

void forward(const SpectrumPlan& plan, float* batch) {
    for (const auto& st : plan.steps)
        any_radix_step<false>(st, batch, batch + plan.part());
}

/// The inverse transform is the forward transform with real and imaginary parts exchanged.
void backward(const SpectrumPlan& plan, float* batch) {
    for (size_t i = plan.steps.size(); i-- > 0;)
        any_radix_step<true>(plan.steps[i], batch + plan.part(), batch);
}

/// Calls f(d, i, at, to) for each register of a line's spectrum. i is the frequency, `at` the position in the
/// line of a batch, and `to` the position in a row.
template <int line_lanes, class F>
HWY_INLINE void each(const SpectrumPlan& plan, const F& f) {
    const hn::CappedTag<float, line_lanes> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < plan.n; ++i)
        for (int64_t e = 0; e < line_lanes; e += lanes)
            f(d, i, i * width + e, i * line_lanes + e);
}

template <int line_lanes>
void solve_lanes(const SpectrumPlan& plan, const SpectrumBlock& b, float* const beyond[2]) {
    const int64_t imaginary = plan.part(), half = plan.row() / 2;
    each<line_lanes>(plan, [&](auto d, int64_t i, int64_t at, int64_t to) HWY_ATTR {
        const auto f = static_cast<size_t>(i);
        const auto z = hn::Set(d, plan.pole[f]), gain = hn::Set(d, plan.gain[f]),
                   tail = hn::Set(d, plan.tail[f]);
        const auto c0 = hn::LoadU(d, b.above + to), s0 = hn::LoadU(d, b.above + half + to);
        auto c = c0, s = s0;
        for (int64_t j = 0; j < b.count; ++j) {
            float* const x = b.line[j] + at;
            c = hn::MulAdd(z, c, hn::LoadU(d, x));
            s = hn::MulAdd(z, s, hn::LoadU(d, x + imaginary));
            hn::StoreU(c, d, x);
            hn::StoreU(s, d, x + imaginary);
        }
        // Applies both filters one after the other: T_j = C_j + z T_(j+1), and Y = z T. Below the block, T =
        // (z C above it + A)/(1 - z^2).
        c = hn::Mul(tail, hn::MulAdd(z, c, hn::LoadU(d, b.below + to)));
        s = hn::Mul(tail, hn::MulAdd(z, s, hn::LoadU(d, b.below + half + to)));
        hn::StoreU(hn::Mul(gain, c), d, beyond[1] + at);
        hn::StoreU(hn::Mul(gain, s), d, beyond[1] + at + imaginary);
        for (int64_t j = b.count - 1; j >= 0; --j) {
            float* const x = b.line[j] + at;
            c = hn::MulAdd(z, c, hn::LoadU(d, x));
            s = hn::MulAdd(z, s, hn::LoadU(d, x + imaginary));
            hn::StoreU(hn::Mul(gain, c), d, x);
            hn::StoreU(hn::Mul(gain, s), d, x + imaginary);
        }
        hn::StoreU(hn::Mul(gain, hn::MulAdd(z, c, c0)), d, beyond[0] + at);
        hn::StoreU(hn::Mul(gain, hn::MulAdd(z, s, s0)), d, beyond[0] + at + imaginary);
    });
}

void solve(const SpectrumPlan& plan, const SpectrumBlock& block, float* const beyond[2]) {
    if (plan.lanes == 8)
        solve_lanes<8>(plan, block, beyond);
    else
        solve_lanes<4>(plan, block, beyond);
}

template <int line_lanes>
void ends_lanes(const SpectrumPlan& plan, const SpectrumBlock& b) {
    const int64_t imaginary = plan.part(), half = plan.row() / 2;
    each<line_lanes>(plan, [&](auto d, int64_t i, int64_t at, int64_t to) HWY_ATTR {
        const auto z = hn::Set(d, plan.pole[static_cast<size_t>(i)]);
        auto c = hn::Zero(d), s = c, a = c, t = c;
        for (int64_t j = 0, k = b.count - 1; j < b.count; ++j, --k) {
            const float *down = b.line[j] + at, *up = b.line[k] + at;
            c = hn::MulAdd(z, c, hn::LoadU(d, down));
            s = hn::MulAdd(z, s, hn::LoadU(d, down + imaginary));
            a = hn::MulAdd(z, a, hn::LoadU(d, up));
            t = hn::MulAdd(z, t, hn::LoadU(d, up + imaginary));
        }
        hn::StoreU(c, d, b.above + to);
        hn::StoreU(s, d, b.above + half + to);
        hn::StoreU(a, d, b.below + to);
        hn::StoreU(t, d, b.below + half + to);
    });
}

void ends(const SpectrumPlan& plan, const SpectrumBlock& block) {
    if (plan.lanes == 8)
        ends_lanes<8>(plan, block);
    else
        ends_lanes<4>(plan, block);
}

/// Calls f(position, power, i) for each register of each block's row, from the first block to the last, or in
/// reverse order if `up` is true. `power` points to z^lines of the block.
template <class F>
HWY_INLINE void sweep(const SpectrumCarry& r, bool up, int64_t from, int64_t count, const F& f) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(Wide()));
    for (int64_t k = 0; k < r.blocks; ++k) {
        const int64_t block = up ? r.blocks - 1 - k : k;
        const float* power = block + 1 < r.blocks ? r.block : r.last;
        for (int64_t i = 0; i < count; i += lanes)
            f(block * r.stride + from + i, power + from + i, i);
    }
}

void carry(const SpectrumCarry& r, int64_t from, int64_t count) {
    const Wide d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    constexpr int64_t most = 256;
    HWY_ALIGN float c[most], a[most];
    for (; count > 0; from += most, count -= most) {
        const int64_t here = std::min(count, most);
        std::fill_n(c, here, 0.0f);
        std::fill_n(a, here, 0.0f);
        sweep(r, false, from, here, [&](int64_t at, const float* z, int64_t i) HWY_ATTR {
            hn::StoreU(hn::MulAdd(hn::LoadU(d, z), hn::LoadU(d, c + i), hn::LoadU(d, r.above + at)), d,
                       c + i);
        });
        sweep(r, true, from, here, [&](int64_t at, const float* z, int64_t i) HWY_ATTR {
            hn::StoreU(hn::MulAdd(hn::LoadU(d, z), hn::LoadU(d, a + i), hn::LoadU(d, r.below + at)), d,
                       a + i);
        });
        // The values above the first line are A of the first line if the scene is mirrored, and C of the last
        // line if the scene wraps around.
        for (int64_t i = 0; i < here; i += lanes) {
            const auto inverse = hn::LoadU(d, r.inverse + from + i), all = hn::LoadU(d, r.all + from + i);
            const auto down = hn::LoadU(d, c + i), up = hn::LoadU(d, a + i);
            hn::StoreU(hn::Mul(inverse, r.periodic ? down : hn::MulAdd(all, down, up)), d, c + i);
            hn::StoreU(hn::Mul(inverse, r.periodic ? up : hn::MulAdd(all, up, down)), d, a + i);
        }
        const auto pass = [&](float* rows, float* state) HWY_ATTR {
            return [&d, rows, state](int64_t at, const float* z, int64_t i) HWY_ATTR {
                const auto own = hn::LoadU(d, rows + at), in = hn::LoadU(d, state + i);
                hn::StoreU(in, d, rows + at);
                hn::StoreU(hn::MulAdd(hn::LoadU(d, z), in, own), d, state + i);
            };
        };
        sweep(r, false, from, here, pass(r.above, c));
        sweep(r, true, from, here, pass(r.below, a));
    }
}

const SpectrumKernels& spectrum_table() {
    static const SpectrumKernels table{gather, scatter, forward, backward, solve, ends, carry};
    return table;
}

} // namespace HWY_NAMESPACE
} // namespace hsi::sahic
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::sahic {
HWY_EXPORT(spectrum_table);

const SpectrumKernels& spectrum_kernels() { return HWY_DYNAMIC_DISPATCH(spectrum_table)(); }

namespace {

/// Returns the smallest multiple of 4 that is at least `least` and has no prime factor above 5.
int64_t good_size(int64_t least) {
    const int64_t wanted = std::max<int64_t>(1, (least + 3) / 4);
    int64_t best = 0;
    for (int64_t fives = 1; best == 0 || fives < best; fives *= 5)
        for (int64_t odd = fives; best == 0 || odd < best; odd *= 3) {
            int64_t m = odd;
            while (m < wanted)
                m *= 2;
            if (best == 0 || m < best) best = m;
        }
    return 4 * best;
}

/// Returns the frequency at each position after all steps.
std::vector<int64_t> frequencies(const std::vector<SpectrumPlan::RadixStep>& steps, int64_t n) {
    std::vector<int64_t> of(static_cast<size_t>(n));
    for (int64_t place = 0; place < n; ++place) {
        int64_t rest = place, weight = 1, k = 0;
        for (const auto& st : steps) {
            k += weight * (rest / st.m);
            rest %= st.m;
            weight *= st.radix;
        }
        of[static_cast<size_t>(place)] = k;
    }
    return of;
}

} // namespace

SpectrumPlan::SpectrumPlan(int64_t samples, int classes) {
    // Chooses the division with the fewest values over all classes. Four lanes are slow, so they are used
    // only if they save much.
    int64_t fewest = 0;
    for (const int64_t of_line : {8, 4})
        for (const int classes_together : {1, 2}) {
            SpectrumPlan cut;
            cut.lanes = of_line;
            cut.parts = classes_together;
            cut.resize(samples);
            const int64_t values = cut.planes(classes) * cut.row() * (of_line == 8 ? 4 : 5);
            if (fewest > 0 && values >= fewest) continue;
            fewest = values;
            *this = cut;
        }
}

void SpectrumPlan::resize(int64_t samples) {
    length = (samples + 4 * segments() - 1) / (4 * segments()) * 4;
    n = good_size(length + 2 * reach);
}

void SpectrumPlan::prepare() {
    steps.clear();
    for (int64_t rest = n, blocks = 1; rest > 1;) {
        RadixStep st;
        st.radix = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : rest % 3 == 0 ? 3 : 5;
        st.m = rest / st.radix;
        st.blocks = blocks;
        for (int64_t p = 0; p < st.m; ++p)
            for (int j = 1; j < st.radix; ++j) {
                const double angle =
                    -2.0 * std::numbers::pi * static_cast<double>(p * j) / static_cast<double>(rest);
                st.re.push_back(static_cast<float>(math::cos(angle)));
                st.im.push_back(static_cast<float>(math::sin(angle)));
            }
        blocks *= st.radix;
        rest = st.m;
        steps.push_back(std::move(st));
    }
    pole.clear();
    gain.clear();
    tail.clear();
    for (const int64_t k : frequencies(steps, n)) {
        const double d =
            5.0 - 2.0 * math::cos(2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
        const double z = (d - std::sqrt(d * d - 4.0)) / 2.0;
        pole.push_back(static_cast<float>(z));
        gain.push_back(static_cast<float>(z / static_cast<double>(n)));
        tail.push_back(static_cast<float>(1.0 / (1.0 - z * z)));
    }
}

} // namespace hsi::sahic
#endif
