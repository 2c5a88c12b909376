// SPDX-License-Identifier: MIT
#include "stream/statistics_scan.h"

#include "core/valid_pixel.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/statistics_scan.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/octets-inl.h"
#include "stream/pixel_run-inl.h"
#include "stream/scatter-inl.h"

#include <hwy/highway.h>

#if HWY_ONCE
namespace hsi::stream {
namespace {

HWY_EXPORT(sum_band);
HWY_EXPORT(add_magnitudes);
HWY_EXPORT(centre_single);
HWY_EXPORT(centre_double);
HWY_EXPORT(add_scatter);
HWY_EXPORT(add_shifted_single);
HWY_EXPORT(add_shifted_double);
HWY_EXPORT(even_octet_band);
HWY_EXPORT(odd_octet_band);
HWY_EXPORT(difference_band);
HWY_EXPORT(add_even_octets);
HWY_EXPORT(add_odd_octets);

void centre_band(const float* band, const PixelRun& run, float centre, const float* keep, float* out) {
    HWY_DYNAMIC_DISPATCH(centre_single)(band, run, centre, keep, out);
}
void centre_band(const float* band, const PixelRun& run, float centre, const double* keep, double* out) {
    HWY_DYNAMIC_DISPATCH(centre_double)(band, run, centre, keep, out);
}
void add_shifted(const float* x, int bands, int rows, int64_t count, const Shift& shift, double* scatter) {
    HWY_DYNAMIC_DISPATCH(add_shifted_single)(x, bands, rows, count, shift, scatter);
}
void add_shifted(const double* x, int bands, int rows, int64_t count, const Shift& shift, double* scatter) {
    HWY_DYNAMIC_DISPATCH(add_shifted_double)(x, bands, rows, count, shift, scatter);
}

/// Returns the number of rows of products, rounded up to whole panels. The additional rows are zero.
int padded(int rows) { return (rows + panel_columns - 1) / panel_columns * panel_columns; }

/// The base class of all workers on the CPU. They process tiles block by block, and find the valid pixels of
/// a run.
class BlockWorker : public StatisticsWorker {
  public:
    /// most: largest number of pixels of a run.
    BlockWorker(int bands, Statistics what, size_t most)
        : StatisticsWorker(bands, what), m_magnitude(most), m_valid(most) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) final {
        for_each_block(
            block_shape(sums.what), tile, in,
            [this](const CubeView<float>& block, int64_t x, int64_t y) { add_block(block, x, y); });
    }

  protected:
    virtual void add_block(const CubeView<float>& block, int64_t x, int64_t y) = 0;

    /// Returns the array to which the magnitudes of the pixels of a run are added, for judge().
    float* start(const PixelRun& run) {
        std::fill_n(m_magnitude.begin(), run.count, 0.0f);
        return m_magnitude.data();
    }
    /// Returns the stride from one band to the next, or 0 after the last band.
    static ptrdiff_t next_of(const CubeView<float>& block, int band) {
        return band + 1 < block.bands ? block.band_stride : 0;
    }
    /// Counts valid pixels and finite values when all magnitudes have been added, and returns how many pixels
    /// of the run are valid.
    int64_t judge(const CubeView<float>& block, const PixelRun& run) {
        m_whole = std::all_of(m_magnitude.begin(), m_magnitude.begin() + run.count,
                              [](float m) { return is_valid_sum(m); });
        int64_t valid = m_whole ? run.count : 0;
        if (m_whole)
            std::fill_n(m_valid.begin(), run.count, char{1});
        else
            run.for_stretches(block.row(0, 0), [&](const float* x, int64_t n, int64_t at) {
                for (int64_t i = 0; i < n; ++i) {
                    const bool is = is_valid_sum(m_magnitude[static_cast<size_t>(at + i)], x + i, block.bands,
                                                 block.band_stride);
                    m_valid[static_cast<size_t>(at + i)] = is;
                    valid += is;
                }
            });
        sums.valid += valid;
        sums.invalid += run.count - valid;
        for (int b = 0; b < block.bands; ++b)
            sums.finite[static_cast<size_t>(b)] +=
                valid < run.count ? finite_values(block.row(b, 0), run) : run.count;
        return valid;
    }
    static int64_t finite_values(const float* band, const PixelRun& run) {
        int64_t finite = 0;
        run.for_stretches(band, [&](const float* x, int64_t n, int64_t) {
            finite += std::count_if(x, x + n, [](float v) { return std::isfinite(v); });
        });
        return finite;
    }
    /// Returns the sum of a band over the valid pixels of a run. Used if m_whole is false.
    double sum_valid(const float* band, const PixelRun& run) const {
        double sum = 0;
        run.for_stretches(band, [&](const float* x, int64_t n, int64_t at) {
            for (int64_t i = 0; i < n; ++i)
                if (m_valid[static_cast<size_t>(at + i)]) sum += static_cast<double>(x[i]);
        });
        return sum;
    }

