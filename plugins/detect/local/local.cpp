// SPDX-License-Identifier: MIT
// RX against the ring of pixels around each pixel. The rows of U are the pixels of the ring minus a centre.
// The ring's covariance needs U'U (bands x bands). The sums U'U slide along four lines at once: columns of
// pixels are added and removed, see ring_columns.h. If the ring is small, U U' (pixels x pixels) is used
// instead. With the addition delta to C's diagonal, and e = U d,
//   d'(U'U/(n-1) + delta I)^-1 d = (d'd - e'(U U' + (n-1) delta I)^-1 e) / delta     (Woodbury)
#include "detect/local/local.h"
#include "core/cancel_scope.h"
#include "core/valid_pixel.h"
#include "detect/decide.h"
#include "detect/detect_simd.h"
#include "detect/local/ring.h"
#include "detect/local/ring_columns.h"
#include "math/definite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace hsi::detect {
namespace {

/// segment: sums restart at multiples of this number of samples in the scene. together: number of lines that
/// slide together; the first line is a multiple of it.
constexpr int64_t segment = 128, together = RingColumns::pixels;

/// Returns the pitch of a matrix with padding. It is an odd number of cache lines, so that successive rows
/// are in different sets of the cache.
ptrdiff_t pitch_of(size_t columns) {
    const auto eights = static_cast<ptrdiff_t>((columns + math::slack + 7) / 8);
    return (eights | 1) * 8;
}

size_t matrix_size(size_t columns) {
    return static_cast<size_t>(pitch_of(columns)) * (columns + Panels::height);
}

/// Return the cost of a pixel with U U' and with U'U, in multiplications of double precision. The costs were
/// measured with 60 to 224 bands and rings of 3 / 11 to 15 / 31. In addition to products and factor, they
/// include centring a ring's pixels and moving sums.
double cost_by_pixels(int bands, const Ring& ring) {
    return products_by_pixels(bands, ring) + 25.0 * static_cast<double>(ring_pixels(ring)) * bands;
}
double cost_by_bands(int bands, const Ring& ring) {
    const double b = bands, window = ring.outer * (1 + static_cast<double>(ring.outer) / segment);
    return b * b * b / 9 + (0.14 * window + 16) * b * b;
}

/// The cost of reading a neighbour's value and gathering it into its pixel's spectrum.
constexpr double cost_of_value = 75;

/// The parameters of all workers.
struct Plan {
    Plan(int band_count, const Ring& r)
        : bands(static_cast<size_t>(band_count)), ring(r), reach(r.outer / 2), gap(r.inner / 2),
          pixels(static_cast<size_t>(ring_pixels(r))),
          by_pixels(r.ridge_share > 0 && cost_by_pixels(band_count, r) < cost_by_bands(band_count, r)),
          line_share(cost_of_value * band_count / local_cost(band_count, r)) {}
    const size_t bands;
    const Ring ring;
    const int64_t reach, gap; ///< half widths of the outer and the inner square: (width - 1) / 2
    const size_t pixels;      ///< pixels of a whole ring
    const bool by_pixels;     ///< true if U U' costs less
    const double line_share;  ///< the result of LocalDetection::line_share()
    size_t order() const { return by_pixels ? pixels : bands; }
    /// Returns the number of vectors per call of update().
    size_t batch() const { return by_pixels ? bands : 48; }
    size_t row_pixels() const { return static_cast<size_t>(segment + 2 * reach); }
    int64_t lines_at_once() const { return by_pixels ? 1 : together; }
    /// Returns the number of lines within reach of the lines that slide together.
    int64_t lines_held() const { return ring.outer + lines_at_once() - 1; }
    uint64_t bytes() const {
        const uint64_t lines = static_cast<uint64_t>(lines_held()) * row_pixels();
        return 8 * (matrix_size(order() + 1) + batch() * static_cast<uint64_t>(pitch_of(order() + 1)) +
                    4 * static_cast<uint64_t>(pitch_of(std::max(bands, order()) + 1))) +
               lines * (bands * 4 + 2) + pixels * 8 +
               (by_pixels ? 0 : RingColumns::bytes(static_cast<int>(bands), ring.inner, ring.outer));
    }
};

class LocalWorker final : public stream::Worker {
  public:
    LocalWorker(const Plan& plan, const Decider& decider)
        : m_simd(simd_kernels()), m_plan(plan), m_decider(decider), m_bands(plan.bands),
          m_order(plan.order()), m_pitch(pitch_of(m_order + 1)), m_matrix(matrix_size(m_order + 1)),
          m_vectors(plan.batch() * static_cast<size_t>(m_pitch)), m_centre(m_bands + math::slack),
          m_mean(m_bands), m_apart(m_bands), m_variances(m_bands),
          m_lines(static_cast<size_t>(plan.lines_held()) * plan.row_pixels() * m_bands + math::slack),
          m_valid(static_cast<size_t>(plan.lines_held()) * plan.row_pixels()), m_counts(m_valid.size()) {
        m_ring.reserve(plan.pixels);
        if (!plan.by_pixels) m_columns.emplace(static_cast<int>(m_bands), plan.ring.inner, plan.ring.outer);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const Rect& core = tile.core;
        for (int64_t x = core.x, end = x; x < core.right(); x = end) {
            // Sums restart at multiples of the segment, wherever the tile begins.
            end = std::min(core.right(), x - x % segment + segment);
            m_from = std::max(tile.window.x, x - m_plan.reach);
            m_to = std::min(tile.window.right(), end + m_plan.reach);
            int64_t next = std::max(tile.window.y, core.y - m_plan.reach);
            for (int64_t y = core.y, below = y; y < core.bottom(); y = below) {
                below = std::min(core.bottom(), y + m_plan.lines_at_once());
                m_top = std::max(tile.window.y, y - m_plan.reach);
                m_bottom = std::min(tile.window.bottom(), below + m_plan.reach);
                for (; next < m_bottom; ++next)
                    take_line(tile, in, next);
                process_lines(tile, y, below, x, end, out);
            }
        }
    }

