// SPDX-License-Identifier: MIT
// Decision values and probabilities in LIBSVM's order of operations.
#include "math/elementary.h"
#include "svm/svm.h"
#include "svm/svm_math.h"

#include <algorithm>
#include <cmath>

namespace hsi::svm {

double probability_of(double decision, double a, double b) {
    const double t = decision * a + b;
    return pairwise_probability(t, math::exp(-std::fabs(t)));
}

std::vector<size_t> class_begin(const Model& model) {
    std::vector<size_t> begin(1, 0);
    for (const int count : model.support_count)
        begin.push_back(begin.back() + static_cast<size_t>(count));
    return begin;
}

DecisionErrors::DecisionErrors(const Model& model) {
    const auto n = static_cast<size_t>(model.features()), k = static_cast<size_t>(model.class_count()),
               vectors = static_cast<size_t>(model.vector_count());
    for (size_t v = 0; v < vectors; ++v) {
        double square = 0;
        for (size_t f = 0; f < n; ++f) {
            const auto x = static_cast<double>(model.support_vectors[v * n + f]);
            square += x * x;
        }
        reach = std::max(reach, std::sqrt(square));
    }
    const auto begin = class_begin(model);
    for (size_t i = 0; i < k; ++i)
        for (size_t j = i + 1; j < k; ++j) {
            double sum = 0;
            for (size_t v = begin[i]; v < begin[i + 1]; ++v)
                sum += std::fabs(model.coefficients[(j - 1) * vectors + v]);
            for (size_t v = begin[j]; v < begin[j + 1]; ++v)
                sum += std::fabs(model.coefficients[i * vectors + v]);
            coefficient_sum.push_back(sum);
            terms = std::max(terms, static_cast<double>(begin[i + 1] - begin[i] + begin[j + 1] - begin[j]));
        }
}

Prediction predict_exactly(const Model& model, const float* features) {
    const int n = model.features(), k = model.class_count();
    const auto vectors = static_cast<size_t>(model.vector_count());
    std::vector<double> kernel(vectors);
    for (size_t v = 0; v < vectors; ++v) {
        const float* s = model.support_vectors.data() + v * static_cast<size_t>(n);
        double sum = 0;
        for (int f = 0; f < n; ++f) {
            const double d = static_cast<double>(features[f]) - static_cast<double>(s[f]);
            sum += d * d;
        }
        // std::exp is used as in LIBSVM, since the decisions must equal LIBSVM's.
        kernel[v] = std::exp(-model.gamma * sum);
    }
    const auto start = class_begin(model);
    Prediction result;
    std::vector<int> votes(static_cast<size_t>(k), 0);
    for (size_t i = 0; i < static_cast<size_t>(k); ++i)
        for (size_t j = i + 1; j < static_cast<size_t>(k); ++j) {
            const double* of_i = model.coefficients.data() + (j - 1) * vectors;
            const double* of_j = model.coefficients.data() + i * vectors;
            double sum = 0;
            for (size_t v = start[i]; v < start[i + 1]; ++v)
                sum += of_i[v] * kernel[v];
            for (size_t v = start[j]; v < start[j + 1]; ++v)
                sum += of_j[v] * kernel[v];
            sum -= model.rho[result.decision.size()];
            result.decision.push_back(sum);
            ++votes[sum > 0 ? i : j];
        }
    result.label = static_cast<int>(std::max_element(votes.begin(), votes.end()) - votes.begin());
    if (!model.has_probabilities()) return result;

    const auto r = [&](int i, int j) {
        const bool turned = i > j;
        const auto p = static_cast<size_t>(turned ? pair_index(j, i, k) : pair_index(i, j, k));
        const double x = probability_of(result.decision[p], model.prob_a[p], model.prob_b[p]);
        return turned ? 1 - x : x;
    };
    result.probabilities.resize(static_cast<size_t>(k));
    std::vector<double> q(static_cast<size_t>(k) * static_cast<size_t>(k)), qp(static_cast<size_t>(k));
    couple(k, r, result.probabilities.data(), q.data(), qp.data(), 1);
    return result;
}

} // namespace hsi::svm