    std::vector<float> m_magnitude; ///< sum of |x| over the bands, for each pixel of the run
    std::vector<char> m_valid;      ///< 1 for valid pixels
    bool m_whole = false;           ///< true if the magnitudes alone show that all pixels are valid
};

// Means
// ----------------------------------------------------------------------------------------------------------

constexpr BlockShape mean_block = block_shape(Statistics::means);

class MeanWorker final : public BlockWorker {
  public:
    explicit MeanWorker(int bands)
        : BlockWorker(bands, Statistics::means, static_cast<size_t>(mean_block.lines * mean_block.samples)),
          m_sum(static_cast<size_t>(bands)) {}

  private:
    void add_block(const CubeView<float>& block, int64_t, int64_t) override {
        const PixelRun run{block.line_stride, block.samples, 0, block.lines * block.samples};
        float* const magnitude = start(run);
        for (int b = 0; b < block.bands; ++b)
            m_sum[static_cast<size_t>(b)] =
                HWY_DYNAMIC_DISPATCH(sum_band)(block.row(b, 0), next_of(block, b), run, magnitude);
        judge(block, run);
        for (int b = 0; b < block.bands && !m_whole; ++b)
            m_sum[static_cast<size_t>(b)] = sum_valid(block.row(b, 0), run);
        sums.add_sums(m_sum.data());
    }

    std::vector<double> m_sum; ///< sums of the block, one per band
};

// Covariance: chunks of pixels, centred on their own means
// ----------------------------------------------------------------------------------------------------------

/// T is the type in which products are computed.
template <class T>
class CovarianceWorker final : public BlockWorker {
  public:
    CovarianceWorker(int bands, Statistics what)
        : BlockWorker(bands, what, static_cast<size_t>(chunk_pixels)), m_rows(padded(bands)),
          m_sum(static_cast<size_t>(bands)), m_chunk_sum(m_sum.size()), m_centre(m_sum.size()),
          m_chunk_centre(m_sum.size()), m_offset(static_cast<size_t>(m_rows)), m_rest(m_offset.size()),
          m_total(m_offset.size()), m_chunk(static_cast<size_t>(m_rows * chunk_pixels)),
          m_scatter(static_cast<size_t>(m_rows) * static_cast<size_t>(m_rows)),
          m_keep(static_cast<size_t>(chunk_pixels)) {
        std::fill_n(m_chunk.data(), m_chunk.size(), T{0});
    }
    /// Returns the memory of a worker in addition to that of the sums.
    static uint64_t bytes(int bands) {
        const auto rows = static_cast<uint64_t>(padded(bands));
        return rows * rows * 8 + rows * (chunk_of<float> * 4 + 56) +
               static_cast<uint64_t>(chunk_of<float>) * 5;
    }

  private:
    static constexpr int64_t chunk_pixels = chunk_of<T>;

