// SPDX-License-Identifier: MIT
// The sums of local RX in bands x bands, column by column of the window, of two pixels at once, one below the
// other: all lines of their windows but two, and of their inner squares but two, are those of both. A
// column's products are made once, from fresh, when the windows reach it: those of the lines of both inner
// squares, and those of both windows. Then they join the sums and leave them again, so that a step takes
// OUTER - 1 products for two pixels, and each pixel's own lines of four columns, not 2 (INNER + OUTER) for
// one.
#pragma once

#include "core/host_memory.h"
#include "detect/ring_simd.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::detect {

class RingColumns {
  public:
    RingColumns(int bands, int inner, int outer);
    static uint64_t bytes(int bands, int inner, int outer);

    /// Nothing is summed, and no column known. Without a second pixel the first one's sums are the same.
    void clear(bool has_second);

    enum class Lines { inner, outer, all };
    /// The spectra of a column that count, pixels 0 and 1 being the upper and the lower one.
    struct Spectra {
        std::vector<const float*> inner; ///< in both inner squares' lines
        std::vector<const float*> outer; ///< in others of both windows, among them those of `square`
        /// In a pixel's window alone, and in its inner square alone; null: none.
        std::array<const float*, 2> window{}, square{};
        void clear() {
            inner.clear();
            outer.clear();
            window = square = {};
        }
    };
    /// Whether the column's products are kept: from its first add() until the window has passed it.
    bool keeps(int64_t sample) const;
    /// At flush() or the next add() with spectra, adds all lines of a kept column to the sums, or those of
    /// the inner square, or takes them away.
    void add(int64_t sample, Lines lines, bool plus);
    /// The same of a column that is not kept, at once. What the window leaves in a step must be added before.
    void add(int64_t sample, Lines lines, bool plus, const Spectra& spectra, const double* centre);
    void flush();

    // Of pixel 0 or 1.
    int64_t count(size_t pixel) const { return m_counts[pixel]; }             ///< of pixels summed
    const double* apart(size_t pixel) const { return m_apart[pixel].data(); } ///< sum of x - centre
    /// Sums of |x - centre|^2 and of |x - mean|^2.
    std::pair<double, double> squares(size_t pixel) const;
    void matrix(size_t pixel, double* out, ptrdiff_t pitch) const; ///< the covariance, b >= a of row a
    /// d'M^-1 d, M the covariance with ridge on its diagonal; none where single precision has not enough
    /// digits.
    std::optional<double> solve(size_t pixel, const double* d, double ridge);

  private:
    /// Of some lines of columns, a slot each: the products of what both pixels have, and beside them what
    /// lives a step longer, since a column leaves in the step that may bring another into its slot.
    struct Store {
        Store(size_t slots, size_t size, size_t room)
            : samples(slots), products(slots * size), counts(slots + 1), vectors((slots + 1) * 3 * room) {}
        static size_t modulo(int64_t sample, size_t slots) {
            const auto count = static_cast<int64_t>(slots);
            return static_cast<size_t>((sample % count + count) % count);
        }
        size_t slot(int64_t sample) const { return modulo(sample, samples.size()); }
        size_t beside(int64_t sample) const { return modulo(sample, counts.size()); }
        std::vector<int64_t> samples;
        HostBuffer<double> products; ///< a Triangle each
        /// Pixels of both, and whether there is one of each pixel's own.
        std::vector<std::array<int, 3>> counts;
        HostBuffer<double>
            vectors; ///< sum of x - centre of both, and x - centre of each pixel's own, or zeros
    };
    /// Counts the lines of a store among the sums, and notes the products of each pixel's own.
    void join(const Store& store, int64_t sample, double sign);
    void take_single(Store& store, int64_t sample, size_t pixel, const float* spectrum, const double* centre);

    const RingKernels& m_simd;
    const int m_bands;
    const bool m_kept;
    const size_t m_size, m_room;
    Store m_inner, m_all;
    HostBuffer<double> m_vectors, m_work;
    std::array<HostBuffer<double>, 2> m_sums, m_apart;
    HostBuffer<float> m_factor, m_singles;
    RingStep m_step;
    std::array<int64_t, 2> m_counts{};
    bool m_has_second = false;
};

} // namespace hsi::detect
