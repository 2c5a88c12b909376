// SPDX-License-Identifier: MIT
// k-means: every valid pixel belongs to the nearest of k centres, and every centre is the mean of its pixels.
//
// S. P. Lloyd: Least Squares Quantization in PCM, IEEE Transactions on Information Theory 28(2), 1982. The
// centres begin with k-means++ on a sample: D. Arthur, S. Vassilvitskii: k-means++: The Advantages of Careful
// Seeding, SODA 2007.
//
//   euclidean  nearest: least sum of (x - c)^2, in the order of the bands; centre: the mean
//   angle      of the unit spectra u = x/|x|, in multiples of 2^-40; nearest: greatest u'c; centre: the mean
//              over its length
// Among equal centres the first one is taken. All in double precision; sums over pixels are exact
// (math/exact_sum.h), so neither tiles nor threads nor ranks change a bit.
#pragma once

#include "core/cost.h"
#include "core/pixel_numbers.h"
#include "stream/pipeline.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::cluster {

/// Its costs, for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost distance{3e-11, 1e-13}; ///< a value, a centre and an iteration
inline constexpr Cost sums{8e-9, 2e-11};      ///< a value: all of them once, and those that move later
} // namespace cost

enum class Distance { euclidean, angle };

inline constexpr int most_clusters = 65535;
/// Pixels that k-means++ chooses among.
inline constexpr int64_t sample_size = 16384;

struct Options {
    Distance distance = Distance::euclidean;
    int iterations = 100; ///< at most
    uint64_t seed = 1;
    PixelNumbers numbers;
};

/// k vectors, [cluster][band].
struct Centres {
    int count = 0, bands = 0;
    std::vector<double> values;
    const double* of(int k) const { return values.data() + static_cast<ptrdiff_t>(k) * bands; }
};

struct Result {
    Centres centres;             ///< those that the labels are nearest to; of unit length for angles
    std::vector<double> length;  ///< mean |x| of each cluster's pixels (of all for an empty cluster), for
                                 ///< angles
    std::vector<int64_t> pixels; ///< of each cluster
    double inertia = 0;          ///< sum of the squared distances to the centres (angle: of unit spectra)
    int iterations = 0;          ///< assignments, the last idle one too
    bool converged = false;      ///< no pixel moved; else the labels are one more assignment
    int64_t relocated = 0;       ///< centres of empty clusters that became a pixel
};

/// Options of a pass of this name.
using MakePass = std::function<stream::PassOptions(const std::string& name)>;

class DeviceScene;

/// Clustering on the CPU or on a device (hsi_cuda_cluster.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Room for a scene and its clustering, with at most so many clusters; null on the CPU, and if `memory`
    /// bytes of the device (0: 80 % of the free memory) are not enough.
    virtual std::unique_ptr<DeviceScene> make_scene(const stream::CubeShape& scene, const Options& options,
                                                    int clusters, uint64_t memory) = 0;
    /// Seconds that kernels took since the backend was made; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Device bytes that are free; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

/// The clustering of one scene, step by step. All ranks of a job make all calls together.
class Clustering {
  public:
    /// `source` must outlive this. \throws Error when half of the memory does not hold a label for every
    /// pixel.
    Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass);
    /// With a place for the scene on a device (Backend; may be null), where there is one rank. Labels,
    /// iterations and centres are the processor's.
    Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass,
               std::unique_ptr<DeviceScene> device);
    ~Clustering();

    /// The first pass: which pixels are valid (all values finite, not all zero), and the sample. Keeps the
    /// scene where half of the memory holds it, and there is one rank. \return the number of valid pixels
    int64_t read();
    int64_t invalid() const;
    /// Whether the scene is read once.
    bool in_memory() const;
    /// k-means++ on the sample; fewer where the sample has fewer different pixels. After read().
    Centres start(int count) const;
    /// Lloyd's iterations from these centres on; a pass named "iteration" each. After read(), once.
    Result refine(Centres centres);
    /// The label of every pixel as one band: 1 .. k in the order of the start, NaN where it is invalid; reads
    /// no scene (stream::EmptySource). After refine(), of one rank: several know their own pixels' alone.
    std::unique_ptr<stream::Operation> labels() const;
    /// Passes over the source so far.
    const std::vector<stream::PassReport>& passes() const;

  private:
    struct State;
    std::unique_ptr<State> m;
};

/// The result of labels(), for any scene with as many bands.
std::unique_ptr<stream::Operation> make_assignment(const Centres& centres, Distance distance);

/// The passes of a clustering of this scene, by their names: for plans.
std::vector<std::pair<std::string, std::unique_ptr<stream::Operation>>>
plan_operations(const stream::CubeShape& scene, const Options& options, int count);

/// Where the SIMD code was dispatched to.
const char* simd_target();

} // namespace hsi::cluster
