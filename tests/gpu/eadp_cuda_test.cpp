// SPDX-License-Identifier: MIT
// Compares hsi_cuda_eadp.so, in the tile pipeline, with the CPU backend and with the reference.
#include "core/cuda_module.h"
#include "eadp/eadp_reference.h"
#include "eadp/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hsi::test {
namespace {

struct Cut {
    int64_t samples = 0, lines = 0;
    int threads = 1;
};

std::unique_ptr<eadp::Backend> cuda_backend() {
    return make_cuda_backend<eadp::Backend>("eadp", cuda_devices());
}

struct Profile {
    Cube cube;
    eadp::ProfileFacts facts;
};

class EadpCuda : public testing::Test {
  protected:
    void SetUp() override {
        if (cuda_devices().empty()) GTEST_SKIP() << "NO GPU HERE: nothing of hsi_cuda_eadp.so was tested";
        m_cuda = cuda_backend();
        m_cpu = eadp::make_cpu_backend();
    }
    static Profile run(const Cube& components, const eadp::Options& options, eadp::Backend& backend,
                       Cut cut = {}) {
        const MemorySource source(components);
        MemorySink sink(components.shape.samples, components.shape.lines,
                        eadp::profile_bands(options, components.shape.bands));
        Profile result;
        eadp::ProfileRun run;
        run.memory = uint64_t{4} << 30;
        run.folder = testing::TempDir();
        run.pass = [&](const std::string& name, double) {
            stream::PassOptions pass;
            pass.name = name;
            pass.lanes = cut.threads;
            pass.tile_samples = cut.samples;
            pass.tile_lines = cut.lines;
            pass.device_memory = backend.free_memory() / 2;
            return pass;
        };
        result.facts = eadp::make_profile(
            source, options, backend, [&](const eadp::ProfileFacts&) -> stream::CubeSink& { return sink; },
            run);
        result.cube = std::move(sink.cube);
        return result;
    }
    std::unique_ptr<eadp::Backend> m_cuda, m_cpu;
};

Cube planes_of(int64_t samples, int64_t lines, int bands, uint32_t seed) {
    Cube cube = random_scene(samples, lines, bands, seed, 0.05, 100);
    for (int b = 0; b < bands; ++b)
        for (int64_t y = 0; y < lines; ++y)
            for (int64_t x = 0; x < samples; ++x)
                cube.at(b, y, x) += (x + y) % 37 > 18 ? 300.0f : -200.0f * static_cast<float>(b);
    return cube;
}

std::vector<double> default_times() {
    std::vector<double> times;
    for (int c = 1; c <= 8; ++c)
        times.push_back(65.0 * c);
    return times;
}

/// Returns the largest difference, relative to the range of the component; infinite if a pixel is valid in
/// only one of the cubes.
double difference(const Cube& a, const Cube& b, int copies) {
    const auto pixels = static_cast<size_t>(a.shape.pixels());
    double worst = 0;
    for (size_t first = 0; first < a.values.size(); first += pixels * static_cast<size_t>(copies + 1)) {
        float low = 1e30f, high = -1e30f;
        for (size_t i = first; i < first + pixels; ++i)
            if (!std::isnan(a.values[i]))
                low = std::min(low, a.values[i]), high = std::max(high, a.values[i]);
        for (size_t i = first; i < first + pixels * static_cast<size_t>(copies + 1); ++i) {
            if (std::isnan(a.values[i]) != std::isnan(b.values[i]))
                return std::numeric_limits<double>::infinity();
            if (!std::isnan(a.values[i]))
                worst = std::max(
                    worst, std::fabs(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i])) /
                               static_cast<double>(high - low));
        }
    }
    return worst;
}