    void add_block(const CubeView<float>& block, int64_t, int64_t) override {
        const int64_t pixels = block.lines * block.samples;
        std::fill(m_sum.begin(), m_sum.end(), 0.0);
        std::fill(m_scatter.begin(), m_scatter.end(), 0.0);
        int64_t valid = 0;
        for (int64_t first = 0; first < pixels; first += chunk_pixels) {
            const PixelRun run{block.line_stride, block.samples, first,
                               std::min(chunk_pixels, pixels - first)};
            const int64_t count = take_chunk(block, run);
            if (count == 0) continue;
            if (valid == 0) m_centre = m_chunk_centre;
            valid += count;
            for (size_t b = 0; b < m_sum.size(); ++b) {
                const auto g = static_cast<double>(m_centre[b]), c = static_cast<double>(m_chunk_centre[b]);
                m_sum[b] += m_chunk_sum[b];
                m_offset[b] = c - g;
                m_rest[b] = m_chunk_sum[b] - static_cast<double>(count) * c;
                m_total[b] = m_chunk_sum[b] - static_cast<double>(count) * g;
            }
            add_shifted(m_chunk.data(), block.bands, m_rows, run.whole(),
                        {m_offset.data(), m_rest.data(), m_total.data()}, m_scatter.data());
        }
        if (valid > 0) sums.add_block(valid, m_centre.data(), m_sum.data(), {m_scatter.data(), m_rows});
    }

    /// Takes the valid pixels of a run: computes their sums, their centres (the means in single precision)
    /// and their differences from the centres. Returns the number of valid pixels.
    int64_t take_chunk(const CubeView<float>& block, const PixelRun& run) {
        float* const magnitude = start(run);
        for (int b = 0; b < block.bands; ++b)
            take_band(block.row(b, 0), b, run, run.count, nullptr,
                      HWY_DYNAMIC_DISPATCH(sum_band)(block.row(b, 0), next_of(block, b), run, magnitude));
        const int64_t count = judge(block, run);
        if (m_whole) return count;
        std::copy_n(m_valid.begin(), run.count, m_keep.begin());
        for (int b = 0; b < block.bands; ++b)
            take_band(block.row(b, 0), b, run, count, m_keep.data(), sum_valid(block.row(b, 0), run));
        return count;
    }
    /// Takes one band. `count` is the number of pixels with keep[i] > 0, and `sum` the sum of their values.
    void take_band(const float* band, int b, const PixelRun& run, int64_t count, const T* keep, double sum) {
        const auto centre = count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0.0f;
        T* const row = m_chunk.data() + b * chunk_pixels;
        centre_band(band, run, centre, keep, row);
        std::fill(row + run.count, row + run.whole(), T{0});
        m_chunk_sum[static_cast<size_t>(b)] = sum;
        m_chunk_centre[static_cast<size_t>(b)] = centre;
    }

    const int m_rows;
    // Sums of the block and of its chunk, one for each band.
    std::vector<double> m_sum, m_chunk_sum;
    std::vector<float> m_centre, m_chunk_centre;
    /// Values of the chunk, as Shift describes; m_rows of each.
    std::vector<double> m_offset, m_rest, m_total;
    HostBuffer<T> m_chunk;         ///< values minus centres, m_rows x chunk_pixels
    std::vector<double> m_scatter; ///< sums of products of the block, m_rows x m_rows
    std::vector<T> m_keep;         ///< 1 for each valid pixel of the chunk, else 0
};

// Moments of pixels and of differences: runs of pixels, minus the first valid pixel of their block
// ----------------------------------------------------------------------------------------------------------

constexpr BlockShape product_block = block_shape(Statistics::moments);

/// Writes zeros after a run that does not fill the last register. Returns the number of pixels that must be
/// added.
int64_t end_rows(double* run, int bands, int64_t count) {
    const int64_t whole = (count + scatter_sums<double> - 1) / scatter_sums<double> * scatter_sums<double>;
    for (int b = 0; b <= bands; ++b)
        std::fill(run + b * run_pixels + count, run + b * run_pixels + whole, 0.0);
    return whole;
}

class MomentWorker final : public BlockWorker {
  public:
    MomentWorker(int bands, Statistics what, BorderPairs& borders)
        : BlockWorker(bands, what, static_cast<size_t>(product_block.samples * product_block.lines)),
          m_bands(bands), m_rows(padded(bands + 1)), m_with_differences(what == Statistics::differences),
          m_borders(borders), m_run(static_cast<size_t>(m_rows * run_pixels)),
          m_scatter(static_cast<size_t>(m_rows) * static_cast<size_t>(m_rows)),
          m_difference_scatter(m_with_differences ? m_scatter.size() : 0),
          m_keep(static_cast<size_t>(run_pixels)), m_centre(static_cast<size_t>(bands)) {
        std::fill_n(m_run.data(), m_run.size(), 0.0);
    }
    /// Returns the memory of a worker in addition to that of the sums.
    static uint64_t bytes(int bands, bool differences) {
        const auto rows = static_cast<uint64_t>(padded(bands + 1));
        return (differences ? 2 : 1) * rows * rows * 8 + rows * run_pixels * 8 +
               static_cast<uint64_t>(product_block.samples * product_block.lines) * (differences ? 21 : 5) +
               run_pixels * 8 + rows * 28;
    }

