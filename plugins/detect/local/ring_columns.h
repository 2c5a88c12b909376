// SPDX-License-Identifier: MIT
// The bands x bands sums of local RX, for up to four pixels at once. The pixels are below each other, so
// their windows and inner squares share most lines. A step moves all windows by one sample, and updates the
// sums by the columns that enter or leave. The products of a column are computed once, when the windows reach
// the column: for the lines that all inner squares share, and for the lines that all windows share. These
// products are added to the sums, and later subtracted.
//
// A step of four pixels computes OUTER - 3 products that all four pixels use. In addition, each pixel needs
// the products of the lines that not all pixels share, three lines in each of four columns. If both pixels of
// a pair need such a product, it is computed once. Four separate pixels would need 2 (INNER + OUTER) products
// each.
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

    /// Clears all sums and columns. From then on, only the first `count` pixels are active; the sums of other
    /// pixels are not used.
    void clear(int count);

    enum class Lines { inner, outer, all };
    /// A set of pixels: bit i is set if pixel i is in the set.
    using Pixels = unsigned;
    static constexpr Pixels all_pixels = (1u << pixels) - 1;
    /// A line in the windows of only some pixels.
    struct Own {
        const float* spectrum;
        Pixels of;
    };
    /// The spectra of a column's background pixels, by the lines in which they are. "All windows" are those
    /// of all `pixels` pixels, active or not. Pixel 0 is the uppermost.
    struct Spectra {
        std::vector<const float*> inner; ///< lines that all inner squares contain
        /// Lines that all windows, but not all inner squares, contain
        std::vector<const float*> outer;
        /// window: lines in only some windows. square: lines in only some inner squares, which are also in
        /// `outer` or `window`. Each list has at most 2 (pixels - 1) lines.
        std::vector<Own> window, square;
        void clear() {
            inner.clear();
            outer.clear();
            window.clear();
            square.clear();
        }
    };
    /// Returns true if the column's products are kept. If memory allows, they are kept from the column's
    /// first add() until the windows have passed the column.
    bool keeps(int64_t sample) const;
    /// Adds (`plus`) or subtracts lines of a kept column: all lines, or the lines of the inner squares. The
    /// counts and the sums of vectors change at once. The sums of products change at flush() or at the next
    /// add() with spectra.
    void add(int64_t sample, Lines lines, bool plus);
    /// Adds (`plus`) or subtracts lines of a column that is not kept, and keeps the column if memory allows.
    /// All sums change at once, also for earlier calls of the other add(). Within a step, call the other
    /// add() first for the column that leaves the windows, since the new column may replace it in memory.
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
    /// The lines of a column in a store: `all` lines that all pixels share, and `own` other lines. of[k]: the
    /// pixels that have the k-th of the other lines.
    struct Counts {
        int all = 0, own = 0;
        std::array<Pixels, most_own> of{};
    };
    /// Columns that are kept, one slot per column: the products of lines that all pixels share, and the
    /// counts and vectors of all lines. Counts and vectors have one slot more than products. A column may
    /// leave in the same step in which another column takes its slot, and its counts and vectors are then
    /// still needed.
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
    /// Adds (sign = 1) or subtracts (sign = -1) the counts and vectors of a column at once. Records the
    /// vectors of lines that only some pixels have in m_step; flush() adds or subtracts their products.
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
