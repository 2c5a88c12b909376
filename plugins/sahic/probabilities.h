// SPDX-License-Identifier: MIT
// Probabilities of another classifier, in the form that the random field requires: cleaned, with the weights
// of a scene.
#pragma once

#include "sahic/sahic.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hsi::sahic {

/// Counts of a pass over probabilities; missing pixels only count in `invalid`.
struct ProbabilityFacts {
    int64_t valid = 0, invalid = 0;
    int64_t off = 0;   ///< pixels whose sum differs from 1 by more than 1e-3; for one band: values outside
                       ///< 0..1
    bool whole = true; ///< all values are whole numbers
    double least = 0, greatest = 0;
    /// Returns whether the values are class numbers rather than probabilities: whole numbers, in one band not
    /// all 0 or 1, in several bands all above 1.
    bool labels(int bands) const { return valid > 0 && whole && greatest > 1 && (bands == 1 || least > 1); }
    void add(const ProbabilityFacts& o);
};

/// The scene that follows the probabilities in the source.
struct WeightScene {
    int bands = 0;
    double scale = 1;                            ///< its greatest absolute value over valid pixels
    std::vector<float> first_line, first_sample; ///< SpectralOptions'
};

/// Cleans probabilities: negative values become 0, then all are divided by their sum (in double precision, in
/// band order). A pixel with NaN, an infinite value or the sum 0 is invalid. A single band p, clamped to
/// 0..1, is followed by 1 - p; there 0 is a value. The source has `bands` probabilities, then the scene's
/// bands if there is a scene; a pixel that is invalid in the scene is invalid. Outputs: the classes'
/// probabilities (NaN: invalid), and a (SpatialWeights; 1 without a scene), one band.
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
    const ProbabilityFacts& facts() const { return m_facts; } ///< complete after the pass

  private:
    class PassWorker;
    const stream::CubeShape m_shape;
    const int m_bands;
    const std::optional<WeightScene> m_scene;
    ProbabilityFacts m_facts;
};

} // namespace hsi::sahic
