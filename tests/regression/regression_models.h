// SPDX-License-Identifier: MIT
// Regression models of random numbers, for tests of their evaluation.
#pragma once

#include "regression/regression.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hsi::test {

constexpr size_t few_bands = 13; ///< bands of a model, unless a test requests another number

inline std::vector<double> normals(size_t count, uint32_t seed, double scale = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(count);
    for (double& v : values)
        v = scale * normal(random);
    return values;
}

inline regression::Standard standard(size_t bands, uint32_t seed) {
    regression::Standard s{normals(bands, seed, 0.1), normals(bands, seed + 1)};
    for (size_t b = 0; b < bands; ++b) {
        s.centre[b] += 0.7;
        s.spread[b] = 0.5 + std::fabs(s.spread[b]);
    }
    return s;
}

inline std::shared_ptr<regression::Model> empty_model(regression::Method method, bool with_domain,
                                                      size_t bands) {
    auto m = std::make_shared<regression::Model>();
    m->method = method;
    m->name = "trait";
    for (size_t b = 1; b <= bands; ++b)
        m->bands.push_back(static_cast<int>(b));
    m->minimum.assign(bands, 0);
    m->maximum.assign(bands, 1);
    m->mean.assign(bands, 0.5);
    m->transform = {{}, {}, bands};
    m->lowest = -1;
    m->highest = 3;
    if (with_domain)
        m->domain = regression::Domain{standard(bands, 7), normals(3 * bands, 8, 0.3), {2, 1, 0.5}, 4, 9};
    return m;
}

inline std::shared_ptr<regression::Model> linear_model(size_t members, bool with_domain,
                                                       size_t bands = few_bands) {
    auto m = empty_model(regression::Method::plsr, with_domain, bands);
    const auto mean = normals(bands, 3);
    m->linear.components = 4;
    m->linear.coefficients = normals(members * bands, 4, 0.05);
    for (size_t i = 0; i < members * bands; ++i)
        m->linear.coefficients[i] += mean[i % bands];
    m->linear.intercepts = normals(members, 5, 0.1);
    return m;
}

inline std::shared_ptr<regression::Model> kernel_model(regression::Method method, size_t samples = 21,
                                                       size_t bands = few_bands) {
    auto m = empty_model(method, true, bands);
    regression::Kernel& k = m->kernel;
    k.standard = standard(bands, 20);
    k.value_mean = 1.3;
    k.value_spread = 0.7;
    k.samples = normals(samples * bands, 21);
    k.weights = normals(samples, 22);
    k.length = 4;
    k.noise = 0.05;
    k.variance = 1.2;
    k.gamma = 0.04;
    k.rho = 0.2;
    return m;
}

/// Returns one model of each type.
inline std::vector<std::pair<std::string, std::shared_ptr<regression::Model>>> models() {
    std::vector<std::pair<std::string, std::shared_ptr<regression::Model>>> all;
    for (const size_t members : {1, 2, 3, 13, 14, 15, 100}) // fewer than the bands, equal, more
        for (const bool with_domain : {false, true})
            all.emplace_back(std::to_string(members) + (with_domain ? " members, domain" : " members"),
                             linear_model(members, with_domain));
    all.emplace_back("gp", kernel_model(regression::Method::gp));
    all.emplace_back("gp of 70 samples", kernel_model(regression::Method::gp, 70)); // rows in two pieces
    all.emplace_back("svr", kernel_model(regression::Method::svr));
    return all;
}

/// The bands of the scene are the bands of the model.
inline regression::Inputs as_they_are(size_t bands = few_bands) {
    regression::Inputs inputs;
    for (size_t b = 0; b < bands; ++b)
        inputs.bands.push_back({b, {b}, {1.0}});
    return inputs;
}

} // namespace hsi::test
