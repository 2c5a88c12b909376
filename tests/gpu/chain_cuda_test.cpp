// SPDX-License-Identifier: MIT
// Pipelines of virtual steps on a GPU. Steps that run tile by tile in device memory must give the same bits
// as the same operations that run on the GPU one after another, with stored cubes between them.
#include "core/cuda_module.h"
#include "links/links.h"
#include "regression/regression_models.h"
#include "stream/computed_source.h"
#include "stream/copy_operation.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::test {
namespace {

constexpr int bands = 24, components = 6;

stream::PassOptions pass(int64_t samples, int64_t lines, int lanes) {
    stream::PassOptions options;
    options.name = "test";
    options.lanes = lanes;
    options.tile_samples = samples;
    options.tile_lines = lines;
    options.memory = uint64_t{4} << 30;
    return options;
}

/// Returns true if both cubes have equal bits. All NaN count as equal, because the GPU's NaN has other bits
/// than the CPU's.
bool same(const Cube& a, const Cube& b) {
    const auto equal = [](float x, float y) {
        return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0;
    };
    return a.values.size() == b.values.size() &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), equal);
}

Cube stored(const stream::CubeSource& source, stream::Operation& operation,
            const stream::PassOptions& options) {
    MemorySink sink(source.shape().samples, source.shape().lines, operation.output_bands().front());
    const auto outputs = operation.output_bands().size();
    std::vector<std::unique_ptr<MemorySink>> others;
    std::vector<stream::CubeSink*> sinks{&sink};
    for (size_t k = 1; k < outputs; ++k)
        sinks.push_back(others
                            .emplace_back(std::make_unique<MemorySink>(
                                source.shape().samples, source.shape().lines, operation.output_bands()[k]))
                            .get());
    stream::run_pass(source, operation, sinks, options);
    return std::move(sink.cube);
}

stream::Link displacement(int window) {
    std::vector<double> centroid;
    for (int b = 0; b < bands; ++b)
        centroid.push_back(0.4 + 0.01 * b);
    return links::displacement(window, centroid);
}

stream::Link projection() {
    pca::Transform t;
    t.inputs = bands;
    t.outputs = components;
    for (int i = 0; i < bands * components; ++i)
        t.matrix.push_back(0.01 * ((i * 7) % 23) - 0.1);
    t.offset.assign(components, 0.5);
    return links::transform(t);
}

std::vector<std::vector<float>> spectra(const Cube& cube) {
    std::vector<std::vector<float>> some;
    for (const int64_t at : {3, 17, 40}) {
        auto& one = some.emplace_back();
        for (int b = 0; b < cube.shape.bands; ++b)
            one.push_back(cube.at(b, at, at));
    }
    return some;
}

stream::Link unmixing(const Cube& cube) {
    unmix::Endmembers endmembers;
    for (const auto& one : spectra(cube)) {
        endmembers.spectra.emplace_back(one.begin(), one.end());
        endmembers.names.push_back(std::to_string(endmembers.spectra.size()));
    }
    return links::unmixing(endmembers, unmix::Method::fcls, false);
}

class ChainCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: no link was computed on one";
        links::register_links();
        m_cube = random_scene(211, 97, bands);
        for (int64_t line = 30; line < 44; ++line)
            make_invalid(m_cube, line, line + 9, static_cast<int>(line % bands));
        for (int b = 0; b < bands; ++b)
            m_cube.at(b, 96, 210) = 0;
    }
    static std::vector<CudaDevice> device() { return {cuda_devices().front()}; }
    static std::shared_ptr<stream::Operation> on_device(const stream::Link& link,
                                                        const stream::CubeShape& shape) {
        return stream::make_operation(link, shape).on_devices(device());
    }
    /// Returns a shared pointer that does not own the source.
    static std::shared_ptr<const stream::CubeSource> share(const stream::CubeSource& source) {
        return {std::shared_ptr<void>(), &source};
    }
    Cube m_cube;
};

TEST_F(ChainCuda, GivesTheBitsOfCubesThatWereStored) {
    const MemorySource source(m_cube);
    const auto whole = pass(211, 97, 1);
    const Cube projected = stored(source, *on_device(projection(), m_cube.shape), whole);
    const std::vector<std::vector<stream::Link>> chains{
        {displacement(5), projection()},
        {displacement(7), displacement(3)},
        {projection(), links::nearest_target(spectra(projected), 180)},
        {displacement(5), links::nearest_target(spectra(m_cube), 180)},
        {displacement(5), projection(), unmixing(projected)},
        {displacement(5),
         links::estimates(bands, {{kernel_model(regression::Method::gp, 21, bands), as_they_are(bands)}})},
        {displacement(5), projection(), links::nearest_target(spectra(projected), 20)}};
    for (size_t number = 0; number < chains.size(); ++number) {
        std::vector<Cube> cubes{m_cube};
        std::shared_ptr<const stream::CubeSource> fused = share(source);
        for (const stream::Link& link : chains[number]) {
            const MemorySource before(cubes.back());
            cubes.push_back(stored(before, *on_device(link, before.shape()), whole));
            const auto next = std::make_shared<stream::ComputedSource>(
                fused, stream::make_operation(link, fused->shape()), link.output);
            EXPECT_TRUE(next->compute_on(device()));
            fused = next;
        }
        for (const auto& [w, h, lanes] :
             std::vector<std::array<int, 3>>{{211, 97, 1}, {64, 32, 3}, {211, 8, 2}, {50, 97, 4}}) {
            stream::CopyOperation copy(fused->shape().bands, false); // the copy is in CPU memory
            EXPECT_TRUE(same(stored(*fused, copy, pass(w, h, lanes)), cubes.back()))
                << number << ": " << w << "x" << h;
        }
    }
}

