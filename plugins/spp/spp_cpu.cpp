// SPDX-License-Identifier: MIT
// Spatial preprocessing on the processor.
#include "core/cancel_scope.h"
#include "core/cube_view.h"
#include "core/error.h"
#include "spp/spp.h"
#include "spp/spp_simd.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hsi::spp {
namespace {

/// Neighbours whose distances are computed together. They are `rows` lines that start `down` lines below the
/// pixel, and `columns` columns that start `right` columns to the right.
struct Group {
    int down, right, rows, columns;
};

/// Returns the neighbours to the right and below, (0, 1..d) and (1..d, -d..d). They cover each unordered pair
/// of pixels once. Their order is line by line, left to right, which is the order in which angles are added.
std::vector<Group> half_window(int d) {
    std::vector<Group> groups;
    const auto add_line = [&](int down, int from, int to) {
        groups.push_back({down, from, 1, to - from + 1});
    };
    add_line(0, 1, d);
    for (int a = 1; a <= d; ++a) {
        if (d == 2) { // both lines form one group
            groups.push_back({a, -d, 2, 2 * d + 1});
            break;
        }
        add_line(a, -d, d);
    }
    return groups;
}

/// Returns the number of neighbours in the largest group: one line of the window, or two lines if d is 2.
size_t squared_rows(int d) { return static_cast<size_t>(d == 2 ? 10 : 2 * d + 1); }

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// Returns the number of columns of a tile that are processed together. They are few enough that d+1 lines of
/// their unit vectors stay in the second-level cache. They are at least 12 d, so that the 2 d columns of the
/// halo add at most a sixth.
int64_t strip_width(int bands, int d) {
    constexpr int64_t cache = 1024 << 10;
    const int64_t fitting = cache / (int64_t{4} * bands * (d + 1)) - 4 * d;
    return std::clamp<int64_t>(fitting / 16 * 16, std::max<int64_t>(64, round_up(12 * d, 16)), 512);
}

/// A strip of a tile. Its rows have the core and d halo columns on each side, whose angles are needed.
/// Further d columns on each side are allocated, so that the neighbours of the halo columns can be addressed
/// (as invalid pixels).
struct Strip {
    int64_t core; ///< number of columns that are computed
    int64_t pitch;
    static Strip make(int64_t core_samples, int bands, int d) {
        Strip s{};
        s.core = std::min(strip_width(bands, d), round_up(core_samples, 16));
        s.pitch = round_up(s.core + 4 * d, 16) + row_slack;
        return s;
    }
    uint64_t floats(int bands, int d) const {
        const auto p = static_cast<uint64_t>(pitch);
        return p * static_cast<uint64_t>(bands) * static_cast<uint64_t>(d + 1); // unit vectors
    }
    uint64_t bytes(int bands, int d) const {
        const auto p = static_cast<uint64_t>(pitch), rows = static_cast<uint64_t>(d + 1);
        return 4 * floats(bands, d) +
               p * (rows * (4 + 8 + 8) + 8 * (2 * rows - 1) + 4 * (squared_rows(d) + 2) + 16) +
               static_cast<uint64_t>(bands) * 12;
    }
};

class DisplacementWorker final : public stream::Worker {
  public:
    /// If `finding` is true, the last output is 1/rho.
    DisplacementWorker(const Options& options, bool finding, const std::vector<double>& centroid,
                       const stream::TileLimits& limits)
        : m_simd(simd_kernels()), m_options(options), m_finding(finding), m_d(options.window / 2),
          m_bands(static_cast<int>(centroid.size())), m_groups(half_window(m_d)),
          m_strip(Strip::make(limits.core_samples, m_bands, m_d)), m_unit(m_strip.floats(m_bands, m_d)),
          m_mask(rows() * pitch()), m_num(rows() * pitch()), m_den(rows() * pitch()),
          m_inverse(static_cast<size_t>(2 * m_d + 1) * pitch()), m_squared(squared_rows(m_d) * pitch()),
          m_angle(pitch()), m_weight(pitch()), m_inverse_rho(pitch()), m_rho(pitch()), m_alpha(pitch()),
          m_exact_row(static_cast<size_t>(2 * m_d + 1)), m_exact_inverse(m_exact_row.size()) {
        for (double c : centroid)
            m_centroid.push_back(static_cast<float>(c));
        std::fill_n(m_unit.data(), m_unit.size(), 0.0f);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        size_t k = 0;
        m_out_cube = m_options.cube ? &out[k++] : nullptr;
        m_out_alpha = m_options.alpha ? &out[k++] : nullptr;
        m_out_rho = m_options.rho ? &out[k++] : nullptr;
        m_out_inverse = m_finding ? &out[k++] : nullptr;
        for (int64_t x = tile.core.x; x < tile.core.right(); x += m_strip.core)
            process_strip(tile, in, x, std::min(m_strip.core, tile.core.right() - x));
    }

