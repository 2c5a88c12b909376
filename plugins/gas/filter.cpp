// SPDX-License-Identifier: MIT
// Filters one group at a time, as a small scene in memory. The pixels of the group are stored in blocks
// (gas_simd.h). The first blocks have the pixels that count in statistics, ordered by line. The other valid
// pixels follow in new blocks.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/valid_pixel.h"
#include "detect/groups/groups.h"
#include "gas/filter_task.h"
#include "gas/gas.h"
#include "gas/gas_simd.h"
#include "math/definite.h"
#include "math/elementary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace hsi::gas {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// The statistics of a group, and the filter computed from them.
class Statistics {
  public:
    explicit Statistics(int bands)
        : m_pitch(pitch_of(bands)), m_rows(static_cast<size_t>(m_pitch * rows_together)),
          m_covariance(square(bands)), m_matrix(square(bands)), w(padded(bands)), t(padded(bands)),
          mean(padded(bands)), first_mean(padded(bands)), m_c(padded(bands)) {}
    static uint64_t bytes(int bands) {
        return 8 * (static_cast<uint64_t>(pitch_of(bands)) * rows_together + 2 * square(bands) +
                    8 * padded(bands));
    }

    /// Computes mean and sums of products of `count` pixels in blocks, with values of type T.
    template <class T>
    void take(const T* blocks, int bands, int64_t count) {
        m_bands = bands;
        m_count = count;
        for (int b = 0; b < bands; ++b) {
            double parts[sums] = {};
            each_row(blocks, b, [&](const T* row, int64_t pixels) {
                for (int64_t i = 0; i < pixels; ++i)
                    parts[i % sums] += static_cast<double>(row[i]);
            });
            first_mean[static_cast<size_t>(b)] = total(parts) / static_cast<double>(count);
        }
        mean = first_mean;
        std::fill(m_covariance.begin(), m_covariance.end(), 0.0);
        static_assert(rows_together == block_pixels);
        for (int64_t from = 0; from < count; from += block_pixels) {
            const int64_t pixels = std::min(block_pixels, count - from);
            const T* block = blocks + from * bands;
            for (int b = 0; b < bands; ++b, block += block_pixels)
                for (int64_t i = 0; i < pixels; ++i)
                    m_rows[static_cast<size_t>(i * m_pitch + b)] =
                        static_cast<double>(block[i]) - first_mean[static_cast<size_t>(b)];
            math::definite_kernels().update(m_covariance.data(), m_pitch, bands, bands, m_rows.data(),
                                            m_pitch, static_cast<int>(pixels));
        }
        std::fill(m_c.begin(), m_c.end(), 0.0);
        std::fill(m_before.begin(), m_before.end(), 0.0);
        m_b = 0;
    }
    /// Returns the shrinkage V of Ledoit and Wolf. Call it after take() and before scale().
    template <class T>
    double ledoit_wolf(const T* blocks) const {
        const auto bands = static_cast<size_t>(m_bands);
        std::vector<int> all(bands);
        std::iota(all.begin(), all.end(), 0);
        const detect::BandShrinkage shrinkage({first_mean.begin(), first_mean.begin() + m_bands}, all,
                                              m_covariance.data(), m_pitch, m_count);
        double fourth = 0;
        for (int64_t i = 0; i < m_count; ++i) {
            double squared = 0;
            const T* x = blocks + i / block_pixels * block_pixels * m_bands + i % block_pixels;
            for (size_t b = 0; b < bands; ++b, x += block_pixels) {
                const double z = static_cast<double>(*x) - shrinkage.centre()[b];
                squared += shrinkage.weight()[b] * z * z;
            }
            fourth += squared * squared;
        }
        return shrinkage.share(fourth);
    }
    /// Divides the sums of products by the number of pixels, which gives the covariance.
    void scale() {
        for (double& v : m_covariance)
            v /= static_cast<double>(m_count);
    }
    /// Computes w and q of the target t. Returns false if a pivot is too small.
    bool solve(double shrinkage) {
        const auto n = static_cast<size_t>(m_bands), pitch = static_cast<size_t>(m_pitch);
        simd_kernels().form_matrix(m_covariance.data(), m_pitch, m_bands, m_c.data(), m_before.data(), m_b,
                                   1 - shrinkage, m_matrix.data());
        m_diagonal.resize(n);
        for (size_t a = 0; a < n; ++a) {
            m_diagonal[a] = m_matrix[a * pitch + a];
            m_matrix[a * pitch + n] = t[a];
        }
        q = math::definite_kernels().solve(m_matrix.data(), m_pitch, m_bands);
        for (size_t a = n; a-- > 0;) { // Solves R w = R'^-1 t.
            const double* const row = m_matrix.data() + a * pitch;
            if (!(row[a] * row[a] > least_pivot * m_diagonal[a])) return false; // too small, or NaN
            double parts[4] = {};
            for (size_t b = a + 1; b < n; ++b)
                parts[b % 4] += row[b] * w[b];
            w[a] = (row[n] - ((parts[0] + parts[1]) + (parts[2] + parts[3]))) / row[a];
        }
        return std::isfinite(q);
    }
    double level() const { return std::inner_product(w.begin(), w.begin() + m_bands, mean.begin(), 0.0); }
    /// Computes the mean and the covariance of z = x - d t from sums over the pixels, for the next solve().
    void subtract(const double* products, const double* d, const double* d2) {
        const auto n = static_cast<double>(m_count);
        const double all = total(d), mean_d = all / n;
        m_b = total(d2) / n - mean_d * mean_d;
        m_before = t;
        for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b) {
            m_c[b] = (total(products + b * sums) - all * first_mean[b]) / n;
            mean[b] = first_mean[b] - mean_d * t[b];
        }
    }

  private:
    static constexpr int64_t rows_together = block_pixels;
    static ptrdiff_t pitch_of(int bands) { return (bands + math::slack + 7) / 8 * 8 + 8; }
    static size_t square(int bands) {
        return static_cast<size_t>(pitch_of(bands)) * static_cast<size_t>(bands + math::slack);
    }
    static size_t padded(int bands) { return static_cast<size_t>(bands + math::slack); }
    static double total(const double* parts) {
        double s[sums];
        std::copy_n(parts, sums, s);
        for (int half = sums / 2; half > 0; half /= 2)
            for (int i = 0; i < half; ++i)
                s[i] += s[i + half];
        return s[0];
    }
    template <class T, class Take>
    void each_row(const T* blocks, int b, Take take) const {
        for (int64_t from = 0; from < m_count; from += block_pixels)
            take(blocks + from * m_bands + b * block_pixels, std::min(block_pixels, m_count - from));
    }

    const ptrdiff_t m_pitch;
    int m_bands = 0;
    int64_t m_count = 0;
    std::vector<double> m_rows, m_covariance, m_matrix, m_diagonal;

  public:
    std::vector<double> w, t, mean, first_mean; ///< one value per band
    double q = 0;                               ///< t'w

  private:
    std::vector<double> m_c, m_before = m_c;
    double m_b = 0;
};

