// SPDX-License-Identifier: MIT
#include "detect/local/ring_columns.h"

#include <algorithm>
#include <limits>

namespace hsi::detect {
namespace {

/// If columns take at most this memory, they are kept while the window covers them; otherwise their products
/// are computed again when they leave.
constexpr uint64_t most_kept = uint64_t{64} << 20;
/// The greatest relative error of a score that the solution in single precision may cause.
constexpr double most_apart = 1e-6;
constexpr int64_t nothing = std::numeric_limits<int64_t>::min();

/// Returns the number of slots for inner lines. The inner lines of a column are needed from the step in which
/// the column enters the window to the step in which it leaves the inner square.
size_t inner_slots(int inner, int outer) { return static_cast<size_t>(outer / 2 + inner / 2 + 2); }

bool are_kept(int bands, int inner, int outer) {
    const uint64_t slots = inner_slots(inner, outer) + static_cast<size_t>(outer);
    return slots * Triangle::size(bands) * sizeof(double) <= most_kept;
}

} // namespace

RingColumns::RingColumns(int bands, int inner, int outer)
    : m_simd(ring_kernels()), m_bands(bands), m_kept(are_kept(bands, inner, outer)),
      m_size(Triangle::size(bands)), m_room(Triangle::room(bands)),
      m_inner(m_kept ? inner_slots(inner, outer) : 1, m_size, m_room),
      m_all(m_kept ? static_cast<size_t>(outer) : 1, m_size, m_room),
      m_vectors(static_cast<size_t>(outer) * m_room), m_work(2 * m_room), m_sums(pixels * m_size),
      m_apart(pixels * m_room), m_factor(m_size + Triangle::block), m_singles(2 * m_room) {
    for (size_t pixel = 0; pixel < pixels; ++pixel)
        m_sums_of[pixel] = m_sums.data() + pixel * m_size;
}

uint64_t RingColumns::bytes(int bands, int inner, int outer) {
    const uint64_t size = Triangle::size(bands), room = Triangle::room(bands),
                   slots = are_kept(bands, inner, outer)
                               ? inner_slots(inner, outer) + static_cast<size_t>(outer)
                               : 2;
    return slots * 8 * (size + 1) + (slots + 2) * ((1 + most_own) * 8 * room + sizeof(Counts)) +
           8 * room * (static_cast<uint64_t>(outer) + pixels + 3) + (8 * pixels + 4) * size +
           4 * Triangle::block;
}

bool RingColumns::keeps(int64_t sample) const {
    return m_kept && m_all.samples[m_all.slot(sample)] == sample;
}

void RingColumns::clear(int count) {
    std::fill(m_all.samples.begin(), m_all.samples.end(), nothing);
    std::fill_n(m_sums.data(), pixels * m_size, 0.0);
    std::fill_n(m_apart.data(), pixels * m_room, 0.0);
    m_step = {};
    m_counts = {};
    m_pixels = count;
}

void RingColumns::join(const Store& store, int64_t sample, double sign) {
    const size_t i = store.beside(sample);
    const double* const all = store.vectors.data() + i * (1 + most_own) * m_room;
    const Counts& counts = store.counts[i];
    const auto add = [&](const double* vector, size_t pixel) {
        double* const apart = m_apart.data() + pixel * m_room;
        for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
            apart[b] += sign * vector[b];
    };
    const auto count = static_cast<size_t>(m_pixels);
    for (size_t pixel = 0; pixel < count; ++pixel) {
        add(all, pixel);
        m_counts[pixel] += static_cast<int64_t>(sign) * counts.all;
    }
    for (size_t k = 0; k < static_cast<size_t>(counts.own); ++k) {
        const RingStep::Single own{all + (1 + k) * m_room, sign};
        for (size_t pixel = 0; pixel < count; ++pixel)
            if ((counts.of[k] >> pixel & 1) != 0) {
                add(own.vector, pixel);
                m_counts[pixel] += static_cast<int64_t>(sign);
                // If both pixels of a pair have the vector, the first pixel records it.
                const Pixels pair = 3u << pixel / 2 * 2;
                if ((counts.of[k] & pair) != pair || pair > all_pixels)
                    m_step.own[pixel].add(own);
                else if (pixel % 2 == 0)
                    m_step.shared[pixel / 2].add(own);
            }
    }
}

void RingColumns::add(int64_t sample, Lines lines, bool plus) {
    const Store& store = lines == Lines::inner ? m_inner : m_all;
    const double sign = plus ? 1 : -1;
    if (store.counts[store.beside(sample)].all > 0)
        m_step.parts[static_cast<size_t>(m_step.count++)] = {
            store.products.data() + store.slot(sample) * m_size, sign};
    join(store, sample, sign);
}

void RingColumns::take_own(Store& store, int64_t sample, const std::vector<Own>& lines,
                           const double* centre) {
    const size_t i = store.beside(sample);
    double* own = store.vectors.data() + (i * (1 + most_own) + 1) * m_room;
    Counts& counts = store.counts[i];
    counts.own = 0;
    for (const Own& line : lines) {
        counts.of[static_cast<size_t>(counts.own++)] = line.of;
        m_simd.deviations(&line.spectrum, 1, m_bands, centre, own, static_cast<ptrdiff_t>(m_room),
                          m_work.data());
        own += m_room;
    }
}

void RingColumns::add(int64_t sample, Lines lines, bool plus, const Spectra& spectra, const double* centre) {
    const size_t i = m_inner.beside(sample), a = m_all.beside(sample);
    const auto in = static_cast<int>(spectra.inner.size()), out = static_cast<int>(spectra.outer.size());
    const auto pitch = static_cast<ptrdiff_t>(m_room);
    double* const of_inner = m_inner.vectors.data() + i * (1 + most_own) * m_room;
    double* const of_all = m_all.vectors.data() + a * (1 + most_own) * m_room;
    m_all.samples[m_all.slot(sample)] = sample;
    m_inner.counts[i].all = in;
    m_all.counts[a].all = in + out;
    std::fill_n(m_work.data(), m_room, 0.0); // receives the sums of single vectors, which are not used
    take_own(m_inner, sample, spectra.square, centre);
    take_own(m_all, sample, spectra.window, centre);
    std::fill_n(of_inner, m_room, 0.0);
    m_simd.deviations(spectra.inner.data(), in, m_bands, centre, m_vectors.data(), pitch, of_inner);
    std::copy_n(of_inner, m_room, of_all);
    m_simd.deviations(spectra.outer.data(), out, m_bands, centre, m_vectors.data() + in * pitch, pitch,
                      of_all);

    m_step.vectors = m_vectors.data();
    m_step.pitch = pitch;
    m_step.inner = in;
    m_step.outer = out;
    m_step.of_inner = m_inner.products.data() + m_inner.slot(sample) * m_size;
    m_step.of_all = m_kept ? m_all.products.data() + m_all.slot(sample) * m_size : nullptr;
    const double sign = plus ? 1 : -1;
    if (lines != Lines::inner) {
        m_step.all_sign = sign;
        join(m_all, sample, sign);
    }
    if (lines != Lines::all) {
        m_step.inner_sign = lines == Lines::inner ? sign : -sign;
        join(m_inner, sample, m_step.inner_sign);
    }
    flush();
}

void RingColumns::flush() {
    const auto any = [](const auto& lists) {
        return std::any_of(lists.begin(), lists.end(), [](const auto& list) { return list.count > 0; });
    };
    if (m_step.count > 0 || m_step.inner + m_step.outer > 0 || any(m_step.shared) || any(m_step.own))
        m_simd.slide(m_bands, m_step, m_sums_of.data(), m_pixels);
    m_step = {};
}

std::pair<double, double> RingColumns::squares(size_t pixel) const {
    double products = 0, of_mean = 0;
    const double* from = m_sums_of[pixel];
    const double* const from_centre = apart(pixel);
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        for (int r = 0; r < std::min(Triangle::rows, m_bands - p * Triangle::rows); ++r)
            products += from[r * Triangle::columns + r];
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
    for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
        of_mean += from_centre[b] * from_centre[b];
    return {products, products - of_mean / static_cast<double>(m_counts[pixel])};
}

void RingColumns::matrix(size_t pixel, double* out, ptrdiff_t pitch) const {
    const auto n = static_cast<double>(m_counts[pixel]);
    const double* from = m_sums_of[pixel];
    const double* const from_centre = apart(pixel);
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        const int row = p * Triangle::rows;
        for (int a = row; a < std::min(row + Triangle::rows, m_bands); ++a)
            for (int b = a; b < m_bands; ++b) {
                const int column = b - row;
                const double sum = from[column / Triangle::columns * Triangle::block +
                                        (a - row) * Triangle::columns + column % Triangle::columns];
                out[a * pitch + b] = (sum - from_centre[a] * from_centre[b] / n) / (n - 1);
            }
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
}

std::optional<double> RingColumns::solve(size_t pixel, const double* d, double ridge) {
    double bound = 0;
    const double score =
        m_simd.solve(m_bands, m_sums_of[pixel], apart(pixel), static_cast<double>(m_counts[pixel]), ridge, d,
                     m_factor.data(), m_work.data(), m_singles.data(), &bound);
    if (!(bound <= most_apart * score)) return {};
    return score;
}

} // namespace hsi::detect
