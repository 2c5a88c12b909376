// SPDX-License-Identifier: MIT
// Computes bins and coefficients from sums.
#include "normalise/normalise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace hsi::normalise {
namespace {

constexpr int widest = 20; ///< maximum number of cells in a bin
constexpr double apart = 1e-6, varies = 1e-12;

/// Sums over several cells, or over the cells of several scenes.
struct Total {
    int64_t pixels = 0;
    std::vector<double> sums;
    void add(int64_t count, const std::vector<double>& other) {
        if (other.empty()) return;
        pixels += count;
        sums.resize(other.size());
        for (size_t i = 0; i < sums.size(); ++i)
            sums[i] += other[i];
    }
};

/// Computes the coefficients of all bands. Returns false if the kernels do not determine them.
bool solve(const Total& t, size_t bands, Bin& bin) {
    const auto n = static_cast<double>(t.pixels);
    const auto& s = t.sums;
    const double v = s[0] / n, g = s[1] / n;
    const double vv = s[2] - s[0] * v, vg = s[3] - s[0] * g, gg = s[4] - s[1] * g;
    if (!(vv > varies * s[2] && gg > varies * s[4]) || !(1 - vg / vv * (vg / gg) >= apart)) return false;
    const double determinant = vv * gg - vg * vg;
    for (size_t b = 0; b < bands; ++b) {
        const double* const of = s.data() + CellSums::shared + b * CellSums::per_band;
        const double r = of[0] / n, rv = of[1] - of[0] * v, rg = of[2] - of[0] * g, rr = of[3] - of[0] * r;
        const double fv = (gg * rv - vg * rg) / determinant, fg = (vv * rg - vg * rv) / determinant;
        bin.volume.push_back(fv);
        bin.geometric.push_back(fg);
        bin.isotropic.push_back(r - fv * v - fg * g);
        bin.rmse.push_back(std::sqrt(std::max(rr - fv * rv - fg * rg, 0.0) / n));
    }
    return true;
}

} // namespace

int64_t CellSums::pixels() const { return std::accumulate(count.begin(), count.end(), int64_t{0}); }

double TerrainSums::deviation() const {
    if (pixels == 0) return 0;
    const double mean = c / static_cast<double>(pixels);
    return std::sqrt(std::max(cc / static_cast<double>(pixels) - mean * mean, 0.0));
}

Terrain fit_terrain(const TerrainSums& t) {
    Terrain made;
    made.pixels = t.pixels;
    if (t.pixels < least_terrain_pixels || !(t.deviation() >= least_deviation)) return made;
    const auto n = static_cast<double>(t.pixels);
    const double centred = t.cc - t.c * (t.c / n);
    for (size_t b = 0; b < t.r.size(); ++b) {
        double m = (t.rc[b] - t.c * (t.r[b] / n)) / centred, q = t.r[b] / n - m * (t.c / n);
        if (q < 0) {
            q = 0;
            m = t.rc[b] / t.cc;
        }
        if (!(m > 0)) {
            m = 0;
            q = std::max(t.r[b] / n, 0.0);
        }
        made.slope.push_back(m);
        made.intercept.push_back(q);
    }
    return made;
}

std::vector<int> bin_edges(const Method& method, const Binning& binning, const std::vector<int64_t>& count) {
    if (method.brdf == Brdf::universal) return {method.ndvi_min, method.ndvi_max};
    if (!binning.edges.empty()) return binning.edges;
    std::vector<int> rough{method.ndvi_min};
    const int64_t all = std::accumulate(count.begin(), count.end(), int64_t{0});
    int64_t below = 0;
    size_t cell = 0;
    for (int64_t j = 1; j < binning.bins && all > 0; ++j) {
        // below >= j * all / bins, in integer arithmetic
        while (cell < count.size() && below * binning.bins < j * all)
            below += count[cell++];
        rough.push_back(method.ndvi_min + static_cast<int>(cell));
    }
    rough.push_back(method.ndvi_max);
    rough.erase(std::unique(rough.begin(), rough.end()), rough.end());
    std::vector<int> edges{rough.front()};
    for (size_t k = 1; k < rough.size(); ++k) {
        const int width = rough[k] - rough[k - 1], parts = (width + widest - 1) / widest;
        for (int i = 1; i <= parts; ++i)
            edges.push_back(rough[k - 1] + width * i / parts);
    }
    return edges;
}

std::vector<Bin> fit_bins(const Method& method, const Binning& binning, size_t bands,
                          const std::vector<const CellSums*>& scenes) {
    const auto cells = static_cast<size_t>(method.cells());
    std::vector<Total> all(cells);
    for (const CellSums* scene : scenes)
        for (size_t k = 0; k < cells; ++k)
            all[k].add(scene->count[k], scene->sums[k]);
    std::vector<int64_t> count;
    for (const Total& one : all)
        count.push_back(one.pixels);
    const auto edges = bin_edges(method, binning, count);
    std::vector<Bin> bins;
    for (size_t e = 1; e < edges.size(); ++e) {
        Bin bin;
        bin.from = edges[e - 1];
        bin.to = edges[e];
        Total total;
        for (int k = bin.from; k < bin.to; ++k) {
            const Total& one = all[static_cast<size_t>(k - method.ndvi_min)];
            total.add(one.pixels, one.sums);
        }
        bin.pixels = total.pixels;
        bin.used = total.pixels >= binning.min_pixels && total.pixels > 0 && solve(total, bands, bin);
        bins.push_back(std::move(bin));
    }
    return bins;
}

} // namespace hsi::normalise
