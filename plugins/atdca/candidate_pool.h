// SPDX-License-Identifier: MIT
// Spectra in memory that may become targets, and the sequence of targets that they suggest.
#pragma once

#include "atdca/basis.h"
#include "core/host_memory.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hsi {
class Team;
}

namespace hsi::atdca {

/// One step of a guessed sequence. With the targets before it, no pixel of the pool is chosen before (score,
/// position). A pixel of the scene that would be chosen before disproves the step.
struct Step {
    double score = 0;
    Position position;
    std::vector<float> spectrum; ///< of that pixel; empty: no pixel of the pool qualifies, and score is the
                                 ///< limit
    bool ends = false;           ///< the search ends here if the step is proved (and the pixel is not taken)
    bool qualifies() const { return !spectrum.empty(); }
};

struct Sequence {
    explicit Sequence(const Basis& proved) : basis(proved), first(proved.size()) {}
    Basis basis; ///< the proved targets, then the guessed ones (without the last step's)
    int first;   ///< targets proved so far: steps[0] chooses the target with this index
    std::vector<Step> steps;
    std::vector<std::vector<double>> p; ///< the paper's p at each step (only GS)
    std::vector<double> p_squared;
    bool p_vanishes =
        false; ///< GS: after the steps p is zero except for rounding, and the search ends without a scan
    /// Returns the smallest score; the last target of index i has q_i = basis.q(i).
    double smallest_score() const;
};

class CandidatePool {
  public:
    explicit CandidatePool(int bands) : m_bands(bands) {}
    int bands() const { return m_bands; }
    int64_t size() const { return static_cast<int64_t>(m_position.size()); }
    static uint64_t bytes_each(int bands) { return static_cast<uint64_t>(bands) * 4 + 48; }
    /// Reserves room for `candidates`, so that adding moves no data.
    void reserve(int64_t candidates);
    /// spectrum: one value per band, of a valid pixel that is not in the pool yet.
    void add(const Position& position, const float* spectrum);
    struct Candidate {
        Position position;
        const float* spectrum = nullptr; ///< as in add()
    };
    /// Adds `count` pixels on all threads of a team; of(i) is called once for each, on any thread.
    void add(int64_t count, const std::function<Candidate(int64_t)>& of, Team& team);
    const Position& position(int64_t i) const { return m_position[static_cast<size_t>(i)]; }
    std::vector<float> spectrum(int64_t i) const;
    /// Finds the common choice of several pools at a step; each pool passes its own choice.
    using Share = std::function<void(Step& step)>;
    /// Runs the whole search on the pool: steps until `options.targets` or the end, decided
    /// by basis.h's scores. first_score: ||x||^2 of the first target. Uses all threads of a
    /// team, which does not change decisions. share: null for a pool that has all
    /// candidates.
    Sequence guess(const Basis& proved, const std::vector<Position>& found, const Options& options,
                   double first_score, Team& team, const Share& share = {}) const;

  private:
    struct Search;
    float* spectra(size_t g) const;
    void make_room(size_t groups);
    int m_bands;
    HostBuffer<float> m_spectra; ///< in groups, see atdca_simd.h; zero where there is no candidate yet
    std::vector<double> m_norm;  ///< ||x||^2; whole groups
    std::vector<Position> m_position;
};

} // namespace hsi::atdca
