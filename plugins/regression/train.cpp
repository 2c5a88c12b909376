// SPDX-License-Identifier: MIT
#include "regression/train.h"

#include "core/counted.h"
#include "core/error.h"
#include "math/linear_algebra.h"
#include "math/philox.h"
#include "parallel/threads.h"
#include "regression/methods.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

namespace hsi::regression {
namespace {

// The uses of random words. They are the second number of the counter.
constexpr uint32_t for_folds = 4U << 24, for_members = 5U << 24, for_thinning = 6U << 24;

/// Returns 0 .. count - 1 in the order of their random words. If words are equal, the smaller index comes
/// first.
Rows by_words(size_t count, uint32_t purpose, int64_t d, uint64_t seed) {
    std::vector<uint32_t> word;
    for (size_t i = 0; i < count; ++i)
        word.push_back(
            math::philox({{static_cast<uint32_t>(i), purpose, static_cast<uint32_t>(d), 0}}, seed)[0]);
    Rows order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return word[a] < word[b]; });
    return order;
}

size_t groups_in(const std::vector<int>& group) {
    return group.empty() ? 0 : static_cast<size_t>(*std::max_element(group.begin(), group.end())) + 1;
}

/// The squared errors of held-out samples, [sample][candidate], by which a candidate is chosen.
class Errors {
  public:
    explicit Errors(size_t candidates) : m_candidates(candidates) {}
    void add(const std::vector<double>& estimates, const Samples& samples, const Rows& rows) {
        for (size_t i = 0; i < rows.size(); ++i)
            for (size_t c = 0; c < m_candidates; ++c) {
                const double e = estimates[i * m_candidates + c] - samples.y[rows[i]];
                m_squares.push_back(e * e);
            }
    }
    size_t choice(bool simplest) const {
        std::vector<double> mean(m_candidates);
        const size_t n = m_squares.size() / m_candidates;
        for (size_t i = 0; i < m_squares.size(); ++i)
            mean[i % m_candidates] += m_squares[i] / static_cast<double>(n);
        const auto best = static_cast<size_t>(std::min_element(mean.begin(), mean.end()) - mean.begin());
        if (!simplest || n < 2) return best;
        double squares = 0;
        for (size_t i = best; i < m_squares.size(); i += m_candidates)
            squares += (m_squares[i] - mean[best]) * (m_squares[i] - mean[best]);
        const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
        size_t first = 0;
        while (first < best && !(mean[first] <= mean[best] + error))
            ++first;
        return first;
    }

  private:
    size_t m_candidates;
    std::vector<double> m_squares;
};

/// Nested cross-validation. Samples of fold k are estimated by the candidate that is best in the other folds.
/// This choice uses the errors of each fold l under models that were trained without k and l.
class Validation {
  public:
    Validation(const Samples& samples, const TrainOptions& options, const std::vector<int>& fold,
               const Fitting& fitting)
        : m_samples(samples), m_options(options), m_fold(fold), m_fitting(fitting),
          m_folds(static_cast<size_t>(*std::max_element(fold.begin(), fold.end())) + 1) {}

    /// Computes the estimates, and returns the candidate that is best over all folds.
    size_t run(TrainResult& result) {
        const bool nested = m_fitting.candidates() > 1 && m_folds > 2;
        for (size_t k = 0; k < m_folds; ++k)
            m_tasks.push_back({k, k});
        for (size_t k = 0; nested && k < m_folds; ++k)
            for (size_t l = k + 1; l < m_folds; ++l)
                m_tasks.push_back({k, l});
        std::vector<Estimates> made(m_tasks.size());
        for_all(m_tasks.size(), 0, 0.8, [&](size_t t) {
            made[t] = m_fitting.estimates(rows(m_tasks[t], false), rows(m_tasks[t], true));
        });
        const size_t candidates = m_fitting.candidates();
        Errors all(candidates);
        for (size_t k = 0; k < m_folds; ++k)
            all.add(made[k].value, m_samples, rows(m_tasks[k], true));
        const size_t choice = all.choice(m_fitting.simplest());
        result.estimate.resize(m_samples.count());
        if (m_options.method == Method::gp) result.deviation.resize(m_samples.count());
        for (size_t k = 0; k < m_folds; ++k) {
            const size_t own = nested ? nested_choice(k, made) : choice;
            const Rows held_out = rows({k, k}, true);
            for (size_t i = 0; i < held_out.size(); ++i)
                result.estimate[held_out[i]] = made[k].value[i * candidates + own];
            for (size_t i = 0; i < made[k].deviation.size(); ++i)
                result.deviation[held_out[i]] = made[k].deviation[i];
            m_own.push_back(own);
        }
        return choice;
    }
    size_t folds() const { return m_folds; }

