// SPDX-License-Identifier: MIT
#include "identify/identify_simd.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "identify/identify_simd.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hsi::identify {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, most_lanes>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
constexpr D dd;

class Judge {
  public:
    Judge(const Plan& plan, Vector& p) : m_plan(plan), m(p), m_lanes(hn::Lanes(dd)) {
        std::fill(m.ends_made.begin(), m.ends_made.end(), uint8_t{0});
        std::fill(m.ratios_made.begin(), m.ratios_made.end(), uint8_t{0});
        std::fill(m.fits_made.begin(), m.fits_made.end(), uint8_t{0});
        put(slots::one, hn::Set(dd, 1.0));
    }

    void measure() {
        for (size_t k = 0; k < m_plan.fits.size(); ++k)
            make_fit(k);
    }

    void rule(size_t k) {
        const RuleInUse& rule = m_plan.rules[k];
        const V zero = hn::Zero(dd);
        M in = hn::Eq(zero, zero);
        for (const Part& part : rule.features) {
            if (part.optional) continue;
            make_ends(m_plan.fits[part.fit].span);
            in = hn::And(in, hn::And(is_open(m_plan.fits[part.fit].span), hold(part.continuum)));
        }
        if (hn::AllFalse(dd, in)) return;
        V fit = zero, depth = zero, fd = zero;
        for (const Part& part : rule.features) {
            const M there = present(part);
            const size_t slot = m_plan.fits[part.fit].slot;
            const V w = hn::IfThenElseZero(there, hn::Set(dd, part.weight));
            fit = hn::MulAdd(w, get(slot), fit);
            depth = hn::MulAdd(w, get(slot + 1), depth);
            fd = hn::MulAdd(w, get(slot + 2), fd);
            if (part.optional) continue;
            in = hn::And(in, there);
            if (hn::AllFalse(dd, in)) return;
        }
        const size_t slot = slots::rule;
        put(slot, fit);
        put(slot + 1, depth);
        put(slot + 2, fd);
        in = hn::And(in, hn::And(hn::Gt(fit, zero), hold(rule.checks)));
        if (hn::AllFalse(dd, in)) return;
        for (const Part& part : rule.nots) {
            in = hn::AndNot(present(part), in);
            if (hn::AllFalse(dd, in)) return;
        }
        double* const to = m.sums.data() + 3 * m_lanes * m.accepted.size();
        m.accepted.push_back(k);
        hn::StoreU(hn::IfThenElse(in, fit, hn::Set(dd, -1.0)), dd, to);
        hn::StoreU(depth, dd, to + m_lanes);
        hn::StoreU(fd, dd, to + 2 * m_lanes);
    }

  private:
    V get(size_t slot) const { return hn::LoadU(dd, m.slots.data() + slot * m_lanes); }
    void put(size_t slot, V v) { hn::StoreU(v, dd, m.slots.data() + slot * m_lanes); }
    M is_open(size_t span) const {
        return hn::Gt(hn::LoadU(dd, m.open.data() + span * m_lanes), hn::Zero(dd));
    }
    V value(size_t band) const { return hn::LoadU(dd, m.values.data() + band * m_lanes); }

    M hold(const std::vector<Check>& checks) const {
        M in = hn::Eq(hn::Zero(dd), hn::Zero(dd));
        for (const Check& check : checks) {
            const V q = get(check.slot), other = get(check.other);
            if (!std::isnan(check.least))
                in = hn::And(in, hn::Ge(q, hn::Mul(hn::Set(dd, check.least), other)));
            if (!std::isnan(check.greatest))
                in = hn::And(in, hn::Le(q, hn::Mul(hn::Set(dd, check.greatest), other)));
        }
        return in;
    }
    /// Returns the lanes in which a feature is present and within its limits.
    M present(const Part& part) {
        make_fit(part.fit);
        for (const size_t k : part.with)
            make_fit(k);
        return hn::And(hn::Gt(get(m_plan.fits[part.fit].slot), hn::Zero(dd)),
                       hn::And(hold(part.continuum), hold(part.checks)));
    }

    void make_ends(size_t k) {
        if (m.ends_made[k] != 0) return;
        m.ends_made[k] = 1;
        const Span& span = m_plan.spans[k];
        const size_t n = span.bands.size();
        V left = hn::Zero(dd), right = hn::Zero(dd);
        for (size_t b = 0; b < span.left; ++b)
            left = hn::Add(left, value(span.bands[b]));
        for (size_t b = span.right; b < n; ++b)
            right = hn::Add(right, value(span.bands[b]));
        left = hn::Div(left, hn::Set(dd, static_cast<double>(span.left)));
        right = hn::Div(right, hn::Set(dd, static_cast<double>(n - span.right)));
        const V slope = hn::Div(hn::Sub(right, left), hn::Set(dd, span.x_right - span.x_left));
        const size_t slot = span.slot;
        put(slot, left);
        put(slot + 1, right);
        put(slot + 2, hn::Mul(hn::Add(left, right), hn::Set(dd, 0.5)));
        put(slot + 3, slope);
        const V first = hn::MulAdd(slope, hn::Set(dd, span.x.front() - span.x_left), left),
                last = hn::MulAdd(slope, hn::Set(dd, span.x.back() - span.x_left), left);
        const V least = hn::Min(hn::Min(left, right), hn::Min(first, last));
        hn::StoreU(hn::IfThenElseZero(hn::Gt(least, hn::Zero(dd)), hn::Set(dd, 1.0)), dd,
                   m.open.data() + k * m_lanes);
    }