    int64_t valid = 0, invalid = 0, few = 0, flat = 0;

  private:
    using Lines = RingColumns::Lines;

    size_t slot(int64_t line, int64_t sample) const {
        return static_cast<size_t>(line % m_plan.lines_held()) * m_plan.row_pixels() +
               static_cast<size_t>(sample - m_from);
    }
    const float* spectrum(size_t at) const { return m_lines.data() + at * m_bands; }

    /// Copies a line of the segment and its surroundings, pixel by pixel, and finds valid pixels and
    /// background pixels.
    void take_line(const Tile& tile, const CubeView<float>& in, int64_t line) {
        const size_t first = slot(line, m_from), count = static_cast<size_t>(m_to - m_from);
        std::fill_n(m_magnitude.data(), count, 0.0);
        for (size_t b = 0; b < m_bands; ++b) {
            const float* const from =
                in.row(static_cast<int>(b), line - tile.window.y) + (m_from - tile.window.x);
            float* const to = m_lines.data() + first * m_bands + b;
            for (size_t i = 0; i < count; ++i) {
                to[i * m_bands] = from[i];
                m_magnitude[i] += std::fabs(static_cast<double>(from[i]));
            }
        }
        for (size_t i = 0; i < count; ++i) {
            m_valid[first + i] = is_valid_sum(m_magnitude[i]);
            m_counts[first + i] =
                m_valid[first + i] &&
                (m_plan.ring.mask == nullptr || m_plan.ring.mask->at(line, m_from + static_cast<int64_t>(i)));
        }
    }

    /// Processes the lines y .. below - 1.
    void process_lines(const Tile& tile, int64_t y, int64_t below, int64_t x, int64_t end,
                       const std::vector<CubeView<float>>& out) {
        m_started = false;
        m_first = y;
        m_below = below;
        for (int64_t sample = x; sample < end; ++sample) {
            check_cancelled();
            for (int64_t line = y; line < below; ++line) {
                const size_t at = slot(line, sample);
                std::optional<double> score;
                if (m_valid[at]) {
                    ++valid;
                    score = m_plan.by_pixels ? score_by_pixels(line, sample)
                                             : score_by_bands(line, sample, x, end);
                } else {
                    ++invalid;
                }
                const double value = score.value_or(0);
                write_decision(m_decider, &value, 1, score.has_value(), line - tile.core.y,
                               sample - tile.core.x, out);
            }
        }
    }

    /// Finds the background pixels of the ring.
    void find_ring(int64_t y, int64_t x) {
        m_ring.clear();
        const int64_t left = std::max(m_from, x - m_plan.reach), right = std::min(m_to, x + m_plan.reach + 1);
        const int64_t top = std::max(m_top, y - m_plan.reach),
                      bottom = std::min(m_bottom, y + m_plan.reach + 1);
        for (int64_t line = top; line < bottom; ++line)
            for (int64_t sample = left; sample < right; ++sample) {
                const bool inside = std::abs(line - y) <= m_plan.gap && std::abs(sample - x) <= m_plan.gap;
                if (const size_t at = slot(line, sample); !inside && m_counts[at]) m_ring.push_back(at);
            }
    }

