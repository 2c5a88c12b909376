// SPDX-License-Identifier: MIT
#include "identify/identify.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "features/features.h"
#include "identify/identify_simd.h"
#include "math/exact_sum.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace hsi::identify {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double equal = 1e-10;     ///< relative difference of values that count as equal
constexpr size_t sums_of_label = 4; ///< area, fit, depth, fd

/// Converts the values of a vector of pixels with scale and offset. Lanes beyond `count` repeat the last
/// pixel.
void take_values(const Plan& plan, const CubeView<float>& in, int64_t line, int64_t first, size_t count,
                 size_t lanes, std::vector<double>& values) {
    for (size_t b = 0; b < plan.used.size(); ++b) {
        const float* const row = in.row(static_cast<int>(b), line) + first;
        const double scale = plan.bands.scale.empty() ? 1 : plan.bands.scale[b],
                     offset = plan.bands.offset.empty() ? 0 : plan.bands.offset[b];
        double* const to = values.data() + b * lanes;
        for (size_t i = 0; i < lanes; ++i)
            to[i] = static_cast<double>(row[std::min(i, count - 1)]) * scale + offset;
    }
}

/// The result of a pixel in a group.
struct Winner {
    size_t rule = 0; ///< index in Plan::rules
    double fit = 0, depth = 0, fd = 0, centre = none;
    bool any = false;
};

double value_of(Best best, double fit, double depth, double fd) {
    return best == Best::fit ? fit : best == Best::depth ? depth : fd;
}

/// Finds the winning rule of each pixel from the rules that a vector of pixels satisfies.
class Arbiter {
  public:
    Arbiter(const Plan& plan, const Vector& vector, bool centres)
        : m_plan(plan), m(vector), m_lanes(simd_kernels().lanes), m_centres(centres),
          m_in(plan.groups.size(), std::vector<bool>(plan.rules.size())), m_winners(plan.groups.size()) {
        for (size_t g = 0; g < plan.groups.size(); ++g)
            for (const size_t rule : plan.groups[g].rules)
                m_in[g][rule] = true;
    }

    const std::vector<Winner>& decide(size_t lane) {
        for (size_t g = 0; g < m_winners.size(); ++g) {
            m_winners[g] = best_of(g, lane);
            if (!is_open(m_plan.groups[g], g)) m_winners[g] = {};
        }
        return m_winners;
    }
    /// Returns the scores of the k-th rule in Vector::accepted. `any` is false if this pixel does not satisfy
    /// the rule.
    Winner accepted(size_t k, size_t lane) const {
        const double* const at = m.sums.data() + 3 * k * m_lanes + lane;
        return {m.accepted[k], at[0], at[m_lanes], at[2 * m_lanes], none, at[0] > 0};
    }

  private:
    Winner best_of(size_t g, size_t lane) const {
        double most = 0;
        for (size_t k = 0; k < m.accepted.size(); ++k)
            if (m_in[g][m.accepted[k]])
                if (const auto one = accepted(k, lane); one.any) most = std::max(most, value(one));
        for (size_t k = 0; k < m.accepted.size(); ++k) {
            if (!m_in[g][m.accepted[k]]) continue;
            auto one = accepted(k, lane);
            if (!one.any || value(one) < most * (1 - equal)) continue;
            const bool family = m_plan.rules[one.rule].family > 0;
            if (m_centres || family) one.centre = centre_of(one.rule, lane);
            if (family) rearbitrate(g, lane, one);
            return one;
        }
        return {};
    }
    double value(const Winner& one) const { return value_of(m_plan.best, one.fit, one.depth, one.fd); }

    /// Lets another rule of the same family and group win if the position is in its range and the pixel
    /// satisfies it.
    void rearbitrate(size_t g, size_t lane, Winner& winner) const {
        const size_t family = m_plan.rules[winner.rule].family;
        size_t around = 0, which = 0;
        for (const size_t k : m_plan.groups[g].rules) {
            if (m_plan.rules[k].family != family) continue;
            const auto& centre = m_plan.file.rules[m_plan.rules[k].rule].centre;
            if (!centre || !(winner.centre >= centre->first && winner.centre < centre->second)) continue;
            ++around;
            which = k;
        }
        if (around != 1 || which == winner.rule) return;
        const auto at = std::find(m.accepted.begin(), m.accepted.end(), which);
        if (at == m.accepted.end()) return;
        auto other = accepted(static_cast<size_t>(at - m.accepted.begin()), lane);
        if (!other.any) return;
        other.centre = centre_of(other.rule, lane);
        winner = other;
    }