  private:
    void add_block(const CubeView<float>& block, int64_t x, int64_t y) override {
        const int64_t pixels = block.lines * block.samples, valid = find_valid(block);
        if (valid > 0) {
            const int64_t first = std::find(m_valid.begin(), m_valid.end(), char{1}) - m_valid.begin();
            for (int b = 0; b < m_bands; ++b)
                m_centre[static_cast<size_t>(b)] = block.at(b, first / block.samples, first % block.samples);
            std::fill(m_scatter.begin(), m_scatter.end(), 0.0);
            std::fill(m_difference_scatter.begin(), m_difference_scatter.end(), 0.0);
            int64_t pairs = 0;
            if (m_with_differences)
                pairs = add_octets(block);
            else
                for (int64_t from = 0; from < pixels; from += run_pixels)
                    add_run(block,
                            {block.line_stride, block.samples, from, std::min(run_pixels, pixels - from)});
            sums.add_centred_block(valid, m_centre.data(),
                                   m_scatter.data() + static_cast<ptrdiff_t>(m_bands) * m_rows,
                                   {m_scatter.data(), m_rows});
            if (pairs > 0) sums.add_pairs(pairs, {m_difference_scatter.data(), m_rows});
        }
        if (m_with_differences) m_borders.add(block, x, y, sums);
    }

    /// Finds the valid pixels of the block and returns their number.
    int64_t find_valid(const CubeView<float>& block) {
        const PixelRun run{block.line_stride, block.samples, 0, block.lines * block.samples};
        float* const magnitude = start(run);
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(add_magnitudes)(block.row(b, 0), next_of(block, b), run, magnitude);
        return judge(block, run);
    }

    void add_run(const CubeView<float>& block, const PixelRun& run) {
        bool any = false, all = true;
        for (int64_t i = 0; i < run.count; ++i) {
            const char v = m_valid[static_cast<size_t>(run.first + i)];
            m_keep[static_cast<size_t>(i)] = v;
            any = any || v;
            all = all && v;
        }
        if (!any) return;
        const int64_t whole = end_rows(m_run.data(), m_bands, run.count);
        for (int b = 0; b < m_bands; ++b)
            centre_band(block.row(b, 0), run, m_centre[static_cast<size_t>(b)], all ? nullptr : m_keep.data(),
                        m_run.data() + b * run_pixels);
        std::copy_n(m_keep.begin(), run.count, m_run.data() + m_bands * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_scatter)(m_run.data(), m_bands + 1, m_rows, whole, m_scatter.data());
    }

    /// Adds the pixels and pairs of a block, and returns the number of pairs. Lines are divided into octets
    /// from the left side of the block. Pixels of octets with invalid pixels, and those after the last octet
    /// of a line, are added one by one.
    int64_t add_octets(const CubeView<float>& block) {
        m_single.clear();
        m_pair.clear();
        int64_t pairs = 0;
        for (int64_t line = 0; line < block.lines; ++line)
            for (int64_t sample = 0; sample < block.samples; sample += octet) {
                const int64_t first = line * block.samples + sample,
                              end = first + std::min(octet, block.samples - sample);
                if (sample + octet < block.samples) pairs += is_pair(end - 1); // the pair with the next pixel
                if (is_octet(block, first)) {
                    pairs += octet - 1;
                    continue;
                }
                for (int64_t at = first; at < end; ++at) {
                    if (m_valid[static_cast<size_t>(at)]) m_single.push_back(at);
                    if (at + 1 < end && is_pair(at)) m_pair.push_back(at);
                }
            }
        pairs += static_cast<int64_t>(m_pair.size());
        const int64_t per_line = block.samples / octet, octets = block.lines * per_line;
        for (int64_t from = 0; from < octets; from += run_octets)
            add_octet_run(block,
                          {block.line_stride, per_line, from, std::min(run_octets, octets - from), octet});
        // Adds the pairs of the last pixel of an octet and the first pixel after it.
        const int64_t between = (block.samples - 1) / octet, gaps = block.lines * between;
        for (int64_t from = 0; from < gaps; from += run_pixels)
            add_gap_run(block, {block.line_stride, between, from, std::min(run_pixels, gaps - from), octet});
        add_list(block, m_single, false);
        add_list(block, m_pair, true);
        return pairs;
    }