  private:
    size_t pitch() const { return static_cast<size_t>(m_strip.pitch); }
    size_t rows() const { return static_cast<size_t>(m_d + 1); }
    size_t slot(int64_t line) const { return static_cast<size_t>(line % (m_d + 1)) * pitch(); }
    size_t inverse_slot(int64_t line) const { return static_cast<size_t>(line % (2 * m_d + 1)) * pitch(); }
    float* unit(int64_t line) { return m_unit.data() + slot(line) * static_cast<size_t>(m_bands); }

    // Column k of a strip's row is sample x0 - 2d + k of the scene.
    void process_strip(const Tile& tile, const CubeView<float>& in, int64_t x0, int64_t width) {
        const Rect& window = tile.window;
        const int64_t origin = x0 - 2 * m_d;
        const int64_t first_centre = std::max(window.y, tile.core.y - m_d);
        int64_t next_line = first_centre; // next line whose unit vectors will be computed
        std::fill(m_num.begin(), m_num.end(), 0.0);
        std::fill(m_den.begin(), m_den.end(), 0.0);
        for (int64_t line = first_centre; line < tile.core.bottom(); ++line) {
            const int64_t last_line = std::min(line + m_d, window.bottom() - 1);
            for (; next_line <= last_line; ++next_line)
                make_units(in, window, next_line, origin, x0, width);
            add_angles(line, last_line, m_d, width + 2 * m_d);
            if (line >= tile.core.y) finish_line(tile, in, line, x0, width);
            // The slot is reused for line + d + 1.
            std::fill_n(m_num.begin() + static_cast<ptrdiff_t>(slot(line)), pitch(), 0.0);
            std::fill_n(m_den.begin() + static_cast<ptrdiff_t>(slot(line)), pitch(), 0.0);
        }
    }

    void make_units(const CubeView<float>& in, const Rect& window, int64_t line, int64_t origin, int64_t x0,
                    int64_t width) {
        const int64_t from = std::max(window.x, x0 - m_d), to = std::min(window.right(), x0 + width + m_d);
        float* const mask = m_mask.data() + slot(line);
        double* const inverse = m_inverse.data() + inverse_slot(line);
        std::fill_n(mask, pitch(), 0.0f); // Columns outside the window have no weight.
        const int64_t at = from - origin;
        m_simd.unit_row(in.row(0, line - window.y) + (from - window.x), in.band_stride, m_bands, to - from,
                        unit(line) + at, m_strip.pitch, mask + at, inverse + at);
    }

    /// Adds the angles between the pixels of `line` (columns [first, first+count)) and their neighbours to
    /// the right and below to both pixels of each pair. The order of additions to a pixel depends only on its
    /// own position in the scene: line by line, offset by offset. For each offset, the pixel's own pair is
    /// added first.
    void add_angles(int64_t line, int64_t last_line, int64_t first, int64_t count) {
        for (const Group& g : m_groups) {
            const int rows = static_cast<int>(std::min<int64_t>(g.rows, last_line - line - g.down + 1));
            if (rows <= 0) break;
            check_cancelled(); // One line of a wide window takes long.
            // If a group has two lines, only one of them may exist at the end of a window.
            const float* neighbour[2] = {};
            for (int r = 0; r < rows; ++r)
                neighbour[r] = unit(line + g.down + r) + first + g.right;
            m_simd.squared_distances(unit(line) + first, neighbour, rows, g.columns, m_strip.pitch, m_bands,
                                     count, m_squared.data(), m_strip.pitch);
            for (int k = 0; k < rows * g.columns; ++k)
                add_pairs(line, g.down + k / g.columns, g.right + k % g.columns, first, count,
                          m_squared.data() + static_cast<size_t>(k) * pitch());
        }
    }

