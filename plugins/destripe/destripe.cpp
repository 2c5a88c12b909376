// SPDX-License-Identifier: MIT
#include "destripe/destripe.h"

#include "core/cube_view.h"
#include "core/valid_pixel.h"
#include "math/elementary.h"
#include "parallel/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::destripe {
namespace {

constexpr int64_t enough = 20; ///< valid pixels of a usable column, and pairs of neighbours
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// Returns the median of all values: those in [first, last) and `below` smaller ones, which are left out.
double median_of(double* first, double* last, size_t half, bool odd, size_t below) {
    double* const middle = first + (half - below);
    std::nth_element(first, middle, last);
    return odd ? *middle : (*std::max_element(first, middle) + *middle) / 2;
}

/// The middle value, or the mean of both; the order of the values changes. Most of them are not moved: one
/// pass keeps those between two of a sample, which nearly always enclose the median.
double median(std::vector<double>& values) {
    constexpr size_t sampled = 31, around = 5, many = 8 * sampled;
    const size_t count = values.size(), half = count / 2;
    const bool odd = count % 2 == 1;
    if (count >= many) {
        std::array<double, sampled> sample{};
        for (size_t k = 0; k < sampled; ++k)
            sample[k] = values[k * count / sampled];
        std::sort(sample.begin(), sample.end());
        const double low = sample[sampled / 2 - around], high = sample[sampled / 2 + around];
        thread_local std::vector<double> between;
        between.resize(count);
        size_t below = 0, kept = 0;
        for (const double v : values) { // no branch
            between[kept] = v;
            kept += static_cast<size_t>(v >= low) & static_cast<size_t>(v <= high);
            below += v < low;
        }
        if (below + 1 <= half && half < below + kept)
            return median_of(between.data(), between.data() + kept, half, odd, below);
    }
    return median_of(values.data(), values.data() + count, half, odd, 0);
}

/// The line of least squares at `at`, through levels within `half` columns that are taken; false under 3.
bool line_at(size_t at, const std::vector<size_t>& places, const std::vector<double>& levels,
             const std::vector<char>& taken, size_t half, double& value) {
    const auto begin = static_cast<size_t>(
        std::lower_bound(places.begin(), places.end(), places[at] - std::min(places[at], half)) -
        places.begin());
    double count = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t k = begin; k < places.size() && places[k] <= places[at] + half; ++k) {
        if (taken[k] == 0) continue;
        const double d = static_cast<double>(places[k]) - static_cast<double>(places[at]),
                     z = levels[k] - levels[at];
        count += 1;
        x += d;
        y += z;
        xx += d * d;
        xy += d * z;
    }
    if (count < 3) return false;
    const double slope = (xy - x * y / count) / (xx - x * x / count);
    value = levels[at] + (y - slope * x) / count;
    return true;
}

} // namespace

std::vector<double> low_pass(const std::vector<size_t>& places, const std::vector<double>& levels,
                             int window) {
    constexpr double to_deviation = 1.4826, far = 3;
    const auto half = static_cast<size_t>(window - 1) / 2;
    std::vector<double> first = levels, off, sizes;
    std::vector<char> taken(levels.size(), 1);
    for (size_t k = 0; k < places.size(); ++k) {
        line_at(k, places, levels, taken, half, first[k]);
        off.push_back(levels[k] - first[k]);
    }
    sizes = off;
    if (sizes.empty()) return first;
    const double middle = median(sizes);
    for (size_t k = 0; k < off.size(); ++k)
        sizes[k] = std::fabs(off[k] - middle);
    const double limit = far * to_deviation * median(sizes);
    if (!(limit > 0)) return first;
    for (size_t k = 0; k < off.size(); ++k)
        taken[k] = std::fabs(off[k]) <= limit;
    auto again = first;
    for (size_t k = 0; k < places.size(); ++k)
        line_at(k, places, levels, taken, half, again[k]);
    return again;
}

