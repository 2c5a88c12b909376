// SPDX-License-Identifier: MIT
// Plumes of an enhancement map: connected pixels of at least `extent`, one of them of at least `threshold`,
// found line by line. Kept are the runs of the components that are still open, and of the plumes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace hsi::gas {

struct PlumeOptions {
    double threshold = 500, extent = 500; ///< ppm m, extent <= threshold
    int64_t min_pixels = 5;
    bool eight = true; ///< pixels that touch at a corner are connected
};

/// Samples [first, end) of a line.
struct PlumeRun {
    int64_t line = 0, first = 0, end = 0;
};

struct Plume {
    std::vector<PlumeRun> runs; ///< by line and sample
    int64_t pixels = 0;
    double area = 0;              ///< m2
    double sum = 0;               ///< of the enhancement, ppm m
    double mass = 0;              ///< of enhancement times area, ppm m m2
    double variance = 0;          ///< of uncertainty times area, squared; NaN: unknown for a pixel
    float greatest = 0;           ///< enhancement of the origin, the first greatest one in raster order
    int64_t line = 0, sample = 0; ///< of the origin
};

/// Takes the lines of a map one after another.
class PlumeFinder {
  public:
    PlumeFinder(int64_t samples, const PlumeOptions& options);
    /// Takes the next line. shape: the values that form components (NaN: no pixel of a plume); enhancement
    /// and uncertainty (may be null) of each pixel; area of each of its pixels, m2.
    void take(const double* shape, const float* enhancement, const float* uncertainty, double area);
    /// By falling mass, then in raster order of their first pixels. To be called once.
    std::vector<Plume> finish();

  private:
    struct Component {
        Plume plume;
        bool reaches = false; ///< the threshold
        int64_t last = -1;    ///< line with its last run
        size_t parent = 0;
    };
    struct Open {
        PlumeRun run;
        size_t component = 0;
    };
    size_t root(size_t i) const;
    size_t make();
    size_t unite(size_t a, size_t b);
    void close(size_t i);

    const int64_t m_samples;
    const PlumeOptions m_options;
    int64_t m_line = 0;
    std::vector<Component> m_components;
    std::vector<size_t> m_free; ///< places in m_components
    std::vector<size_t> m_used_up;
    std::vector<Open> m_before, m_now;
    std::vector<Plume> m_plumes;
};

/// A ring of pixel corners (sample, line), closed: the last is the first.
using CornerRing = std::vector<std::array<int64_t, 2>>;
/// The outline along pixel edges: polygons of pixels that share edges, of each the outer ring, then its
/// holes. Rings touch at corners only.
std::vector<std::vector<CornerRing>> outline(const Plume& plume);

/// Reads the lines of a map in order, from the first on: each call has the next line's enhancement and
/// whether each pixel counts.
class LineSmoother {
  public:
    /// Normal weights of this deviation (pixels), cut at floor(4 deviation + 0.5).
    LineSmoother(int64_t samples, int64_t lines, double deviation);
    int64_t reach() const { return m_reach; }
    /// x: NaN for a pixel that is missing or does not count.
    void take(const float* x);
    /// The smoothed next line, NaN where x is: the weighted mean of the values within reach. False until the
    /// lines it needs were taken.
    bool next(double* smoothed);

  private:
    const int64_t m_samples, m_lines, m_reach;
    std::vector<double> m_weights;
    std::vector<std::vector<double>> m_values,
        m_shares; ///< of the last 2 reach + 1 lines, smoothed along them
    std::vector<std::vector<char>> m_known;
    int64_t m_taken = 0, m_given = 0;
};

/// The value of rank floor((n-1)/2) from 0 among the values that `each` gives to its argument, which it does
/// in any order and the same each time it is called: twice. NaN without a value.
float median_of(const std::function<void(const std::function<void(float)>&)>& each);

} // namespace hsi::gas
