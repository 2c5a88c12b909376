// SPDX-License-Identifier: MIT
// Mean and covariance of the valid pixels of a scene, in one scan.
//
// Sums are taken over fixed blocks of pixels anchored at the scene's origin: a few hundred pixels at a time
// are centred on their own means and multiplied in single precision, then added up in double, and the blocks
// are added without rounding. The result is the same to the last bit for every tiling and number of threads,
// and errs by about 1e-9 of the whole variance with ten thousand pixels and less with more, on whatever level
// they lie: what level and products have in common is added, and cancels, without rounding. Where the least
// eigenvalues count (an inverse, a rank), products in double precision keep them.
#pragma once

#include "math/exact_sum.h"
#include "stream/operation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::stream {

/// Wide and low, so that whole lines of a scene make tiles that stay in a cache.
inline constexpr int64_t covariance_block_samples = 1024;
inline constexpr int64_t covariance_block_lines = 8;

/// What the products of a chunk of pixels are computed in.
enum class Products { single, twofold };

struct SceneCovariance {
    int bands = 0;
    int64_t valid_pixels = 0;
    int64_t invalid_pixels = 0;
    std::vector<double> mean; ///< a band each, over the valid pixels; NaN when there is none
    std::vector<double>
        covariance; ///< bands x bands, symmetric, divided by valid_pixels; NaN when there is none
    std::vector<int64_t> finite; ///< a band each: pixels with a finite value
    std::vector<int> constant;   ///< bands (0-based) with one value in all valid pixels

    /// The matrix of mean products x x', bands x bands (the "correlation matrix" of virtual dimensionality).
    std::vector<double> mean_products() const;
    /// Bands (0-based) without a single finite value: the scan must be repeated without them, since they
    /// leave no pixel valid.
    std::vector<int> empty_bands() const;
};

/// The rows of a matrix on and below its diagonal: row a, of a + 1 entries or more, is at a * pitch, or,
/// packed (pitch 0), right behind row a - 1.
struct LowerRows {
    const double* data;
    ptrdiff_t pitch;
    const double* row(int a) const {
        return data + (pitch > 0 ? a * pitch : static_cast<ptrdiff_t>(a) * (a + 1) / 2);
    }
};

/// Exact sums over blocks.
struct CovarianceSums {
    explicit CovarianceSums(int bands);
    /// Adds a block of `count` valid pixels, 2^13 at most: sum[b] = sum of x_b; scatter[a * pitch + b], b <=
    /// a: sum of (x_a - centre_a)(x_b - centre_b), for any centre: near the block's mean, single precision
    /// suffices. The centre of a band with one value is that value. `valid` counts the block already.
    void add_block(int64_t count, const double* sum, const float* centre, const double* scatter,
                   int64_t pitch);
    /// Products alone, of such a block: rest[b] = sum of x_b - centre_b.
    void add_products(int64_t count, const float* centre, const double* rest, const LowerRows& scatter);
    void add(const CovarianceSums& other);
    std::vector<double> means() const; ///< of the valid pixels, one at least
    /// bands x bands, of the valid pixels, one at least: errs by rounding alone, however far from 0 they lie.
    std::vector<double> covariance() const;
    static uint64_t bytes(int bands); ///< at most
    /// By all ranks together: become those of all of them. \throws Error when another has other bands.
    void unite(parallel::Group& ranks);

    int bands;
    int64_t valid = 0, invalid = 0;
    std::vector<int64_t> finite;
    math::ExactSums sum;      ///< of x_b
    math::ExactSums product;  ///< of x_a x_b, b <= a, at a (a+1)/2 + b
    std::vector<float> level; ///< a band's value in the first block
    std::vector<char> varies; ///< whether a band has another one somewhere
};

/// By all ranks together: the sums of all of them, on each.
void unite(parallel::Group& ranks, const std::string& what, math::ExactSums& sums);

/// The scan. result() is complete after run_pass().
class CovarianceScan : public Operation {
  public:
    explicit CovarianceScan(int bands, Products products = Products::single)
        : m_total(bands), m_products(products) {}
    int64_t align_samples() const override { return covariance_block_samples; }
    int64_t align_lines() const override { return covariance_block_lines; }
    uint64_t scratch_bytes(const TileLimits& limits) const override;
    uint64_t preferred_bytes() const override;
    std::unique_ptr<Worker> start(int lane, const TileLimits& limits) override;
    void stop(Worker& worker) override;
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override;
    /// \throws Error when the scene varies, but so little that products in single precision vanish.
    SceneCovariance result() const;

  protected:
    /// For other backends: adds what a worker has gathered.
    void merge(const CovarianceSums& sums) { m_total.add(sums); }
    const CovarianceSums& total() const { return m_total; }
    int bands() const { return m_total.bands; }

  private:
    CovarianceSums m_total;
    const Products m_products;
};

} // namespace hsi::stream
