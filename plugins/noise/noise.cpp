// SPDX-License-Identifier: MIT
#include "noise/noise.h"

#include "core/cube_view.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "math/exact_sum.h"
#include "math/linear_algebra.h"
#include "noise/blocks.h"
#include "noise/stripes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace hsi::noise {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr double least_share = 0.04; ///< smallest noise variance, relative to the variance of the residual

/// Returns the solution q of M q = v, but at least least_share times v.
std::vector<double> solved(const std::vector<double>& matrix, const std::vector<double>& v) {
    const size_t n = v.size();
    const auto inverse = math::invert(matrix, static_cast<int>(n));
    std::vector<double> q(n);
    for (size_t k = 0; k < n; ++k) {
        for (size_t j = 0; j < n; ++j)
            q[k] += inverse[k * n + j] * v[j];
        q[k] = std::max(q[k], least_share * v[k]);
    }
    return q;
}

} // namespace

double median(std::vector<double> values) {
    if (values.empty()) return nothing;
    const size_t half = values.size() / 2;
    const auto middle = values.begin() + static_cast<ptrdiff_t>(half);
    std::nth_element(values.begin(), middle, values.end());
    return values.size() % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Noise by_regression(const stream::SceneStatistics& statistics) {
    const auto bands = static_cast<size_t>(statistics.bands);
    std::vector<size_t> used;
    for (size_t b = 0; b < bands; ++b)
        if (statistics.covariance[b * (bands + 1)] > 0) used.push_back(b);
    const size_t n = used.size();
    const auto pixels = static_cast<double>(statistics.valid_pixels);
    if (statistics.valid_pixels < static_cast<int64_t>(n) + 2)
        throw Error("-method regression needs more pixels than bands: there are " +
                        std::to_string(statistics.valid_pixels) + " valid pixels and " + std::to_string(n) +
                        " bands",
                    "Use -method residual, or fewer bands (-b).");
    std::vector<double> deviation;
    for (const size_t b : used)
        deviation.push_back(std::sqrt(statistics.covariance[b * (bands + 1)]));
    std::vector<double> correlation(n * n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            correlation[i * n + j] =
                i == j ? 1 : statistics.covariance[used[i] * bands + used[j]] / (deviation[i] * deviation[j]);
    Noise result{std::vector<double>(bands, nothing), std::vector<double>(bands, nothing)};
    constexpr double least_eigenvalue = 1e-10;
    if (n == 0) return result;
    result.regularised =
        math::eigenvalues_symmetric(correlation, static_cast<int>(n)).back() < least_eigenvalue;
    for (size_t k = 0; k < n && result.regularised; ++k)
        correlation[k * (n + 1)] += least_eigenvalue;
    const auto p = math::invert_positive(correlation, static_cast<int>(n));
    std::vector<double> v(n), system(n * n);
    for (size_t k = 0; k < n; ++k) {
        v[k] = (pixels - 1) / ((pixels - static_cast<double>(n)) * p[k * (n + 1)]);
        for (size_t j = 0; j < n; ++j) {
            const double b = p[std::max(j, k) * n + std::min(j, k)] / p[k * (n + 1)];
            system[k * n + j] = j == k ? 1 : b * b;
        }
    }
    const auto q = solved(system, v);
    for (size_t k = 0; k < n; ++k) {
        const double s = deviation[k] * std::sqrt(pixels / (pixels - 1));
        result.residual[used[k]] = s * std::sqrt(v[k]);
        result.noise[used[k]] = s * std::sqrt(q[k]);
    }
    return result;
}

Noise by_differences(const stream::SceneStatistics& statistics) {
    const auto bands = static_cast<size_t>(statistics.bands);
    Noise result;
    for (size_t b = 0; b < bands; ++b)
        result.noise.push_back(std::sqrt(statistics.differences[b * (bands + 1)] / 2));
    result.residual = result.noise;
    return result;
}

namespace {

struct Grid {
    Grid(const stream::CubeShape& scene, int64_t block_size, bool any)
        : size(block_size), across(scene.samples / size), down(scene.lines / size) {
        constexpr int64_t most = 16384;
        step = std::max<int64_t>(1, (across * down + most - 1) / most);
        taken = any ? (across * down + step - 1) / step : 0;
    }
    int64_t size, across, down, step = 1, taken = 0;
};

constexpr int64_t least_group = 16; ///< smallest number of lines whose sums are added together

class ScanWorker final : public stream::Worker {
  public:
    ScanWorker(const stream::CubeShape& scene, const Grid& grid, int64_t group, BlockMethod method,
               const std::vector<Neighbours>& neighbours, const std::vector<int>& mean_bands,
               std::vector<Said>& said)
        : sums(2 * static_cast<size_t>(scene.bands * scene.samples)),
          column_sums(mean_bands.size() * static_cast<size_t>(scene.samples)),
          counts(static_cast<size_t>(scene.samples)), pixels(static_cast<size_t>(scene.samples)),
          m_mean_bands(mean_bands), m_scene(scene), m_grid(grid), m_group(group), m_method(method),
          m_said(said), m_blocks(method, grid.size, neighbours) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        judge(in);
        const int64_t x0 = tile.core.x - tile.window.x, y0 = tile.core.y - tile.window.y;
        for (int64_t line = 0; line < tile.core.h; line += m_group) {
            const int64_t count = std::min(m_group, tile.core.h - line);
            look_for_stripes(tile, in, x0, y0 + line, count);
            if (!m_mean_bands.empty()) add_columns(tile, in, x0, y0 + line, count);
        }
        if (m_method == BlockMethod::none) return;
        for (int64_t y = tile.core.y / m_grid.size;
             y < m_grid.down && y * m_grid.size < tile.core.y + tile.core.h; ++y) {
            BlockRow row{y * m_grid.size - tile.window.y, {}, {}};
            for (int64_t x = tile.core.x / m_grid.size;
                 x < m_grid.across && x * m_grid.size < tile.core.x + tile.core.w; ++x) {
                const int64_t place = y * m_grid.across + x, sample = x * m_grid.size - tile.window.x;
                if (place % m_grid.step != 0 || !is_whole(sample, row.y)) continue;
                row.x.push_back(sample);
                row.said.push_back(m_said.data() + place / m_grid.step * m_scene.bands);
            }
            m_blocks.estimate(in, row);
        }
    }

    math::ExactSums sums;        ///< sums of e and of e^2, per band and column
    math::ExactSums column_sums; ///< sums of pixels, per listed band and column
    std::vector<int64_t> counts, pixels;

  private:
    void judge(const CubeView<float>& in) {
        const auto width = static_cast<size_t>(in.samples);
        m_valid.assign(static_cast<size_t>(in.lines) * width, 0);
        for (int64_t line = 0; line < in.lines; ++line) {
            m_magnitude.assign(width, 0);
            for (int b = 0; b < in.bands; ++b)
                add_magnitudes(in.row(b, line), width, m_magnitude.data());
            char* const valid = m_valid.data() + static_cast<size_t>(line) * width;
            for (size_t i = 0; i < width; ++i)
                valid[i] = is_valid_sum(m_magnitude[i], in.row(0, line) + i, in.bands, in.band_stride);
        }
        m_width = in.samples;
    }
    bool valid(int64_t line, int64_t sample) const {
        return m_valid[static_cast<size_t>(line * m_width + sample)] != 0;
    }

    /// Sums e = x_j - (x_{j-1} + x_{j+1})/2 over triples of valid pixels.
    void look_for_stripes(const Tile& tile, const CubeView<float>& in, int64_t x0, int64_t y, int64_t lines) {
        const auto width = static_cast<size_t>(tile.core.w);
        const size_t first = x0 == 0, last = x0 + tile.core.w == m_width ? width - 1 : width;
        std::vector<double> factor(width * static_cast<size_t>(lines)), sum(2 * width);
        bool all = true;
        for (int64_t l = 0; l < lines; ++l)
            for (size_t i = first; i < last; ++i) {
                const int64_t j = x0 + static_cast<int64_t>(i);
                const bool triple = valid(y + l, j - 1) && valid(y + l, j) && valid(y + l, j + 1);
                factor[static_cast<size_t>(l) * width + i] = triple;
                counts[static_cast<size_t>(tile.core.x) + i] += triple;
                all = all && triple;
            }
        double* const squares = sum.data() + width; // 0 in the scene's first and last column
        for (int b = 0; b < in.bands && first < last; ++b) {
            add_stripes({in.row(b, y) + x0 + first, in.line_stride, lines, last - first},
                        all ? nullptr : factor.data() + first, width, sum.data() + first, squares + first);
            const auto place = static_cast<size_t>(2 * b * m_scene.samples + tile.core.x);
            sums.add(place, sum.data(), width);
            sums.add(place + static_cast<size_t>(m_scene.samples), squares, width);
        }
    }

    void add_columns(const Tile& tile, const CubeView<float>& in, int64_t x0, int64_t y, int64_t lines) {
        std::vector<double> sum(static_cast<size_t>(tile.core.w));
        for (size_t k = 0; k < m_mean_bands.size(); ++k) {
            std::fill(sum.begin(), sum.end(), 0.0);
            for (int64_t l = 0; l < lines; ++l) {
                const float* const row = in.row(m_mean_bands[k], y + l) + x0;
                for (int64_t i = 0; i < tile.core.w; ++i)
                    if (valid(y + l, x0 + i)) sum[static_cast<size_t>(i)] += static_cast<double>(row[i]);
            }
            column_sums.add(k * static_cast<size_t>(m_scene.samples) + static_cast<size_t>(tile.core.x),
                            sum.data(), sum.size());
        }
        for (int64_t l = 0; l < lines; ++l)
            for (int64_t i = 0; i < tile.core.w; ++i)
                pixels[static_cast<size_t>(tile.core.x + i)] += valid(y + l, x0 + i);
    }

    /// Returns whether all pixels of a block are valid.
    bool is_whole(int64_t x, int64_t y) const {
        for (int64_t l = 0; l < m_grid.size; ++l)
            for (int64_t i = 0; i < m_grid.size; ++i)
                if (!valid(y + l, x + i)) return false;
        return true;
    }

    const std::vector<int>& m_mean_bands;
    const stream::CubeShape m_scene;
    const Grid& m_grid;
    const int64_t m_group;
    const BlockMethod m_method;
    std::vector<Said>& m_said; ///< estimates of all blocks; each block is written by exactly one worker
    BlockEstimator m_blocks;
    std::vector<float> m_magnitude;
    std::vector<char> m_valid; ///< validity of the pixels of the window
    int64_t m_width = 0;
};

class CpuScan final : public NoiseScan {
  public:
    CpuScan(const stream::CubeShape& scene, BlockMethod method, int block, std::vector<Neighbours> neighbours,
            std::vector<int> mean_bands)
        : m_scene(scene), m_method(method), m_grid(scene, block, method != BlockMethod::none),
          m_group((least_group + block - 1) / block * block), m_neighbours(std::move(neighbours)),
          m_said(static_cast<size_t>(m_grid.taken * scene.bands),
                 Said{std::numeric_limits<float>::quiet_NaN(), 0, 0, 0}),
          m_sums(2 * static_cast<size_t>(scene.bands * scene.samples)),
          m_counts(static_cast<size_t>(scene.samples)), m_mean_bands(std::move(mean_bands)),
          m_column_sums(m_mean_bands.size() * static_cast<size_t>(scene.samples)), m_pixels(m_counts) {}
    int64_t halo() const override { return 1; }
    int64_t align_samples() const override { return m_grid.size; }
    int64_t align_lines() const override { return m_group; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        constexpr int of_floats = 2; // the exponents of a scene's values are within this multiple of 64
        const size_t columns = 2 * static_cast<size_t>(m_scene.bands) + m_mean_bands.size();
        return math::ExactSums::most_bytes(columns * static_cast<size_t>(m_scene.samples), -64 * of_floats,
                                           64 * of_floats) +
               static_cast<uint64_t>(limits.window_samples * limits.window_lines) +
               BlockEstimator::bytes(m_grid.size);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ScanWorker>(m_scene, m_grid, m_group, m_method, m_neighbours, m_mean_bands,
                                            m_said);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const ScanWorker&>(worker);
        m_sums.add(w.sums);
        for (size_t i = 0; i < m_counts.size(); ++i)
            m_counts[i] += w.counts[i];
        m_column_sums.add(w.column_sums);
        for (size_t i = 0; i < m_pixels.size(); ++i)
            m_pixels[i] += w.pixels[i];
    }

    ColumnMeans column_means() const override {
        ColumnMeans result{{}, m_pixels};
        for (size_t k = 0; k < m_column_sums.size(); ++k) {
            const int64_t n = m_pixels[k % m_pixels.size()];
            result.mean.push_back(n > 0 ? m_column_sums.value(k) / static_cast<double>(n) : nothing);
        }
        return result;
    }

    Stripes stripes() const override {
        constexpr int64_t enough = 20;
        constexpr double to_deviation = 1.4826, far = 5;
        Stripes result;
        const auto width = static_cast<size_t>(m_scene.samples);
        for (size_t b = 0; b < static_cast<size_t>(m_scene.bands); ++b) {
            std::vector<double> means, variances;
            for (size_t j = 0; j < width; ++j) {
                if (m_counts[j] < enough) continue;
                const auto n = static_cast<double>(m_counts[j]);
                const double mean = m_sums.value(2 * b * width + j) / n,
                             squares = m_sums.value((2 * b + 1) * width + j);
                means.push_back(mean);
                variances.push_back(std::max(0.0, squares - n * mean * mean) / (n - 1) / n);
            }
            const double middle = median(means);
            std::vector<double> off;
            double beyond = 0;
            for (size_t j = 0; j < means.size(); ++j) {
                off.push_back(std::fabs(means[j] - middle));
                beyond += std::fabs(means[j]) > far * std::sqrt(variances[j]);
            }
            const double spread = to_deviation * median(off);
            const double above = spread * spread - median(variances);
            result.stripe.push_back(means.empty() ? nothing : std::sqrt(std::max(0.0, above) / 1.5));
            result.share.push_back(means.empty() ? nothing : beyond / static_cast<double>(means.size()));
        }
        return result;
    }

    BlockNoise blocks() const override {
        const auto bands = static_cast<size_t>(m_scene.bands);
        BlockNoise result;
        result.noise.assign(bands, nothing);
        result.residual = result.signal = result.noise;
        if (m_method == BlockMethod::deviations) {
            for (size_t b = 0; b < bands; ++b)
                take_fullest(b, result);
            return result;
        }
        std::vector<double> system(bands * bands), v(bands);
        for (size_t b = 0; b < bands; ++b) {
            system[b * (bands + 1)] = 1;
            const auto first = said(b, 0);
            if (first.empty()) continue;
            v[b] = median(first);
            system[b * (bands + 1)] += median(said(b, 3));
            system[b * bands + static_cast<size_t>(m_neighbours[b].first)] = median(said(b, 1));
            system[b * bands + static_cast<size_t>(m_neighbours[b].second)] = median(said(b, 2));
            result.residual[b] = std::sqrt(v[b]);
        }
        const auto q = solved(system, v);
        for (size_t b = 0; b < bands; ++b)
            if (!std::isnan(result.residual[b])) result.noise[b] = std::sqrt(q[b]);
        return result;
    }

  private:
    std::vector<double> said(size_t band, size_t what) const {
        std::vector<double> values;
        const auto bands = static_cast<size_t>(m_scene.bands);
        for (size_t k = band; k < m_said.size(); k += bands)
            if (!std::isnan(m_said[k][0])) values.push_back(static_cast<double>(m_said[k][what]));
        return values;
    }
    /// Estimates the noise from the fullest bin. The standard deviations above 0 are divided into 150 equal
    /// bins.
    void take_fullest(size_t band, BlockNoise& result) const {
        constexpr size_t bins = 150;
        const auto deviations = said(band, 0), means = said(band, 1);
        double least = std::numeric_limits<double>::infinity(), most = 0;
        for (const double d : deviations)
            if (d > 0) {
                least = std::min(least, d);
                most = std::max(most, d);
            }
        if (!(most > 0)) return;
        std::array<double, bins> count{}, sum{}, signal{};
        for (size_t k = 0; k < deviations.size(); ++k) {
            const double d = deviations[k];
            if (!(d > 0)) continue;
            const double at = most > least ? (d - least) / (most - least) * static_cast<double>(bins) : 0;
            const size_t bin = std::min(static_cast<size_t>(at), bins - 1);
            count[bin] += 1;
            sum[bin] += d;
            signal[bin] += means[k];
        }
        const auto full = static_cast<size_t>(std::max_element(count.begin(), count.end()) - count.begin());
        result.noise[band] = result.residual[band] = sum[full] / count[full];
        result.signal[band] = signal[full] / count[full];
    }

    const stream::CubeShape m_scene;
    const BlockMethod m_method;
    const Grid m_grid;
    const int64_t m_group;
    const std::vector<Neighbours> m_neighbours;
    std::vector<Said> m_said;
    math::ExactSums m_sums;
    std::vector<int64_t> m_counts;
    const std::vector<int> m_mean_bands;
    math::ExactSums m_column_sums;
    std::vector<int64_t> m_pixels;
};

/// Fits a parabola to the points (x, y) by least squares. Returns the parabola's value at each x. \throws
/// Error if there are fewer than 3 points. Its message is about the option -smile, since the points are
/// columns with an absorption feature.
std::vector<double> parabola(const std::vector<double>& x, const std::vector<double>& y) {
    // Uses orthogonal polynomials of degree 0, 1 and 2 at these points.
    const size_t n = x.size();
    if (n < 3)
        throw Error("-smile: fewer than 3 columns have an absorption",
                    "Give another range, or more columns.");
    std::vector<double> fitted(n);
    std::vector<std::vector<double>> basis;
    for (int degree = 0; degree < 3; ++degree) {
        std::vector<double> q(n, 1);
        for (size_t i = 0; i < n && degree > 0; ++i)
            q[i] = basis.back()[i] * x[i];
        const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
            double sum = 0;
            for (size_t i = 0; i < n; ++i)
                sum += a[i] * b[i];
            return sum;
        };
        for (const auto& other : basis) {
            const double f = dot(q, other) / dot(other, other);
            for (size_t i = 0; i < n; ++i)
                q[i] -= f * other[i];
        }
        const double f = dot(q, y) / dot(q, q);
        for (size_t i = 0; i < n; ++i)
            fitted[i] += f * q[i];
        basis.push_back(std::move(q));
    }
    return fitted;
}

} // namespace

