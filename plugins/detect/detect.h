// SPDX-License-Identifier: MIT
// What the rooms of detection share: targets, the decision for one of them, and what a pass of scores counts.
// pixel scores a pixel by itself or against one background, local against the ring around it, groups against
// the columns or classes of its own, fit by absorption features, tuned among components whose noise is known.
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

using stream::PixelMask; ///< pixels of a scene that are its background

struct Targets {
    std::vector<std::string> names;           ///< k of them, for messages
    std::vector<std::vector<double>> spectra; ///< k of one length, in the units of the scene
    /// mf, ace: the spectra are what one unit of a gas absorbs of the background, negative as a rule: t - m
    /// is m times them, band by band, and mf tells how many units there are. D. R. Thompson et al.: Real-time
    /// remote detection and measurement for airborne imaging spectroscopy: a case study with methane,
    /// Atmospheric Measurement Techniques 8, 2015.
    bool absorption = false;
};

/// A target that cannot be told from the background's mean (cem: is zero beside it).
class TargetIsMean : public Error {
  public:
    using Error::Error;
};

/// Targets with less of (t-m)'C^-1(t-m) cannot be told from the mean.
inline constexpr double least_contrast = 1e-12;
/// Whether a target can be told from the mean by its (t-m)'M^-1(t-m). What one unit of a gas absorbs may be
/// as little as its unit is small.
HSI_HOST_DEVICE inline bool is_enough_contrast(double contrast, bool absorption) {
    return absorption ? contrast > 0 && std::isfinite(1 / contrast) : contrast >= least_contrast;
}

struct Decision {
    bool map = false;
    /// sam, sid: a best score over it, others: under it, is no detection. rx with a map wants one.
    std::optional<double> threshold;
};

/// What the scores of a pass come to.
struct ScoreCounts {
    std::vector<float> best;     ///< a target each; NaN: no pixel has a score
    std::vector<int64_t> mapped; ///< pixels of the map, a target each
    int64_t pixels = 0;          ///< with a score, where there is a map
};

/// Counts of the pass; complete after it.
class Detection : public stream::CountingOperation {
  public:
    void exchange(parallel::Group& ranks) override;
    int64_t without_background() const { return m_few; } ///< local RX: valid, fewer than 2 pixels around
    int64_t without_variance() const { return m_flat; }  ///< local RX: valid, all pixels around are equal
    /// Of an operation of devices, which counts beside the scores, where these are: what this process has
    /// seen. Null on the CPU.
    virtual const ScoreCounts* score_counts() const { return nullptr; }

  protected:
    int64_t m_few = 0, m_flat = 0;
};

/// What makes a room's operations; each room has one of its own (PixelBackend ...), which is the CPU's, and a
/// CUDA module whose backend overrides it. A device computes in double precision throughout.
class Backend {
  public:
    virtual ~Backend() = default;
    /// Seconds that kernels took since the backend was made, copies left out, added over the workers (which
    /// slow one another when they share a device); 0 on the CPU. Of passes that have ended.
    virtual double kernel_seconds() const { return 0; }
    /// Device bytes that are free, of the device that has least; 0 on the CPU.
    virtual uint64_t free_memory() const { return 0; }
};

const char* simd_target(); ///< where the CPU's loops were dispatched to

} // namespace hsi::detect