    /// Returns true if pixel `at` and the seven pixels after it are valid and in one line.
    bool is_octet(const CubeView<float>& block, int64_t at) const {
        const auto v = m_valid.begin() + at;
        return at % block.samples + octet <= block.samples &&
               std::all_of(v, v + octet, [](char one) { return one != 0; });
    }
    bool is_pair(int64_t at) const {
        return m_valid[static_cast<size_t>(at)] && m_valid[static_cast<size_t>(at + 1)];
    }

    void add_octet_run(const CubeView<float>& block, const PixelRun& run) {
        bool any = false;
        for (int64_t i = 0; i < run.count; ++i) {
            const int64_t number = run.first + i,
                          at = number / run.samples * block.samples + number % run.samples * run.step;
            const bool whole = is_octet(block, at);
            m_keep[static_cast<size_t>(i)] = whole;
            any = any || whole;
        }
        if (!any) return;
        int64_t whole = 0;
        for (int64_t k = 0; k < kinds; ++k)
            whole = end_rows(m_run.data() + k * run_octets, m_bands, run.count);
        // The sum of an octet is four times its scaled X_0, and products with X_0 count twice. So the row of
        // ones contains 2.
        double* const ones = m_run.data() + m_bands * run_pixels;
        std::fill_n(ones, run_pixels, 0.0);
        for (int64_t i = 0; i < run.count; ++i)
            ones[i] = 2 * m_keep[static_cast<size_t>(i)];
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(even_octet_band)
        (block.row(b, 0), next_of(block, b), run, m_centre[static_cast<size_t>(b)], m_keep.data(),
         m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_even_octets)
        (m_run.data(), m_bands + 1, m_rows, whole, m_scatter.data(), m_difference_scatter.data());
        std::fill_n(ones, run_pixels, 0.0); // differences do not count in the sums
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(odd_octet_band)
        (block.row(b, 0), next_of(block, b), run, m_keep.data(), m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_odd_octets)
        (m_run.data(), m_bands, m_rows, whole, m_scatter.data(), m_difference_scatter.data());
    }

    void add_gap_run(const CubeView<float>& block, const PixelRun& run) {
        constexpr int64_t last = octet - 1;
        bool any = false;
        for (int64_t i = 0; i < run.count; ++i) {
            const int64_t gap = run.first + i,
                          at = gap / run.samples * block.samples + gap % run.samples * run.step + last;
            const bool both = is_pair(at);
            m_keep[static_cast<size_t>(i)] = both;
            any = any || both;
        }
        if (!any) return;
        const int64_t whole = end_rows(m_run.data(), m_bands, run.count);
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(difference_band)
        (block.row(b, 0) + last, next_of(block, b), run, m_keep.data(), m_run.data() + b * run_pixels);
        HWY_DYNAMIC_DISPATCH(add_scatter)
        (m_run.data(), m_bands, m_rows, whole, m_difference_scatter.data());
    }

