// SPDX-License-Identifier: MIT
#include "destripe/destripe.h"

#include "core/cube_view.h"
#include "core/valid_pixel.h"
#include "destripe/medians.h"
#include "destripe/rows.h"
#include "math/elementary.h"
#include "parallel/group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::destripe {
namespace {

/// The minimum number of valid pixels in a usable column, and of pairs of pixels for a step between columns
constexpr int64_t enough = 20;
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// Returns the middle value, or the mean of the two middle values. Changes the order of the values.
double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return values.size() % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// Sets `value` to the least-squares line at column places[at], through the taken levels within `half`
/// columns. Returns false if there are fewer than 3 such levels.
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

/// Finds the valid pixels of a line of a window.
class LineLook {
  public:
    /// Sets keep[i] to 1 for each valid pixel of the line, else to 0. Returns the number of valid pixels.
    int64_t look(const CubeView<float>& in, int64_t line, float* keep) {
        const auto width = static_cast<size_t>(in.samples);
        m_magnitude.assign(width, 0);
        for (int b = 0; b < in.bands; ++b)
            add_magnitudes(in.row(b, line), width, m_magnitude.data());
        int64_t valid = 0;
        for (size_t i = 0; i < width; ++i) {
            const bool is = is_valid_sum(m_magnitude[i], in.row(0, line) + i, in.bands, in.band_stride);
            keep[i] = is ? 1.0f : 0.0f;
            valid += is;
        }
        return valid;
    }

  private:
    std::vector<float> m_magnitude;
};

bool steps(Method method) { return method == Method::difference || method == Method::ratio; }

/// Computes the statistics of columns that the method uses, in a window with all lines.
class Levels {
  public:
    explicit Levels(Method method) : m_method(method) {}

    /// Finds the valid pixels. find() must be called with the same window.
    void look(const CubeView<float>& in) {
        const auto width = static_cast<size_t>(in.samples);
        m_keep.resize(width * static_cast<size_t>(in.lines));
        m_count.assign(width, 0);
        m_all = true;
        for (int64_t line = 0; line < in.lines; ++line) {
            float* const keep = m_keep.data() + static_cast<size_t>(line) * width;
            m_all = m_line.look(in, line, keep) == in.samples && m_all;
            for (size_t i = 0; i < width; ++i)
                m_count[i] += keep[i] > 0;
        }
    }
    /// Returns the number of valid pixels of a column.
    int64_t count(int64_t column) const { return m_count[static_cast<size_t>(column)]; }

    /// Calls f(column, level, deviation) for usable columns in [first, last). `level` is the mean, the
    /// median, or the median step from the previous column; steps need a usable previous column. `deviation`
    /// is only set for the method moment.
    template <class F>
    void find(const CubeView<float>& in, int band, int64_t first, int64_t last, const F& f) {
        constexpr auto most = static_cast<int64_t>(columns_at_once);
        m_rows.resize(static_cast<size_t>(in.lines * most));
        const bool by_steps = steps(m_method);
        for (int64_t j = by_steps ? std::max<int64_t>(first, 1) : first; j < last; j += most) {
            const int64_t columns = std::min(most, last - j);
            ColumnNumbers kept{}, level{}, deviation{};
            fill(in, band, j, columns);
            if (m_method == Method::moment)
                find_moments(in.lines, j, level, deviation);
            else
                find_medians(m_rows.data(), in.lines, kept, level);
            for (int64_t i = 0; i < columns; ++i) {
                const auto at = static_cast<size_t>(i);
                if (count(j + i) < enough || (by_steps && count(j + i - 1) < enough)) continue;
                f(j + i, by_steps && kept[at] < enough ? 0 : level[at], deviation[at]);
            }
        }
    }

