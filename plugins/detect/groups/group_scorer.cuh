// SPDX-License-Identifier: MIT
// Groups of pixels on a device, from their pixels to their scores: what columns and the classes of a map have
// in common.
#pragma once

#include "core/cuda_module.h"
#include "cuda/device_buffer.h"
#include "detect/groups/group_cuda_kernels.cuh"
#include "detect/groups/groups.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::detect {

/// One owner of the buffers of so many groups on the current device. Kernels do all but the detectors of
/// groups whose matrix may not bear an inverse, which the host makes.
class GroupScorer {
  public:
    /// places: of the pixels of all groups. options must outlive it.
    GroupScorer(const GroupOptions& options, int bands, size_t groups, size_t places, cudaStream_t stream);
    static uint64_t bytes(const GroupOptions& options, int bands, uint64_t groups, uint64_t places);
    float* x() const { return m_x.data(); }

    /// For kernels, with what `work` says of pixels and raster.
    gpu::GroupWork with_buffers(gpu::GroupWork work) const;
    /// Onto the device, before their pixels come; then work.groups is their number.
    void begin(const std::vector<gpu::DeviceGroup>& groups, gpu::GroupWork& work, cudaStream_t stream);
    /// All statistics and scores of pixels that lie in x; groups: what was found.
    void score(const gpu::GroupWork& work, std::vector<gpu::DeviceGroup>& groups, cudaStream_t stream);
    static GroupRecord record_of(const gpu::DeviceGroup& group);

  private:
    void settle(const gpu::GroupWork& work, size_t g, gpu::DeviceGroup& group, cudaStream_t stream);
    stream::SceneStatistics moments_of(size_t g, const gpu::DeviceGroup& group, cudaStream_t stream) const;
    void take_parts(size_t g, const Detector& detector, cudaStream_t stream);

    const GroupOptions& m_options;
    const int m_bands;
    const size_t m_targets;
    const bool m_inverse; ///< of factors
    cuda::DeviceBuffer<gpu::DeviceGroup> m_groups;
    cuda::DeviceBuffer<float> m_x;
    cuda::DeviceBuffer<uint8_t> m_state, m_constant;
    cuda::DeviceBuffer<double> m_mean, m_matrix, m_own, m_weight, m_inverses, m_squares, m_spectra, m_rows,
        m_constants, m_scores;
};

/// As GroupBackend::make_group_scene() (classes_cuda.cu).
std::unique_ptr<GroupScene> make_cuda_group_scene(const CudaDevice& device, const stream::CubeShape& scene,
                                                  const GroupPlane& plane, const GroupOptions& options,
                                                  const PixelMask* mask, uint64_t memory,
                                                  double& kernel_seconds);

} // namespace hsi::detect
