// SPDX-License-Identifier: MIT
// Endmembers: the pixels of a scene that span the others.
//
// N-FINDR: M. E. Winter, N-FINDR: an algorithm for fast autonomous spectral end-member determination in
// hyperspectral data, Proc. SPIE 3753,
// 1999. Finds the pixels whose simplex has the greatest volume in the space of the first t - 1 principal
// components. With z these components divided by their standard deviations and y = (1, z), the volume is |det
// [y_1 .. y_t]|. Decided here: the search begins with the pixels that orthogonal subspace projection finds in
// y. Vertex by vertex, it replaces a vertex by the pixel of greatest volume if that is greater by more than
// 1e-10, until no vertex can be replaced. The replacement's volume is |b_j(y)| times the current volume, b_j
// the j-th barycentric coordinate.
//
// Nested sets, in which each set contains the smaller ones. For N-FINDR this is the simplex growing
// algorithm, C.-I. Chang, C.-C. Wu, W. Liu, Y.-C. Ouyang: A new growing method for simplex-based endmember
// extraction algorithm, IEEE TGRS 44(10), 2006: takes the two outermost pixels of the first component, and
// then adds to k pixels the one that makes the greatest simplex in the first k components. No pixel is
// replaced. Decided here: the search begins with the pixel farthest from the mean, and the components are
// divided by their standard deviations, which changes no choice. For VCA the sets are the first pixels of a
// single run, in its order.
//
// VCA: J. M. P. Nascimento, J. M. Bioucas-Dias: Vertex component analysis: a fast algorithm to unmix
// hyperspectral data, IEEE TGRS 43(4), 2005, Algorithm 1. It chooses between projection on the affine hull
// and projective projection by the estimated signal-to-noise ratio. normal_numbers() makes the random
// vectors.
//
// Values within 1e-10 (relative) of the greatest are equal; among equal ones, the pixel of the smallest line
// wins, then of the smallest sample. All decisions are made in double precision, so the result does not
// depend on tiling, number of threads and amount of memory.
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
    int count = 2;       ///< t
    uint64_t seed = 1;   ///< vca: seed of the random vectors
    bool nested = false; ///< members in an order whose first n are the set of n, for n from two on
};

struct Endmember {
    int64_t line = 0, sample = 0;
    /// nfindr: height of the vertex over the flat through the others, in the scene's units (of principal
    /// components that are not scaled). nested: over the flat through the earlier ones; for the first, its
    /// distance from the mean. vca: |f'y| when it was chosen.
    double score = 0;
};

struct Extraction {
    std::vector<Endmember>
        members; ///< nfindr: by vertex; vca, nested: in the order in which they were chosen
    std::vector<std::string> warnings; ///< warnings for the user
    std::vector<stream::PassReport> passes;
    bool in_memory = false;           ///< y was kept; otherwise each look at the pixels reads the scene again
    int looks = 0;                    ///< number of looks at all pixels' y
    int sweeps = 0, replacements = 0; ///< nfindr
    double snr = 0;                   ///< vca: in decibels
    bool projective = false;          ///< vca: the second projection
};

/// Returns the options of a search's passes by name. A pass may use half of options.memory for y.
using MakePass = std::function<stream::PassOptions(const std::string& name)>;

/// Searches `source` (shape, moments and pixels of one scene). \throws UsageError that names the range if
/// options.count is not in 2 .. bands (nfindr: bands + 1) or exceeds the number of valid pixels; Error if all
/// valid pixels are equal.
Extraction extract(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                   const Options& options, const MakePass& make_pass);

/// Returns the pass that computes y, for -dry-run, with options.count components.
std::unique_ptr<stream::Operation> plan_operation(const stream::CubeShape& shape, const Options& options);

/// Throws as extract() does for an invalid count. valid_pixels < 0: unknown yet.
void check_count(const Options& options, int bands, int64_t valid_pixels);

/// Generates normal random numbers: splitmix64 (G. L. Steele, D. Lea, C. H. Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014), converted in pairs by the method of Box and Muller.
class RandomVectors {
  public:
    explicit RandomVectors(uint64_t seed) : m_state(seed) {}
    uint64_t next();
    /// Returns `count` numbers, beginning with a new pair; for an odd count, the second number of the last
    /// pair is dropped.
    std::vector<double> normal_numbers(int count);

  private:
    uint64_t m_state;
};

} // namespace hsi::endmembers
