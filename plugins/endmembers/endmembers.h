// SPDX-License-Identifier: MIT
// Endmembers: the pixels of a scene that span the others.
//
// N-FINDR: M. E. Winter, N-FINDR: an algorithm for fast autonomous spectral end-member determination in
// hyperspectral data, Proc. SPIE 3753, 1999: the pixels whose simplex has the greatest volume in the space of
// the first t - 1 principal components. z: these components over their standard deviations, y = (1, z); the
// volume is |det [y_1 .. y_t]|. Decided here: it begins with the pixels that orthogonal subspace projection
// finds in y, and replaces a vertex by the pixel of greatest volume when that is greater by more than 1e-10,
// vertex after vertex, until none can be replaced. The replacement's volume is |b_j(y)| times the present
// one, b_j the j-th barycentric coordinate.
//
// Nested sets, in which each set contains the smaller ones: for N-FINDR the simplex growing algorithm, C.-I.
// Chang, C.-C. Wu, W. Liu, Y.-C. Ouyang: A new growing method for simplex-based endmember extraction
// algorithm, IEEE TGRS 44(10), 2006: the two outermost pixels of the first component, then to k of them the
// pixel that makes the greatest simplex in the first k components; none is replaced. Decided here: it begins
// with the pixel farthest from the mean, and the components are those over their standard deviations, which
// changes no choice. For VCA the first ones of a single run, in its order.
//
// VCA: J. M. P. Nascimento, J. M. Bioucas-Dias: Vertex component analysis: a fast algorithm to unmix
// hyperspectral data, IEEE TGRS 43(4), 2005, Algorithm 1, with its choice between projection on the affine
// hull and projective projection by the estimated signal-to-noise ratio. The random vectors come from
// normal_numbers().
//
// Values within 1e-10 (relative) of the greatest are equal; among equal ones the pixel of the smallest line
// wins, then of the smallest sample. All decisions are made in double precision, so the result is the same
// for every tiling, number of threads and amount of memory.
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
    uint64_t seed = 1;   ///< vca: of the random vectors
    bool nested = false; ///< members in an order whose first n are the set of n, from two on
};

struct Endmember {
    int64_t line = 0, sample = 0;
    /// nfindr: height of the vertex over the flat through the others, in the scene's units (of principal
    /// components that are not scaled); nested: over the flat through those before it, of the first one its
    /// distance from the mean. vca: |f'y| when it was chosen.
    double score = 0;
};

struct Extraction {
    std::vector<Endmember>
        members; ///< nfindr: by vertex; vca, nested: in the order in which they were chosen
    std::vector<std::string> warnings; ///< warnings for the user
    std::vector<stream::PassReport> passes;
    bool in_memory = false;           ///< y was kept; else each look at the pixels reads the scene again
    int looks = 0;                    ///< at all pixels' y
    int sweeps = 0, replacements = 0; ///< nfindr
    double snr = 0;                   ///< vca: in decibels
    bool projective = false;          ///< vca: the second projection
};

/// Where a search runs: its passes' options by name, which may take the half of options.memory for y.
using MakePass = std::function<stream::PassOptions(const std::string& name)>;

/// Searches `source` (shape, moments and pixels of one scene). \throws UsageError when options.count is not
/// in 2 .. bands (nfindr: bands + 1) or over the number of valid pixels, naming the range; Error when the
/// valid pixels are all equal.
Extraction extract(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                   const Options& options, const MakePass& make_pass);

/// The pass that makes y, for -dry-run: of options.count components.
std::unique_ptr<stream::Operation> plan_operation(const stream::CubeShape& shape, const Options& options);

/// Throws as extract() does for a count that the scene has no room for. valid_pixels < 0: not known yet.
void check_count(const Options& options, int bands, int64_t valid_pixels);

/// Numbers of a normal distribution. splitmix64 (G. L. Steele, D. Lea, C. H. Flood: Fast splittable
/// pseudorandom number generators, OOPSLA 2014), turned normal in pairs by the method of Box and Muller.
class RandomVectors {
  public:
    explicit RandomVectors(uint64_t seed) : m_state(seed) {}
    uint64_t next();
    /// Begins with a new pair; of an odd number the last one of its pair is dropped.
    std::vector<double> normal_numbers(int count);

  private:
    uint64_t m_state;
};

} // namespace hsi::endmembers
