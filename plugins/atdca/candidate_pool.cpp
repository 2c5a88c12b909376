// SPDX-License-Identifier: MIT
#include "atdca/candidate_pool.h"

#include "atdca/atdca_simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::atdca {

double Sequence::smallest_score() const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const Step& s : steps)
        smallest = std::min(smallest, s.score);
    return smallest;
}

void CandidatePool::reserve(int64_t candidates) {
    const auto groups = static_cast<size_t>(candidates / group + 1);
    m_spectra.reserve(groups * group * static_cast<size_t>(m_bands));
    m_norm.reserve(groups * group);
    m_position.reserve(groups * group);
}

void CandidatePool::add(const Position& position, const float* spectrum) {
    const auto at = m_position.size(), bands = static_cast<size_t>(m_bands);
    if (at % group == 0) {
        m_spectra.resize(m_spectra.size() + bands * group, 0.0f);
        m_norm.resize(m_norm.size() + group, invalid_norm);
    }
    float* to = m_spectra.data() + at / group * group * bands + at % group;
    for (size_t b = 0; b < bands; ++b)
        to[b * group] = spectrum[b];
    m_norm[at] = Basis::squared_norm(spectrum, m_bands);
    m_position.push_back(position);
}

std::vector<float> CandidatePool::spectrum(int64_t i) const {
    std::vector<float> x(static_cast<size_t>(m_bands));
    const float* from = m_spectra.data() + i / group * group * m_bands + i % group;
    for (int b = 0; b < m_bands; ++b)
        x[static_cast<size_t>(b)] = from[b * group];
    return x;
}

/// Screened scores of every candidate. OSP's are kept as they were when last needed: an old one bounds the
/// present one, so groups that stay below the best need no work.
struct CandidatePool::Search {
    Search(const CandidatePool& owner, const Options& chosen)
        : pool(owner), options(chosen), simd(simd_kernels()), groups(owner.m_norm.size() / group),
          score(owner.m_norm), applied(groups, 0), best(groups), norm(groups) {
        for (size_t g = 0; g < groups; ++g)
            norm[g] = best[g] = *std::max_element(score.begin() + static_cast<ptrdiff_t>(g * group),
                                                  score.begin() + static_cast<ptrdiff_t>((g + 1) * group));
    }

    const float* spectra(size_t g) const {
        return pool.m_spectra.data() + g * group * static_cast<size_t>(pool.m_bands);
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
                simd.dots(spectra(g), pool.m_bands, q, count, c);
                for (int j = 0; j < count; ++j)
                    for (int i = 0; i < group; ++i)
                        s[i] -= c[j * group + i] * c[j * group + i];
                applied[g] += count;
            }
        } else {
            const double* p = basis.p().data();
            simd.dots(spectra(g), pool.m_bands, &p, 1, c);
            for (int i = 0; i < group; ++i)
                s[i] = options.score == Score::sign ? c[i] : std::fabs(c[i]);
        }
        best[g] = -std::numeric_limits<double>::infinity();
        for (int i = 0; i < group; ++i)
            if (pool.m_norm[g * group + static_cast<size_t>(i)] > 0) best[g] = std::max(best[g], s[i]);
    }

    /// The candidate that is chosen with this basis, by the decisive scores; -1 when there is none.
    Step choose(const Basis& basis, const std::vector<Position>& excluded) {
        double floor =
            -std::numeric_limits<double>::infinity(); // some candidate's decisive score is at least this
        const auto visit = [&](size_t g) {
            if (options.method == Method::osp && best[g] + error(basis, norm[g]) < floor) return;
            refresh(g, basis);
            floor = std::max(floor, best[g] - error(basis, norm[g]));
        };
        if (options.method == Method::osp && groups > 0)
            visit(static_cast<size_t>(std::max_element(best.begin(), best.end()) - best.begin()));
        for (size_t g = 0; g < groups; ++g)
            visit(g);
        if (!excluded.empty())
            floor = -std::numeric_limits<double>::infinity(); // it may be an excluded one's

        Step step;
        step.score = floor;
        for (size_t g = 0; g < groups; ++g) {
            if (best[g] + error(basis, norm[g]) < step.score) continue;
            for (size_t i = g * group; i < (g + 1) * group; ++i) {
                if (!(pool.m_norm[i] > 0) || score[i] + error(basis, pool.m_norm[i]) < step.score) continue;
                const Position& at = pool.m_position[i];
                if (std::find(excluded.begin(), excluded.end(), at) != excluded.end()) continue;
                const double decisive = basis.score(pool.spectrum(static_cast<int64_t>(i)).data(), options);
                if (step.candidate < 0 || before(decisive, at, step.score, step.position))
                    step = Step{decisive, at, static_cast<int64_t>(i), false};
            }
        }
        return step;
    }

    const CandidatePool& pool;
    const Options& options;
    const SimdKernels& simd;
    size_t groups;
    std::vector<double> score; ///< of a candidate each, with applied[g] targets
    std::vector<int> applied;  ///< of a group each
    std::vector<double> best;  ///< greatest score of a group
    std::vector<double> norm;  ///< greatest ||x||^2 of a group
};

Sequence CandidatePool::guess(const Basis& proved, const std::vector<Position>& found, const Options& options,
                              double first_score) const {
    Sequence sequence(proved);
    Search search(*this, options);
    const bool signed_gs = options.method == Method::gs && options.score == Score::sign;
    std::vector<Position> excluded;
    if (signed_gs) excluded = found;
    const double limit = rank_limit * first_score;
    for (int k = proved.size(); k < options.targets; ++k) {
        if (options.method == Method::gs) {
            // ||1||^2 is the number of bands; what is left below 1e-8 of its length is rounding.
            if (sequence.basis.p_squared() < 1e-16 * m_bands) {
                sequence.p_vanishes = true;
                break;
            }
            sequence.p.push_back(sequence.basis.p());
            sequence.p_squared.push_back(sequence.basis.p_squared());
        }
        Step step = search.choose(sequence.basis, excluded);
        std::vector<float> x;
        if (step.candidate >= 0) x = spectrum(step.candidate);
        if (options.method == Method::osp) {
            if (step.candidate < 0 || step.score < limit)
                step = Step{limit, {std::numeric_limits<int64_t>::max(), 0}, -1, true};
        } else if (signed_gs && (step.candidate < 0 || step.score <= 0)) {
            step = Step{0.0, {-1, -1}, -1, true};
        } else {
            step.ends = step.candidate < 0 || sequence.basis.squared_residual(x.data()) < limit;
        }
        sequence.steps.push_back(step);
        if (step.ends) break;
        if (signed_gs) excluded.push_back(step.position);
        sequence.basis.add(x.data());
    }
    return sequence;
}

} // namespace hsi::atdca