class FilterWorker final : public FilterLane {
  public:
    explicit FilterWorker(const FilterTask& task)
        : m_task(task), m_statistics(task.scene.bands),
          m_packed(task.group_values() * static_cast<size_t>(task.batch())), m_blocks(values_of(task)),
          m_logs(task.is_log() ? values_of(task) : 0), m_a(padded_pixels(task)), m_r(m_a.size()),
          m_inverse(m_a.size()) {}

    static uint64_t bytes(const FilterTask& task) {
        const uint64_t pixels = padded_pixels(task), values = values_of(task);
        return 4 * task.group_values() * static_cast<uint64_t>(task.batch()) +
               (task.is_log() ? 12 : 4) * values + 40 * pixels + Statistics::bytes(task.scene.bands);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const auto& c = m_task.columns;
        const int64_t last = c.group(tile.core.right() - 1) + 1;
        for (int64_t group = c.group(tile.core.x); group < last; group += m_task.batch()) {
            const int64_t end = std::min(last, group + m_task.batch());
            m_task.pack(tile, in, group, end, m_packed.data());
            for (int64_t g = group; g < end; ++g)
                do_group(tile, g, m_packed.data() + static_cast<size_t>(g - group) * m_task.group_values(),
                         out[0]);
        }
        copy_kept(m_task, out);
    }

