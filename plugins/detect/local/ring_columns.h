// SPDX-License-Identifier: MIT
// The sums of local RX in bands x bands, column by column of the window, for some pixels at once, one below
// the other: they share most lines of their windows, and of their inner squares. A column's products are made
// once when the windows reach it: for the lines of all inner squares, and for those of all windows. Then they
// join the sums and leave them again. So a step of four pixels takes OUTER - 3 products for all, and, from
// the three lines of four columns that a pixel has in addition, the common part of a pair of pixels once: not
// 2 (INNER + OUTER) for each.
#pragma once

#include "core/host_memory.h"
#include "detect/local/ring_simd.h"

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

    static constexpr int pixels = RingStep::pixels; ///< at once, at most

    /// Nothing is summed, and no column known. The pixels at work are the first `count`, whose sums the
    /// others do not change.
    void clear(int count);

    enum class Lines { inner, outer, all };
    /// Which pixels: bit i, pixel i.
    using Pixels = unsigned;
    static constexpr Pixels all_pixels = (1u << pixels) - 1;
    /// A line of some pixels only.
    struct Own {
        const float* spectrum;
        Pixels of;
    };
    /// The spectra of a column that count, pixel 0 being the uppermost.
    struct Spectra {
        std::vector<const float*> inner; ///< in the lines of all inner squares
        std::vector<const float*> outer; ///< in other lines of all windows, including those of `square`
        /// In some windows, and in some inner squares; no more than 2 (pixels - 1).
        std::vector<Own> window, square;
        void clear() {
            inner.clear();
            outer.clear();
            window.clear();
            square.clear();
        }
    };
    /// Whether the column's products are kept: from its first add() until the window has passed it.
    bool keeps(int64_t sample) const;
    /// At flush() or the next add() with spectra, adds all lines of a kept column to the sums, or the lines
    /// of the inner square, or removes them.
    void add(int64_t sample, Lines lines, bool plus);
    /// The same for a column that is not kept, at once. Lines that leave the window in a step must be added
    /// before.
    void add(int64_t sample, Lines lines, bool plus, const Spectra& spectra, const double* centre);
    void flush();

    // The count of a pixel's ring.
    int64_t count(size_t pixel) const { return m_counts[pixel]; }                       ///< of pixels summed
    const double* apart(size_t pixel) const { return m_apart.data() + pixel * m_room; } ///< sum of x - centre
    /// Sums of |x - centre|^2 and of |x - mean|^2.
    std::pair<double, double> squares(size_t pixel) const;
    void matrix(size_t pixel, double* out, ptrdiff_t pitch) const; ///< the covariance, b >= a of row a
    /// d'M^-1 d, M the covariance with ridge on its diagonal; nullopt if single precision does not have
    /// enough digits.
    std::optional<double> solve(size_t pixel, const double* d, double ridge);

  private:
    static constexpr size_t most_own = 2 * (pixels - 1);
    /// Counts of a store in addition to the products: of the lines that all pixels share, and the owners of
    /// the others.
    struct Counts {
        int all = 0, own = 0;
        std::array<Pixels, most_own> of{};
    };
    /// A slot for each of some lines of columns: the products of the lines that all pixels share, and data
    /// that live a step longer, since a column leaves in the step that may bring another into its slot.
    struct Store {
        Store(size_t slots, size_t size, size_t room)
            : samples(slots), products(slots * size), counts(slots + 1),
              vectors((slots + 1) * (1 + most_own) * room) {}
        static size_t modulo(int64_t sample, size_t slots) {
            const auto count = static_cast<int64_t>(slots);
            return static_cast<size_t>((sample % count + count) % count);
        }
        size_t slot(int64_t sample) const { return modulo(sample, samples.size()); }
        size_t beside(int64_t sample) const { return modulo(sample, counts.size()); }
        std::vector<int64_t> samples;
        HostBuffer<double> products; ///< one Triangle each
        std::vector<Counts> counts;
        HostBuffer<double> vectors; ///< sum of x - centre over shared lines, and x - centre of the others
    };
    /// Counts the lines of a store among the sums, and notes the products of lines that not all have.
    void join(const Store& store, int64_t sample, double sign);
    void take_own(Store& store, int64_t sample, const std::vector<Own>& lines, const double* centre);

    const RingKernels& m_simd;
    const int m_bands;
    const bool m_kept;
    const size_t m_size, m_room;
    Store m_inner, m_all;
    HostBuffer<double> m_vectors, m_work, m_sums, m_apart; ///< sums and apart: of each pixel
    HostBuffer<float> m_factor, m_singles;
    RingStep m_step;
    std::array<double*, pixels> m_sums_of{};
    std::array<int64_t, pixels> m_counts{};
    int m_pixels = 0; ///< at work
};

} // namespace hsi::detect
