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
      m_vectors(static_cast<size_t>(outer) * m_room),
      m_work(2 * m_room), m_sums{HostBuffer<double>(m_size), HostBuffer<double>(m_size)},
      m_apart{HostBuffer<double>(m_room), HostBuffer<double>(m_room)}, m_factor(m_size + Triangle::block),
      m_singles(2 * m_room) {}

uint64_t RingColumns::bytes(int bands, int inner, int outer) {
    const uint64_t size = Triangle::size(bands), room = Triangle::room(bands),
                   slots = are_kept(bands, inner, outer)
                               ? inner_slots(inner, outer) + static_cast<size_t>(outer)
                               : 2;
    return slots * 8 * (size + 1) + (slots + 2) * (3 * 8 * room + 12) +
           8 * room * (static_cast<uint64_t>(outer) + 5) + 20 * size + 4 * Triangle::block;
}

bool RingColumns::keeps(int64_t sample) const {
    return m_kept && m_all.samples[m_all.slot(sample)] == sample;
}

void RingColumns::clear(bool has_second) {
    std::fill(m_all.samples.begin(), m_all.samples.end(), nothing);
    for (auto& sums : m_sums)
        std::fill_n(sums.data(), m_size, 0.0);
    for (auto& apart : m_apart)
        std::fill_n(apart.data(), m_room, 0.0);
    m_step = {};
    m_counts = {};
    m_has_second = has_second;
}

void RingColumns::join(const Store& store, int64_t sample, double sign) {
    const size_t i = store.beside(sample);
    const double* const both = store.vectors.data() + i * 3 * m_room;
    for (size_t pixel = 0; pixel < 2; ++pixel) {
        const double* const own = both + (1 + pixel) * m_room;
        double* const apart = m_apart[pixel].data();
        for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
            apart[b] += sign * (both[b] + own[b]);
        m_counts[pixel] += static_cast<int64_t>(sign) * (store.counts[i][0] + store.counts[i][1 + pixel]);
        if (store.counts[i][1 + pixel] > 0)
            m_step.own[pixel][static_cast<size_t>(m_step.own_count[pixel]++)] = {own, sign};
    }
}

void RingColumns::add(int64_t sample, Lines lines, bool plus) {
    const Store& store = lines == Lines::inner ? m_inner : m_all;
    const double sign = plus ? 1 : -1;
    if (store.counts[store.beside(sample)][0] > 0)
        m_step.parts[static_cast<size_t>(m_step.count++)] = {
            store.products.data() + store.slot(sample) * m_size, sign};
    join(store, sample, sign);
}

void RingColumns::take_single(Store& store, int64_t sample, size_t pixel, const float* spectrum,
                              const double* centre) {
    const size_t i = store.beside(sample);
    double* const own = store.vectors.data() + (i * 3 + 1 + pixel) * m_room;
    store.counts[i][1 + pixel] = spectrum != nullptr;
    if (spectrum == nullptr)
        std::fill_n(own, m_room, 0.0);
    else
        m_simd.deviations(&spectrum, 1, m_bands, centre, own, static_cast<ptrdiff_t>(m_room), m_work.data());
}

void RingColumns::add(int64_t sample, Lines lines, bool plus, const Spectra& spectra, const double* centre) {
    const size_t i = m_inner.beside(sample), a = m_all.beside(sample);
    const auto in = static_cast<int>(spectra.inner.size()), out = static_cast<int>(spectra.outer.size());
    const auto pitch = static_cast<ptrdiff_t>(m_room);
    double* const of_inner = m_inner.vectors.data() + i * 3 * m_room;
    double* const of_all = m_all.vectors.data() + a * 3 * m_room;
    m_all.samples[m_all.slot(sample)] = sample;
    m_inner.counts[i][0] = in;
    m_all.counts[a][0] = in + out;
    std::fill_n(m_work.data(), m_room, 0.0); // sums of single vectors, which nobody wants
    for (size_t pixel = 0; pixel < 2; ++pixel) {
        take_single(m_inner, sample, pixel, spectra.square[pixel], centre);
        take_single(m_all, sample, pixel, spectra.window[pixel], centre);
    }
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
    if (m_step.count > 0 || m_step.inner + m_step.outer > 0 || m_step.own_count[0] > 0 ||
        m_step.own_count[1] > 0)
        m_simd.slide(m_bands, m_step, m_sums[0].data(), m_has_second ? m_sums[1].data() : nullptr);
    m_step = {};
}

std::pair<double, double> RingColumns::squares(size_t pixel) const {
    double products = 0, of_mean = 0;
    const double* from = m_sums[pixel].data();
    const double* const apart = m_apart[pixel].data();
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        for (int r = 0; r < std::min(Triangle::rows, m_bands - p * Triangle::rows); ++r)
            products += from[r * Triangle::columns + r];
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
    for (size_t b = 0; b < static_cast<size_t>(m_bands); ++b)
        of_mean += apart[b] * apart[b];
    return {products, products - of_mean / static_cast<double>(m_counts[pixel])};
}

void RingColumns::matrix(size_t pixel, double* out, ptrdiff_t pitch) const {
    const auto n = static_cast<double>(m_counts[pixel]);
    const double* from = m_sums[pixel].data();
    const double* const apart = m_apart[pixel].data();
    for (int p = 0; p < Triangle::panels(m_bands); ++p) {
        const int row = p * Triangle::rows;
        for (int a = row; a < std::min(row + Triangle::rows, m_bands); ++a)
            for (int b = a; b < m_bands; ++b) {
                const int column = b - row;
                const double sum = from[column / Triangle::columns * Triangle::block +
                                        (a - row) * Triangle::columns + column % Triangle::columns];
                out[a * pitch + b] = (sum - apart[a] * apart[b] / n) / (n - 1);
            }
        from += Triangle::blocks(m_bands, p) * Triangle::block;
    }
}

std::optional<double> RingColumns::solve(size_t pixel, const double* d, double ridge) {
    double bound = 0;
    const double score = m_simd.solve(m_bands, m_sums[pixel].data(), m_apart[pixel].data(),
                                      static_cast<double>(m_counts[pixel]), ridge, d, m_factor.data(),
                                      m_work.data(), m_singles.data(), &bound);
    if (!(bound <= most_apart * score)) return {};
    return score;
}

} // namespace hsi::detect
