// SPDX-License-Identifier: MIT
// The sums of local RX in bands x bands, column by column of the window. A column's products are made once,
// from fresh, when the window reaches it: those of the inner square's lines, and those of all. Then they join
// the sums and leave them again, so that a step takes OUTER products, not 2 (INNER + OUTER).
#pragma once

#include "core/host_memory.h"
#include "detect/ring_simd.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::detect {

class RingColumns {
  public:
    RingColumns(int bands, int inner, int outer);
    static uint64_t bytes(int bands, int inner, int outer);

    /// Nothing is summed, and no column known.
    void clear();

    enum class Lines { inner, outer, all };
    /// Whether the column's products are kept: from its first add() until the window has passed it.
    bool keeps(int64_t sample) const;
    /// At flush() or the next add() with spectra, adds all lines of a kept column to the sums, or those of
    /// the inner square, or takes them away.
    void add(int64_t sample, Lines lines, bool plus);
    /// The same of a column that is not kept, at once: spectra in the lines of the inner square, and beyond.
    /// What the window leaves in a step must be added before.
    void add(int64_t sample, Lines lines, bool plus, const std::vector<const float*>& inner,
             const std::vector<const float*>& outer, const double* centre);
    void flush();

    int64_t count() const { return m_count; }              ///< of pixels summed
    const double* apart() const { return m_apart.data(); } ///< sum of x - centre
    std::pair<double, double> squares() const;             ///< sums of |x - centre|^2 and of |x - mean|^2
    void matrix(double* out, ptrdiff_t pitch) const;       ///< the covariance, b >= a of row a
    /// d'M^-1 d, M the covariance with ridge on its diagonal; none where single precision has not enough
    /// digits.
    std::optional<double> solve(const double* d, double ridge);

  private:
    /// Products of some lines of columns, a slot each.
    struct Store {
        Store(size_t slots, size_t size, size_t room)
            : samples(slots), counts(slots), products(slots * size), apart(slots * room) {}
        size_t slot(int64_t sample) const {
            const auto count = static_cast<int64_t>(samples.size());
            return static_cast<size_t>((sample % count + count) % count);
        }
        std::vector<int64_t> samples;
        std::vector<int> counts;            ///< pixels
        HostBuffer<double> products, apart; ///< a Triangle each; sum of x - centre
    };
    void add_apart(const double* apart, int count, double sign);

    const RingKernels& m_simd;
    const int m_bands;
    const bool m_kept;
    const size_t m_size, m_room;
    Store m_inner, m_all;
    HostBuffer<double> m_vectors, m_sums, m_apart, m_work;
    HostBuffer<float> m_factor, m_singles;
    RingStep m_step;
    int64_t m_count = 0;
};

} // namespace hsi::detect