std::unique_ptr<NoiseScan> make_scan(const stream::CubeShape& scene, BlockMethod method, int block,
                                     const std::vector<Neighbours>& neighbours,
                                     const std::vector<int>& mean_bands) {
    return std::make_unique<CpuScan>(scene, method, block, neighbours, mean_bands);
}

Smile smile_of(const std::vector<double>& wavelengths, const std::vector<double>& means) {
    const size_t bands = wavelengths.size(), columns = means.size() / bands;
    const double first = wavelengths.front(), last = wavelengths.back();
    Smile smile{std::vector<double>(columns, nothing), std::vector<double>(columns, nothing)};
    std::vector<double> x, p;
    for (size_t j = 0; j < columns; ++j) {
        const double low = means[j], high = means[(bands - 1) * columns + j];
        double area = 0, moment = 0, depth = -std::numeric_limits<double>::infinity();
        for (size_t k = 0; k < bands; ++k) {
            const double at = wavelengths[k], line = low + (high - low) * (at - first) / (last - first);
            const double missing = 1 - means[k * columns + j] / line;
            const double weight =
                (wavelengths[std::min(k + 1, bands - 1)] - wavelengths[k > 0 ? k - 1 : 0]) / 2;
            area += weight * missing;
            moment += weight * missing * (at - first);
            depth = std::max(depth, missing);
        }
        const double centroid = first + moment / area;
        // The column has no absorption, or no valid pixel.
        if (!(area > 0) || !std::isfinite(centroid)) continue;
        x.push_back(2 * static_cast<double>(j) / static_cast<double>(std::max<size_t>(1, columns - 1)) - 1);
        p.push_back(centroid);
        smile.depth[j] = depth;
        smile.shift_nm[j] = centroid;
    }
    double mean = 0;
    for (const double one : p)
        mean += one / static_cast<double>(p.size());
    std::vector<double> shifts;
    for (double& shift : smile.shift_nm) {
        shift = mean - shift;
        if (!std::isnan(shift)) shifts.push_back(shift);
    }
    const auto fitted = parabola(x, shifts);
    const auto [low, high] = std::minmax_element(fitted.begin(), fitted.end());
    smile.smile_nm = *high - *low;
    for (size_t i = 0; i < shifts.size(); ++i)
        smile.rms_nm +=
            (shifts[i] - fitted[i]) * (shifts[i] - fitted[i]) / static_cast<double>(shifts.size());
    smile.rms_nm = std::sqrt(smile.rms_nm);
    return smile;
}

} // namespace hsi::noise