  private:
    static size_t padded_pixels(const FilterTask& task) {
        return static_cast<size_t>((task.pixels() / block_pixels + 2) * block_pixels);
    }
    static size_t values_of(const FilterTask& task) {
        return padded_pixels(task) * static_cast<size_t>(task.scene.bands);
    }

    void do_group(const Tile& tile, int64_t group, const float* packed, const CubeView<float>& out) {
        const int64_t x = m_task.first_sample(group), width = m_task.end_sample(group) - x;
        m_pixels = width * m_task.scene.lines;
        GroupRecord record;
        find_pixels(packed, x, width);
        record.pixels = m_count;
        filter(packed, record);
        hand_out(tile, x, width, record.state == GroupState::filtered, out);
        if (x >= tile.core.x) found.push_back({group - m_task.columns.group(0), record});
    }

    /// Finds the valid pixels, in the order in which the blocks store them.
    void find_pixels(const float* packed, int64_t x, int64_t width) {
        m_row.start(static_cast<size_t>(m_pixels));
        for (int b = 0; b < m_task.scene.bands; ++b)
            m_row.look(packed + b * m_pixels);
        m_row.judge();
        m_order.clear();
        m_others.clear();
        for (int64_t i = 0; i < m_pixels; ++i) {
            if (!m_row.is_valid(static_cast<size_t>(i)) || (m_task.is_log() && !is_positive(packed, i)))
                continue;
            const bool counts = m_task.mask == nullptr || m_task.mask->at(i / width, x + i % width);
            (counts ? m_order : m_others).push_back(i);
        }
        m_count = static_cast<int64_t>(m_order.size());
        m_order.resize((m_order.size() + block_pixels - 1) / block_pixels * block_pixels, -1);
        m_first_other = static_cast<int64_t>(m_order.size()) / block_pixels;
        m_order.insert(m_order.end(), m_others.begin(), m_others.end());
        m_order.resize((m_order.size() + block_pixels - 1) / block_pixels * block_pixels, -1);
        m_all_blocks = static_cast<int64_t>(m_order.size()) / block_pixels;
    }
    bool is_positive(const float* packed, int64_t pixel) const {
        for (int b = 0; b < m_task.scene.bands; ++b)
            if (!(packed[b * m_pixels + pixel] > 0)) return false;
        return true;
    }

    /// Finds the bands that vary over the pixels that count in statistics.
    void find_bands(const float* packed) {
        m_bands.clear();
        for (int b = 0; b < m_task.scene.bands; ++b) {
            const float* const row = packed + b * m_pixels;
            const float first = row[m_order[0]];
            if (std::any_of(m_order.begin(), m_order.begin() + m_count,
                            [&](int64_t i) { return row[i] != first; }))
                m_bands.push_back(b);
        }
    }
    /// Copies values into blocks. The padding pixels of a block are 0 (lognormal: 1).
    void fill_blocks(const float* packed) {
        const size_t bands = m_bands.size();
        const float filling = m_task.is_log() ? 1 : 0;
        for (size_t block = 0; block < static_cast<size_t>(m_all_blocks); ++block)
            for (size_t b = 0; b < bands; ++b) {
                const float* const row = packed + m_bands[b] * m_pixels;
                const int64_t* const order = m_order.data() + block * block_pixels;
                float* const to = m_blocks.data() + (block * bands + b) * block_pixels;
                for (int64_t i = 0; i < block_pixels; ++i)
                    to[i] = order[i] < 0 ? filling : row[order[i]];
            }
        if (!m_task.is_log()) return;
        const size_t values = static_cast<size_t>(m_all_blocks) * bands * block_pixels;
        for (size_t i = 0; i < values; ++i)
            m_logs[i] = math::log(static_cast<double>(m_blocks[i]));
    }

