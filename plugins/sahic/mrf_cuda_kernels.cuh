// SPDX-License-Identifier: MIT
// The MRF's ADMM on one device. The mathematics is described in mrf_cpu.cpp. An iteration has four launches.
// The first launch computes edges, q, multipliers and the right side of the linear system. Then follow an FFT
// along each line, the recursive filter down each column of the spectrum, and the inverse FFT. A float2 has
// the values of two classes. Such a pair is one complex transform, and one thread processes it.
//
// The stored arrays differ from the CPU's in two places, because memory traffic dominates the time of an
// iteration:
//   t5 = H V4 - D5 is stored instead of D5. Both D5' = -projection of t5 and V5 + D5' = t5 + 2 D5' follow
//   from t5. D4 is not stored. V4 solves V4 - (q - D4) + H'(H V4 - V5 - D5) = 0, so D4' = D4 - q + V4 = H'(V5
//   + D5 - H V4).
#pragma once

#include "cuda/cufft.h"
#include "cuda/device_buffer.h"
#include "cuda/stream.h"
#include "sahic/sahic.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::sahic::gpu {

/// The data that kernels read and write. All pointers refer to device memory.
struct MrfWork {
    int classes = 0, pairs = 0, lines = 0, samples = 0;
    int pitch = 0; ///< pixels per line of p, q, d1, t, t5 and of the planes with one value per pixel
    int n = 0;     ///< pixels per line of `rhs` and `v4`, which is the size of the transform
    bool periodic = false;
    float mu = 0, inverse = 0; ///< inverse = 1/(1 + mu)
    const float2* p = nullptr; ///< [pair][line][pitch]
    float2 *q = nullptr, *d1 = nullptr, *t = nullptr;
    const float2 *t5h_old = nullptr, *t5v_old = nullptr;
    float2 *t5h = nullptr, *t5v = nullptr;
    float* sum = nullptr;                                    ///< sums of q, [pair][line][pitch]
    float *e = nullptr, *d3 = nullptr, *threshold = nullptr; ///< [line][pitch]
    uint32_t* flags = nullptr; ///< [line][pitch]: 1 + index of the fixed class, and the flag bits
    float2* rhs = nullptr;     ///< right side [pair][line][n]; later its spectrum
    float2* v4 = nullptr;      ///< V4 [pair][line][n]; before that, the filtered spectrum

    __host__ __device__ size_t plane() const {
        return static_cast<size_t>(lines) * static_cast<size_t>(pitch);
    }
    __host__ __device__ size_t wide_plane() const {
        return static_cast<size_t>(lines) * static_cast<size_t>(n);
    }
};
inline constexpr uint32_t flag_valid = 1u << 16, flag_h_exists = 1u << 17, flag_h_counts = 1u << 18,
                          flag_v_exists = 1u << 19, flag_v_counts = 1u << 20;

/// The sums of MrfResiduals over those pixels of the core that one block of threads processes, in double
/// precision.
struct PartialResiduals {
    double v1, v2, v3, v4, v5, change, objective;
};

/// The memory and the launches of a solver. Create, use and destroy the object while its device is current.
class DeviceMrf {
  public:
    DeviceMrf(const MrfOptions& options, const MrfLimits& limits);
    DeviceMrf(const DeviceMrf&) = delete;
    DeviceMrf& operator=(const DeviceMrf&) = delete;
    ~DeviceMrf();
    static uint64_t bytes(const MrfLimits& limits);

    /// Copies the arrays of the problem from the host to the device. The copies are faster if the arrays are
    /// in pinned memory.
    void upload(const MrfProblem& problem, cudaStream_t stream);
    /// Runs the iterations first .. first + count - 1 of MrfOptions::iterations as separate launches.
    void iterate(int first, int count, cudaStream_t stream);
    /// Runs `count` iterations as one CUDA graph. `count` must be even, and the first and the last of all
    /// iterations must not be among them.
    void iterate_graph(int count, cudaStream_t stream);
    /// Computes the residuals over the core. Call it after the last iteration.
    void residuals(cudaStream_t stream);
    void download(float* q, cudaStream_t stream);
    /// Returns the result of residuals(). Call it after the stream has finished.
    MrfResiduals total() const;

    // Launch single steps, for measurements
    void launch_step(int iteration, cudaStream_t stream);
    void launch_transform(bool backward, cudaStream_t stream);
    void launch_filter(cudaStream_t stream);
    const MrfWork& work() const { return m_work; }

  private:
    struct Shape;
    void shape_for(const MrfProblem& problem);
    MrfWork work_of(int iteration) const;
    const MrfOptions m_options;
    const MrfLimits m_limits;
    MrfWork m_work;
    Rect m_core;
    Shape* m_shape = nullptr; ///< shape of the last upload
    std::vector<std::unique_ptr<Shape>> m_shapes;
    cuda::DeviceBuffer<float2> m_state; ///< p, q, d1, t, and two buffers for t5
    cuda::DeviceBuffer<float> m_pixel;  ///< threshold, e, d3, and the sums of q
    cuda::DeviceBuffer<uint32_t> m_flags;
    cuda::DeviceBuffer<float2> m_rhs, m_v4;
    cuda::DeviceBuffer<double> m_change;
    cuda::DeviceBuffer<PartialResiduals> m_partial;
    HostBuffer<double> m_host_change;
    HostBuffer<PartialResiduals> m_host_partial;
    size_t m_change_count = 0, m_partial_count = 0;
};

} // namespace hsi::sahic::gpu