    void add_pairs(int64_t line, int down, int right, int64_t first, int64_t count, const float* squared) {
        const size_t own = slot(line) + static_cast<size_t>(first);
        const size_t other = slot(line + down) + static_cast<size_t>(first + right);
        const auto beta = static_cast<float>(1.0 / (down * down + right * right));
        m_simd.weighted_angles(squared, m_mask.data() + own, m_mask.data() + other, beta, count,
                               m_angle.data(), m_weight.data());
        m_simd.accumulate(m_angle.data(), count, m_num.data() + own);
        m_simd.accumulate(m_weight.data(), count, m_den.data() + own);
        m_simd.accumulate(m_angle.data(), count, m_num.data() + other);
        m_simd.accumulate(m_weight.data(), count, m_den.data() + other);
    }

    void finish_line(const Tile& tile, const CubeView<float>& in, int64_t line, int64_t x0, int64_t width) {
        const size_t at = slot(line) + static_cast<size_t>(2 * m_d);
        const int64_t out_line = line - tile.core.y, out_sample = x0 - tile.core.x;
        const int64_t in_line = line - tile.window.y, in_sample = x0 - tile.window.x;
        bool small = false;
        for (int64_t i = 0; i < width; ++i) {
            const size_t k = at + static_cast<size_t>(i);
            double& alpha = m_alpha[static_cast<size_t>(i)];
            alpha = m_mask[k] == 0.0f ? no_value : m_den[k] > 0 ? m_num[k] / m_den[k] : 0.0;
            small = small || alpha < double_below;
        }
        if (small) compute_exactly(tile.window, in, line, x0, width);
        for (int64_t i = 0; i < width; ++i) {
            const double root = 1.0 + std::sqrt(m_alpha[static_cast<size_t>(i)]);
            m_rho[static_cast<size_t>(i)] = static_cast<float>(root * root);
            m_inverse_rho[static_cast<size_t>(i)] = static_cast<float>(1.0 / (root * root));
        }
        if (m_out_alpha)
            for (int64_t i = 0; i < width; ++i)
                m_out_alpha->row(0, out_line)[out_sample + i] =
                    static_cast<float>(m_alpha[static_cast<size_t>(i)]);
        if (m_out_rho) std::copy_n(m_rho.data(), width, m_out_rho->row(0, out_line) + out_sample);
        if (m_out_inverse)
            std::copy_n(m_inverse_rho.data(), width, m_out_inverse->row(0, out_line) + out_sample);
        if (m_out_cube)
            m_simd.displace_row(in.row(0, in_line) + in_sample, in.band_stride, m_inverse_rho.data(),
                                m_centroid.data(), m_bands, width, m_out_cube->row(0, out_line) + out_sample,
                                m_out_cube->band_stride);
    }

    /// Computes alpha of a line again in double precision, for pixels where single precision is too coarse.
    void compute_exactly(const Rect& window, const CubeView<float>& in, int64_t line, int64_t x0,
                         int64_t width) {
        for (int a = -m_d; a <= m_d; ++a) {
            const int64_t l = line + a;
            const bool exists = l >= window.y && l < window.bottom();
            const auto k = static_cast<size_t>(a + m_d);
            m_exact_row[k] = exists ? in.row(0, l - window.y) + (x0 - window.x) : nullptr;
            m_exact_inverse[k] = exists ? m_inverse.data() + inverse_slot(l) + 2 * m_d : nullptr;
        }
        ExactWindow w;
        w.d = m_d;
        w.bands = m_bands;
        w.band_stride = in.band_stride;
        w.row = m_exact_row.data();
        w.inverse = m_exact_inverse.data();
        w.left = x0 - std::max(window.x, x0 - m_d);
        w.right = std::min(window.right(), x0 + width + m_d) - x0;
        m_simd.exact_alpha(w, width, double_below, m_alpha.data());
    }

