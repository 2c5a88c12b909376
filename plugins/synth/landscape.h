// SPDX-License-Identifier: MIT
// The ground cover of a synthetic scene: fractions of materials in each pixel. A landscape depends only on
// its seed and on the coordinates of a pixel. It uses only additions, multiplications and square roots in a
// fixed order, so the result does not depend on where a run of pixels starts.
#pragma once

#include "synth/hash.h"
#include "synth/synth.h"
#include "synth/values_simd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::synth {

// The streams of random numbers. A new use gets a new number, so that existing scenes do not change.
enum Purpose : uint64_t {
    pixels_stream = 1,
    cells_stream,
    warp_u_stream,
    warp_v_stream,
    texture_stream,
    gradient_stream,
    shade_wide_stream,
    shade_narrow_stream,
    river_stream,
    targets_stream,
    nan_stream,
    bands_stream,
    materials_stream,
    hills_stream,
    forest_stream,
    crowns_stream,
    kinds_stream,
    strata_stream,
    towns_stream,
    roads_stream,
    trait_stream,
    plots_stream
};

constexpr int water = 2, asphalt = 3; ///< indices in the material library

/// Buffers for consecutive pixels of a line. Each thread has its own object.
struct PixelRun {
    explicit PixelRun(int materials) : abundance(static_cast<size_t>(materials)) {}
    struct alignas(64) Row {
        float v[run_pixels];
    };
    struct alignas(64) Words {
        uint32_t v[run_pixels];
    };
    std::vector<Row> abundance; ///< fraction times illumination, one row per material
    Words low{}, high{};        ///< lower and upper half of each pixel's hash
    uint32_t active = 0;        ///< bit k is set if material k occurs in the run
    Row trait{};                ///< trait of the ground, if the scene has a trait
    std::vector<Row> absorbed;  ///< for each plant in the run: minus its abundance times the trait
    std::vector<float> spectra;
    uint32_t spectra_of = 0; ///< materials in `spectra`, as bits
    std::vector<const float*> rows;

    void add(int material, size_t pixel, float share) {
        abundance[static_cast<size_t>(material)].v[pixel] += share;
        active |= 1u << material;
    }
    /// Stores the pixel's hash for the noise. Returns a random number in [0, 1) that depends only on the
    /// pixel.
    float hash(uint64_t line_key, int64_t sample, size_t pixel) {
        const uint64_t h = draw(line_key, static_cast<uint64_t>(sample));
        low.v[pixel] = static_cast<uint32_t>(h);
        high.v[pixel] = static_cast<uint32_t>(h >> 32);
        return unit(h * golden);
    }
};

class Landscape {
  public:
    virtual ~Landscape() = default;
    /// Paints `pixels` pixels (1..run_pixels), starting at (line, sample). Adds to run.abundance, whose rows
    /// are zero before, and sets run.low, run.high and run.active. The abundances of a pixel are from 0 to
    /// 0.97.
    virtual void paint(int64_t line, int64_t sample, size_t pixels, PixelRun& run) const = 0;
};

/// Create the landscapes of Pattern::fields and Pattern::land from the first `materials` materials of the
/// library.
std::unique_ptr<const Landscape> make_fields(uint64_t seed, int materials);
std::unique_ptr<const Landscape> make_land(uint64_t seed, int materials);

/// One line of smooth noise in [0, 1), which interpolates random numbers at lattice points. next() returns
/// the value at a sample, and advances by one sample.
class SmoothLine {
  public:
    SmoothLine(uint64_t key, int64_t spacing, int64_t line, int64_t sample)
        : m_key(key), m_spacing(spacing), m_row(part(line, spacing)), m_column(part(sample, spacing)),
          m_step(sample - m_column * spacing), m_scale(1.0f / static_cast<float>(spacing)) {
        m_down = ease(static_cast<float>(line - m_row * spacing) * m_scale);
        m_left = lattice(m_column);
        m_right = lattice(m_column + 1);
    }
    float next() {
        if (m_step == m_spacing) {
            m_step = 0;
            ++m_column;
            m_left = m_right;
            m_right = lattice(m_column + 1);
        }
        const float t = ease(static_cast<float>(m_step++) * m_scale);
        return m_left + (m_right - m_left) * t;
    }