    double centre_of(size_t rule, size_t lane) const {
        const Fit& fit = m_plan.fits[m_plan.rules[rule].features.front().fit];
        const Span& span = m_plan.spans[fit.span];
        const size_t n = span.x.size();
        const double sign = fit.peak ? -1 : 1, *const at =
                                                   m.ratios.data() + m.first_ratio[fit.span] * m_lanes + lane;
        double least = std::numeric_limits<double>::max();
        for (size_t k = 0; k < n; ++k)
            least = std::min(least, sign * at[k * m_lanes]);
        size_t k = 0;
        while (sign * at[k * m_lanes] > least + equal)
            ++k;
        if (k == 0 || k + 1 == n) return none;
        return features::vertex(span.x.data() + k - 1, sign * at[(k - 1) * m_lanes], sign * at[k * m_lanes],
                                sign * at[(k + 1) * m_lanes]);
    }

    /// Returns whether the conditions `unless` and `where` of a group hold, given the winners of earlier
    /// groups.
    bool is_open(const GroupInUse& group, size_t earlier) const {
        const auto won = [&](size_t rule) {
            return std::any_of(
                m_winners.begin(), m_winners.begin() + static_cast<std::ptrdiff_t>(earlier),
                [&](const Winner& one) { return one.any && m_plan.rules[one.rule].rule == rule; });
        };
        return std::none_of(group.unless.begin(), group.unless.end(), won) &&
               (!group.conditional || std::any_of(group.where.begin(), group.where.end(), won));
    }

    const Plan& m_plan;
    const Vector& m;
    const size_t m_lanes;
    const bool m_centres;
    std::vector<std::vector<bool>> m_in; ///< [group][rule]
    std::vector<Winner> m_winners;
};

class IdentifyWorker final : public stream::Worker {
  public:
    IdentifyWorker(const Plan& plan, const Outputs& outputs, const std::vector<double>& areas)
        : m_plan(plan), m_outputs(outputs), m_areas(areas), m_simd(simd_kernels()), m_shown(plan.shown()),
          m_vector(plan), m_arbiter(plan, m_vector, outputs.centre), m_pixels(m_shown.size() * labels(plan)),
          m_sums(m_shown.size() * labels(plan) * sums_of_label) {}
    static size_t labels(const Plan& plan) { return plan.file.rules.size() + 1; }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line) {
            m_area = m_areas.empty()
                         ? 0
                         : m_areas[m_areas.size() == 1 ? 0 : static_cast<size_t>(tile.core.y + line)];
            m_row.start(static_cast<size_t>(in.samples));
            for (int b = 0; b < in.bands; ++b)
                m_row.look(in.row(b, line));
            const int64_t good = m_row.judge();
            valid += good;
            invalid += in.samples - good;
            const auto lanes = static_cast<int64_t>(m_simd.lanes);
            for (int64_t first = 0; first < in.samples; first += lanes) {
                const auto count = static_cast<size_t>(std::min(lanes, in.samples - first));
                take_values(m_plan, in, line, first, count, m_simd.lanes, m_vector.values);
                m_simd.judge(m_plan, m_vector);
                for (size_t i = 0; i < count; ++i)
                    put(i, line, first + static_cast<int64_t>(i), out);
            }
        }
    }

    int64_t valid = 0, invalid = 0;
    const std::vector<int64_t>& pixels() const { return m_pixels; }
    const math::ExactSums& sums() const { return m_sums; }

  private:
    void put(size_t lane, int64_t line, int64_t sample, const std::vector<CubeView<float>>& out) {
        const bool is_valid = m_row.is_valid(static_cast<size_t>(sample));
        if (is_valid) m_winners = m_arbiter.decide(lane);
        size_t next = m_outputs.stacked ? 1 : m_shown.size();
        const CubeView<float>* const scores = m_outputs.scores ? &out[next++] : nullptr;
        const CubeView<float>* const centres = m_outputs.centre ? &out[next++] : nullptr;
        for (size_t g = 0; g < m_shown.size(); ++g) {
            const Winner winner = is_valid ? m_winners[m_shown[g]] : Winner();
            const size_t label = winner.any ? m_plan.rules[winner.rule].rule + 1 : 0;
            const auto& map = m_outputs.stacked ? out.front() : out[g];
            map.row(m_outputs.stacked ? static_cast<int>(g) : 0, line)[sample] = static_cast<float>(label);
            if (is_valid) count(g * labels(m_plan) + label, winner);
            const double numbers[] = {winner.fit, winner.depth, winner.fd};
            for (size_t q = 0; q < 3 && scores != nullptr; ++q)
                scores->row(static_cast<int>(3 * g + q), line)[sample] =
                    is_valid ? static_cast<float>(numbers[q]) : no_value;
            if (centres != nullptr)
                centres->row(static_cast<int>(g), line)[sample] = !is_valid ? no_value
                                                                  : winner.any
                                                                      ? static_cast<float>(winner.centre)
                                                                      : 0;
        }
        if (m_outputs.materials) put_materials(lane, line, sample, is_valid, out[next]);
    }
    void count(size_t at, const Winner& winner) {
        ++m_pixels[at];
        const double terms[sums_of_label] = {m_area, winner.fit, winner.depth, winner.fd};
        m_sums.add(at * sums_of_label, terms, winner.any ? sums_of_label : 1);
    }
    void put_materials(size_t lane, int64_t line, int64_t sample, bool is_valid, const CubeView<float>& out) {
        for (size_t k = 0; k < m_plan.rules.size(); ++k)
            out.row(static_cast<int>(k), line)[sample] = is_valid ? 0 : no_value;
        if (!is_valid) return;
        for (size_t k = 0; k < m_vector.accepted.size(); ++k) {
            const auto one = m_arbiter.accepted(k, lane);
            const bool won = std::any_of(m_shown.begin(), m_shown.end(), [&](size_t g) {
                return m_winners[g].any && m_winners[g].rule == one.rule;
            });
            if (one.any && (m_outputs.accepted || won))
                out.row(static_cast<int>(one.rule), line)[sample] =
                    static_cast<float>(value_of(m_outputs.value, one.fit, one.depth, one.fd));
        }
    }

    const Plan& m_plan;
    const Outputs& m_outputs;
    const std::vector<double>& m_areas;
    const SimdKernels& m_simd;
    const std::vector<size_t> m_shown;
    Vector m_vector;
    Arbiter m_arbiter;
    PixelRow m_row;
    std::vector<Winner> m_winners;
    double m_area = 0;             ///< area of a pixel of the current line
    std::vector<int64_t> m_pixels; ///< [shown group][label]
    math::ExactSums m_sums;        ///< [shown group][label][sums_of_label]
};

