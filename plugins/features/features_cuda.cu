// SPDX-License-Identifier: MIT
// hsi_cuda_features.so: continua and features on GPUs, one thread per pixel. The file is compiled with
// -fmad=false, and operations are in the CPU's order, so all results are bitwise equal to the CPU's.
#include "core/valid_pixel.h"
#include "cuda/continuum.cuh"
#include "cuda/copy.h"
#include "cuda/device.h"
#include "cuda/device_buffer.h"
#include "cuda/lane_operation.h"
#include "cuda/stream.h"
#include "features/features.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace hsi::features {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceGuard;
using cuda::HullStack;
using cuda::RangeValues;
using stream::TileLimits;

constexpr int threads = 128;

struct RangePlace {
    int first = 0, n = 0; ///< first: index into the arrays of bands and wavelengths
};

/// The pixels of a tile, the ranges, and the result buffers.
struct FeatureWork {
    const float* x = nullptr; ///< [band][pixel]
    int64_t pixels = 0;
    int inputs = 0, ranges = 0;
    const RangePlace* range = nullptr;
    const int* band = nullptr;
    const double* at = nullptr;
    bool removed = false;
    float* out = nullptr; ///< [band][pixel]
    /// [vertex][pixel]; null if the hulls fit into the threads' local arrays
    uint16_t* hulls = nullptr;
    /// [valid, invalid, valid without a continuum]; kernels add to the counts.
    unsigned long long* counts = nullptr;
};

/// Computes the same feature as feature_of() on the CPU, but without an array of ratios. Instead, the
/// function computes the ratios three times.
__device__ Feature measure(const RangeValues& v, const HullStack& hull, int vertices) {
    constexpr double equal = 1e-10, least_depth = 1e-6;
    const double nothing = nan("");
    const double* const x = v.at;
    Feature f{0, nothing, nothing, 0, nothing};
    double least = 1, before = 1;
    for_each_ratio(v, hull, vertices, [&](int i, double r) {
        least = r < least ? r : least;
        if (i > 0) f.area += (1 - before + 1 - r) / 2 * (x[i] - x[i - 1]);
        before = r;
    });
    int m = -1;
    double r_before = 1, r_m = 1, r_after = 1;
    for_each_ratio(v, hull, vertices, [&](int i, double r) {
        if (m < 0 && r <= least + equal) {
            m = i;
            r_before = before; // Undefined for band 0, which is never the minimum of a feature.
            r_m = r;
        } else if (m >= 0 && i == m + 1) {
            r_after = r;
        }
        before = r;
    });
    const double depth = 1 - r_m;
    if (depth < least_depth) return f;
    f.depth = depth;
    const double left = (x[m - 1] + x[m]) / 2, right = (x[m] + x[m + 1]) / 2;
    const double d1 = (r_m - r_before) / (x[m] - x[m - 1]), d2 = (r_after - r_m) / (x[m + 1] - x[m]);
    const double a = (d2 - d1) / (x[m + 1] - x[m - 1]);
    const double vertex = left - d1 / (2 * a);
    f.position = a > 0 ? (vertex < left ? left : right < vertex ? right : vertex) : x[m];
    const double half = 1 - depth / 2;
    // Finds the last band before m and the first band after m that reach half the depth. Also finds the
    // neighbour of each of these bands towards m.
    int i_left = 0, i_right = -1;
    double r_left = 1, r_left_inside = 1, r_right = 1, r_right_inside = 1;
    bool next = false;
    for_each_ratio(v, hull, vertices, [&](int i, double r) {
        if (next) {
            r_left_inside = r;
            next = false;
        }
        if (i < m && r >= half) {
            i_left = i;
            r_left = r;
            next = true;
        }
        if (i > m && i_right < 0 && r >= half) {
            i_right = i;
            r_right = r;
            r_right_inside = before;
        }
        before = r;
    });
    const auto crossing = [half](double x0, double r0, double x1, double r1) {
        return x0 + (half - r0) / (r1 - r0) * (x1 - x0);
    };
    const double from = crossing(x[i_left + 1], r_left_inside, x[i_left], r_left),
                 to = crossing(x[i_right - 1], r_right_inside, x[i_right], r_right);
    f.width = to - from;
    f.asymmetry = ((to - f.position) - (f.position - from)) / f.width;
    return f;
}

