// SPDX-License-Identifier: MIT
// The kernels of mrf_spectrum.h, called in the solver's order, compared with a dense inverse in double
// precision.
#include "sahic/mrf_spectrum.h"
#include "sahic/sahic_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace hsi::sahic {
namespace {

constexpr int64_t block_lines = 16;

int64_t wrapped(int64_t i, int64_t size, bool periodic) {
    const int64_t period = periodic ? size : 2 * size, at = ((i % period) + period) % period;
    return at < size ? at : period - 1 - at;
}

/// The plane of a spectrum of `plan.parts` images, packed.
class Applied {
  public:
    Applied(const SpectrumPlan& plan, std::vector<std::vector<float>> images, int64_t lines, int64_t samples,
            bool periodic)
        : m_plan(plan), m_images(std::move(images)), m_lines(lines), m_samples(samples), m_periodic(periodic),
          m_blocks((lines + block_lines - 1) / block_lines),
          m_f(static_cast<size_t>(m_blocks * block_lines / plan.lines() * plan.batch())),
          m_above(static_cast<size_t>(m_blocks * plan.row())), m_below(m_above) {
        for (int64_t i = 0; i < m_blocks * block_lines / plan.lines(); ++i)
            forward(i);
        for (int64_t b = 0; b < m_blocks; ++b) {
            std::array<float*, block_lines> line{};
            m_simd.ends(m_plan, block(b, line));
        }
        carry();
        for (int64_t b = 0; b < m_blocks; ++b) {
            std::array<float*, block_lines> line{};
            std::vector<float> extra(static_cast<size_t>(plan.batch()), 0.0f);
            float* const beyond[2] = {extra.data(), extra.data() + plan.lanes};
            m_simd.solve(m_plan, block(b, line), beyond);
            const auto around = back(extra.data());
            m_above_line.push_back(around[0]);
            m_below_line.push_back(around[1]);
        }
        for (int64_t i = 0; i < m_blocks * block_lines / plan.lines(); ++i)
            for (auto& line : back(m_f.data() + i * plan.batch()))
                m_out.push_back(line);
    }
    /// Returns [part][sample] of a line. Lines around a block are computed as the neighbouring blocks compute
    /// them.
    const std::vector<float>& line(int64_t y) const { return m_out[static_cast<size_t>(y)]; }
    const std::vector<float>& above(int64_t b) const { return m_above_line[static_cast<size_t>(b)]; }
    const std::vector<float>& below(int64_t b) const { return m_below_line[static_cast<size_t>(b)]; }
    int64_t blocks() const { return m_blocks; }

  private:
    float* segment(std::vector<std::vector<float>>& rows, int64_t line, int64_t lane, int imaginary) const {
        const int64_t part = m_plan.parts == 2 ? imaginary : 0,
                      place = m_plan.parts == 2 ? lane : lane + imaginary * m_plan.lanes;
        return rows[static_cast<size_t>(line * m_plan.parts + part)].data() + place * m_plan.length;
    }
    void forward(int64_t i) {
        std::vector<std::vector<float>> rows(static_cast<size_t>(m_plan.lines() * m_plan.parts));
        for (int64_t r = 0; r < m_plan.lines() * m_plan.parts; ++r) {
            const int64_t y = i * m_plan.lines() + r / m_plan.parts;
            auto& row = rows[static_cast<size_t>(r)];
            row.assign(static_cast<size_t>(m_plan.extended()), 0.0f);
            if (y >= m_lines) continue;
            for (int64_t x = 0; x < m_samples + 2 * SpectrumPlan::reach; ++x)
                row[static_cast<size_t>(x)] =
                    m_images[static_cast<size_t>(r % m_plan.parts)][static_cast<size_t>(
                        y * m_samples + wrapped(x - SpectrumPlan::reach, m_samples, m_periodic))];
        }
        const float* from[2][SpectrumPlan::width];
        for (int64_t k = 0; k < SpectrumPlan::width; ++k)
            for (int imaginary = 0; imaginary < 2; ++imaginary)
                from[imaginary][k] = segment(rows, k / m_plan.lanes, k % m_plan.lanes, imaginary);
        m_simd.gather(m_plan, from, m_f.data() + i * m_plan.batch());
        m_simd.forward(m_plan, m_f.data() + i * m_plan.batch());
    }
    SpectrumBlock block(int64_t b, std::array<float*, block_lines>& line) {
        SpectrumBlock one;
        one.count = std::min(block_lines, m_lines - b * block_lines);
        for (int64_t j = 0; j < one.count; ++j)
            line[static_cast<size_t>(j)] = m_f.data() +
                                           (b * block_lines + j) / m_plan.lines() * m_plan.batch() +
                                           j % m_plan.lines() * m_plan.lanes;
        one.line = line.data();
        one.above = m_above.data() + b * m_plan.row();
        one.below = m_below.data() + b * m_plan.row();
        return one;
    }
    void carry() {
        std::array<std::vector<float>, 4> powers;
        for (int64_t i = 0; i < m_plan.row(); ++i) {
            const auto z =
                static_cast<double>(m_plan.pole[static_cast<size_t>(i % (m_plan.row() / 2) / m_plan.lanes)]);
            const int64_t last = m_lines - (m_blocks - 1) * block_lines;
            powers[0].push_back(static_cast<float>(std::pow(z, block_lines)));
            powers[1].push_back(static_cast<float>(std::pow(z, last)));
            powers[2].push_back(static_cast<float>(std::pow(z, m_lines)));
            powers[3].push_back(
                static_cast<float>(1 / (1 - std::pow(z, m_periodic ? m_lines : 2 * m_lines))));
        }
        m_simd.carry({m_blocks, m_plan.row(), m_above.data(), m_below.data(), powers[0].data(),
                      powers[1].data(), powers[2].data(), powers[3].data(), m_periodic},
                     0, m_plan.row());
    }
    std::vector<std::vector<float>> back(float* batch) {
        std::vector<std::vector<float>> rows(static_cast<size_t>(m_plan.lines() * m_plan.parts));
        for (auto& row : rows)
            row.resize(static_cast<size_t>(m_plan.segments() * m_plan.length));
        float* to[2][SpectrumPlan::width];
        for (int64_t k = 0; k < SpectrumPlan::width; ++k)
            for (int imaginary = 0; imaginary < 2; ++imaginary)
                to[imaginary][k] = segment(rows, k / m_plan.lanes, k % m_plan.lanes, imaginary);
        m_simd.backward(m_plan, batch);
        m_simd.scatter(m_plan, batch, to);
        std::vector<std::vector<float>> lines(static_cast<size_t>(m_plan.lines()));
        for (size_t r = 0; r < rows.size(); ++r) {
            auto& line = lines[r / static_cast<size_t>(m_plan.parts)];
            line.insert(line.end(), rows[r].begin(), rows[r].begin() + m_samples);
        }
        return lines;
    }

