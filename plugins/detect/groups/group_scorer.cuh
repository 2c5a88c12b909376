// SPDX-License-Identifier: MIT
// Scores groups of pixels on a device. Groups of columns and the classes of a map share this code.
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

/// Owns the buffers of a number of groups on the current device, and scores these groups. Kernels do all the
/// work, with one exception: if the matrix of a group may be singular, the host makes the detector of the
/// group.
class GroupScorer {
  public:
    /// places: the number of pixels of all groups, with padding. `options` must outlive the scorer.
    GroupScorer(const GroupOptions& options, int bands, size_t groups, size_t places, cudaStream_t stream);
    static uint64_t bytes(const GroupOptions& options, int bands, uint64_t groups, uint64_t places);
    float* x() const { return m_x.data(); }

    /// Returns `work` with pointers to the scorer's buffers.
    gpu::GroupWork with_buffers(gpu::GroupWork work) const;
    /// Copies the groups to the device and sets work.groups to their number. Call it before score().
    void begin(const std::vector<gpu::DeviceGroup>& groups, gpu::GroupWork& work, cudaStream_t stream);
    /// Computes the statistics of the groups and the scores of the pixels in x(). Copies the state of the
    /// groups back to `groups`.
    void score(const gpu::GroupWork& work, std::vector<gpu::DeviceGroup>& groups, cudaStream_t stream);
    static GroupRecord record_of(const gpu::DeviceGroup& group);

  private:
    void settle(const gpu::GroupWork& work, size_t g, gpu::DeviceGroup& group, cudaStream_t stream);
    stream::SceneStatistics moments_of(size_t g, const gpu::DeviceGroup& group, cudaStream_t stream) const;
    void take_parts(size_t g, const Detector& detector, cudaStream_t stream);

    const GroupOptions& m_options;
    const int m_bands;
    const size_t m_targets;
    const bool m_inverse; ///< true if the factors are inverted
    cuda::DeviceBuffer<gpu::DeviceGroup> m_groups;
    cuda::DeviceBuffer<float> m_x;
    cuda::DeviceBuffer<uint8_t> m_state, m_constant;
    cuda::DeviceBuffer<double> m_mean, m_matrix, m_own, m_weight, m_inverses, m_squares, m_spectra, m_rows,
        m_constants, m_scores;
};

/// See GroupBackend::make_group_scene() (classes_cuda.cu).
std::unique_ptr<GroupScene> make_cuda_group_scene(const CudaDevice& device, const stream::CubeShape& scene,
                                                  const GroupPlane& plane, const GroupOptions& options,
                                                  const PixelMask* mask, uint64_t memory,
                                                  double& kernel_seconds);

} // namespace hsi::detect
