// SPDX-License-Identifier: MIT
// The cost of links per pixel, by the closed forms of their algorithms.
#include "links/links.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hsi {
namespace {

constexpr int bands = 20;

double core_seconds(const stream::Link& link) {
    return links::make_link(link, {100, 80, bands}).per_pixel.core;
}

stream::Link detection(detect::Method method, int targets) {
    detect::Detector d;
    d.method = method;
    d.bands = bands;
    d.targets = targets;
    for (int b = 0; b < bands; ++b)
        d.used.push_back(b);
    const auto sizes = detect::sizes_of(method, d.used.size(), static_cast<size_t>(targets));
    d.centre.assign(sizes.centre, 0.5);
    d.rows.assign(sizes.rows, 0.5);
    d.log_rows.assign(sizes.log_rows, 0.5);
    d.constants.assign(sizes.constants, 0.5);
    d.factor.assign(sizes.factor, 0.5);
    d.deviation.assign(sizes.deviation, 0.5);
    return links::detection(d);
}

TEST(LinkCost, IsThatOfTheAlgorithm) {
    const std::vector<double> centroid(bands, 1.0);
    const std::vector<std::vector<float>> spectra(3, std::vector<float>(bands, 1.0F));
    pca::Transform transform;
    transform.inputs = bands;
    transform.outputs = 4;
    transform.offset.assign(4, 0);
    transform.matrix.assign(4 * bands, 0.5);
    math::ResampledBand two;
    two.sources = {0, 1};
    two.weights = {0.5, 0.5};
    features::Range range;
    range.bands = {2, 3, 4, 5};
    range.x = {400, 410, 420, 430};
    constexpr double b = bands;
    const struct {
        const char* name;
        stream::Link link;
        double core;
    } cases[] = {
        {"spp", links::displacement(5, centroid), b * (1.8e-9 + 0.09e-9 * 24 / 2)},
        {"transform", links::transform(transform), 1e-10 * b * 4},
        {"nearest", links::nearest_target(spectra, 10), 1e-10 * b * 3},
        {"resample", links::resampling(bands, {two, two, two}), 1e-10 * 6},
        {"features", links::feature_bands(bands, {range, range}, features::Output::features), 8e-9 * 8},
        {"index", links::index_bands(bands, {"(b1-b2)/(b1+b2)", "b1"}, {}), 5e-10 * (b + 3) + 4e-10 * 8},
        {"mf", detection(detect::Method::mf, 2), 2e-10 * b * 2},
        {"sid", detection(detect::Method::sid, 2), 2e-10 * b * 2 + 2.3e-9 * b},
        {"ace", detection(detect::Method::ace, 2), 2e-10 * b * 2 + 1.3e-11 * b * b},
        {"rx", detection(detect::Method::rx, 0), 2e-10 * b + 1.3e-11 * b * b},
    };
    for (const auto& one : cases)
        EXPECT_NEAR(core_seconds(one.link) / one.core, 1, 1e-12) << one.name;
}

} // namespace
} // namespace hsi
