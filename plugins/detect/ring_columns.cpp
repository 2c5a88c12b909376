// SPDX-License-Identifier: MIT
#include "detect/ring_columns.h"

#include <algorithm>
#include <limits>

namespace hsi::detect {
namespace {

/// Columns are kept while the window is over them, where that takes no more than this; else their products
/// are made again when they leave.
constexpr uint64_t most_kept = uint64_t{64} << 20;
/// Of a score: what the solution in single precision may cost it.
constexpr double most_apart = 1e-6;
constexpr int64_t nothing = std::numeric_limits<int64_t>::min();

/// A column leaves the window in the step that brings the one `outer` samples on; its inner lines have had
/// their last change when it leaves the inner square.
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
      m_vectors(static_cast<size_t>(outer) * m_room), m_sums(m_size), m_apart(m_room), m_work(2 * m_room),
      m_factor(m_size + Triangle::block), m_singles(2 * m_room) {}

uint64_t RingColumns::bytes(int bands, int inner, int outer) {
    const uint64_t size = Triangle::size(bands), room = Triangle::room(bands),
                   slots = are_kept(bands, inner, outer)
                               ? inner_slots(inner, outer) + static_cast<size_t>(outer)
                               : 2;
    return slots * (8 * (size + room) + 12) + 8 * room * (static_cast<uint64_t>(outer) + 4) + 12 * size +
           4 * Triangle::block;
}

bool RingColumns::keeps(int64_t sample) const {
    return m_kept && m_all.samples[m_all.slot(sample)] == sample;
}

void RingColumns::clear() {
    std::fill(m_all.samples.begin(), m_all.samples.end(), nothing);
    std::fill_n(m_sums.data(), m_size, 0.0);
    std::fill_n(m_apart.data(), m_room, 0.0);
    m_step = {};
    m_count = 0;
}

void RingColumns::add_apart(const double* apart, int count, double sign) {
    for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
        m_apart[b] += sign * apart[b];
    m_count += static_cast<int64_t>(sign * count);
}

void RingColumns::add(int64_t sample, Lines lines, bool plus) {
    const Store& store = lines == Lines::inner ? m_inner : m_all;
    const size_t i = store.slot(sample);
    if (store.counts[i] == 0) return;
    const double sign = plus ? 1 : -1;
    m_step.parts[static_cast<size_t>(m_step.count++)] = {store.products.data() + i * m_size, sign};
    add_apart(store.apart.data() + i * m_room, store.counts[i], sign);
}

void RingColumns::add(int64_t sample, Lines lines, bool plus, const std::vector<const float*>& inner,
                      const std::vector<const float*>& outer, const double* centre) {
    const size_t i = m_inner.slot(sample), a = m_all.slot(sample);
    const auto in = static_cast<int>(inner.size()), out = static_cast<int>(outer.size());
    const auto pitch = static_cast<ptrdiff_t>(m_room);
    double* const of_inner = m_inner.apart.data() + i * m_room;
    double* const of_all = m_all.apart.data() + a * m_room;
    m_all.samples[a] = sample;
    m_inner.counts[i] = in;
    m_all.counts[a] = in + out;
    std::fill_n(of_inner, m_room, 0.0);
    m_simd.deviations(inner.data(), in, m_bands, centre, m_vectors.data(), pitch, of_inner);
    std::copy_n(of_inner, m_room, of_all);
    m_simd.deviations(outer.data(), out, m_bands, centre, m_vectors.data() + in * pitch, pitch, of_all);

    m_step.vectors = m_vectors.data();
    m_step.pitch = pitch;
    m_step.inner = in;
    m_step.outer = out;
    m_step.of_inner = m_inner.products.data() + i * m_size;
    m_step.of_all = m_kept ? m_all.products.data() + a * m_size : nullptr;
    const double sign = plus ? 1 : -1;
    if (lines != Lines::inner) {
        m_step.all_sign = sign;
        add_apart(of_all, in + out, sign);
    }
    if (lines != Lines::all) {
        m_step.inner_sign = lines == Lines::inner ? sign : -sign;
        add_apart(of_inner, in, m_step.inner_sign);
    }
    flush();
}

void RingColumns::flush() {
    if (m_step.count > 0 || m_step.inner + m_step.outer > 0) m_simd.slide(m_bands, m_step, m_sums.data());
    m_step = {};
}

std::pair<double, double> RingColumns::squares() const {
    double products = 0, of_mean = 0;
    const double* from = m_sums.data();
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        for (int r = 0; r < std::min(Triangle::rows, m_bands - p * Triangle::rows); ++r)
            products += from[r * Triangle::columns + r];
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
    for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
        of_mean += m_apart[b] * m_apart[b];
    return {products, products - of_mean / static_cast<double>(m_count)};
}

void RingColumns::matrix(double* out, ptrdiff_t pitch) const {
    const auto n = static_cast<double>(m_count);
    const double* from = m_sums.data();
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        const int row = p * Triangle::rows;
        for (int a = row; a < std::min(row + Triangle::rows, m_bands); ++a)
            for (int b = a; b < m_bands; ++b) {
                const int column = b - row;
                const double sum = from[column / Triangle::columns * Triangle::block +
                                        (a - row) * Triangle::columns + column % Triangle::columns];
                out[a * pitch + b] =
                    (sum - m_apart[static_cast<size_t>(a)] * m_apart[static_cast<size_t>(b)] / n) / (n - 1);
            }
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
}

std::optional<double> RingColumns::solve(const double* d, double ridge) {
    double bound = 0;
    const double score = m_simd.solve(m_bands, m_sums.data(), m_apart.data(), static_cast<double>(m_count),
                                      ridge, d, m_factor.data(), m_work.data(), m_singles.data(), &bound);
    if (!(bound <= most_apart * score)) return {};
    return score;
}

} // namespace hsi::detect