TEST_F(EadpCuda, AgreesWithTheCpuInEveryMode) {
    Cube planes = planes_of(301, 203, 3, 1);
    for (int b = 0; b < 3; ++b)
        for (int64_t y = 50; y < 90; ++y)
            for (int64_t x = 20; x < 140; ++x)
                make_invalid(planes, y, x, b);
    for (auto evolution :
         {eadp::Evolution::independent, eadp::Evolution::cascade, eadp::Evolution::incremental})
        for (auto scheme : {eadp::Scheme::fed, eadp::Scheme::exact})
            for (auto precision : {eadp::Precision::single_precision, eadp::Precision::double_precision})
                for (auto g : {eadp::Diffusivity::g1, eadp::Diffusivity::g2, eadp::Diffusivity::g3}) {
                    eadp::Options o;
                    o.times = {20, 65, 130};
                    o.evolution = evolution;
                    o.scheme = scheme;
                    o.precision = precision;
                    o.diffusivity = g;
                    const auto cuda = run(planes, o, *m_cuda), cpu = run(planes, o, *m_cpu);
                    EXPECT_LT(difference(cpu.cube, cuda.cube, o.copies()), 1e-5);
                    // The setup has equal bits on CPU and GPU. With -evolution cascade, all copies after the
                    // first start from values with different bits, so they are not compared.
                    for (size_t c = 0; c < 3; ++c) {
                        EXPECT_EQ(cuda.facts.components[c].k, cpu.facts.components[c].k) << "component " << c;
                        EXPECT_EQ(cuda.facts.components[c].range.lowest,
                                  cpu.facts.components[c].range.lowest);
                        EXPECT_EQ(cuda.facts.components[c].range.steepest,
                                  cpu.facts.components[c].range.steepest);
                        EXPECT_EQ(cuda.facts.components[c].range.valid, cpu.facts.components[c].range.valid);
                    }
                }
}

TEST_F(EadpCuda, AgreesWithTheReference) {
    const Cube planes = planes_of(130, 120, 2, 2);
    eadp::Options o;
    o.times = default_times();
    const auto want = reference_profile(planes, o);
    const auto got = run(planes, o, *m_cuda);
    Cube wanted = got.cube;
    for (size_t p = 0; p < want.size(); ++p)
        for (size_t i = 0; i < want[p].size(); ++i)
            wanted.values[p * want[p].size() + i] = static_cast<float>(want[p][i]);
    EXPECT_LT(difference(wanted, got.cube, 8), 5e-6);
}

TEST_F(EadpCuda, IsBitIdenticalForEveryTilingAndNumberOfThreads) {
    Cube planes = planes_of(420, 390, 2, 3);
    for (int b = 0; b < 2; ++b)
        make_invalid(planes, 200, 170, b);
    for (auto evolution :
         {eadp::Evolution::independent, eadp::Evolution::cascade, eadp::Evolution::incremental})
        for (auto precision : {eadp::Precision::single_precision, eadp::Precision::double_precision}) {
            eadp::Options o;
            o.times = {6, 14, 30};
            o.evolution = evolution;
            o.precision = precision;
            const auto whole = run(planes, o, *m_cuda);
            for (const Cut& cut : {Cut{0, 0, 3}, Cut{128, 64, 1}, Cut{137, 129, 3}, Cut{420, 37, 2}})
                EXPECT_TRUE(identical(run(planes, o, *m_cuda, cut).cube, whole.cube));
        }
}

TEST_F(EadpCuda, ScenesLargerThanAllMultiprocessorsAreCutWithoutATrace) {
    const Cube planes = planes_of(2300, 1100, 1, 4);
    eadp::Options o;
    o.times = {65, 520};
    EXPECT_LT(difference(run(planes, o, *m_cpu, {0, 0, 8}).cube, run(planes, o, *m_cuda).cube, 2), 1e-5);
}

TEST_F(EadpCuda, ManyCopiesComponentsAndTinyScenesWork) {
    const Cube planes = planes_of(90, 70, 30, 5);
    eadp::Options o;
    for (int c = 1; c <= 19; ++c)
        o.times.push_back(3.0 * c);
    EXPECT_LT(difference(run(planes, o, *m_cpu).cube, run(planes, o, *m_cuda).cube, 19), 1e-5);
    o.times = {65};
    for (auto [w, h] : {std::pair{1, 1}, {1, 9}, {9, 1}, {2, 3}}) {
        const Cube tiny = planes_of(w, h, 1, 6);
        const auto a = run(tiny, o, *m_cpu).cube, b = run(tiny, o, *m_cuda).cube;
        for (size_t i = 0; i < a.values.size(); ++i)
            EXPECT_NEAR(a.values[i], b.values[i], 1e-3);
    }
}

TEST_F(EadpCuda, AVeryHighDegreeStillWorks) {
    const Cube planes = planes_of(700, 650, 1, 7);
    eadp::Options o;
    o.times = {60000}; // needs more sweeps than the halo of any window allows
    EXPECT_LT(difference(run(planes, o, *m_cpu, {0, 0, 8}).cube, run(planes, o, *m_cuda).cube, 1), 3e-5);
}

} // namespace
} // namespace hsi::test