    /// Computes the estimates again with the models that the folds chose. Computing many candidates at once
    /// does not give their standard deviations.
    void estimate_again(TrainResult& result) const {
        for_all(m_folds, 0.8, 1, [&](size_t k) {
            Model model;
            m_fitting.fit(rows({k, k}, false), m_own[k], model);
            const Rows held_out = rows({k, k}, true);
            const Estimates made = m_fitting.of_model(std::move(model), held_out);
            for (size_t i = 0; i < held_out.size(); ++i) {
                result.estimate[held_out[i]] = made.value[i];
                result.deviation[held_out[i]] = made.deviation[i];
            }
        });
    }

    /// Runs work(unit) for all units on the threads. Progress rises from `from` to `to`.
    template <class Work>
    void for_all(size_t units, double from, double to, const Work& work) const {
        std::mutex mutex;
        size_t done = 0;
        parallel::for_each(static_cast<int64_t>(units), m_options.threads, m_options.cancel,
                           [&](int64_t unit, int) {
                               work(static_cast<size_t>(unit));
                               const std::lock_guard lock(mutex);
                               ++done;
                               if (m_options.progress)
                                   m_options.progress(from + (to - from) * static_cast<double>(done) /
                                                                 static_cast<double>(units));
                           });
    }

  private:
    struct Task {
        size_t k, l; ///< the folds that are held out; if k = l, only one fold
    };
    Rows rows(const Task& task, bool held_out) const {
        Rows some;
        for (size_t i = 0; i < m_fold.size(); ++i) {
            const auto fold = static_cast<size_t>(m_fold[i]);
            if ((fold == task.k || fold == task.l) == held_out) some.push_back(i);
        }
        return some;
    }
    size_t nested_choice(size_t k, const std::vector<Estimates>& made) const {
        const size_t candidates = m_fitting.candidates();
        Errors errors(candidates);
        for (size_t t = m_folds; t < m_tasks.size(); ++t) {
            if (m_tasks[t].k != k && m_tasks[t].l != k) continue;
            const size_t other = m_tasks[t].k == k ? m_tasks[t].l : m_tasks[t].k;
            const Rows both = rows(m_tasks[t], true);
            Rows some;
            std::vector<double> values;
            for (size_t i = 0; i < both.size(); ++i) {
                if (static_cast<size_t>(m_fold[both[i]]) != other) continue;
                some.push_back(both[i]);
                const auto at = made[t].value.begin() + static_cast<ptrdiff_t>(i * candidates);
                values.insert(values.end(), at, at + static_cast<ptrdiff_t>(candidates));
            }
            errors.add(values, m_samples, some);
        }
        return errors.choice(m_fitting.simplest());
    }

    const Samples& m_samples;
    const TrainOptions& m_options;
    const std::vector<int>& m_fold;
    const Fitting& m_fitting;
    const size_t m_folds;
    std::vector<Task> m_tasks;
    std::vector<size_t> m_own; ///< the candidate that each fold chose
};