    const SimdKernels& m_simd;
    const Options m_options;
    const bool m_finding;
    const int m_d, m_bands;
    const std::vector<Group> m_groups;
    const Strip m_strip;
    std::vector<float> m_centroid;
    HostBuffer<float> m_unit;         ///< [line mod (d+1)][band][column]
    std::vector<float> m_mask;        ///< [line mod (d+1)][column]
    std::vector<double> m_num, m_den; ///< [line mod (d+1)][column]: sums of beta gamma and of beta
    std::vector<double> m_inverse;    ///< [line mod (2d+1)][column]: 1/|y|; 0 if invalid
    std::vector<float> m_squared, m_angle, m_weight, m_inverse_rho, m_rho;
    std::vector<double> m_alpha; ///< alpha of the current line
    std::vector<const float*> m_exact_row;
    std::vector<const double*> m_exact_inverse;
    const CubeView<float>*m_out_cube = nullptr, *m_out_alpha = nullptr, *m_out_rho = nullptr,
          *m_out_inverse = nullptr;
};

class Displacement final : public stream::Operation {
  public:
    Displacement(const Options& options, bool finding, std::vector<double> centroid)
        : m_options(options), m_finding(finding), m_centroid(std::move(centroid)) {
        if (options.window < min_window || options.window > max_window || options.window % 2 == 0)
            throw UsageError("-ws: " + std::to_string(options.window) + " is not a window size",
                             "Use an odd number from 3 to 63.");
    }
    bool divides() const override { return true; }
    int64_t halo() const override { return m_options.window / 2; }
    std::vector<int> output_bands() const override {
        std::vector<int> bands;
        if (m_options.cube) bands.push_back(static_cast<int>(m_centroid.size()));
        if (m_options.alpha) bands.push_back(1);
        if (m_options.rho) bands.push_back(1);
        if (m_finding) bands.push_back(1);
        return bands;
    }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        const int bands = static_cast<int>(m_centroid.size()), d = m_options.window / 2;
        return Strip::make(limits.core_samples, bands, d).bytes(bands, d);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits& limits) override {
        return std::make_unique<DisplacementWorker>(m_options, m_finding, m_centroid, limits);
    }

  private:
    Options m_options;
    bool m_finding;
    std::vector<double> m_centroid;
};

class RepeatingWorker final : public stream::Worker {
  public:
    explicit RepeatingWorker(const std::vector<float>& centroid)
        : m_simd(simd_kernels()), m_centroid(centroid) {}

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const int bands = in.bands - 1;
        for (int64_t line = 0; line < in.lines; ++line)
            m_simd.displace_row(in.row(0, line), in.band_stride, in.row(bands, line), m_centroid.data(),
                                bands, in.samples, out[0].row(0, line), out[0].band_stride);
    }

  private:
    const SimdKernels& m_simd;
    const std::vector<float>& m_centroid;
};

class RepeatedDisplacement final : public stream::Operation {
  public:
    explicit RepeatedDisplacement(const std::vector<double>& centroid) {
        for (const double c : centroid)
            m_centroid.push_back(static_cast<float>(c));
    }
    bool divides() const override { return true; }
    std::vector<int> output_bands() const override { return {static_cast<int>(m_centroid.size())}; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<RepeatingWorker>(m_centroid);
    }

  private:
    std::vector<float> m_centroid;
};

} // namespace

std::unique_ptr<stream::Operation> make_displacement(const Options& options, std::vector<double> centroid) {
    return std::make_unique<Displacement>(options, false, std::move(centroid));
}

std::unique_ptr<stream::Operation> make_finding_displacement(int window, std::vector<double> centroid) {
    Options options;
    options.window = window;
    return std::make_unique<Displacement>(options, true, std::move(centroid));
}

std::unique_ptr<stream::Operation> make_repeated_displacement(std::vector<double> centroid) {
    return std::make_unique<RepeatedDisplacement>(centroid);
}

const char* simd_target() { return simd_kernels().target; }

namespace {

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<stream::Operation> make_displacement(const Options& options,
                                                         std::vector<double> centroid) override {
        return spp::make_displacement(options, std::move(centroid));
    }
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

} // namespace hsi::spp