    /// Computes m_mean, and m_apart = x - mean.
    void find_mean(const float* x) {
        std::fill(m_mean.begin(), m_mean.end(), 0.0);
        for (const size_t at : m_ring) {
            const float* const from = spectrum(at);
            for (size_t b = 0; b < m_bands; ++b)
                m_mean[b] += static_cast<double>(from[b]);
        }
        for (size_t b = 0; b < m_bands; ++b) {
            m_mean[b] /= static_cast<double>(m_ring.size());
            m_apart[b] = static_cast<double>(x[b]) - m_mean[b];
        }
    }

    /// Returns the score for a ring whose pixels are all equal.
    std::optional<double> score_without_variance(const float* x) {
        ++flat;
        const float* const one = spectrum(m_ring.front());
        if (std::equal(one, one + m_bands, x)) return 0.0;
        return {};
    }
    bool all_equal() const {
        const float* const one = spectrum(m_ring.front());
        return std::all_of(m_ring.begin(), m_ring.end(),
                           [&](size_t at) { return std::equal(one, one + m_bands, spectrum(at)); });
    }

    std::optional<double> score_by_pixels(int64_t y, int64_t sample) {
        find_ring(y, sample);
        const size_t n = m_ring.size();
        if (n < 2) {
            ++few;
            return {};
        }
        const float* const x = spectrum(slot(y, sample));
        if (all_equal()) return score_without_variance(x);
        find_mean(x);
        // Each vector has the values of a band at the ring's pixels, and one more entry for e = U d.
        for (size_t i = 0; i < n; ++i) {
            const float* const from = spectrum(m_ring[i]);
            for (size_t b = 0; b < m_bands; ++b)
                m_vectors[b * static_cast<size_t>(m_pitch) + i] = static_cast<double>(from[b]) - m_mean[b];
        }
        double squared = 0, trace = 0;
        for (size_t b = 0; b < m_bands; ++b) {
            double* const row = m_vectors.data() + b * static_cast<size_t>(m_pitch);
            row[n] = m_apart[b];
            std::fill(row + n + 1, row + n + 1 + math::slack, 0.0);
            squared += m_apart[b] * m_apart[b];
        }
        const auto order = static_cast<int>(n);
        for (size_t a = 0; a < n + Panels::height; ++a)
            std::fill_n(m_matrix.data() + a * static_cast<size_t>(m_pitch), n + 1 + math::slack, 0.0);
        m_definite.update(m_matrix.data(), m_pitch, order, order + 1, m_vectors.data(), m_pitch,
                          static_cast<int>(m_bands));
        for (size_t a = 0; a < n; ++a)
            trace += diagonal(a);
        // trace C = trace U U' / (n-1)
        const double ridge = m_plan.ring.ridge_share * trace / static_cast<double>(m_bands);
        for (size_t a = 0; a < n; ++a)
            diagonal(a) += ridge;
        const double delta = ridge / static_cast<double>(n - 1);
        return std::max(0.0, (squared - m_definite.solve(m_matrix.data(), m_pitch, order)) / delta);
    }

    double& diagonal(size_t a) { return m_matrix[a * static_cast<size_t>(m_pitch) + a]; }

    /// Returns d'M^-1 d, where M is m_matrix plus `ridge` on its diagonal and d is m_apart; nullopt if M has
    /// no inverse.
    std::optional<double> solve_bands(double ridge) {
        for (size_t a = 0; a < m_bands; ++a) {
            diagonal(a) += ridge;
            m_variances[a] = diagonal(a);
            m_matrix[a * static_cast<size_t>(m_pitch) + m_bands] = m_apart[a];
        }
        const double score = m_definite.solve(m_matrix.data(), m_pitch, static_cast<int>(m_bands));
        if (ridge > 0) return score;
        for (size_t a = 0; a < m_bands; ++a)
            if (!(diagonal(a) * diagonal(a) > least_local_pivot * m_variances[a])) {
                ++few;
                return {};
            }
        return score;
    }
    /// Returns the number of pixels that a ring needs; without a ridge, they must span the bands.
    int64_t least_pixels() const {
        return m_plan.ring.ridge_share > 0 ? 2 : static_cast<int64_t>(m_bands) + 1;
    }

    double trace_of_matrix() {
        double trace = 0;
        for (size_t a = 0; a < m_bands; ++a)
            trace += diagonal(a);
        return trace;
    }