    /// Computes m_a, m_r and their statistics.
    void filter(const float* packed, GroupRecord& record) {
        const auto& o = m_task.options;
        if (m_count < 2) return;
        find_bands(packed);
        record.state = GroupState::singular;
        if (m_bands.empty()) return;
        const int bands = static_cast<int>(m_bands.size());
        if (m_count <= bands && !m_task.shrinks()) {
            record.state = GroupState::few_pixels;
            return;
        }
        fill_blocks(packed);
        auto& s = m_statistics;
        double shrinkage = o.shrinkage;
        const auto take = [&](const auto* blocks) {
            s.take(blocks, bands, m_count);
            if (o.ledoit_wolf) shrinkage = s.ledoit_wolf(blocks);
            s.scale();
        };
        if (m_task.is_log())
            take(m_logs.data());
        else
            take(m_blocks.data());
        record.shrinkage = shrinkage;
        aim();
        if (!s.solve(shrinkage) || !(s.q > 0)) return;
        std::fill(m_r.begin(), m_r.end(), 1.0);
        if (!m_task.is_mag1c())
            match();
        else if (!iterate(shrinkage))
            return;
        record.state = GroupState::filtered;
    }

    /// Computes the target t at the group's mean.
    void aim() {
        auto& s = m_statistics;
        const double unit = m_task.is_mag1c() ? mag1c_unit : 1;
        for (size_t b = 0; b < m_bands.size(); ++b) {
            const double k = unit * m_task.options.absorption[static_cast<size_t>(m_bands[b])];
            s.t[b] = m_task.is_log() ? k : k * s.mean[b];
        }
    }

    void match() {
        const auto& s = m_statistics;
        const auto& simd = simd_kernels();
        const int bands = static_cast<int>(m_bands.size());
        if (m_task.is_log())
            simd.project_doubles(m_logs.data(), m_all_blocks, bands, s.w.data(), m_a.data());
        else
            simd.project(m_blocks.data(), m_all_blocks, bands, s.w.data(), m_a.data());
        const double level = s.level();
        for (double& a : m_a)
            a = (a - level) / s.q;
    }

    /// Runs the iterations of mag1c. Returns false if a matrix of an iteration has no inverse.
    bool iterate(double shrinkage) {
        const auto& o = m_task.options;
        const int bands = static_cast<int>(m_bands.size());
        auto& s = m_statistics;
        if (o.albedo) {
            simd_kernels().project(m_blocks.data(), m_all_blocks, bands, s.first_mean.data(), m_r.data());
            const double squared = std::inner_product(s.first_mean.begin(), s.first_mean.begin() + bands,
                                                      s.first_mean.begin(), 0.0);
            for (double& r : m_r)
                r /= squared;
        }
        for (size_t i = 0; i < m_order.size(); ++i)
            m_inverse[i] = m_order[i] >= 0 && m_r[i] > 0 ? 1 / m_r[i] : 0;
        std::fill(m_a.begin(), m_a.end(), 0.0);
        m_products.resize(m_bands.size() * sums);
        Sweep sweep;
        sweep.bands = bands;
        sweep.w = s.w.data();
        sweep.penalty = 0;
        double d[sums], d2[sums];
        for (int round = 0;; ++round) {
            sweep.level = s.level();
            sweep.q = round > 0 ? std::max(s.q, 1.0) : s.q;
            const bool last = round == o.iterations;
            std::fill(m_products.begin(), m_products.end(), 0.0);
            std::fill_n(d, sums, 0.0);
            std::fill_n(d2, sums, 0.0);
            run(sweep, 0, m_first_other, last ? nullptr : m_products.data(), d, d2);
            run(sweep, m_first_other, m_all_blocks, nullptr, d, d2);
            if (last) return true;
            s.subtract(m_products.data(), d, d2);
            aim();
            if (!s.solve(shrinkage)) return false;
            sweep.penalty = o.sparsity ? 1 : 0;
        }
    }
    void run(Sweep sweep, int64_t from, int64_t to, double* products, double* d, double* d2) {
        sweep.x = m_blocks.data() + from * sweep.bands * block_pixels;
        sweep.blocks = to - from;
        sweep.inverse = m_inverse.data() + from * block_pixels;
        sweep.r = m_r.data() + from * block_pixels;
        sweep.a = m_a.data() + from * block_pixels;
        sweep.products = products;
        sweep.d = d;
        sweep.d2 = d2;
        simd_kernels().sweep(sweep);
    }

