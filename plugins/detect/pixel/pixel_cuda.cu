// SPDX-License-Identifier: MIT
// hsi_cuda_detect_pixel.so: scores of single pixels on GPUs.
#include "cuda/device_buffer.h"
#include "cuda/spectrum_lengths.cuh"
#include "detect/detect_cuda_lane.cuh"
#include "detect/pixel/pixel.h"
#include "detect/pixel/score_cuda_kernels.cuh"

#include <utility>
#include <vector>

namespace hsi::detect {
namespace {

using cuda::DeviceBuffer;

/// Returns a matrix in the kernels' layout (gpu::panel_rows).
std::vector<double> panels_of(const std::vector<double>& matrix, size_t columns) {
    constexpr auto height = static_cast<size_t>(gpu::panel_rows);
    const size_t rows = matrix.size() / columns, count = (rows + height - 1) / height;
    std::vector<double> panels(count * height * columns);
    for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c)
            panels[(r / height * columns + c) * height + r % height] = matrix[r * columns + c];
    return panels;
}

/// The detector in the kernels' layout.
struct Parts {
    explicit Parts(Detector d)
        : detector(std::move(d)), rows(panels_of(detector.rows, detector.used.size())),
          log_rows(panels_of(detector.log_rows, detector.used.size())),
          factor(panels_of(detector.factor, detector.used.size())) {}
    const Detector detector;
    const std::vector<double> rows, log_rows, factor;
    uint64_t bytes() const {
        return 8 * (rows.size() + log_rows.size() + factor.size() + detector.constants.size() +
                    detector.centre.size()) +
               4 * detector.used.size();
    }
    gpu::Kind kind() const {
        switch (detector.method) {
        case Method::sam:
            return gpu::Kind::sam;
        case Method::sid:
            return gpu::Kind::sid;
        case Method::ace:
            return gpu::Kind::ace;
        case Method::rx:
            return gpu::Kind::rx;
        default:
            return gpu::Kind::matched;
        }
    }
    /// Returns the number of values per pixel that one kernel leaves for another.
    uint64_t numbers() const {
        return static_cast<uint64_t>(detector.targets) + (detector.method == Method::sid ? 3
                                                          : detector.method == Method::sam || !factor.empty()
                                                              ? 1
                                                              : 0);
    }
};

class ScoreWorker final : public CudaWorker {
  public:
    ScoreWorker(int ordinal, const Parts& parts, const Decision& decision, const TileLimits& l)
        : CudaWorker(ordinal, parts.detector.bands, output_list(parts.detector.scores(), decision), decision,
                     l, true),
          m_parts(parts), m_used(parts.detector.used.size()), m_centre(parts.detector.centre.size()),
          m_rows(parts.rows.size()), m_log_rows(parts.log_rows.size()), m_factor(parts.factor.size()),
          m_constants(parts.detector.constants.size()), m_valid(window_pixels(l)),
          m_numbers(static_cast<size_t>(parts.numbers()) * window_pixels(l)) {
        const auto stream = m_stream.get();
        const Detector& d = parts.detector;
        m_used.upload(d.used.data(), d.used.size(), stream);
        const auto upload = [stream](DeviceBuffer<double>& to, const std::vector<double>& from) {
            if (!from.empty()) to.upload(from.data(), from.size(), stream);
        };
        upload(m_centre, d.centre);
        upload(m_rows, parts.rows);
        upload(m_log_rows, parts.log_rows);
        upload(m_factor, parts.factor);
        upload(m_constants, d.constants);
        m_stream.synchronize();
    }
    static uint64_t device_bytes(const Parts& p, const Decision& decision, const TileLimits& l) {
        return common_bytes(p.detector.bands, output_list(p.detector.scores(), decision), l) + p.bytes() +
               window_pixels(l) * (1 + 8 * p.numbers());
    }

  private:
    void launch(const Tile&, const CubeView<float>& in, gpu::Output& to, cudaStream_t stream) override {
        const auto pixels = static_cast<size_t>(in.lines * in.samples);
        gpu::ScoreWork w;
        w.kind = m_parts.kind();
        w.raw = m_raw;
        w.pixels = static_cast<int>(pixels);
        w.bands = in.bands;
        w.used_count = static_cast<int>(m_parts.detector.used.size());
        w.targets = m_parts.detector.targets;
        w.used = m_used.data();
        w.centre = m_centre.data();
        w.rows = m_rows.data();
        w.log_rows = m_log_rows.data();
        w.factor = m_factor.data();
        w.constants = m_constants.data();
        w.least_part = least_part;
        w.sam_rounding = sam_rounding(m_parts.detector.used.size());
        w.valid = m_valid.data();
        w.scores = m_numbers.data();
        double* const rest = m_numbers.data() + static_cast<size_t>(w.targets) * pixels;
        if (w.kind == gpu::Kind::sid) {
            w.greatest = rest;
            w.sum = rest + pixels;
            w.entropy = rest + 2 * pixels;
        } else {
            w.squared = rest;
        }
        to.small_is_best = is_small_at_target(m_parts.detector.method);
        gpu::launch_scores(w, to, stream);
    }

    const Parts& m_parts;
    DeviceBuffer<int> m_used;
    DeviceBuffer<double> m_centre, m_rows, m_log_rows, m_factor, m_constants;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<double> m_numbers;
};

class CudaScores final : public TalliedDetection {
  public:
    CudaScores(std::vector<CudaDevice> devices, const Detector& detector, const Decision& decision,
               double& kernel_seconds)
        : TalliedDetection(std::move(devices), decision, kernel_seconds), m_parts(detector) {}
    std::vector<int> output_bands() const override {
        return output_list(m_parts.detector.scores(), m_decision);
    }
    uint64_t preferred_bytes() const override { return uint64_t{32} << 20; }
    uint64_t device_bytes(const TileLimits& l) const override {
        return ScoreWorker::device_bytes(m_parts, m_decision, l);
    }

  private:
    std::unique_ptr<stream::Worker> make_lane(const cuda::LaneDevice& on, const TileLimits& l) override {
        return std::make_unique<ScoreWorker>(on.ordinal, m_parts, m_decision, l);
    }
    const Parts m_parts;
};

class CudaPixelBackend final : public cuda::TimedBackend<PixelBackend> {
  public:
    using TimedBackend::TimedBackend;
    std::unique_ptr<Detection> make_detection(const Detector& detector, const Decision& decision) override {
        check_detector(detector);
        return std::make_unique<CudaScores>(m_devices, detector, decision, m_kernel_seconds);
    }
    bool sum_squares(const CubeView<float>& scene, double* squares) override {
        cuda::sum_squares(m_devices.front().ordinal, scene, squares);
        return true;
    }
};

} // namespace
} // namespace hsi::detect

extern "C" __attribute__((visibility("default"))) hsi::detect::PixelBackend*
hsi_cuda_detect_pixel(const std::vector<hsi::CudaDevice>& devices) {
    return new hsi::detect::CudaPixelBackend(devices);
}
