// SPDX-License-Identifier: MIT
// The types that all detection methods share: targets, the decision for a target, and the counts of a pass.
// The methods are in subfolders. pixel/ scores each pixel alone or against one background. local/ scores a
// pixel against the surrounding ring. groups/ scores a pixel against its group, which consists of columns or
// of a class. fit/ uses absorption features. tuned/ uses components with known noise.
#pragma once

#include "core/error.h"
#include "core/host_device.h"
#include "stream/counting_operation.h"
#include "stream/pixel_mask.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::detect {

using stream::PixelMask; ///< the background pixels of a scene

struct Targets {
    std::vector<std::string> names;           ///< k names, for messages
    std::vector<std::vector<double>> spectra; ///< k spectra of equal length, in the units of the scene
    /// For mf and ace: the spectra are the absorption of one unit of a gas relative to the background,
    /// usually negative. Then t - m is m times the spectrum, band by band, and mf is the number of units. D.
    /// R. Thompson et al.: Real-time remote detection and measurement for airborne imaging spectroscopy: a
    /// case study with methane, Atmospheric Measurement Techniques 8, 2015.
    bool absorption = false;
};

/// The error that a target equals the background's mean; for cem, that a target is nearly zero compared with
/// the background.
class TargetIsMean : public Error {
  public:
    using Error::Error;
};

/// Targets with a smaller (t-m)'C^-1(t-m) count as equal to the mean.
inline constexpr double least_contrast = 1e-12;
/// Returns true if the contrast (t-m)'M^-1(t-m) is large enough to distinguish a target from the mean. The
/// absorption of one unit of a gas may be arbitrarily small; only its inverse must be finite.
HSI_HOST_DEVICE inline bool is_enough_contrast(double contrast, bool absorption) {
    return absorption ? contrast > 0 && std::isfinite(1 / contrast) : contrast >= least_contrast;
}

struct Decision {
    bool map = false;
    /// For sam and sid, a pixel is not a detection if its best score is above the threshold; for other
    /// methods, if its best score is below the threshold. rx with a map requires a threshold.
    std::optional<double> threshold;
};

/// A summary of the scores and the map of a pass.
struct ScoreCounts {
    std::vector<float> best;     ///< one per target; NaN if no pixel has a score
    std::vector<int64_t> mapped; ///< one per target: the number of its pixels in the map
    int64_t pixels = 0;          ///< pixels with a score, if there is a map
};

/// The operation of a detection. Its counts are complete after the pass.
class Detection : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    /// Returns the number of valid pixels whose surrounding pixels are too few (local RX): fewer than 2, or,
    /// without a ridge, so few or so similar that their covariance has no inverse.
    int64_t without_background() const { return m_few; }
    /// Returns the number of valid pixels whose surrounding pixels are all equal (local RX).
    int64_t without_variance() const { return m_flat; }
    /// Returns the summary of the scores that this process has computed. Returns null if the operation makes
    /// no summary, as on the CPU.
    virtual const ScoreCounts* score_counts() const { return nullptr; }

  protected:
    int64_t m_few = 0, m_flat = 0;
};

/// Makes the operations of a method. Each method derives its own class (PixelBackend ...), whose operations
/// run on the CPU. The method's CUDA module overrides this class with operations that run on devices, in
/// double precision throughout.
class Backend {
  public:
    virtual ~Backend() = default;
    /// Returns the seconds that kernels took in finished passes, without copies; 0 on the CPU. The seconds
    /// are added over all workers. Workers that share a device slow each other down.
    virtual double kernel_seconds() const { return 0; }
    /// Returns the free bytes of the device with the least free memory; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

const char* simd_target(); ///< Returns the instruction set that the CPU's loops use.

} // namespace hsi::detect
