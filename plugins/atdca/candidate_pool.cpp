// SPDX-License-Identifier: MIT
#include "atdca/candidate_pool.h"

#include "atdca/atdca_simd.h"
#include "parallel/team.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::atdca {
namespace {

/// Groups that a member of a team takes at once. With 128 bands they have half a megabyte, so the cost of
/// taking them is negligible.
constexpr size_t unit_groups = 64;

int64_t units_of(size_t groups) { return static_cast<int64_t>((groups + unit_groups - 1) / unit_groups); }

} // namespace

double Sequence::smallest_score() const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const Step& s : steps)
        smallest = std::min(smallest, s.score);
    return smallest;
}

float* CandidatePool::spectra(size_t g) const {
    return m_spectra.data() + g * group * static_cast<size_t>(m_bands);
}

void CandidatePool::make_room(size_t groups) {
    const size_t each = group * static_cast<size_t>(m_bands), held = m_spectra.size() / each;
    if (groups <= held) return;
    HostBuffer<float> larger(std::max(groups, 2 * held) * each);
    std::copy_n(m_spectra.data(), m_norm.size() * static_cast<size_t>(m_bands), larger.data());
    m_spectra = std::move(larger);
}

void CandidatePool::reserve(int64_t candidates) {
    const auto groups = static_cast<size_t>(candidates / group + 1);
    make_room(groups);
    m_norm.reserve(groups * group);
    m_position.reserve(groups * group);
}

void CandidatePool::add(const Position& position, const float* spectrum) {
    const auto at = m_position.size(), bands = static_cast<size_t>(m_bands);
    if (at % group == 0) {
        make_room(at / group + 1);
        m_norm.resize(m_norm.size() + group, invalid_norm);
    }
    float* to = spectra(at / group) + at % group;
    for (size_t b = 0; b < bands; ++b)
        to[b * group] = spectrum[b];
    m_norm[at] = Basis::squared_norm(spectrum, m_bands);
    m_position.push_back(position);
}

void CandidatePool::add(int64_t count, const std::function<Candidate(int64_t)>& of, Team& team) {
    int64_t first = 0; // first pixel after those that fill the last group of the pool
    for (; first < count && m_position.size() % group != 0; ++first) {
        const Candidate one = of(first);
        add(one.position, one.spectrum);
    }
    const size_t begin = m_position.size() / group,
                 groups = static_cast<size_t>((count - first + group - 1) / group);
    if (groups == 0) return;
    make_room(begin + groups);
    m_norm.resize((begin + groups) * group, invalid_norm);
    m_position.resize(m_position.size() + static_cast<size_t>(count - first));
    const auto fill = [&](size_t g) {
        const int64_t from = first + static_cast<int64_t>(g) * group;
        const auto n = static_cast<size_t>(std::min<int64_t>(group, count - from));
        const float* x[group];
        for (size_t i = 0; i < n; ++i) {
            const Candidate one = of(from + static_cast<int64_t>(i));
            m_position[(begin + g) * group + i] = one.position;
            x[i] = one.spectrum;
        }
        float* to = spectra(begin + g);
        double norm[group] = {}; // summed band by band, as in Basis::squared_norm()
        for (int b = 0; b < m_bands; ++b, to += group) {
            for (size_t i = 0; i < n; ++i)
                to[i] = x[i][b];
            for (size_t i = 0; i < group; ++i) {
                const auto v = static_cast<double>(to[i]);
                norm[i] += v * v;
            }
        }
        std::copy_n(norm, n, &m_norm[(begin + g) * group]);
    };
    team.run(units_of(groups), [&](int64_t unit, int) {
        const size_t last = std::min(groups, static_cast<size_t>(unit + 1) * unit_groups);
        for (size_t g = static_cast<size_t>(unit) * unit_groups; g < last; ++g)
            fill(g);
    });
}

std::vector<float> CandidatePool::spectrum(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    std::vector<float> x(static_cast<size_t>(m_bands));
    const float* const from = spectra(at / group) + at % group;
    for (size_t b = 0; b < x.size(); ++b)
        x[b] = from[b * group];
    return x;
}

/// The screened score of each candidate. With OSP, a score never grows as targets are added, so an old score
/// is an upper bound of the present score. Groups whose old scores are less than the best score are not
/// updated.
struct CandidatePool::Search {
    Search(const CandidatePool& owner, const Options& chosen, Team& all)
        : pool(owner), options(chosen), team(all), simd(simd_kernels()), groups(owner.m_norm.size() / group),
          score(owner.m_norm), applied(groups, 0), best(groups), norm(groups) {
        for (size_t g = 0; g < groups; ++g)
            norm[g] = best[g] = *std::max_element(score.begin() + static_cast<ptrdiff_t>(g * group),
                                                  score.begin() + static_cast<ptrdiff_t>((g + 1) * group));
    }

    double error(const Basis& basis, double squared_norm) const {
        return options.method == Method::osp ? osp_error(pool.m_bands, basis.size(), squared_norm)
                                             : gs_error(pool.m_bands, basis.p_squared(), squared_norm);
    }