    void make_ratios(size_t k) {
        if (m.ratios_made[k] != 0) return;
        m.ratios_made[k] = 1;
        make_ends(k);
        const Span& span = m_plan.spans[k];
        const size_t n = span.bands.size(), slot = span.slot;
        const V left = get(slot), slope = get(slot + 3);
        double* const ratios = m.ratios.data() + m.first_ratio[k] * m_lanes;
        V sum = hn::Zero(dd);
        for (size_t b = 0; b < n; ++b) {
            const V line = hn::MulAdd(slope, hn::Set(dd, span.x[b] - span.x_left), left);
            const V ratio = hn::Div(value(span.bands[b]), line);
            sum = hn::Add(sum, ratio);
            hn::StoreU(ratio, dd, ratios + b * m_lanes);
        }
        const V mean = hn::Div(sum, hn::Set(dd, static_cast<double>(n)));
        V squares = hn::Zero(dd);
        for (size_t b = 0; b < n; ++b) {
            const V d = hn::Sub(hn::LoadU(dd, ratios + b * m_lanes), mean);
            squares = hn::MulAdd(d, d, squares);
            hn::StoreU(d, dd, ratios + b * m_lanes);
        }
        hn::StoreU(squares, dd, m.squares.data() + k * m_lanes);
        const M uneven = hn::Ge(squares, hn::Set(dd, 1e-12 * static_cast<double>(n)));
        double* const open = m.open.data() + k * m_lanes;
        hn::StoreU(hn::IfThenElseZero(uneven, hn::LoadU(dd, open)), dd, open);
    }

    V product(const double* ratios, const Fit& fit, size_t b, V sum) const {
        return hn::MulAdd(hn::LoadU(dd, ratios + b * m_lanes), hn::Set(dd, fit.shape[b]), sum);
    }
    void make_fit(size_t k) {
        if (m.fits_made[k] != 0) return;
        m.fits_made[k] = 1;
        const Fit& fit = m_plan.fits[k];
        make_ratios(fit.span);
        const size_t n = fit.shape.size();
        const double* const ratios = m.ratios.data() + m.first_ratio[fit.span] * m_lanes;
        V s0 = hn::Zero(dd), s1 = hn::Zero(dd), s2 = hn::Zero(dd), s3 = hn::Zero(dd);
        size_t b = 0;
        for (; b + 4 <= n; b += 4) {
            s0 = product(ratios, fit, b, s0);
            s1 = product(ratios, fit, b + 1, s1);
            s2 = product(ratios, fit, b + 2, s2);
            s3 = product(ratios, fit, b + 3, s3);
        }
        for (; b < n; ++b)
            s0 = product(ratios, fit, b, s0);
        const V together = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
        const V slope = hn::Mul(together, hn::Set(dd, 1 / fit.squares));
        const V squares = hn::LoadU(dd, m.squares.data() + fit.span * m_lanes);
        V f = hn::Min(hn::Div(hn::Mul(slope, together), squares), hn::Set(dd, 1.0));
        if (m_plan.file.root) f = hn::Sqrt(f);
        const M there = hn::And(is_open(fit.span), hn::Gt(together, hn::Zero(dd)));
        f = hn::IfThenElseZero(there, f);
        const V depth = hn::IfThenElseZero(there, hn::Mul(slope, hn::Set(dd, fit.extent)));
        const size_t slot = fit.slot;
        put(slot, f);
        put(slot + 1, depth);
        put(slot + 2, hn::Mul(f, depth));
    }

    const Plan& m_plan;
    Vector& m;
    const size_t m_lanes;
};

void judge(const Plan& plan, Vector& pixels) {
    Judge judge(plan, pixels);
    pixels.accepted.clear();
    for (size_t k = 0; k < plan.rules.size(); ++k)
        judge.rule(k);
}
void measure(const Plan& plan, Vector& pixels) { Judge(plan, pixels).measure(); }
size_t lanes() { return hn::Lanes(dd); }
const char* target() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace hsi::identify
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::identify {
namespace {
HWY_EXPORT(judge);
HWY_EXPORT(measure);
HWY_EXPORT(lanes);
HWY_EXPORT(target);
} // namespace

const SimdKernels& simd_kernels() {
    static const SimdKernels kernels{HWY_DYNAMIC_DISPATCH(lanes)(),
                                     [](const Plan& plan, Vector& pixels) {
                                         HWY_DYNAMIC_DISPATCH(judge)
                                         (plan, pixels);
                                     },
                                     [](const Plan& plan, Vector& pixels) {
                                         HWY_DYNAMIC_DISPATCH(measure)
                                         (plan, pixels);
                                     },
                                     HWY_DYNAMIC_DISPATCH(target)()};
    return kernels;
}

} // namespace hsi::identify
#endif