    /// Adds listed pixels of a block, or listed pairs. A pair consists of the listed pixel and the pixel to
    /// its right.
    void add_list(const CubeView<float>& block, const std::vector<int64_t>& list, bool pairs) {
        const auto size = static_cast<int64_t>(list.size());
        for (int64_t from = 0; from < size; from += run_pixels) {
            const int64_t count = std::min(run_pixels, size - from);
            const int64_t whole = end_rows(m_run.data(), m_bands, count);
            for (int b = 0; b < m_bands; ++b)
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t at = list[static_cast<size_t>(from + i)];
                    const float* const x = block.row(b, at / block.samples) + at % block.samples;
                    m_run[static_cast<size_t>(b * run_pixels + i)] =
                        pairs ? static_cast<double>(x[1]) - static_cast<double>(x[0])
                              : static_cast<double>(x[0]) -
                                    static_cast<double>(m_centre[static_cast<size_t>(b)]);
                }
            if (!pairs) std::fill_n(m_run.data() + m_bands * run_pixels, count, 1.0);
            HWY_DYNAMIC_DISPATCH(add_scatter)
            (m_run.data(), pairs ? m_bands : m_bands + 1, m_rows, whole,
             pairs ? m_difference_scatter.data() : m_scatter.data());
        }
    }

    const int m_bands, m_rows;
    const bool m_with_differences;
    BorderPairs& m_borders;
    HostBuffer<double> m_run; ///< m_rows x run_pixels; the rows after the row of ones are zero
    std::vector<double> m_scatter, m_difference_scatter; ///< sums of products of the block, m_rows x m_rows
    std::vector<double> m_keep;                          ///< 1 for each pixel of a run that is added, else 0
    std::vector<int64_t> m_single, m_pair; ///< pixels and pairs of the block that are outside of octets
    std::vector<float> m_centre;
};

// The scan
// ----------------------------------------------------------------------------------------------------------

/// Returns the memory of a worker on the CPU, which is very small for means.
uint64_t worker_bytes(int bands, Statistics what) {
    switch (what) {
    case Statistics::means:
        return 0;
    case Statistics::covariance:
    case Statistics::double_covariance:
        return CovarianceWorker<float>::bytes(bands);
    case Statistics::moments:
    case Statistics::differences:
        return MomentWorker::bytes(bands, what == Statistics::differences);
    }
    return 0;
}

} // namespace

StatisticsScan::StatisticsScan(const CubeShape& scene, Statistics what)
    : m_scene(scene), m_what(what), m_total(std::make_unique<StatisticsSums>(scene.bands, what)),
      m_borders(std::make_unique<BorderPairs>(scene)) {}

StatisticsScan::~StatisticsScan() = default;

int64_t StatisticsScan::align_samples() const { return block_shape(m_what).samples; }
int64_t StatisticsScan::align_lines() const { return block_shape(m_what).lines; }

uint64_t StatisticsScan::gathered_bytes(const TileLimits& limits) const {
    return StatisticsSums::bytes(bands(), m_what) +
           (m_what == Statistics::differences ? BorderPairs::bytes(m_scene, limits) : 0);
}

uint64_t StatisticsScan::scratch_bytes(const TileLimits& limits) const {
    return gathered_bytes(limits) + worker_bytes(bands(), m_what);
}

uint64_t StatisticsScan::preferred_bytes() const {
    if (m_what == Statistics::means) return uint64_t{16} << 20;
    // The last 8 MB are for tiles. The tiles of two workers then stay in the last-level cache of a small
    // machine between reading and adding.
    return StatisticsSums::bytes(bands(), m_what) + worker_bytes(bands(), m_what) + (uint64_t{8} << 20);
}

std::unique_ptr<Worker> StatisticsScan::start(int, const TileLimits&) {
    switch (m_what) {
    case Statistics::means:
        return std::make_unique<MeanWorker>(bands());
    case Statistics::covariance:
        return std::make_unique<CovarianceWorker<float>>(bands(), m_what);
    case Statistics::double_covariance:
        return std::make_unique<CovarianceWorker<double>>(bands(), m_what);
    case Statistics::moments:
    case Statistics::differences:
        return std::make_unique<MomentWorker>(bands(), m_what, *m_borders);
    }
    return nullptr;
}

void StatisticsScan::stop(Worker& worker) { m_total->add(static_cast<const StatisticsWorker&>(worker).sums); }

void StatisticsScan::exchange(parallel::Group& ranks) {
    if (m_what == Statistics::differences) m_borders->exchange(ranks, *m_total);
    m_total->unite(ranks);
}

SceneStatistics StatisticsScan::result(int threads) const { return m_total->result(threads); }

} // namespace hsi::stream
#endif