    std::optional<double> score_by_bands(int64_t y, int64_t sample, int64_t x, int64_t end) {
        slide_to(sample, x, end);
        const RingColumns& sums = *m_columns;
        const auto pixel = static_cast<size_t>(y - m_first);
        if (sums.count(pixel) < least_pixels()) {
            ++few;
            return {};
        }
        const auto n = static_cast<double>(sums.count(pixel));
        const float* const values = spectrum(slot(y, sample));
        for (size_t a = 0; a < m_bands; ++a)
            m_apart[a] = static_cast<double>(values[a]) - m_centre[a] - sums.apart(pixel)[a] / n;
        const auto [products, scatter] = sums.squares(pixel);
        double& greatest = m_greatest[pixel];
        greatest = std::max(greatest, products);
        // Pixels that were added and removed leave rounding errors in the sums. If almost no variance is
        // left, these errors would dominate.
        if (!(scatter > 1e-9 * greatest)) return score_directly(y, sample);
        const double ridge = m_plan.ring.ridge_share * scatter / (n - 1) / static_cast<double>(m_bands);
        if (ridge > 0) // With a ridge, single precision is usually enough.
            if (const auto score = m_columns->solve(pixel, m_apart.data(), ridge)) return *score;
        m_columns->matrix(pixel, m_matrix.data(), m_pitch);
        return solve_bands(ridge);
    }

    /// Computes the score from the ring itself, for sums with almost no variance left.
    std::optional<double> score_directly(int64_t y, int64_t sample) {
        find_ring(y, sample);
        const float* const x = spectrum(slot(y, sample));
        if (all_equal()) return score_without_variance(x);
        find_mean(x);
        std::fill(m_matrix.begin(), m_matrix.end(), 0.0);
        m_to_add = 0;
        for (const size_t at : m_ring)
            add_vector(at);
        flush();
        const double share = 1.0 / static_cast<double>(m_ring.size() - 1);
        for (size_t a = 0; a < m_bands; ++a)
            for (size_t b = a; b < m_bands; ++b)
                m_matrix[a * static_cast<size_t>(m_pitch) + b] *= share;
        return solve_bands(m_plan.ring.ridge_share * trace_of_matrix() / static_cast<double>(m_bands));
    }

    /// Adds a pixel to m_matrix.
    void add_vector(size_t at) {
        if (m_to_add == m_plan.batch()) flush();
        double* const to = m_vectors.data() + m_to_add * static_cast<size_t>(m_pitch);
        const float* const from = spectrum(at);
        for (size_t b = 0; b < m_bands; ++b)
            to[b] = static_cast<double>(from[b]) - m_mean[b];
        ++m_to_add;
    }
    /// Adds the pending vectors.
    void flush() {
        const auto bands = static_cast<int>(m_bands);
        m_definite.update(m_matrix.data(), m_pitch, bands, bands, m_vectors.data(), m_pitch,
                          static_cast<int>(m_to_add));
        m_to_add = 0;
    }

    /// Moves the sums to the rings around the pixels of `sample`, from the previous sample or from scratch.
    void slide_to(int64_t sample, int64_t x, int64_t end) {
        const int64_t reach = m_plan.reach, gap = m_plan.gap;
        if (!m_started) {
            start(x, end);
            m_started = true;
            m_at = x;
        }
        for (; m_at < sample; ++m_at) {
            add_column(m_at - reach, Lines::all, false);
            add_column(m_at + 1 + gap, Lines::inner, false);
            add_column(m_at - gap, Lines::inner, true);
            add_column(m_at + 1 + reach, Lines::all, true);
            m_columns->flush();
        }
    }

    /// Returns the set of pixels that slide together, active or not, whose line is at most `lines` from
    /// `line`.
    RingColumns::Pixels pixels_within(int64_t line, int64_t lines) const {
        RingColumns::Pixels within = 0;
        for (int64_t i = 0; i < together; ++i)
            if (std::abs(line - m_first - i) <= lines) within |= 1u << i;
        return within;
    }