    /// Returns one of the requested outputs for a pixel.
    double value(Output output, size_t at) {
        const bool mag1c = m_task.is_mag1c();
        switch (output) {
        case Output::enhancement:
            return mag1c ? mag1c_unit * m_a[at] : m_a[at];
        case Output::albedo:
            return m_r[at];
        case Output::sensitivity:
            return m_task.is_log() ? 1
                                   : (mag1c ? mag1c_unit : 1) * std::fabs(response(at)) /
                                         (m_r[at] * std::fabs(m_statistics.q));
        case Output::uncertainty:
            break;
        }
        const double v = std::sqrt(noise(at)) / std::fabs(response(at));
        return std::isfinite(v) ? v : no_value;
    }
    const float* spectrum(size_t at) const {
        return m_blocks.data() + at / block_pixels * block_pixels * m_bands.size() + at % block_pixels;
    }
    /// Returns w'(k x), or w'k for the lognormal method.
    double response(size_t at) const {
        const float* x = spectrum(at);
        double sum = 0;
        for (size_t b = 0; b < m_bands.size(); ++b, x += block_pixels)
            sum += m_statistics.w[b] * m_task.options.absorption[static_cast<size_t>(m_bands[b])] *
                   (m_task.is_log() ? 1 : static_cast<double>(*x));
        return sum;
    }
    /// Returns the variance of w'x due to the sensor's noise; for the lognormal method, of w'ln x.
    double noise(size_t at) const {
        const float* x = spectrum(at);
        const double scale = m_task.options.radiance_scale;
        double sum = 0;
        for (size_t b = 0; b < m_bands.size(); ++b, x += block_pixels) {
            const auto& of = m_task.options.noise[static_cast<size_t>(m_bands[b])];
            const double level = static_cast<double>(*x) * scale + of.b;
            double s = std::fabs(of.a * std::sqrt(level > 0 ? level : least_radiance) + of.d) / scale;
            if (m_task.is_log()) s /= static_cast<double>(*x);
            sum += m_statistics.w[b] * s * (m_statistics.w[b] * s);
        }
        return sum;
    }

    /// Writes the outputs of the group's pixels that are in the core.
    void hand_out(const Tile& tile, int64_t x, int64_t width, bool filtered, const CubeView<float>& out) {
        const int64_t from = std::max(x, tile.core.x), to = std::min(x + width, tile.core.right());
        for (int b = 0; b < out.bands; ++b)
            for (int64_t line = 0; line < tile.core.h; ++line)
                std::fill_n(out.row(b, line) + (from - tile.core.x), to - from,
                            std::numeric_limits<float>::quiet_NaN());
        invalid += (to - from) * tile.core.h;
        for (size_t at = 0; at < m_order.size(); ++at) {
            if (m_order[at] < 0) continue;
            const int64_t line = m_order[at] / width, sample = x + m_order[at] % width;
            if (sample < from || sample >= to) continue;
            --invalid;
            if (!filtered) {
                ++in_bad_groups;
                continue;
            }
            ++valid;
            if (!(m_r[at] > 0)) {
                ++dark;
                continue;
            }
            for (int b = 0; b < out.bands; ++b)
                out.row(b, line)[sample - tile.core.x] =
                    static_cast<float>(value(m_task.options.outputs[static_cast<size_t>(b)], at));
        }
    }