  private:
    /// Returns at / spacing, rounded down. `at` may be negative, because flight lines may start west and
    /// north of the landscape.
    static int64_t part(int64_t at, int64_t spacing) { return at / spacing - (at % spacing < 0 ? 1 : 0); }
    static float ease(float t) { return t * t * (3.0f - 2.0f * t); }
    float lattice(int64_t column) const {
        const float above = unit(draw(m_key, column, m_row)), below = unit(draw(m_key, column, m_row + 1));
        return above + (below - above) * m_down;
    }
    uint64_t m_key;
    int64_t m_spacing, m_row, m_column, m_step;
    float m_scale, m_down = 0, m_left = 0, m_right = 0;
};

/// Divides the ground into cells around seeds. A cell is the area that is nearer to its seed than to others.
/// A grid of rectangles has one seed in each rectangle, well inside it. The members u and v of `Cell` are the
/// position of its seed. The cells of the 3x3 rectangles around a position are kept in memory while the
/// position stays in the same rectangle.
template <class Cell>
class CellMap {
  public:
    using Make = Cell (*)(uint64_t key, int materials);
    CellMap(uint64_t key, double width, double height, int materials, Make make)
        : m_key(key), m_width(width), m_height(height), m_materials(materials), m_make(make) {}

    struct Nearest {
        const Cell *first, *second;
        double gap; ///< how much farther the second seed is than the first, in pixels; 0 at the border
        /// Returns the fraction of the first cell: 1 inside, 0.5 at the border. Across the border, the gap
        /// changes by about two per pixel, so the mixed zone is about one pixel wide.
        float share() const { return static_cast<float>(0.5 + 0.5 * std::min(1.0, gap * 0.5)); }
    };
    Nearest find(double u, double v) {
        const auto cu = static_cast<int64_t>(std::floor(u * (1 / m_width)));
        const auto cv = static_cast<int64_t>(std::floor(v * (1 / m_height)));
        if (cu != m_u || cv != m_v) {
            for (int j = 0; j < 3; ++j)
                for (int i = 0; i < 3; ++i)
                    m_cells[static_cast<size_t>(3 * j + i)] = cell(cu + i - 1, cv + j - 1);
            m_u = cu;
            m_v = cv;
        }
        double d1 = 1e30, d2 = 1e30;
        size_t i1 = 0, i2 = 0;
        for (size_t i = 0; i < m_cells.size(); ++i) {
            const double du = u - m_cells[i].u, dv = v - m_cells[i].v;
            const double d = du * du + dv * dv;
            if (d < d1) {
                d2 = d1;
                i2 = i1;
                d1 = d;
                i1 = i;
            } else if (d < d2) {
                d2 = d;
                i2 = i;
            }
        }
        return {&m_cells[i1], &m_cells[i2], std::sqrt(d2) - std::sqrt(d1)};
    }

  private:
    Cell cell(int64_t cu, int64_t cv) const {
        const uint64_t h = draw(m_key, cu, cv);
        Cell c = m_make(h, m_materials);
        c.u = (static_cast<double>(cu) + 0.15 + 0.7 * double{unit(draw(h, 0))}) * m_width;
        c.v = (static_cast<double>(cv) + 0.15 + 0.7 * double{unit(draw(h, 1))}) * m_height;
        return c;
    }
    uint64_t m_key;
    double m_width, m_height;
    int m_materials;
    Make m_make;
    int64_t m_u = std::numeric_limits<int64_t>::min(), m_v = 0;
    std::array<Cell, 9> m_cells;
};

inline float clamp01(float x) { return std::min(1.0f, std::max(0.0f, x)); }

/// Returns the fraction of a pixel that is covered by a line of the given half width, if the middle of the
/// line is `distance` pixels away.
inline float coverage(double distance, double half_width) {
    return clamp01(static_cast<float>(half_width + 0.5 - distance));
}

/// Returns the distance (pixels) to the nearest of parallel lines that are `spacing` apart.
inline double from_line(double across, double spacing) {
    const double turns = across * (1 / spacing);
    return std::abs(turns - std::floor(turns) - 0.5) * spacing;
}

} // namespace hsi::synth
