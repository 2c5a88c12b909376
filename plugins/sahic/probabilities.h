// SPDX-License-Identifier: MIT
// Brings the probabilities of another classifier into the form that the Markov random field requires:
// cleaned, and with the spatial weights of a scene.
#pragma once

#include "sahic/sahic.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hsi::sahic {

/// The counts of a pass over probabilities. Missing pixels count only in `invalid`.
struct ProbabilityFacts {
    int64_t valid = 0, invalid = 0;
    /// Pixels whose sum differs from 1 by more than 1e-3; for one band, pixels with a value outside 0..1.
    int64_t off = 0;
    bool whole = true; ///< true if all values are integers
    double least = 0, greatest = 0;
    /// Returns true if the values are probably class numbers instead of probabilities. This is the case if
    /// all values are integers and, in a single band, a value is above 1; in several bands, all values are
    /// above 1.
    bool labels(int bands) const { return valid > 0 && whole && greatest > 1 && (bands == 1 || least > 1); }
    void add(const ProbabilityFacts& o);
};

/// The scene whose bands follow the probabilities in the source.
struct WeightScene {
    int bands = 0;
    double scale = 1;                            ///< greatest absolute value of the scene's valid pixels
    std::vector<float> first_line, first_sample; ///< see SpectralOptions
};

/// Cleans probabilities. Negative values become 0, then all values are divided by their sum (in double
/// precision, in band order). A pixel is invalid if it has NaN, an infinite value or the sum 0. A single band
/// p is clamped to 0..1, and 1 - p is added as the second class; in this case 0 is a valid value.
///
/// The source has `bands` bands of probabilities. If there is a scene, its bands follow, and pixels that are
/// invalid in it are invalid. The outputs are the probabilities of the classes (NaN: invalid), and one band
/// with the weight a of SpatialWeights, which is 1 without a scene.
class ProbabilityPass final : public stream::Operation {
  public:
    ProbabilityPass(const stream::CubeShape& shape, int bands, std::optional<WeightScene> scene);
    int classes() const { return m_bands == 1 ? 2 : m_bands; }
    int64_t halo() const override { return m_scene ? 1 : 0; }
    std::vector<int> output_bands() const override { return {classes(), 1}; }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override;
    std::unique_ptr<stream::Worker> start(int lane, const stream::TileLimits& limits) override;
    void stop(stream::Worker& worker) override;
    /// Returns the counts, which are complete after the pass.
    const ProbabilityFacts& facts() const { return m_facts; }

  private:
    class PassWorker;
    const stream::CubeShape m_shape;
    const int m_bands;
    const std::optional<WeightScene> m_scene;
    ProbabilityFacts m_facts;
};

} // namespace hsi::sahic