__device__ void put_feature(const FeatureWork& w, int range, int64_t p, const Feature& f) {
    float* to = w.out + static_cast<int64_t>(range) * measures * w.pixels + p;
    const double all[measures] = {f.depth, f.position, f.width, f.area, f.asymmetry};
    for (int k = 0; k < measures; ++k, to += w.pixels)
        *to = static_cast<float>(all[k]);
}

/// If `Own` is true, the hull is in the thread's local array.
template <bool Own>
__global__ void __launch_bounds__(threads) features_kernel(const FeatureWork w) {
    uint16_t own[Own ? cuda::own_hull : 1];
    const int64_t p = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
    const bool inside = p < w.pixels, valid = inside && is_valid_pixel(w.x + p, w.inputs, w.pixels);
    const HullStack hull{Own ? own : w.hulls + p, Own ? 1 : w.pixels};
    bool open = false;
    for (int k = 0; inside && k < w.ranges; ++k) {
        const RangePlace range = w.range[k];
        const RangeValues v{w.x + p, w.pixels, w.band + range.first, w.at + range.first, range.n};
        const int vertices = valid ? upper_hull(v, hull) : 0;
        open = open || (valid && vertices == 0);
        if (!w.removed) {
            const double nothing = nan("");
            put_feature(w, k, p,
                        vertices > 0 ? measure(v, hull, vertices)
                                     : Feature{nothing, nothing, nothing, nothing, nothing});
        } else if (vertices > 0) {
            for_each_ratio(v, hull, vertices,
                           [&](int i, double r) { w.out[v.band[i] * w.pixels + p] = static_cast<float>(r); });
        }
    }
    if (inside && w.removed && (open || !valid))
        for (int b = 0; b < w.inputs; ++b)
            w.out[b * w.pixels + p] = nanf("");
    const int here = __syncthreads_count(inside), good = __syncthreads_count(valid),
              without = __syncthreads_count(open);
    if (threadIdx.x != 0) return;
    atomicAdd(w.counts, static_cast<unsigned long long>(good));
    atomicAdd(w.counts + 1, static_cast<unsigned long long>(here - good));
    atomicAdd(w.counts + 2, static_cast<unsigned long long>(without));
}

/// The ranges on one device, shared by all workers.
struct DeviceRanges {
    DeviceBuffer<RangePlace> range;
    DeviceBuffer<int> band;
    DeviceBuffer<double> at;

    explicit DeviceRanges(const std::vector<Range>& ranges) {
        std::vector<RangePlace> places;
        std::vector<int> bands;
        std::vector<double> x;
        for (const Range& one : ranges) {
            places.push_back({static_cast<int>(bands.size()), static_cast<int>(one.x.size())});
            for (const size_t b : one.bands)
                bands.push_back(static_cast<int>(b));
            x.insert(x.end(), one.x.begin(), one.x.end());
        }
        range = DeviceBuffer(places);
        band = DeviceBuffer(bands);
        at = DeviceBuffer(x);
    }
};

/// The parameters of workers.
struct FeatureSetup {
    int inputs = 0, outputs = 0, ranges = 0;
    bool removed = false;
    uint64_t longest = 0, all = 0; ///< number of bands of the longest range, and of all ranges together
    bool own() const { return longest <= static_cast<uint64_t>(cuda::own_hull); }
};

