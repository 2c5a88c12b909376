// SPDX-License-Identifier: MIT
// Finds endmembers, the pixels of a scene of which all others are mixtures.
//
// N-FINDR: M. E. Winter, N-FINDR: an algorithm for fast autonomous spectral end-member determination in
// hyperspectral data, Proc. SPIE 3753, 1999. N-FINDR finds the pixels whose simplex has the greatest volume
// in the space of the first t - 1 principal components. Let z be these components divided by their standard
// deviations, and y = (1, z). The volume is |det [y_1 .. y_t]|. This implementation starts with the pixels
// that orthogonal subspace projection finds in y. Vertex by vertex, it replaces the vertex by the pixel of
// greatest volume if the volume grows by more than 1e-10. It stops when no vertex can be replaced. A
// replacement changes the volume by the factor |b_j(y)|, where b_j is the j-th barycentric coordinate.
//
// Nested sets: each set contains the smaller ones. For N-FINDR, they come from the simplex growing algorithm,
// C.-I. Chang, C.-C. Wu, W. Liu, Y.-C. Ouyang: A new growing method for simplex-based endmember extraction
// algorithm, IEEE TGRS 44(10), 2006. The algorithm starts with the two outermost pixels of the first
// component. To k pixels, it adds the pixel that makes the greatest simplex in the first k components. No
// pixel is replaced. This implementation starts with the pixel farthest from the mean. It also divides the
// components by their standard deviations, which does not affect the selection. For VCA, the sets are the
// first pixels of a single run, in the order in which they were chosen.
//
// VCA: J. M. P. Nascimento, J. M. Bioucas-Dias: Vertex component analysis: a fast algorithm to unmix
// hyperspectral data, IEEE TGRS 43(4), 2005, Algorithm 1. The algorithm chooses between projection on the
// affine hull and projective projection by the estimated signal-to-noise ratio. normal_numbers() generates
// the random vectors.
//
// Values that differ from the greatest value by at most 1e-10 (relative) count as equal. Among equal values,
// the pixel of the smallest line wins, then the pixel of the smallest sample. All decisions are made in
// double precision, so the result does not depend on tiling, number of threads or amount of memory.
#pragma once

#include "core/cancel.h"
#include "stream/pipeline.h"
#include "stream/statistics_scan.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hsi::endmembers {

enum class Method { nfindr, vca };

struct Options {
    Method method = Method::nfindr;
    int count = 2;     ///< t, the number of endmembers
    uint64_t seed = 1; ///< vca: seed of the random vectors
    /// Endmembers are ordered so that the first n are the result for count n, for all n from 2.
    bool nested = false;
};

struct Endmember {
    int64_t line = 0, sample = 0;
    /// N-FINDR: the height of the vertex over the flat through the other vertices, in the scene's units (of
    /// unscaled principal components). Nested sets: the height over the flat through the earlier vertices;
    /// for the first vertex, its distance from the mean. VCA: |f'y| of the pixel when it was chosen.
    double score = 0;
};

struct Extraction {
    /// N-FINDR: ordered by vertex. VCA and nested sets: in the order in which the pixels were chosen.
    std::vector<Endmember> members;
    std::vector<std::string> warnings; ///< warnings for the user
    std::vector<stream::PassReport> passes;
    /// true: y was kept in memory. false: each search through the pixels has read the scene again.
    bool in_memory = false;
    int looks = 0;                    ///< number of searches through the y of all pixels
    int sweeps = 0, replacements = 0; ///< used by N-FINDR
    double snr = 0;                   ///< used by VCA: signal-to-noise ratio in decibels
    bool projective = false;          ///< VCA: projective projection was used instead of the affine hull
};

/// A function that returns the options of the pass with this name. Half of their memory may be used for
/// keeping y.
using MakePass = std::function<stream::PassOptions(const std::string& name)>;

/// Finds the endmembers of a scene. `moments` must be the statistics of `source`. \throws UsageError, which
/// names the range, if options.count is not in 2 .. bands (nfindr: bands + 1) or exceeds the number of valid
/// pixels. \throws Error if all valid pixels are equal.
Extraction extract(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                   const Options& options, const MakePass& make_pass);

/// Returns the pass that computes y with options.count components, for planning with -dry-run.
std::unique_ptr<stream::Operation> plan_operation(const stream::CubeShape& shape, const Options& options);

/// Throws UsageError as extract() does if options.count is invalid. valid_pixels < 0: the number is unknown
/// and is not checked.
void check_count(const Options& options, int bands, int64_t valid_pixels);

/// Generates normal random numbers with splitmix64 (G. L. Steele, D. Lea, C. H. Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014). The method of Box and Muller converts uniform numbers to
/// normal numbers in pairs.
class RandomVectors {
  public:
    explicit RandomVectors(uint64_t seed) : m_state(seed) {}
    uint64_t next();
    /// Returns `count` numbers, starting with a new pair. For an odd count, the second number of the last
    /// pair is discarded.
    std::vector<double> normal_numbers(int count);

  private:
    uint64_t m_state;
};

} // namespace hsi::endmembers
