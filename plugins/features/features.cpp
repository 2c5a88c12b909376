// SPDX-License-Identifier: MIT
#include "features/features.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/continuum.h"
#include "parallel/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::features {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
/// Pixels whose spectra are transposed together, so that they fit into a first-level cache.
constexpr int64_t strip = 16;

/// Returns the wavelength at which the line between two bands reaches `level`.
double crossing(const std::vector<double>& x, const double* r, size_t from, size_t to, double level) {
    return x[from] + (level - r[from]) / (r[to] - r[from]) * (x[to] - x[from]);
}

} // namespace

double vertex(const double* x, double before, double least, double behind) {
    const double left = (x[0] + x[1]) / 2, right = (x[1] + x[2]) / 2;
    const double d1 = (least - before) / (x[1] - x[0]), d2 = (behind - least) / (x[2] - x[1]);
    const double a = (d2 - d1) / (x[2] - x[0]);
    return a > 0 ? std::clamp(left - d1 / (2 * a), left, right) : x[1];
}

Feature feature_of(const std::vector<double>& x, const double* r) {
    constexpr double equal = 1e-10, least_depth = 1e-6;
    const size_t n = x.size();
    const double least = *std::min_element(r, r + n);
    const auto m =
        static_cast<size_t>(std::find_if(r, r + n, [&](double v) { return v <= least + equal; }) - r);
    Feature f{0, nothing, nothing, 0, nothing};
    for (size_t i = 1; i < n; ++i)
        f.area += (1 - r[i - 1] + 1 - r[i]) / 2 * (x[i] - x[i - 1]);
    const double depth = 1 - r[m];
    if (depth < least_depth) return f;
    f.depth = depth;
    f.position = vertex(x.data() + m - 1, r[m - 1], r[m], r[m + 1]);
    const double half = 1 - depth / 2;
    size_t i = m, k = m;
    while (r[i] < half)
        --i;
    while (r[k] < half)
        ++k;
    const double from = crossing(x, r, i + 1, i, half), to = crossing(x, r, k - 1, k, half);
    f.width = to - from;
    f.asymmetry = ((to - f.position) - (f.position - from)) / f.width;
    return f;
}

namespace {

class FeatureWorker final : public stream::Worker {
  public:
    FeatureWorker(const std::vector<Range>& ranges, Output output) : m_ranges(ranges), m_output(output) {
        size_t most = 0;
        for (const Range& range : ranges) {
            m_continua.emplace_back(range.x);
            most = std::max(most, range.x.size());
        }
        m_spectra.resize(most * static_cast<size_t>(strip));
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        for (int64_t line = 0; line < in.lines; ++line)
            for (int64_t first = 0; first < in.samples; first += strip) {
                m_count = static_cast<size_t>(std::min(strip, in.samples - first));
                judge(in, line, first);
                for (size_t k = 0; k < m_ranges.size(); ++k)
                    take_range(k, in, out[0], line, first);
                for (size_t i = 0; i < m_count; ++i) {
                    open += m_open[i];
                    if (m_open[i] && m_output == Output::removed)
                        for (int b = 0; b < out[0].bands; ++b)
                            out[0].row(b, line)[first + static_cast<int64_t>(i)] = no_number;
                }
            }
    }

    int64_t valid = 0, invalid = 0, open = 0;

  private:
    void judge(const CubeView<float>& in, int64_t line, int64_t first) {
        m_row.start(m_count);
        for (int b = 0; b < in.bands; ++b)
            m_row.look(in.row(b, line) + first);
        const int64_t good = m_row.judge();
        valid += good;
        invalid += static_cast<int64_t>(m_count) - good;
        m_open.fill(false);
    }

    void take_range(size_t k, const CubeView<float>& in, const CubeView<float>& out, int64_t line,
                    int64_t first) {
        const Range& range = m_ranges[k];
        const size_t n = range.x.size();
        double* const spectra = m_spectra.data();
        for (size_t b = 0; b < n; ++b) {
            const float* const row = in.row(static_cast<int>(range.bands[b]), line) + first;
            for (size_t i = 0; i < m_count; ++i)
                spectra[i * n + b] = row[i];
        }
        for (size_t i = 0; i < m_count; ++i) {
            double* const one = spectra + i * n;
            const bool good = m_row.is_valid(i), closed = good && m_continua[k].remove(one, one);
            m_open[i] = m_open[i] || (good && !closed);
            if (m_output == Output::features)
                put(closed ? feature_of(range.x, one) : Feature{nothing, nothing, nothing, nothing, nothing},
                    k, out, line, first + static_cast<int64_t>(i));
            else if (!closed)
                std::fill_n(one, n, nothing);
        }
        if (m_output == Output::features) return;
        for (size_t b = 0; b < n; ++b) {
            float* const row = out.row(static_cast<int>(range.bands[b]), line) + first;
            for (size_t i = 0; i < m_count; ++i)
                row[i] = static_cast<float>(spectra[i * n + b]);
        }
    }

    static void put(const Feature& f, size_t range, const CubeView<float>& out, int64_t line,
                    int64_t sample) {
        int band = static_cast<int>(range) * measures;
        for (const double v : {f.depth, f.position, f.width, f.area, f.asymmetry})
            out.row(band++, line)[sample] = static_cast<float>(v);
    }

    const std::vector<Range>& m_ranges;
    const Output m_output;
    std::vector<math::Continuum> m_continua;
    std::vector<double> m_spectra; ///< `strip` spectra in the bands of one range
    PixelRow m_row;
    std::array<bool, strip> m_open{};
    size_t m_count = 0;
};

class CpuFeatures final : public Features {
  public:
    CpuFeatures(int inputs, std::vector<Range> ranges, Output output)
        : m_inputs(inputs), m_ranges(std::move(ranges)), m_output(output) {
        check_ranges(inputs, m_ranges, output);
    }
    std::vector<int> output_bands() const override {
        return {m_output == Output::removed ? m_inputs : measures * static_cast<int>(m_ranges.size())};
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        uint64_t most = 0, all = 0;
        for (const Range& range : m_ranges) {
            most = std::max<uint64_t>(most, range.x.size());
            all += range.x.size();
        }
        return most * strip * sizeof(double) + all * (sizeof(double) + sizeof(size_t));
    }
    /// A tile of this size fits into the last-level cache of a small computer.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<FeatureWorker>(m_ranges, m_output);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const FeatureWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_open += w.open;
    }

  private:
    const int m_inputs;
    const std::vector<Range> m_ranges;
    const Output m_output;
};

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output) override {
        return features::make_features(inputs, std::move(ranges), output);
    }
};

} // namespace

void check_ranges(int inputs, const std::vector<Range>& ranges, Output output) {
    std::vector<int> uses(static_cast<size_t>(inputs));
    for (const Range& range : ranges) {
        if (range.bands.size() < 3 || range.bands.size() != range.x.size())
            throw Error("internal: a range of fewer than 3 bands");
        for (const size_t b : range.bands) {
            if (b >= uses.size()) throw Error("internal: a range contains a band that does not exist");
            ++uses[b];
        }
    }
    if (output == Output::removed && !std::all_of(uses.begin(), uses.end(), [](int n) { return n == 1; }))
        throw Error("internal: bands that are not in one range each");
}

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

void Features::exchange(parallel::Group& ranks) {
    CountingOperation::exchange(ranks);
    m_open = ranks.sum("pixels without a continuum", m_open);
}

std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output) {
    return std::make_unique<CpuFeatures>(inputs, std::move(ranges), output);
}

} // namespace hsi::features