  private:
    /// Copies values or steps of a few columns to rows.
    void fill(const CubeView<float>& in, int band, int64_t first, int64_t columns) {
        const bool whole = columns == static_cast<int64_t>(columns_at_once);
        if (whole && m_method != Method::ratio)
            return fill_rows(in, band, first, steps(m_method), m_all ? nullptr : m_keep.data(),
                             m_rows.data());
        for (int64_t line = 0; line < in.lines; ++line) {
            const float* const value = in.row(band, line) + first;
            const float* const keep = m_keep.data() + line * in.samples + first;
            double* const to = m_rows.data() + line * static_cast<int64_t>(columns_at_once);
            std::fill_n(to, columns_at_once, left_out);
            if (m_method == Method::ratio) {
                std::array<double, columns_at_once + 1> log{};
                for (int64_t i = -1; i < columns; ++i)
                    log[static_cast<size_t>(i + 1)] =
                        keep[i] > 0 && value[i] > 0 ? math::log(static_cast<double>(value[i])) : left_out;
                for (size_t i = 0; i < static_cast<size_t>(columns); ++i)
                    if (log[i] < left_out && log[i + 1] < left_out) to[i] = log[i + 1] - log[i];
                continue;
            }
            for (int64_t i = 0; i < columns; ++i)
                if (steps(m_method) ? keep[i] > 0 && keep[i - 1] > 0 : keep[i] > 0)
                    to[i] = static_cast<double>(value[i]) -
                            (steps(m_method) ? static_cast<double>(value[i - 1]) : 0);
        }
    }
    void find_moments(int64_t lines, int64_t first, ColumnNumbers& mean, ColumnNumbers& deviation) const {
        ColumnNumbers count{}, squares{};
        for (size_t i = 0; i < columns_at_once; ++i)
            count[i] = first + static_cast<int64_t>(i) < static_cast<int64_t>(m_count.size())
                           ? static_cast<double>(m_count[static_cast<size_t>(first) + i])
                           : 0;
        const auto each = [&](const auto& take) {
            for (int64_t line = 0; line < lines; ++line)
                for (size_t i = 0; i < columns_at_once; ++i)
                    if (const double v = m_rows[static_cast<size_t>(line) * columns_at_once + i];
                        v < left_out)
                        take(i, v);
        };
        each([&](size_t i, double v) { mean[i] += v / count[i]; });
        each([&](size_t i, double v) { squares[i] += (v - mean[i]) * (v - mean[i]); });
        for (size_t i = 0; i < columns_at_once; ++i)
            deviation[i] = std::sqrt(squares[i] / count[i]);
    }

    const Method m_method;
    LineLook m_line;
    std::vector<float> m_keep; ///< one per pixel of the window: 1 if valid, else 0
    std::vector<int64_t> m_count;
    bool m_all = false; ///< true if all pixels of the window are valid
    std::vector<double> m_rows;
};

struct Found {
    /// [band][column]; for steps, `level` is the step from the previous column
    std::vector<double> level, deviation;
    std::vector<int64_t> valid; ///< valid pixels per column
};

class ScanWorker final : public stream::Worker {
  public:
    ScanWorker(const stream::CubeShape& scene, Method method, Found& found)
        : m_scene(scene), m_levels(method), m_found(found) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        m_levels.look(in);
        const int64_t x0 = tile.core.x - tile.window.x;
        for (int64_t i = 0; i < tile.core.w; ++i)
            m_found.valid[static_cast<size_t>(tile.core.x + i)] = m_levels.count(x0 + i);
        for (int b = 0; b < in.bands; ++b)
            m_levels.find(in, b, x0, x0 + tile.core.w, [&](int64_t j, double level, double deviation) {
                const auto at = static_cast<size_t>(b * m_scene.samples + tile.window.x + j);
                m_found.level[at] = level;
                m_found.deviation[at] = deviation;
            });
    }

  private:
    const stream::CubeShape m_scene;
    Levels m_levels;
    Found& m_found; ///< one worker writes each column
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
        return static_cast<uint64_t>(limits.window_samples * limits.window_lines) * sizeof(float) +
               static_cast<uint64_t>(limits.window_lines) * columns_at_once * sizeof(double);
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
    /// Adds the steps up to levels. If the previous column is not usable, the step is from the last usable
    /// column.
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
        std::vector<float> values(2 * static_cast<size_t>(m_scene.bands * m_scene.lines));
        const auto both = CubeView<float>::packed(values.data(), m_scene.bands, m_scene.lines, 2);
        for (const int64_t side : {0, 1})
            reader->read({static_cast<int64_t>(side == 0 ? from : to), 0, 1, m_scene.lines},
                         both.cut(side, 0, 1, m_scene.lines));
        Levels levels(m_method);
        levels.look(both);
        for (int b = 0; b < m_scene.bands; ++b)
            levels.find(both, b, 1, 2, [&](int64_t, double step, double) {
                level[static_cast<size_t>(b * m_scene.samples) + to] = step;
            });
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
        m_keep.resize(width);
        for (int64_t line = 0; line < in.lines; ++line) {
            const int64_t good = m_line.look(in, line, m_keep.data());
            valid += good;
            invalid += in.samples - good;
            for (int b = 0; b < in.bands; ++b) {
                const size_t first =
                    static_cast<size_t>(b) * m_columns.samples + static_cast<size_t>(tile.core.x);
                float* const to = out[0].row(b, line);
                correct_row(in.row(b, line), m_columns.factor.data() + first, m_columns.offset.data() + first,
                            width, to);
                for (size_t i = 0; i < width && good < in.samples; ++i)
                    if (m_keep[i] == 0) to[i] = no_number;
            }
        }
    }

    int64_t valid = 0, invalid = 0;

  private:
    const Columns& m_columns;
    LineLook m_line;
    std::vector<float> m_keep; ///< one per pixel of the current line: 1 if valid, else 0
};

class CpuCorrection final : public Correction {
  public:
    CpuCorrection(int bands, Columns columns) : m_bands(bands), m_columns(std::move(columns)) {}
    std::vector<int> output_bands() const override { return {m_bands}; }
    /// A tile of this size stays in the last-level cache of a small computer.
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