/// Returns the maximum number of components for plsr.
size_t component_limit(const Samples& samples, const TrainOptions& options, const std::vector<int>& fold) {
    std::vector<size_t> sizes(groups_in(fold));
    for (const int f : fold)
        ++sizes[static_cast<size_t>(f)];
    std::sort(sizes.rbegin(), sizes.rend());
    const size_t without_one = samples.count() - sizes[0] - 1,
                 without_two = without_one - (sizes.size() > 2 ? sizes[1] : 0);
    if (options.components == 0)
        return std::max<size_t>(
            1, std::min({static_cast<size_t>(options.max_components), samples.bands, without_two}));
    const auto wanted = static_cast<size_t>(options.components);
    const size_t most = std::min(samples.bands, without_one);
    if (wanted > most)
        throw Error(
            "-components: " + std::to_string(wanted) + " is more than " + counted(samples.count(), "sample") +
                " with " + counted(samples.bands, "band") + " allow",
            most > 0 ? "Use 1 to " + std::to_string(most) + ", or give more samples." : "Give more samples.");
    return wanted;
}

void fit_members(const Samples& samples, const TrainOptions& options, const Fitting& fitting,
                 const Validation& validation, size_t choice, Model& model) {
    const auto groups = static_cast<int>(groups_in(samples.group));
    std::vector<Model> members(static_cast<size_t>(options.members));
    validation.for_all(members.size(), 0.8, 1, [&](size_t d) {
        const auto chosen = member_groups(groups, options.share, static_cast<int64_t>(d), options.seed);
        Rows rows;
        for (size_t i = 0; i < samples.count(); ++i)
            if (chosen[static_cast<size_t>(samples.group[i])] != 0) rows.push_back(i);
        fitting.fit(rows, choice, members[d]);
    });
    model.linear.components = members.front().linear.components;
    model.linear.lambda = members.front().linear.lambda;
    for (const Model& one : members) {
        model.linear.coefficients.insert(model.linear.coefficients.end(), one.linear.coefficients.begin(),
                                         one.linear.coefficients.end());
        model.linear.intercepts.push_back(one.linear.intercepts.front());
    }
}

} // namespace

std::vector<double> chosen_rows(const std::vector<double>& matrix, size_t columns, const Rows& rows) {
    std::vector<double> chosen;
    for (const size_t i : rows)
        chosen.insert(chosen.end(), matrix.begin() + static_cast<ptrdiff_t>(i * columns),
                      matrix.begin() + static_cast<ptrdiff_t>((i + 1) * columns));
    return chosen;
}

std::vector<int> folds_of(const std::vector<int>& group, int folds, uint64_t seed) {
    const size_t groups = groups_in(group);
    std::vector<size_t> size(groups);
    for (const int g : group)
        ++size[static_cast<size_t>(g)];
    std::vector<size_t> filled(std::min(static_cast<size_t>(folds), groups));
    std::vector<int> fold(groups);
    for (const size_t g : by_words(groups, for_folds, 0, seed)) {
        const auto least = std::min_element(filled.begin(), filled.end());
        *least += size[g];
        fold[g] = static_cast<int>(least - filled.begin());
    }
    return fold;
}

std::vector<char> member_groups(int groups, double share, int64_t d, uint64_t seed) {
    const auto count = static_cast<size_t>(std::ceil(share * groups - 1e-9));
    std::vector<char> chosen(static_cast<size_t>(groups));
    const Rows order = by_words(chosen.size(), for_members, d, seed);
    for (size_t k = 0; k < std::min(count, order.size()); ++k)
        chosen[order[k]] = 1;
    return chosen;
}

std::vector<size_t> thinned(size_t samples, size_t most, uint64_t seed) {
    Rows order = by_words(samples, for_thinning, 0, seed);
    order.resize(std::min(samples, most));
    std::sort(order.begin(), order.end());
    return order;
}

