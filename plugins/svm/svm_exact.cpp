// SPDX-License-Identifier: MIT
#include "math/elementary.h"
#include "svm/svm.h"
#include "svm/svm_math.h"

#include <algorithm>
#include <cmath>

namespace hsi::svm {

double probability_of(double decision, double a, double b) {
    const double t = decision * a + b, e = math::exp(-std::fabs(t));
    return std::clamp((t >= 0 ? e : 1.0) / (1.0 + e), 1e-7, 1 - 1e-7);
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
        kernel[v] = std::exp(-model.gamma * sum); // LIBSVM's own, whose decisions these are to be
    }
    std::vector<size_t> start(static_cast<size_t>(k) + 1, 0);
    for (size_t i = 0; i < static_cast<size_t>(k); ++i)
        start[i + 1] = start[i] + static_cast<size_t>(model.support_count[i]);

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
