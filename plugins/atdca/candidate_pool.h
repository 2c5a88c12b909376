// SPDX-License-Identifier: MIT
// Spectra in memory that may become targets, and the sequence of targets that a search among them finds.
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

/// One step of a guessed sequence: the best pixel of the pool, given the targets of all earlier steps. The
/// step is wrong if before() (basis.h) puts any pixel of the scene before this score and position.
struct Step {
    double score = 0;
    Position position;
    /// Spectrum of the pixel at `position`; empty if no pixel of the pool qualifies. `score` and
    /// `position` are then the limit that a pixel of the scene must beat.
    std::vector<float> spectrum;
    bool ends = false; ///< If the step is proved, the search ends, and the pixel does not become a target.
    bool qualifies() const { return !spectrum.empty(); }
};

struct Sequence {
    explicit Sequence(const Basis& proved) : basis(proved), first(proved.size()) {}
    Basis basis; ///< the proved targets, then the guessed targets (without the pixel of a step that ends)
    int first;   ///< number of targets proved so far: steps[0] chooses the target with this index
    std::vector<Step> steps;
    std::vector<std::vector<double>> p; ///< GS: the paper's vector p at each step
    std::vector<double> p_squared;      ///< GS: ||p||^2 at each step
    /// GS: after the last step, p is zero except for rounding, and the search ends without a scan.
    bool p_vanishes = false;
    /// Returns the smallest score of the steps; infinity without steps.
    double smallest_score() const;
};

class CandidatePool {
  public:
    explicit CandidatePool(int bands) : m_bands(bands) {}
    int bands() const { return m_bands; }
    int64_t size() const { return static_cast<int64_t>(m_position.size()); }
    static uint64_t bytes_each(int bands) { return static_cast<uint64_t>(bands) * 4 + 48; }
    /// Reserves memory for this number of candidates, so that add() does not have to move data.
    void reserve(int64_t candidates);
    /// Adds a valid pixel that is not in the pool yet. spectrum: one value per band.
    void add(const Position& position, const float* spectrum);
    struct Candidate {
        Position position;
        const float* spectrum = nullptr; ///< one value per band
    };
    /// Adds `count` pixels on all threads of a team. of(i) returns pixel i; it is called once for each i, on
    /// any thread.
    void add(int64_t count, const std::function<Candidate(int64_t)>& of, Team& team);
    const Position& position(int64_t i) const { return m_position[static_cast<size_t>(i)]; }
    std::vector<float> spectrum(int64_t i) const;
    /// A function that replaces the choice of this pool at a step by the best choice of the pools of all
    /// ranks.
    using Share = std::function<void(Step& step)>;
    /// Runs the whole search on the pool, until it has `options.targets` targets or ends early. The scores of
    /// basis.h make all decisions. proved, found: basis and positions of the targets that are already proved.
    /// first_score: ||x||^2 of the first target. Uses all threads of `team`; their number does not change
    /// decisions. share: called at each step; null if this pool has all candidates.
    Sequence guess(const Basis& proved, const std::vector<Position>& found, const Options& options,
                   double first_score, Team& team, const Share& share = {}) const;

  private:
    struct Search;
    float* spectra(size_t g) const;
    void make_room(size_t groups);
    int m_bands;
    HostBuffer<float> m_spectra; ///< in groups, see atdca_simd.h; zero where there is no candidate yet
    std::vector<double> m_norm;  ///< ||x||^2 of each candidate, padded to whole groups
    std::vector<Position> m_position;
};

} // namespace hsi::atdca
