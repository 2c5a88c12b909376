// SPDX-License-Identifier: MIT
// The kernels of the CUDA backend, on packed planes in device memory: [component][line][sample]. The setup
// uses double precision without fused operations, in the CPU's order, so its results are bitwise equal to the
// CPU's.
//
// gradient_cuda_kernels.cu computes mask, gradient and ranges. contrast_cuda_kernels.cu computes histogram,
// contrast and weights. The recurrence runs in persistent_cuda_kernels.cu if the device has enough shared
// memory, otherwise in recurrence_cuda_kernels.cu.
#pragma once

#include "cuda/device_buffer.h"
#include "eadp/eadp.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

namespace hsi::eadp::gpu {

/// The components of one window.
struct Planes {
    const float* x = nullptr;
    int components = 0;
    int samples = 0, lines = 0;
    __host__ __device__ size_t pixels() const {
        return static_cast<size_t>(samples) * static_cast<size_t>(lines);
    }
};

/// Sets valid[p] to 1 if the pixel has a value in all components, otherwise to 0.
void launch_mask(const Planes& planes, bool zero_is_invalid, uint8_t* valid, cudaStream_t stream);

struct Core {
    int x = 0, y = 0, w = 0, h = 0; ///< position and size in window coordinates
};

/// The Gaussian's weights on the device, and scratch memory for the gradient.
struct GradientWork {
    const double* weights = nullptr; ///< radius + 1 weights
    int radius = 0;
    /// (components + 1) x pixels, filtered along rows; the last plane is the filtered mask
    double* row_sums = nullptr;
    double* smooth = nullptr;        ///< components x pixels
    double* column_weight = nullptr; ///< one value per pixel: the denominator of the Gaussian
};

/// The results of a range scan for one component. Initialise them with clear_ranges().
struct RangeSums {
    unsigned long long steepest; ///< bits of the largest squared gradient, as a double
    unsigned lowest, highest;    ///< floats in the form of encode_ordered()
    unsigned long long valid;
};
void clear_ranges(RangeSums* sums, int components, cudaStream_t stream);
Range range_of(const RangeSums& sums);
/// Computes the squared gradient magnitudes, components x pixels. If `sums` is not null, also does the work
/// of launch_range().
void launch_gradient(const Planes& planes, const uint8_t* valid, const GradientWork& work, double* squared,
                     Core core, RangeSums* sums, cudaStream_t stream);
/// Returns true if launch_gradient() needs the planes of GradientWork; otherwise they may be null.
bool gradient_needs_planes(int radius);
void launch_range(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                  RangeSums* sums, cudaStream_t stream);
/// Adds the valid pixels of the core with gradients above 0 to the histograms `counts`, components x
/// histogram_bins. steepest[c] is hmax of component c.
void launch_histogram(const Planes& planes, const uint8_t* valid, const double* squared, Core core,
                      const double* steepest, unsigned long long* counts, cudaStream_t stream);
/// Returns the line length of the recurrence's planes, a multiple of 4 samples (float4). The padding is zero.
__host__ __device__ inline int padded(int samples) { return (samples + 3) / 4 * 4; }
/// Computes start = x - level (0 if invalid), and the east and south weights (2 tau_max x mean g). T is float
/// or double.
template <class T>
void launch_weights(const Planes& planes, const uint8_t* valid, const double* squared, const double* k,
                    const float* level, Diffusivity kind, T* start, T* east, T* south, cudaStream_t stream);

/// One stage of the recurrence for all components of a window.
template <class T>
struct StageWork {
    int components = 0, samples = 0, lines = 0;
    int pitch = 0;            ///< padded(samples)
    const T* start = nullptr; ///< components x lines x pitch, like east, south and next
    const T* east = nullptr;
    const T* south = nullptr;
    const uint8_t* valid = nullptr;
    const float* level = nullptr; ///< one per component
    Core core;                    ///< part of the window that is output
    Core region;                  ///< part of the window that `next` needs
    float* out = nullptr; ///< planes of core.w x core.h; copy i of component c is plane c * out_bands + i
    int out_bands = 0;
    T* next = nullptr; ///< start of the next stage: copy 0 without its level; may be null
};

/// Runs stages with up to 8 copies at a time. Scratch memory is allocated once.
///
/// In single precision on a device with enough shared memory, one persistent kernel runs all sweeps. Every
/// multiprocessor keeps a tile of 128 x 52 pixels in registers (Y_k, weights) and the sums of 8 copies in
/// shared memory. After every 4 sweeps, neighbouring multiprocessors exchange halos of 4 pixels through the
/// second-level cache. Each value has a tag, by which the reader sees that it has arrived. On other devices
/// and in double precision, each sweep is one launch.
template <class T>
class Recurrence {
  public:
    Recurrence(int ordinal, int max_samples, int max_lines, int max_components,
               const std::vector<Stage>& stages, cudaStream_t stream);
    static uint64_t device_bytes(int ordinal, uint64_t pixels, int components,
                                 const std::vector<Stage>& stages);
    /// Runs stage `index` of the constructor's stages.
    void run(int index, const StageWork<T>& work, cudaStream_t stream);
    bool persistent() const { return m_persistent; }

  private:
    struct Batch { ///< up to 8 copies of a stage
        int first_copy = 0, copies = 0, groups = 0;
        size_t coefficients = 0; ///< offset into m_coefficients
        size_t masks = 0;        ///< offset into m_masks
    };
    void run_persistent(const Batch& batch, const StageWork<T>& work, int stage_degree, cudaStream_t stream);
    void run_sweeps(const Batch& batch, const StageWork<T>& work, cudaStream_t stream);

    int m_ordinal = 0, m_multiprocessors = 0;
    bool m_persistent = false;
    std::vector<int> m_degrees;
    std::vector<std::vector<Batch>> m_batches; ///< one list per stage
    std::vector<T> m_host_coefficients;
    std::vector<int> m_host_masks;
    cuda::DeviceBuffer<T> m_coefficients; ///< [group][8 copies][4]
    cuda::DeviceBuffer<int> m_masks;      ///< [group]; bit c is set if copy c has terms
    cuda::DeviceBuffer<T> m_planes;       ///< used if each sweep is one launch: Y_{k-1}, Y_k, Y_{k+1}, sums
    cuda::DeviceBuffer<uint4> m_exchange;
    unsigned m_epoch = 0;
};

} // namespace hsi::eadp::gpu