    const FilterTask& m_task;
    Statistics m_statistics;
    HostBuffer<float> m_packed; ///< the groups of a batch: bands x pixels
    HostBuffer<float> m_blocks;
    std::vector<double> m_logs;
    std::vector<double> m_a, m_r, m_inverse; ///< one value per pixel, in the order of the blocks
    std::vector<double> m_products;          ///< bands x sums
    std::vector<int64_t> m_order, m_others;  ///< pixels of the group; -1: padding of a block
    std::vector<int> m_bands;                ///< indices of the bands that vary
    int64_t m_pixels = 0, m_count = 0, m_first_other = 0, m_all_blocks = 0;
    PixelRow m_row;
};

class CpuFilter final : public ColumnFilter {
  public:
    using ColumnFilter::ColumnFilter;
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return FilterWorker::bytes(task()); }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<FilterWorker>(task());
    }
};

} // namespace

std::vector<int> FilterTask::kept() const {
    std::vector<int> bands;
    for (size_t b = 0; options.keep && b < options.outputs.size(); ++b)
        if (options.outputs[b] == Output::enhancement || options.outputs[b] == Output::uncertainty)
            bands.push_back(static_cast<int>(b));
    return bands;
}

FilterTask make_task(const stream::CubeShape& scene, const stream::Columns& columns,
                     const FilterOptions& options, const stream::PixelMask* mask) {
    const auto bands = static_cast<size_t>(scene.bands);
    const bool uncertain = std::find(options.outputs.begin(), options.outputs.end(), Output::uncertainty) !=
                           options.outputs.end();
    if (columns.width < 1 || columns.first < 0 || options.absorption.size() != bands ||
        options.outputs.empty() || options.outputs.size() > 4 || (uncertain && options.noise.size() != bands))
        throw Error("internal: a gas filter whose bands differ from the scene's");
    return {{scene, columns}, options, mask};
}

void FilterLane::copy_kept(const FilterTask& task, const std::vector<CubeView<float>>& out) {
    const auto kept = task.kept();
    for (size_t k = 0; k < kept.size(); ++k)
        for (int64_t line = 0; line < out[0].lines; ++line)
            std::copy_n(out[0].row(kept[k], line), out[0].samples, out[1].row(static_cast<int>(k), line));
}

ColumnFilter::ColumnFilter(FilterTask task) : m_task(std::move(task)), m_records(m_task) {}

std::vector<int> ColumnFilter::output_bands() const {
    std::vector<int> bands{static_cast<int>(m_task.options.outputs.size())};
    if (m_task.options.keep) bands.push_back(static_cast<int>(m_task.kept().size()));
    return bands;
}

void ColumnFilter::stop(stream::Worker& worker) {
    const auto& lane = static_cast<const FilterLane&>(worker);
    m_valid += lane.valid;
    m_invalid += lane.invalid;
    m_in_bad_groups += lane.in_bad_groups;
    m_dark += lane.dark;
    m_records.take(lane.found);
}

void ColumnFilter::exchange(parallel::Group& ranks) {
    m_valid = ranks.sum("valid pixels", m_valid);
    m_invalid = ranks.sum("invalid pixels", m_invalid);
    m_in_bad_groups = ranks.sum("pixels of groups without values", m_in_bad_groups);
    m_dark = ranks.sum("dark pixels", m_dark);
    m_records.exchange(ranks);
}

std::unique_ptr<Filter> make_filter(const stream::CubeShape& scene, const stream::Columns& columns,
                                    const FilterOptions& options, const stream::PixelMask* mask) {
    return std::make_unique<CpuFilter>(make_task(scene, columns, options, mask));
}

const char* simd_target() { return simd_kernels().target; }

} // namespace hsi::gas