    /// Adds lines of a column, or subtracts them.
    void add_column(int64_t sample, Lines lines, bool plus) {
        if (sample < m_from || sample >= m_to) return;
        if (m_columns->keeps(sample)) {
            m_columns->add(sample, lines, plus);
            return;
        }
        const int64_t reach = m_plan.reach, gap = m_plan.gap;
        m_spectra.clear();
        for (int64_t line = m_top; line < m_bottom; ++line) {
            const size_t at = slot(line, sample);
            if (!m_counts[at]) continue;
            const float* const values = spectrum(at);
            const RingColumns::Pixels in_window = pixels_within(line, reach),
                                      in_square = pixels_within(line, gap);
            if (in_window != RingColumns::all_pixels)
                m_spectra.window.push_back({values, in_window});
            else if (in_square == RingColumns::all_pixels)
                m_spectra.inner.push_back(values);
            else
                m_spectra.outer.push_back(values);
            if (in_square != RingColumns::all_pixels && in_square != 0)
                m_spectra.square.push_back({values, in_square});
        }
        m_columns->add(sample, lines, plus, m_spectra, m_centre.data());
    }

    void start(int64_t x, int64_t end) {
        // Values are summed relative to a centre near their mean, so that the sums do not lose digits.
        std::fill(m_centre.begin(), m_centre.end(), 0.0);
        int64_t pixels = 0;
        for (int64_t line = m_first; line < m_below; ++line)
            for (int64_t sample = x; sample < end; ++sample)
                if (const size_t at = slot(line, sample); m_valid[at]) {
                    for (size_t b = 0; b < m_bands; ++b)
                        m_centre[b] += static_cast<double>(spectrum(at)[b]);
                    ++pixels;
                }
        for (double& c : m_centre)
            c /= static_cast<double>(pixels);
        m_greatest = {};
        m_columns->clear(static_cast<int>(m_below - m_first));
        for (int64_t sample = x - m_plan.reach; sample <= x + m_plan.reach; ++sample)
            add_column(sample, std::abs(sample - x) > m_plan.gap ? Lines::all : Lines::outer, true);
    }

    const SimdKernels& m_simd;
    const math::DefiniteKernels& m_definite = math::definite_kernels();
    const Plan& m_plan;
    const Decider& m_decider;
    const size_t m_bands, m_order;
    const ptrdiff_t m_pitch;
    std::optional<RingColumns> m_columns;
    std::vector<double> m_matrix;  ///< C or U U', then its factor
    std::vector<double> m_vectors; ///< pending vectors, padded with zeros
    std::vector<double> m_centre, m_mean, m_apart, m_variances;
    std::vector<float> m_lines; ///< [line % lines_held()][sample - m_from][band]
    std::vector<char> m_valid, m_counts;
    std::array<double, segment + largest_window> m_magnitude{};
    std::vector<size_t> m_ring;
    RingColumns::Spectra m_spectra;                        ///< spectra of one column
    int64_t m_from = 0, m_to = 0, m_top = 0, m_bottom = 0; ///< samples and lines within reach
    int64_t m_at = 0;                                      ///< sample of the pixels whose rings are summed
    /// First and one past the last line that slide together
    int64_t m_first = 0, m_below = 0;
    /// Maximum of each pixel's sum of squares since the start
    std::array<double, together> m_greatest{};
    size_t m_to_add = 0;
    bool m_started = false;
};

class LocalDetection final : public Detection {
  public:
    LocalDetection(int bands, const Ring& ring, const Decision& decision)
        : m_plan(bands, ring), m_decider(false, decision) {}
    int64_t halo() const override { return m_plan.reach; }
    int64_t align_samples() const override { return m_plan.by_pixels ? 1 : segment; }
    int64_t align_lines() const override { return m_plan.lines_at_once(); }
    double line_share() const override { return m_plan.line_share; }
    std::vector<int> output_bands() const override {
        return m_decider.map() ? std::vector<int>{1, 1} : std::vector<int>{1};
    }
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return m_plan.bytes(); }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<LocalWorker>(m_plan, m_decider);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const LocalWorker&>(worker);
        m_valid += w.valid;
        m_invalid += w.invalid;
        m_few += w.few;
        m_flat += w.flat;
    }

  private:
    const Plan m_plan;
    const Decider m_decider;
};

} // namespace

double local_products(int bands, const Ring& ring) {
    const double by_bands = products_by_bands(bands, ring, segment);
    return ring.ridge_share > 0 ? std::min(products_by_pixels(bands, ring), by_bands) : by_bands;
}

double local_cost(int bands, const Ring& ring) {
    const double by_bands = cost_by_bands(bands, ring);
    return ring.ridge_share > 0 ? std::min(cost_by_pixels(bands, ring), by_bands) : by_bands;
}

std::unique_ptr<Detection> make_local_detection(int bands, const Ring& ring, const Decision& decision) {
    check_ring(bands, ring);
    return std::make_unique<LocalDetection>(bands, ring, decision);
}

} // namespace hsi::detect