    const SpectrumPlan& m_plan;
    const SpectrumKernels& m_simd = spectrum_kernels();
    std::vector<std::vector<float>> m_images, m_out, m_above_line, m_below_line;
    int64_t m_lines, m_samples;
    bool m_periodic;
    int64_t m_blocks;
    std::vector<float> m_f, m_above, m_below;
};

struct Case {
    int parts;
    int64_t lanes, lines, samples;
    bool periodic;
};

class Spectrum : public testing::TestWithParam<Case> {};

TEST_P(Spectrum, InvertsBothDirections) {
    const Case c = GetParam();
    SpectrumPlan plan;
    plan.parts = c.parts;
    plan.lanes = c.lanes;
    plan.resize(c.samples);
    plan.prepare();
    EXPECT_EQ(plan.n % 4, 0);
    std::mt19937 random(4);
    std::normal_distribution<float> normal(0, 1);
    const auto pixels = static_cast<size_t>(c.lines * c.samples);
    std::vector<std::vector<float>> images(static_cast<size_t>(c.parts), std::vector<float>(pixels));
    for (auto& image : images)
        for (float& v : image)
            v = normal(random);
    const Applied ours(plan, images, c.lines, c.samples, c.periodic);
    const reference::Inverse inverse(c.lines, c.samples, c.periodic);
    const int64_t first = c.periodic ? 0 : 1, last = ours.blocks() - (c.periodic ? 0 : 1);
    double worst = 0;
    for (size_t part = 0; part < images.size(); ++part) {
        const auto truth = inverse.apply({images[part].begin(), images[part].end()});
        const auto compare = [&](const std::vector<float>& line, int64_t y) {
            for (int64_t x = 0; x < c.samples; ++x) {
                const auto got =
                    static_cast<double>(line[part * static_cast<size_t>(c.samples) + static_cast<size_t>(x)]);
                worst = std::max(worst, std::fabs(got - truth[static_cast<size_t>(y * c.samples + x)]));
            }
        };
        for (int64_t y = 0; y < c.lines; ++y)
            compare(ours.line(y), y);
        for (int64_t b = first; b < ours.blocks(); ++b)
            compare(ours.above(b), wrapped(b * block_lines - 1, c.lines, c.periodic));
        for (int64_t b = 0; b < last; ++b)
            compare(ours.below(b), wrapped(std::min((b + 1) * block_lines, c.lines), c.lines, c.periodic));
    }
    EXPECT_LT(worst, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Cuts, Spectrum,
                         testing::Values(Case{1, 8, 40, 70, false}, Case{1, 8, 40, 70, true},
                                         Case{2, 8, 33, 45, false}, Case{1, 4, 17, 61, true},
                                         Case{2, 4, 35, 50, false}, Case{2, 4, 16, 50, true},
                                         Case{1, 8, 1, 30, false}, Case{2, 4, 2, 1, true},
                                         Case{1, 4, 30, 1, false}));

// The chosen size is about the number of values of a line, for any division.
bool has_small_factors(int64_t n) {
    for (const int64_t factor : {2, 3, 5})
        while (n % factor == 0)
            n /= factor;
    return n == 1;
}

TEST(Spectrum, TakesTheShortestTransformThatHoldsASegment) {
    for (int64_t samples = 1; samples < 40000; samples += 7) {
        const SpectrumPlan plan(samples, 2);
        int64_t n = (plan.length + 2 * SpectrumPlan::reach + 3) / 4 * 4;
        while (!has_small_factors(n))
            n += 4;
        ASSERT_EQ(plan.n, n) << samples;
    }
}

TEST(Spectrum, CutsWideLinesIntoShortSegments) {
    const SpectrumPlan wide(4096, 9), narrow(340, 9);
    EXPECT_LE(wide.n, 400);
    EXPECT_LE(wide.planes(9) * wide.row(), 9 * 4096 * 5 / 4);
    EXPECT_LE(narrow.planes(9) * narrow.row(), 9 * 340 * 5 / 2);
    for (const int64_t samples : {1, 2, 40, 145, 614, 1905, 30000}) {
        const SpectrumPlan plan(samples, 5);
        EXPECT_GE(plan.segments() * plan.length, samples);
        EXPECT_GE(plan.n, plan.length + 2 * SpectrumPlan::reach);
    }
}

} // namespace
} // namespace hsi::sahic