    void refresh(size_t g, const Basis& basis) {
        double c[vectors * group];
        double* const s = score.data() + g * group;
        if (options.method == Method::osp) {
            while (applied[g] < basis.size()) {
                const double* q[vectors];
                const int count = std::min(vectors, basis.size() - applied[g]);
                for (int j = 0; j < count; ++j)
                    q[j] = basis.q(applied[g] + j);
                simd.dots(pool.spectra(g), pool.m_bands, q, count, c);
                for (int j = 0; j < count; ++j)
                    for (int i = 0; i < group; ++i)
                        s[i] -= c[j * group + i] * c[j * group + i];
                applied[g] += count;
            }
        } else {
            const double* p = basis.p().data();
            simd.dots(pool.spectra(g), pool.m_bands, &p, 1, c);
            for (int i = 0; i < group; ++i)
                s[i] = options.score == Score::sign ? c[i] : std::fabs(c[i]);
        }
        best[g] = -std::numeric_limits<double>::infinity();
        for (int i = 0; i < group; ++i)
            if (pool.m_norm[g * group + static_cast<size_t>(i)] > 0) best[g] = std::max(best[g], s[i]);
    }

    /// Returns the candidate that is chosen with this basis by exact scores, if there is one.
    Step choose(const Basis& basis, const std::vector<Position>& excluded) {
        // A lower bound of the best exact score. How soon the bound rises affects only which groups are
        // skipped, not the result.
        std::atomic<double> floor{-std::numeric_limits<double>::infinity()};
        const auto visit = [&](size_t g) {
            if (options.method == Method::osp &&
                best[g] + error(basis, norm[g]) < floor.load(std::memory_order_relaxed))
                return;
            refresh(g, basis);
            const double least = best[g] - error(basis, norm[g]);
            for (double now = floor.load(std::memory_order_relaxed);
                 now < least && !floor.compare_exchange_weak(now, least, std::memory_order_relaxed);) {
            }
        };
        if (options.method == Method::osp && groups > 0)
            visit(static_cast<size_t>(std::max_element(best.begin(), best.end()) - best.begin()));
        team.run(units_of(groups), [&](int64_t unit, int) {
            const size_t last = std::min(groups, static_cast<size_t>(unit + 1) * unit_groups);
            for (size_t g = static_cast<size_t>(unit) * unit_groups; g < last; ++g)
                visit(g);
        });

        Step step;
        step.score =
            // With excluded candidates, `floor` is not a bound: it may be the score of an excluded candidate.
            excluded.empty() ? floor.load() : -std::numeric_limits<double>::infinity();
        for (size_t g = 0; g < groups; ++g) {
            if (best[g] + error(basis, norm[g]) < step.score) continue;
            for (size_t i = g * group; i < (g + 1) * group; ++i) {
                if (!(pool.m_norm[i] > 0) || score[i] + error(basis, pool.m_norm[i]) < step.score) continue;
                const Position& at = pool.m_position[i];
                if (std::find(excluded.begin(), excluded.end(), at) != excluded.end()) continue;
                auto x = pool.spectrum(static_cast<int64_t>(i));
                const double decisive = basis.score(x.data(), options);
                if (!step.qualifies() || before(decisive, at, step.score, step.position))
                    step = Step{decisive, at, std::move(x), false};
            }
        }
        return step;
    }

    const CandidatePool& pool;
    const Options& options;
    Team& team;
    const SimdKernels& simd;
    size_t groups;
    std::vector<double> score; ///< score of each candidate, with the first applied[g] targets of the basis
    std::vector<int> applied;  ///< per group: number of targets in its scores
    std::vector<double> best;  ///< greatest score of a group
    std::vector<double> norm;  ///< greatest ||x||^2 of a group
};

Sequence CandidatePool::guess(const Basis& proved, const std::vector<Position>& found, const Options& options,
                              double first_score, Team& team, const Share& share) const {
    Sequence sequence(proved);
    Search search(*this, options, team);
    const bool signed_gs = options.method == Method::gs && options.score == Score::sign;
    std::vector<Position> excluded;
    if (signed_gs) excluded = found;
    const double limit = rank_limit * first_score;
    for (int k = proved.size(); k < options.targets; ++k) {
        if (options.method == Method::gs) {
            // p is what remains of the vector of ones, whose squared norm is the number of bands. If p is
            // shorter than 1e-8 of that vector, p is only rounding.
            if (sequence.basis.p_squared() < 1e-16 * m_bands) {
                sequence.p_vanishes = true;
                break;
            }
            sequence.p.push_back(sequence.basis.p());
            sequence.p_squared.push_back(sequence.basis.p_squared());
        }
        Step step = search.choose(sequence.basis, excluded);
        if (share) share(step);
        if (options.method == Method::osp) {
            if (!step.qualifies() || step.score < limit)
                step = Step{limit, {std::numeric_limits<int64_t>::max(), 0}, {}, true};
        } else if (signed_gs && (!step.qualifies() || step.score <= 0)) {
            step = Step{0.0, {-1, -1}, {}, true};
        } else {
            step.ends = !step.qualifies() || sequence.basis.squared_residual(step.spectrum.data()) < limit;
        }
        const bool ends = step.ends;
        if (signed_gs) excluded.push_back(step.position);
        if (!ends) sequence.basis.add(step.spectrum.data());
        sequence.steps.push_back(std::move(step));
        if (ends) break;
    }
    return sequence;
}

} // namespace hsi::atdca