namespace {

/// The statistics of columns that the method uses. The values of a column are contiguous.
class Levels {
  public:
    explicit Levels(Method method) : m_method(method) {}
    /// The value of a single column: mean, median; for moment also `deviation`.
    double of_column(const float* values, const char* valid, int64_t lines, double& deviation) {
        m_values.resize(static_cast<size_t>(lines));
        size_t kept = 0;
        for (int64_t l = 0; l < lines; ++l) {
            m_values[kept] = static_cast<double>(values[l]);
            kept += valid[l] != 0;
        }
        m_values.resize(kept);
        if (m_method == Method::median) return median(m_values);
        const auto count = static_cast<double>(kept);
        double mean = 0, squares = 0;
        for (const double v : m_values)
            mean += v / count;
        for (const double v : m_values)
            squares += (v - mean) * (v - mean);
        deviation = std::sqrt(squares / count);
        return mean;
    }
    /// The median step from one column to another.
    double step(const float* from, const char* valid_from, const float* to, const char* valid_to,
                int64_t lines) {
        m_values.resize(static_cast<size_t>(lines));
        size_t kept = 0;
        for (int64_t l = 0; l < lines; ++l) {
            const auto a = static_cast<double>(from[l]), b = static_cast<double>(to[l]);
            const bool both = valid_from[l] != 0 && valid_to[l] != 0;
            if (m_method == Method::difference) {
                m_values[kept] = b - a;
                kept += both;
            } else if (both && a > 0 && b > 0) {
                m_values[kept++] = math::log(b) - math::log(a);
            }
        }
        m_values.resize(kept);
        return static_cast<int64_t>(kept) < enough ? 0 : median(m_values);
    }

  private:
    const Method m_method;
    std::vector<double> m_values;
};

bool steps(Method method) { return method == Method::difference || method == Method::ratio; }

/// Marks the valid pixels of a window, column by column.
std::vector<char> valid_by_column(const CubeView<float>& in, PixelRow& row) {
    std::vector<char> valid(static_cast<size_t>(in.lines * in.samples));
    for (int64_t line = 0; line < in.lines; ++line) {
        row.start(static_cast<size_t>(in.samples));
        for (int b = 0; b < in.bands; ++b)
            row.look(in.row(b, line));
        row.judge();
        for (int64_t i = 0; i < in.samples; ++i)
            valid[static_cast<size_t>(i * in.lines + line)] = row.is_valid(static_cast<size_t>(i));
    }
    return valid;
}

struct Found {
    std::vector<double> level, deviation; ///< [band][column]; of steps the step from the column before
    std::vector<int64_t> valid;           ///< pixels of a column
};

class ScanWorker final : public stream::Worker {
  public:
    ScanWorker(const stream::CubeShape& scene, Method method, Found& found)
        : m_scene(scene), m_method(method), m_levels(method), m_found(found) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const auto valid = valid_by_column(in, m_row);
        const auto count_of = [&](int64_t j) {
            const auto first = valid.begin() + static_cast<ptrdiff_t>(j * in.lines);
            return std::count(first, first + static_cast<ptrdiff_t>(in.lines), 1);
        };
        std::vector<char> usable;
        for (int64_t j = 0; j < in.samples; ++j)
            usable.push_back(count_of(j) >= enough);
        const int64_t x0 = tile.core.x - tile.window.x;
        for (int64_t i = 0; i < tile.core.w; ++i)
            m_found.valid[static_cast<size_t>(tile.core.x + i)] = count_of(x0 + i);
        constexpr int64_t cache_line = 16;
        for (int64_t first = x0; first < x0 + tile.core.w; first += cache_line)
            for (int b = 0; b < in.bands; ++b) {
                const int64_t last = std::min(first + cache_line, x0 + tile.core.w);
                turn(in, b, first, last);
                for (int64_t j = first; j < last; ++j)
                    if (usable[static_cast<size_t>(j)] != 0)
                        find(b, j, first, j > 0 && usable[static_cast<size_t>(j - 1)] != 0,
                             valid.data() + j * in.lines, in.lines, j - x0 + tile.core.x);
            }
    }

