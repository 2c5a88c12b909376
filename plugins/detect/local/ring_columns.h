// SPDX-License-Identifier: MIT
// The bands x bands sums of local RX, updated column by column of the window, for up to four pixels at once.
// The pixels are below each other, so their windows and inner squares share most lines. The products of a
// column are computed once, when the windows reach the column: for the lines that all inner squares share,
// and for the lines that all windows share. These products are added to the sums, and later removed. So a
// step of four pixels computes OUTER - 3 products for all pixels. In addition, each pixel needs three lines
// of four columns that not all pixels share; lines that both pixels of a pair need are computed once.
// Separate pixels would need 2 (INNER + OUTER) products each.
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

    static constexpr int pixels = RingStep::pixels; ///< maximum number of pixels at a time

    /// Clears all sums and columns. The first `count` pixels are active; sums of other pixels are not used.
    void clear(int count);

    enum class Lines { inner, outer, all };
    /// A set of pixels: bit i is pixel i.
    using Pixels = unsigned;
    static constexpr Pixels all_pixels = (1u << pixels) - 1;
    /// A line in the windows of only some pixels.
    struct Own {
        const float* spectrum;
        Pixels of;
    };
    /// The spectra of a column's background pixels; pixel 0 is the uppermost.
    struct Spectra {
        std::vector<const float*> inner; ///< lines that all inner squares contain
        /// Lines that all windows, but not all inner squares, contain; they include the lines of `square`
        std::vector<const float*> outer;
        /// Lines in only some windows, and lines in only some inner squares; at most 2 (pixels - 1) lines per
        /// list.
        std::vector<Own> window, square;
        void clear() {
            inner.clear();
            outer.clear();
            window.clear();
            square.clear();
        }
    };
    /// Returns true if the column's products are kept. They may be kept from the column's first add() until
    /// the window has passed the column.
    bool keeps(int64_t sample) const;
    /// Adds or subtracts lines of a kept column: all lines, or the lines of the inner square. The sums change
    /// at flush() or at the next add() with spectra.
    void add(int64_t sample, Lines lines, bool plus);
    /// Adds or subtracts lines of a column that is not kept, immediately. Within a step, first call the other
    /// add() for lines that leave the window.
    void add(int64_t sample, Lines lines, bool plus, const Spectra& spectra, const double* centre);
    void flush();

    // The statistics of a pixel's ring.
    /// Returns the number of pixels in the sums.
    int64_t count(size_t pixel) const { return m_counts[pixel]; }
    /// Returns the sum of x - centre, one value per band.
    const double* apart(size_t pixel) const { return m_apart.data() + pixel * m_room; }
    /// Returns the sums of |x - centre|^2 and of |x - mean|^2.
    std::pair<double, double> squares(size_t pixel) const;
    /// Writes the covariance on and above the diagonal: out[a * pitch + b] for b >= a.
    void matrix(size_t pixel, double* out, ptrdiff_t pitch) const;
    /// Returns d'M^-1 d, where M is the covariance with `ridge` on its diagonal; nullopt if single precision
    /// does not have enough digits.
    std::optional<double> solve(size_t pixel, const double* d, double ridge);

  private:
    static constexpr size_t most_own = 2 * (pixels - 1);
    /// The counts that a store has in addition to products: the number of lines that all pixels share, and
    /// the owners of the other lines.
    struct Counts {
        int all = 0, own = 0;
        std::array<Pixels, most_own> of{};
    };
    /// The products of lines that all pixels share, one slot per column. Counts and vectors have one slot
    /// more, since they are needed one step longer: a column may leave in the step in which another column
    /// takes its slot.
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
        HostBuffer<double> products; ///< one Triangle per slot
        std::vector<Counts> counts;
        /// Sum of x - centre over shared lines, then x - centre of the other lines
        HostBuffer<double> vectors;
    };
    /// Adds the counts of a store to the sums, and records the products of lines that only some pixels have.
    void join(const Store& store, int64_t sample, double sign);
    void take_own(Store& store, int64_t sample, const std::vector<Own>& lines, const double* centre);

    const RingKernels& m_simd;
    const int m_bands;
    const bool m_kept;
    const size_t m_size, m_room;
    Store m_inner, m_all;
    HostBuffer<double> m_vectors, m_work, m_sums, m_apart; ///< m_sums, m_apart: one part per pixel
    HostBuffer<float> m_factor, m_singles;
    RingStep m_step;
    std::array<double*, pixels> m_sums_of{};
    std::array<int64_t, pixels> m_counts{};
    int m_pixels = 0; ///< number of active pixels
};

} // namespace hsi::detect