TrainResult train(const Samples& samples, const TrainOptions& options, Model about) {
    if (groups_in(samples.group) < 2)
        throw Error("all samples are in one group, but cross-validation needs two groups",
                    "Label more plots, or choose other groups (-group, -block).");
    const auto [lowest, highest] = std::minmax_element(samples.y.begin(), samples.y.end());
    if (*lowest == *highest)
        throw Error("all samples have the same value", "Label samples of different values.");
    // Single precision is required, so that the fourth power of a value is finite in double precision.
    const auto too_large = [](double v) { return !(std::fabs(v) <= std::numeric_limits<float>::max()); };
    for (const auto* list : {&samples.x, &samples.y})
        if (std::any_of(list->begin(), list->end(), too_large))
            throw Error("samples have values beyond the range of single precision",
                        "Scale them, for example to reflectances between 0 and 1.");
    TrainResult result;
    const auto of_group = folds_of(samples.group, options.folds, options.seed);
    for (const int g : samples.group)
        result.fold.push_back(of_group[static_cast<size_t>(g)]);
    const size_t components =
        options.method == Method::plsr ? component_limit(samples, options, result.fold) : 0;
    const auto fitting = make_fitting(samples, options, components);
    Validation validation(samples, options, result.fold, *fitting);
    const size_t choice = validation.run(result);
    Rows all(samples.count());
    std::iota(all.begin(), all.end(), size_t{0});
    Model& model = result.model = std::move(about);
    model.method = options.method;
    if (model.is_linear() && options.members > 1)
        fit_members(samples, options, *fitting, validation, choice, model);
    else
        fitting->fit(all, choice, model);
    if (options.method == Method::gp && options.select_by_errors) validation.estimate_again(result);
    result.at_grid_end = options.method == Method::gp && fitting->at_grid_end();
    result.at_limit = fitting->at_limit;
    model.lowest = *lowest;
    model.highest = *highest;
    model.samples = static_cast<int64_t>(samples.count());
    model.groups = static_cast<int64_t>(groups_in(samples.group));
    model.folds = static_cast<int>(validation.folds());
    model.seed = options.seed;
    model.metrics = metrics_of(samples.y, result.estimate);
    result.standardised = !model.is_linear() || options.scale;
    if (result.standardised) result.standard = standard_of(samples, all);
    return result;
}

Domain domain_of(const std::vector<double>& pixels, size_t bands, const Standard* standard) {
    constexpr double wanted = 0.999;
    constexpr size_t most = 20;
    const size_t n = pixels.size() / bands;
    Domain d;
    d.standard.spread = standard != nullptr ? standard->spread : std::vector<double>(bands, 1.0);
    d.standard.centre.assign(bands, 0.0);
    for (size_t i = 0; i < pixels.size(); ++i)
        d.standard.centre[i % bands] += pixels[i] / static_cast<double>(n);
    std::vector<double> covariance(bands * bands), beside(bands);
    for (size_t i = 0; i < n; ++i) {
        for (size_t b = 0; b < bands; ++b)
            beside[b] = (pixels[i * bands + b] - d.standard.centre[b]) / d.standard.spread[b];
        for (size_t a = 0; a < bands; ++a)
            for (size_t b = 0; b <= a; ++b)
                covariance[a * bands + b] += beside[a] * beside[b];
    }
    for (double& c : covariance)
        c /= static_cast<double>(std::max<size_t>(n, 2) - 1);
    const auto eigen = math::eigen_symmetric(covariance, static_cast<int>(bands));
    double all = 0, sum = 0;
    for (const double v : eigen.values)
        all += std::max(v, 0.0);
    for (size_t k = 0; k < std::min(most, bands) && eigen.values[k] > 0 && sum < wanted * all; ++k) {
        sum += eigen.values[k];
        d.variances.push_back(eigen.values[k]);
        const double* const v = eigen.vector(static_cast<int>(k));
        d.components.insert(d.components.end(), v, v + bands);
    }
    if (d.variances.empty())
        throw Error("all labelled pixels have the same spectrum", "Label different pixels.");
    Model model;
    model.transform = {{}, {}, bands};
    model.domain = d;
    Fitted(std::make_shared<const Model>(std::move(model)))
        .evaluate_rows(pixels, [&](const Fitted::Buffers& b, size_t i) {
            d.t2_limit = std::max(d.t2_limit, b.t2[i]);
            d.q_limit = std::max(d.q_limit, b.q[i]);
        });
    return d;
}

} // namespace hsi::regression