  private:
    /// Columns of the window, and the one before them, each with its lines one after another: reading a
    /// column alone would read a cache line for every value.
    void turn(const CubeView<float>& in, int band, int64_t first, int64_t last) {
        const int64_t from = std::max<int64_t>(0, first - 1);
        m_turned.resize(static_cast<size_t>((last - first + 1) * in.lines));
        for (int64_t line = 0; line < in.lines; ++line) {
            const float* const row = in.row(band, line);
            for (int64_t j = from; j < last; ++j)
                m_turned[static_cast<size_t>((j - first + 1) * in.lines + line)] = row[j];
        }
    }
    void find(int band, int64_t j, int64_t first, bool before, const char* valid, int64_t lines,
              int64_t column) {
        const auto at = static_cast<size_t>(band * m_scene.samples + column);
        const float* const values = m_turned.data() + (j - first + 1) * lines;
        if (!steps(m_method))
            m_found.level[at] = m_levels.of_column(values, valid, lines, m_found.deviation[at]);
        else if (before)
            m_found.level[at] = m_levels.step(values - lines, valid - lines, values, valid, lines);
    }

    const stream::CubeShape m_scene;
    const Method m_method;
    Levels m_levels;
    Found& m_found; ///< each column is one worker's
    PixelRow m_row;
    std::vector<float> m_turned;
};

class CpuScan final : public LevelScan {
  public:
    CpuScan(const stream::CubeShape& scene, Method method) : m_scene(scene), m_method(method) {
        const auto count = static_cast<size_t>(scene.bands * scene.samples);
        m_found.level.resize(count);
        m_found.deviation.resize(count);
        m_found.valid.resize(static_cast<size_t>(scene.samples));
    }
    int64_t halo() const override { return 1; }
    int64_t align_lines() const override { return m_scene.lines; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return static_cast<uint64_t>(limits.window_samples * limits.window_lines) +
               static_cast<uint64_t>(limits.window_lines) * (2 * sizeof(double) + 17 * sizeof(float));
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ScanWorker>(m_scene, m_method, m_found);
    }
    int64_t valid_pixels() const override {
        int64_t sum = 0;
        for (const int64_t n : m_found.valid)
            sum += n;
        return sum;
    }

    Columns columns(const stream::CubeSource& scene, int window) const override {
        const auto bands = static_cast<size_t>(m_scene.bands), width = static_cast<size_t>(m_scene.samples);
        std::vector<size_t> usable;
        for (size_t j = 0; j < width; ++j)
            if (m_found.valid[j] >= enough) usable.push_back(j);
        auto level = m_found.level;
        if (steps(m_method)) add_up(scene, usable, level);
        Columns result{width, std::vector<double>(bands * width, 1), std::vector<double>(bands * width),
                       usable.size()};
        for (size_t b = 0; b < bands; ++b) {
            std::vector<double> z, s;
            for (const size_t j : usable) {
                z.push_back(level[b * width + j]);
                s.push_back(m_found.deviation[b * width + j]);
            }
            const auto smooth = low_pass(usable, z, window);
            const auto spread = m_method == Method::moment ? low_pass(usable, s, window) : s;
            for (size_t k = 0; k < usable.size(); ++k) {
                double& factor = result.factor[b * width + usable[k]];
                double& offset = result.offset[b * width + usable[k]];
                if (m_method == Method::ratio) factor = math::exp(smooth[k] - z[k]);
                if (m_method == Method::moment) factor = s[k] > 0 && spread[k] > 0 ? spread[k] / s[k] : 1;
                if (m_method != Method::ratio) offset = smooth[k] - factor * z[k];
            }
        }
        return result;
    }

