// SPDX-License-Identifier: MIT
// Finds the plumes of an enhancement map line by line. A plume is a set of at least `min_pixels` connected
// pixels, all of which reach `extent` and at least one of which reaches `threshold`. Memory is needed only
// for the runs of finished plumes and of components that later lines may still extend.
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

/// A run of pixels: the samples [first, end) of a line.
struct PlumeRun {
    int64_t line = 0, first = 0, end = 0;
};

struct Plume {
    std::vector<PlumeRun> runs; ///< ordered by line and sample
    int64_t pixels = 0;
    double area = 0;     ///< area in m2
    double sum = 0;      ///< sum of the enhancement, ppm m
    double mass = 0;     ///< sum of enhancement times area, ppm m m2
    double variance = 0; ///< sum of (uncertainty times area)^2; NaN if the uncertainty of a pixel is unknown
    float greatest = 0;  ///< enhancement of the origin, the first maximum in raster order
    int64_t line = 0, sample = 0; ///< position of the origin
};

/// Processes the lines of a map in order and collects plumes.
class PlumeFinder {
  public:
    PlumeFinder(int64_t samples, const PlumeOptions& options);
    /// Takes the next line. `shape` has the values that are compared with `extent` and `threshold`; a pixel
    /// with NaN belongs to no plume. `enhancement` and `uncertainty` have the values that a Plume sums up;
    /// `uncertainty` may be null. `area` is the area of each pixel of the line in m2.
    void take(const double* shape, const float* enhancement, const float* uncertainty, double area);
    /// Returns the plumes, ordered by falling mass; plumes of equal mass are in the raster order of their
    /// first pixels. Call it once, after the last line.
    std::vector<Plume> finish();

  private:
    struct Component {
        Plume plume;
        bool reaches = false; ///< true if a pixel reaches the threshold
        int64_t last = -1;    ///< the line with the component's last run
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
    std::vector<size_t> m_free; ///< free indices of m_components
    std::vector<size_t> m_used_up;
    std::vector<Open> m_before, m_now;
    std::vector<Plume> m_plumes;
};

/// A closed ring of pixel corners (sample, line). The last corner equals the first.
using CornerRing = std::vector<std::array<int64_t, 2>>;
/// Returns the outline of a plume along pixel edges. It has one polygon for each part of the plume whose
/// pixels are connected by edges. A polygon is the outer ring, followed by its holes. Rings touch only at
/// corners.
std::vector<std::vector<CornerRing>> outline(const Plume& plume);

/// Smooths a map with a Gaussian. The lines arrive in order, starting with the first line.
class LineSmoother {
  public:
    /// `deviation` is the standard deviation of the Gaussian in pixels. Its weights reach floor(4 deviation +
    /// 0.5) pixels in each direction.
    LineSmoother(int64_t samples, int64_t lines, double deviation);
    int64_t reach() const { return m_reach; }
    /// Takes the next line. NaN marks a pixel that is missing or must be ignored.
    void take(const float* x);
    /// Computes the next smoothed line and returns true. Returns false if take() must be called first. A
    /// smoothed value is the weighted mean of the values within reach that are not NaN; it is NaN where the
    /// original value is NaN.
    bool next(double* smoothed);

  private:
    const int64_t m_samples, m_lines, m_reach;
    std::vector<double> m_weights;
    /// Weighted sums of values and of weights along the line, for the last 2 reach + 1 lines.
    std::vector<std::vector<double>> m_values, m_shares;
    std::vector<std::vector<char>> m_known;
    int64_t m_taken = 0, m_given = 0;
};

/// Returns the lower median: the value with index floor((n-1)/2) in rising order, among the values that
/// `each` passes to its argument. `each` is called twice and must pass the same values, in any order. Returns
/// NaN if there are no values.
float median_of(const std::function<void(const std::function<void(float)>&)>& each);

} // namespace hsi::gas
