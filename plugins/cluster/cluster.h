// SPDX-License-Identifier: MIT
// k-means: every valid pixel belongs to the nearest of k centres, and every centre is the mean of its pixels.
//
// S. P. Lloyd: Least Squares Quantization in PCM, IEEE Transactions on Information Theory 28(2), 1982.
// k-means++ chooses the first centres from a sample of the pixels: D. Arthur, S. Vassilvitskii: k-means++:
// The Advantages of Careful Seeding, SODA 2007.
//
//   euclidean  nearest: smallest sum of (x - c)^2, in the order of the bands; centre: the mean of x
//   angle      unit spectra u = x/|x|, rounded to multiples of 2^-40; nearest: greatest u'c; centre: the mean
//              of u, divided by its length
// If several centres are equally near, the first is used. All values are in double precision, and sums over
// pixels are exact (math/exact_sum.h), so the result does not depend on tiles, threads or ranks.
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

/// Costs for `-device auto` (core/cost.h).
namespace cost {
inline constexpr Cost distance{3e-11, 1e-13}; ///< per value, centre and iteration
/// Per value that is added to a sum: all values once, later the values of pixels that change their cluster
inline constexpr Cost sums{8e-9, 2e-11};
} // namespace cost

enum class Distance { euclidean, angle };

inline constexpr int most_clusters = 65535;
/// The number of pixels from which k-means++ chooses.
inline constexpr int64_t sample_size = 16384;

struct Options {
    Distance distance = Distance::euclidean;
    int iterations = 100; ///< maximum number of iterations
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
    /// The final centres. The label of a pixel is 1 + the index of the nearest centre. For angles, centres
    /// have unit length.
    Centres centres;
    /// For angles: mean |x| of each cluster's pixels. For an empty cluster: mean |x| of all valid pixels.
    std::vector<double> length;
    std::vector<int64_t> pixels; ///< number of pixels of each cluster
    /// Sum of the squared distances of pixels (for angles, of unit spectra) from their centres
    double inertia = 0;
    int iterations = 0; ///< assignments, including the last one without a change
    /// True if the last iteration changed no label. If false, one more assignment, which `iterations` does
    /// not count, has made the labels.
    bool converged = false;
    int64_t relocated = 0; ///< centres of empty clusters that were replaced by a pixel
};

/// Returns the options of the pass with this name.
using MakePass = std::function<stream::PassOptions(const std::string& name)>;

class DeviceScene;

/// Clustering on the CPU or on a device (hsi_cuda_cluster.so).
class Backend {
  public:
    virtual ~Backend() = default;
    /// Allocates device memory for a scene and its clustering, with at most `clusters` clusters. Returns null
    /// on the CPU, or if `memory` bytes of the device (0: 80 % of the free memory) are not enough.
    virtual std::unique_ptr<DeviceScene> make_scene(const stream::CubeShape& scene, const Options& options,
                                                    int clusters, uint64_t memory) = 0;
    /// Returns the seconds of all kernels since the backend was created; 0 on the CPU.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free device bytes; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

std::unique_ptr<Backend> make_cpu_backend();

/// The clustering of one scene, step by step. All ranks of a job make all calls together.
class Clustering {
  public:
    /// `source` must outlive this object. make_pass() returns the options of each pass, with its memory.
    Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass);
    /// Clusters on a device, in the memory from Backend::make_scene(). `device` may be null, and must be null
    /// with several ranks; the CPU then does the work. Labels, iterations and centres are the same on the CPU
    /// and on devices.
    Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass,
               std::unique_ptr<DeviceScene> device);
    ~Clustering();

    /// Makes the first pass, which finds the valid pixels (all values finite, not all zero) and the sample.
    /// Keeps the scene on the device, if there is one. With one rank and no device, keeps it in host memory
    /// if half of the pass's memory can store the scene and the labels. \return the number of valid pixels.
    /// \throws Error if half of the memory cannot store the labels, two bytes per pixel.
    int64_t read();
    int64_t invalid() const;
    /// Returns true if read() has kept the scene, in host memory or on a device, so that it is read only
    /// once.
    bool in_memory() const;
    /// Runs k-means++ on the sample, after read(). Returns fewer centres if the sample has fewer different
    /// pixels.
    Centres start(int count) const;
    /// Runs Lloyd's iterations, starting from `centres`. Each iteration is a pass named "iteration". Call
    /// this function once, after read().
    Result refine(Centres centres);
    /// Returns an operation that writes the label of every pixel as one band: 1 to k in the order of the
    /// centres, NaN for invalid pixels. It reads no scene (stream::EmptySource). Call this function after
    /// refine(), with one rank only: with several ranks, each has only the labels of its own pixels.
    std::unique_ptr<stream::Operation> labels() const;
    /// Returns reports of all passes over the source so far.
    const std::vector<stream::PassReport>& passes() const;

  private:
    struct State;
    std::unique_ptr<State> m;
};

/// Makes an operation that assigns every pixel of a scene to the nearest of these centres. The scene needs
/// the same number of bands. The output has the form of Clustering::labels().
std::unique_ptr<stream::Operation> make_assignment(const Centres& centres, Distance distance);

/// Returns the passes of a clustering of this scene, with their names, for plans.
std::vector<std::pair<std::string, std::unique_ptr<stream::Operation>>>
plan_operations(const stream::CubeShape& scene, const Options& options, int count);

/// Returns the instruction set of the SIMD code.
const char* simd_target();

} // namespace hsi::cluster