  private:
    /// Steps become levels. Where the column before is not usable, the step is from the last one that is.
    void add_up(const stream::CubeSource& scene, const std::vector<size_t>& usable,
                std::vector<double>& level) const {
        const auto width = static_cast<size_t>(m_scene.samples);
        for (size_t k = 1; k < usable.size(); ++k) {
            if (usable[k] != usable[k - 1] + 1) step_over(scene, usable[k - 1], usable[k], level);
            for (size_t b = 0; b < static_cast<size_t>(m_scene.bands); ++b)
                level[b * width + usable[k]] += level[b * width + usable[k - 1]];
        }
    }
    void step_over(const stream::CubeSource& scene, size_t from, size_t to,
                   std::vector<double>& level) const {
        const auto reader = scene.open_reader();
        std::vector<float> values[2];
        std::vector<char> valid[2];
        PixelRow row;
        for (const auto& [side, column] :
             {std::pair<size_t, size_t>(0, from), std::pair<size_t, size_t>(1, to)}) {
            values[side].resize(static_cast<size_t>(m_scene.bands * m_scene.lines));
            const auto view = CubeView<float>::packed(values[side].data(), m_scene.bands, m_scene.lines, 1);
            reader->read({static_cast<int64_t>(column), 0, 1, m_scene.lines}, view);
            valid[side] = valid_by_column(view, row);
        }
        Levels levels(m_method);
        for (int b = 0; b < m_scene.bands; ++b) {
            const ptrdiff_t first = b * m_scene.lines;
            level[static_cast<size_t>(b * m_scene.samples) + to] =
                levels.step(values[0].data() + first, valid[0].data(), values[1].data() + first,
                            valid[1].data(), m_scene.lines);
        }
    }

    const stream::CubeShape m_scene;
    const Method m_method;
    Found m_found;
};

class CorrectionWorker final : public stream::Worker {
  public:
    explicit CorrectionWorker(const Columns& columns) : m_columns(columns) {}

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const auto width = static_cast<size_t>(in.samples);
        for (int64_t line = 0; line < in.lines; ++line) {
            m_row.start(width);
            for (int b = 0; b < in.bands; ++b)
                m_row.look(in.row(b, line));
            const int64_t good = m_row.judge();
            valid += good;
            invalid += in.samples - good;
            for (int b = 0; b < in.bands; ++b) {
                const size_t first =
                    static_cast<size_t>(b) * m_columns.samples + static_cast<size_t>(tile.core.x);
                const double* const factor = m_columns.factor.data() + first;
                const double* const offset = m_columns.offset.data() + first;
                const float* const from = in.row(b, line);
                float* const to = out[0].row(b, line);
                for (size_t i = 0; i < width; ++i) {
                    const double v = factor[i] * static_cast<double>(from[i]) + offset[i];
                    const bool stored = std::fabs(v) <= std::numeric_limits<float>::max();
                    to[i] = stored ? static_cast<float>(v) : no_number;
                }
                for (size_t i = 0; i < width && good < in.samples; ++i)
                    if (!m_row.is_valid(i)) to[i] = no_number;
            }
        }
    }

    int64_t valid = 0, invalid = 0;

  private:
    const Columns& m_columns;
    PixelRow m_row;
};

class CpuCorrection final : public Correction {
  public:
    CpuCorrection(int bands, Columns columns) : m_bands(bands), m_columns(std::move(columns)) {}
    std::vector<int> output_bands() const override { return {m_bands}; }
    /// A tile of this size stays in the last-level cache of a small machine.
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<CorrectionWorker>(m_columns);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CorrectionWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
    }

  private:
    const int m_bands;
    const Columns m_columns;
};

} // namespace

std::unique_ptr<LevelScan> make_scan(const stream::CubeShape& scene, Method method) {
    return std::make_unique<CpuScan>(scene, method);
}

void Correction::exchange(parallel::Group& ranks) {
    std::vector<int64_t> counts{m_valid, m_invalid};
    ranks.add_up("pixels", counts);
    m_valid = counts[0];
    m_invalid = counts[1];
}

std::unique_ptr<Correction> make_correction(int bands, Columns columns) {
    return std::make_unique<CpuCorrection>(bands, std::move(columns));
}

} // namespace hsi::destripe