class CpuIdentification final : public Identification {
  public:
    CpuIdentification(std::shared_ptr<const Plan> plan, const Outputs& outputs, std::vector<double> areas)
        : m_plan(std::move(plan)), m_outputs(outputs), m_areas(std::move(areas)),
          m_shown(m_plan->shown().size()), m_pixels(m_shown * labels()),
          m_sums(m_shown * labels() * sums_of_label) {}

    std::vector<int> output_bands() const override {
        const auto groups = static_cast<int>(m_shown);
        auto bands = m_outputs.stacked ? std::vector<int>{groups} : std::vector<int>(m_shown, 1);
        if (m_outputs.scores) bands.push_back(3 * groups);
        if (m_outputs.centre) bands.push_back(groups);
        if (m_outputs.materials) bands.push_back(static_cast<int>(m_plan->rules.size()));
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        constexpr int lowest = -200, highest = 200; // exponents of 2 that bound areas and scores
        return Vector::bytes(*m_plan) + 8 * m_pixels.size() +
               8 * static_cast<uint64_t>(limits.window_samples) +
               math::ExactSums::most_bytes(m_sums.size(), lowest, highest);
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<IdentifyWorker>(*m_plan, m_outputs, m_areas);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const IdentifyWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        for (size_t k = 0; k < m_pixels.size(); ++k)
            m_pixels[k] += w.pixels()[k];
        m_sums.add(w.sums());
    }
    void exchange(parallel::Group& ranks) override {
        std::vector<int64_t> counts{m_valid, m_invalid};
        ranks.add_up("pixels", counts);
        m_valid = counts[0];
        m_invalid = counts[1];
        ranks.add_up("labels", m_pixels);
        ranks.unite(
            "sums of labels", [&] { return m_sums.packed(); },
            [&](const std::string& bytes) { m_sums.add_packed(bytes); },
            [&](const std::string& bytes) { m_sums.set_packed(bytes); });
    }

    int64_t valid() const override { return m_valid; }
    int64_t invalid() const override { return m_invalid; }
    Tally tally(size_t g, size_t label) const override {
        const size_t at = g * labels() + label, first = at * sums_of_label;
        return {m_pixels[at], m_sums.value(first), m_sums.value(first + 1), m_sums.value(first + 2),
                m_sums.value(first + 3)};
    }

  private:
    size_t labels() const { return IdentifyWorker::labels(*m_plan); }

    const std::shared_ptr<const Plan> m_plan;
    const Outputs m_outputs;
    const std::vector<double> m_areas;
    const size_t m_shown;
    int64_t m_valid = 0, m_invalid = 0;
    std::vector<int64_t> m_pixels;
    math::ExactSums m_sums;
};