class CudaFeatureWorker final : public stream::Worker {
  public:
    /// Precondition: `ordinal` is the current device.
    CudaFeatureWorker(int ordinal, std::shared_ptr<const DeviceRanges> ranges, const FeatureSetup& setup,
                      const TileLimits& limits)
        : m_ordinal(ordinal), m_ranges(std::move(ranges)), m_setup(setup),
          m_x(pixels_of(limits) * static_cast<size_t>(setup.inputs)),
          m_out(pixels_of(limits) * static_cast<size_t>(setup.outputs)),
          m_hulls(setup.own() ? 0 : pixels_of(limits) * setup.longest), m_counts(3) {}
    static size_t pixels_of(const TileLimits& l) {
        return static_cast<size_t>(l.core_samples * l.core_lines);
    }
    static uint64_t device_bytes(const FeatureSetup& s, const TileLimits& l) {
        return pixels_of(l) *
                   (4 * static_cast<uint64_t>(s.inputs + s.outputs) + (s.own() ? 0 : 2 * s.longest)) +
               12 * s.all + 24;
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>& out) override {
        const DeviceGuard guard(m_ordinal);
        const auto stream = m_stream.get();
        FeatureWork w;
        w.x = m_x.packed(in, stream);
        w.pixels = in.lines * in.samples;
        w.inputs = m_setup.inputs;
        w.ranges = m_setup.ranges;
        w.range = m_ranges->range.data();
        w.band = m_ranges->band.data();
        w.at = m_ranges->at.data();
        w.removed = m_setup.removed;
        w.out = m_out.begin(out[0]);
        w.hulls = m_hulls.data();
        w.counts = m_counts.data();
        m_counts.clear(stream);
        m_clock.start(stream);
        const auto blocks = static_cast<unsigned>((w.pixels + threads - 1) / threads);
        if (m_setup.own())
            features_kernel<true><<<blocks, threads, 0, stream>>>(w);
        else
            features_kernel<false><<<blocks, threads, 0, stream>>>(w);
        HSI_CUDA_LAUNCHED("features_kernel");
        m_clock.stop(stream);
        m_out.end(stream);
        std::array<unsigned long long, 3> found{};
        m_counts.download(found.data(), found.size(), stream);
        m_stream.synchronize();
        kernel_seconds += m_clock.seconds();
        for (size_t i = 0; i < found.size(); ++i)
            counts[i] += static_cast<int64_t>(found[i]);
    }

    std::array<int64_t, 3> counts{}; ///< in the order of FeatureWork::counts
    double kernel_seconds = 0;

  private:
    const int m_ordinal;
    const std::shared_ptr<const DeviceRanges> m_ranges;
    const FeatureSetup& m_setup;
    cuda::Stream m_stream;
    cuda::KernelClock m_clock;
    cuda::TileInput m_x;
    cuda::TileOutput m_out;
    DeviceBuffer<uint16_t> m_hulls;
    DeviceBuffer<unsigned long long> m_counts;
};

class CudaFeatures final : public cuda::LaneOperation<Features> {
  public:
    CudaFeatures(std::vector<CudaDevice> devices, int inputs, std::vector<Range> ranges, Output output,
                 double& kernel_seconds)
        : LaneOperation(std::move(devices)), m_ranges(std::move(ranges)), m_shared(this->devices().size()),
          m_kernel_seconds(kernel_seconds) {
        check_ranges(inputs, m_ranges, output);
        m_setup.inputs = inputs;
        m_setup.ranges = static_cast<int>(m_ranges.size());
        m_setup.removed = output == Output::removed;
        m_setup.outputs = m_setup.removed ? inputs : measures * m_setup.ranges;
        for (const Range& range : m_ranges) {
            m_setup.longest = std::max<uint64_t>(m_setup.longest, range.x.size());
            m_setup.all += range.x.size();
        }
    }
    std::vector<int> output_bands() const override { return {m_setup.outputs}; }
    int takes_from() const override { return only_device(); }
    int puts_on() const override { return only_device(); }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& limits) const override {
        return CudaFeatureWorker::device_bytes(m_setup, limits);
    }
    void stop(stream::Worker& worker) override {
        const auto& w = static_cast<const CudaFeatureWorker&>(worker);
        m_valid += w.counts[0];
        m_invalid += w.counts[1];
        m_open += w.counts[2];
        m_kernel_seconds += w.kernel_seconds;
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& limits) override {
        auto shared = m_shared.on(on, [&] { return std::make_shared<DeviceRanges>(m_ranges); });
        return std::make_unique<CudaFeatureWorker>(on.ordinal, std::move(shared), m_setup, limits);
    }
    const std::vector<Range> m_ranges;
    FeatureSetup m_setup;
    cuda::OncePerDevice<DeviceRanges> m_shared;
    double& m_kernel_seconds;
};

class CudaBackend final : public cuda::TimedBackend<Backend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Features> make_features(int inputs, std::vector<Range> ranges, Output output) override {
        return std::make_unique<CudaFeatures>(m_devices, inputs, std::move(ranges), output, m_kernel_seconds);
    }
};

} // namespace
} // namespace hsi::features

extern "C" __attribute__((visibility("default"))) hsi::features::Backend*
hsi_cuda_features(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::features::CudaBackend(devices);
}