/// Returns a step whose bands are weighted sums of a few neighbouring bands.
stream::Link resampling() {
    std::vector<math::ResampledBand> all;
    for (size_t j = 0; j + 3 < bands; ++j) {
        math::ResampledBand one;
        one.target = j;
        for (size_t k = 0; k <= j % 4; ++k) {
            one.sources.push_back(j + k);
            one.weights.push_back(0.3 + 0.07 * static_cast<double>((j + k) % 5));
        }
        all.push_back(std::move(one));
    }
    return links::resampling(bands, all);
}

stream::Link feature_bands(features::Output output, size_t first, size_t count) {
    features::Range range;
    for (size_t i = 0; i < count; ++i) {
        range.bands.push_back(first + i);
        range.x.push_back(400 + 10.0 * static_cast<double>(i));
    }
    return links::feature_bands(bands, {range}, output);
}

/// Checks that resampling and features have the same bits on the device as on the CPU, alone and after
/// another step.
TEST_F(ChainCuda, ResamplingAndFeaturesAreTheProcessors) {
    const MemorySource source(m_cube);
    for (const auto& link : {resampling(), feature_bands(features::Output::removed, 0, bands),
                             feature_bands(features::Output::features, 3, 17)}) {
        const auto work = stream::make_operation(link, m_cube.shape);
        const Cube there = stored(source, *on_device(link, m_cube.shape), pass(64, 32, 3));
        EXPECT_TRUE(same(there, stored(source, *work.operation, pass(211, 97, 1)))) << link.operation;

        const Cube shifted = stored(source, *on_device(displacement(5), m_cube.shape), pass(211, 97, 1));
        const MemorySource before(shifted);
        const auto first = std::make_shared<stream::ComputedSource>(
            share(source), stream::make_operation(displacement(5), m_cube.shape), link.output);
        const auto second = std::make_shared<stream::ComputedSource>(
            first, stream::make_operation(link, first->shape()), link.output);
        EXPECT_TRUE(first->compute_on(device()));
        EXPECT_TRUE(second->compute_on(device()));
        stream::CopyOperation copy(second->shape().bands, false);
        EXPECT_TRUE(same(stored(*second, copy, pass(50, 97, 2)),
                         stored(before, *on_device(link, shifted.shape), pass(211, 97, 1))))
            << link.operation;
    }
}

/// Checks that the pass reads tiles from the device memory where the step has written them, with the same
/// results as for a stored cube.
TEST_F(ChainCuda, HandsTilesToThePassOnTheDevice) {
    const MemorySource source(m_cube);
    const Cube displaced = stored(source, *on_device(displacement(5), m_cube.shape), pass(211, 97, 1));
    const MemorySource file(displaced);
    stream::ComputedSource link(share(source), stream::make_operation(displacement(5), m_cube.shape));
    ASSERT_TRUE(link.compute_on(device()));
    EXPECT_EQ(link.computes_on(), device().front().ordinal);
    EXPECT_GT(link.device_bytes(64, 32), uint64_t{64} * 32 * bands * 4);
    const auto backend = make_cuda_backend<pca::Backend>("pca", device());
    const auto statistics = [&](const stream::CubeSource& from, const stream::PassOptions& options) {
        const auto scan = backend->make_scan(from.shape(), stream::Statistics::covariance, 0);
        stream::run_pass(from, *scan, {}, options);
        return scan->result();
    };
    const auto expected = statistics(file, pass(0, 0, 1));
    for (const int lanes : {1, 3}) {
        const auto found = statistics(link, pass(0, 0, lanes));
        EXPECT_EQ(found.valid_pixels, expected.valid_pixels);
        EXPECT_EQ(found.mean, expected.mean);
        EXPECT_EQ(found.covariance, expected.covariance);
        EXPECT_TRUE(same(stored(link, *on_device(projection(), m_cube.shape), pass(64, 16, lanes)),
                         stored(file, *on_device(projection(), m_cube.shape), pass(211, 97, 1))));
    }
}

} // namespace
} // namespace hsi::test