/// Explains the conditions of a rule, in the order in which messages report them.
class Explainer {
  public:
    Explainer(const Plan& plan, const Vector& vector) : m_plan(plan), m(vector), m_slots(plan.slots) {
        for (size_t k = 0; k < plan.slots; ++k)
            m_slots[k] = m.slots[k * simd_kernels().lanes];
    }

    Verdict judge(size_t k) {
        const RuleInUse& rule = m_plan.rules[k];
        Verdict v{k, false, 0, 0, 0, {}, none};
        for (const Part& part : rule.features) {
            const bool there = holds(part, part.optional ? nullptr : &v);
            if (!there) continue;
            const double* const fit = &m_slots[m_plan.fits[part.fit].slot];
            v.fit += part.weight * fit[0];
            v.depth += part.weight * fit[1];
            v.fd += part.weight * fit[2];
        }
        for (const Part& part : rule.nots)
            if (holds(part, nullptr)) fail(v, part.text, m_slots[m_plan.fits[part.fit].slot]);
        m_slots[slots::rule] = v.fit;
        m_slots[slots::rule + 1] = v.depth;
        m_slots[slots::rule + 2] = v.fd;
        meets(rule.checks, &v);
        if (!(v.fit > 0)) fail(v, "fit", v.fit);
        v.accepted = v.failed.empty();
        return v;
    }

  private:
    static void fail(Verdict& v, const std::string& what, double value) {
        if (!v.failed.empty()) return;
        v.failed = what;
        v.value = value;
    }
    bool meets(const std::vector<Check>& checks, Verdict* v) const {
        bool all = true;
        for (const Check& check : checks) {
            const double q = m_slots[check.slot], other = m_slots[check.other];
            // The comparisons are false for NaN, which means that there is no limit.
            if (!(q < check.least * other || q > check.greatest * other)) continue;
            all = false;
            const bool relative = check.other != slots::one;
            if (v != nullptr) fail(*v, check.text, relative ? q / other : q * check.factor);
        }
        return all;
    }
    bool holds(const Part& part, Verdict* v) const {
        const double fit = m_slots[m_plan.fits[part.fit].slot];
        const bool continuum = meets(part.continuum, v);
        if (!(fit > 0)) {
            if (v != nullptr) fail(*v, part.text + ": not present", none);
            return false;
        }
        return meets(part.checks, v) && continuum;
    }

    const Plan& m_plan;
    const Vector& m;
    std::vector<double> m_slots;
};

} // namespace

Vector::Vector(const Plan& plan) {
    const size_t lanes = simd_kernels().lanes;
    size_t rows = 0;
    for (const Span& span : plan.spans) {
        first_ratio.push_back(rows);
        rows += span.x.size();
    }
    values.resize(plan.used.size() * lanes);
    slots.resize(plan.slots * lanes);
    ratios.resize(rows * lanes);
    open.resize(plan.spans.size() * lanes);
    squares.resize(plan.spans.size() * lanes);
    sums.resize(3 * plan.rules.size() * lanes);
    ends_made.resize(plan.spans.size());
    ratios_made.resize(plan.spans.size());
    fits_made.resize(plan.fits.size());
    accepted.reserve(plan.rules.size());
}

uint64_t Vector::bytes(const Plan& plan) {
    uint64_t rows = plan.used.size() + plan.slots + 2 * plan.spans.size() + 3 * plan.rules.size();
    for (const Span& span : plan.spans)
        rows += span.x.size();
    return rows * most_lanes * sizeof(double) + 10 * plan.spans.size() + plan.fits.size() +
           8 * plan.rules.size();
}

std::unique_ptr<Identification> make_identification(std::shared_ptr<const Plan> plan, const Outputs& outputs,
                                                    std::vector<double> areas) {
    return std::make_unique<CpuIdentification>(std::move(plan), outputs, std::move(areas));
}

std::vector<Verdict> explain(const Plan& plan, const std::vector<float>& values) {
    Vector vector(plan);
    auto stored = values;
    take_values(plan, CubeView<float>::packed(stored.data(), static_cast<int>(stored.size()), 1, 1), 0, 0, 1,
                simd_kernels().lanes, vector.values);
    simd_kernels().measure(plan, vector);
    Explainer explainer(plan, vector);
    std::vector<Verdict> verdicts;
    for (size_t k = 0; k < plan.rules.size(); ++k)
        verdicts.push_back(explainer.judge(k));
    return verdicts;
}

const char* simd_target() { return simd_kernels().target; }

} // namespace hsi::identify
