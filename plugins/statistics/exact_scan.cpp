// SPDX-License-Identifier: MIT
// Blocks of pixels, each band divided into slices whose products add up without rounding
// (statistics/statistics.h).
#include "core/byte_pack.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"
#include "statistics/statistics.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "statistics/exact_scan.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/pixel_run-inl.h"
#include "stream/scatter-inl.h"

#include <hwy/highway.h>

#ifndef HSI_STATISTICS_EXACT_CONSTANTS
#define HSI_STATISTICS_EXACT_CONSTANTS
namespace hsi::statistics {
namespace {
/// Number of bits of a slice. The sum of the products over a block needs 2 * 20 + 13 = 53 bits.
constexpr int slice_bits = 20;
constexpr int64_t block_pixels = int64_t{1} << 13;
/// The largest number of slices per band. If a value has digits more than 60 bits below the block's greatest
/// value, its pixel is added separately.
constexpr int most_slices = 3;
/// Number of pixels in a run. Their products are added in registers before they are added to the sums of the
/// block.
constexpr int64_t run_pixels = stream::chunk_of<double>;

/// The values that are summed: pixels, or differences to the next pixel of the line.
enum class Kind { pixels, pairs };

/// The slices of a band in a block. Adding and then subtracting step[k] rounds the remainder after the
/// previous slices to a multiple of slice k's unit.
struct Slices {
    std::array<double, most_slices> step{};
};

/// The properties of a band in a block. look() determines them before the products are computed.
struct BandLook {
    std::array<bool, most_slices> used{}; ///< slices that are not zero for all pixels
    bool deep = false;                    ///< true if some pixels have digits below the last slice
};
} // namespace
} // namespace hsi::statistics
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::statistics {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using stream::PixelRun;
using DoubleTag = hn::CappedTag<double, 8>;

/// Calls visit(d, values, pixel of the run) for registers of the run's values. Values are 0 if keep[i] is 0,
/// even if they are NaN.
template <Kind kind, class Visit>
HWY_INLINE void each_register(const float* band, const PixelRun& run, const double* HWY_RESTRICT keep,
                              Visit visit) {
    run.for_stretches(band, [&](const float* HWY_RESTRICT x, int64_t n, int64_t at) HWY_ATTR {
        const auto take = [&](auto d, int64_t i) HWY_ATTR {
            const hn::Rebind<float, decltype(d)> df;
            auto v = hn::PromoteTo(d, hn::LoadU(df, x + i));
            if constexpr (kind == Kind::pairs) v = hn::Sub(hn::PromoteTo(d, hn::LoadU(df, x + i + 1)), v);
            visit(d, hn::IfThenElseZero(hn::Gt(hn::LoadU(d, keep + at + i), hn::Zero(d)), v), at + i);
        };
        const DoubleTag d;
        const hn::CappedTag<double, 1> one;
        const auto lanes = static_cast<int64_t>(hn::Lanes(d));
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
            take(d, i);
        for (; i < n; ++i)
            take(one, i);
    });
}

/// Returns the greatest magnitude of the values that count.
template <Kind kind>
double greatest(const float* band, const PixelRun& run, const double* keep) {
    double most = 0;
    const DoubleTag d;
    auto all = hn::Zero(d);
    each_register<kind>(band, run, keep, [&](auto tag, auto v, int64_t) HWY_ATTR {
        if constexpr (hn::MaxLanes(decltype(tag)()) == 1)
            most = std::max(most, std::fabs(hn::GetLane(v)));
        else
            all = hn::Max(all, hn::Abs(v));
    });
    return std::max(most, hn::GetLane(hn::MaxOfLanes(d, all)));
}
double greatest_pixel(const float* band, const PixelRun& run, const double* keep) {
    return greatest<Kind::pixels>(band, run, keep);
}
double greatest_pair(const float* band, const PixelRun& run, const double* keep) {
    return greatest<Kind::pairs>(band, run, keep);
}

/// Determines the slices that are needed. Sets deep[i] to 1 if this band has more digits in pixel i of the
/// run than the slices can hold.
template <Kind kind>
BandLook look(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
              double* HWY_RESTRICT deep) {
    BandLook found;
    const double s0 = slices.step[0], s1 = slices.step[1], s2 = slices.step[2];
    each_register<kind>(band, run, keep, [&](auto d, auto v, int64_t at) HWY_ATTR {
        const auto take = [&](double step) HWY_ATTR {
            const auto s = hn::Set(d, step);
            const auto slice = hn::Sub(hn::Add(v, s), s);
            v = hn::Sub(v, slice);
            return slice;
        };
        const auto zero = hn::Zero(d);
        const auto first = take(s0), second = take(s1), third = take(s2);
        found.used[0] |= !hn::AllTrue(d, hn::Eq(first, zero));
        if (hn::AllTrue(d, hn::Eq(hn::Add(hn::Abs(second), hn::Add(hn::Abs(third), hn::Abs(v))), zero)))
            return;
        found.used[1] |= !hn::AllTrue(d, hn::Eq(second, zero));
        found.used[2] |= !hn::AllTrue(d, hn::Eq(third, zero));
        const auto rest = hn::Ne(v, zero);
        if (hn::AllFalse(d, rest)) return;
        found.deep = true;
        hn::StoreU(hn::IfThenElse(rest, hn::Set(d, 1.0), hn::LoadU(d, deep + at)), d, deep + at);
    });
    return found;
}
BandLook look_at_pixels(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
                        double* deep) {
    return look<Kind::pixels>(band, run, keep, slices, deep);
}
BandLook look_at_pairs(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
                       double* deep) {
    return look<Kind::pairs>(band, run, keep, slices, deep);
}

/// Stores slice k of the values in out[k], unless out[k] is null.
template <Kind kind>
void slice(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
           const std::array<double*, most_slices>& out) {
    each_register<kind>(band, run, keep, [&](auto d, auto v, int64_t at) HWY_ATTR {
        for (size_t k = 0; k < most_slices; ++k) {
            if (out[k] == nullptr) continue;
            const auto s = hn::Set(d, slices.step[k]);
            const auto part = hn::Sub(hn::Add(v, s), s);
            v = hn::Sub(v, part);
            hn::StoreU(part, d, out[k] + at);
        }
    });
}
void slice_pixels(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
                  const std::array<double*, most_slices>& out) {
    slice<Kind::pixels>(band, run, keep, slices, out);
}
void slice_pairs(const float* band, const PixelRun& run, const double* keep, const Slices& slices,
                 const std::array<double*, most_slices>& out) {
    slice<Kind::pairs>(band, run, keep, slices, out);
}

/// Adds the sum of x_a x_b to scatter[a * rows + b] for b <= a (and some b > a). It is stream's
/// add_scatter().
void add_exact_scatter(const double* x, int used, int rows, int64_t count, double* scatter) {
    stream::HWY_NAMESPACE::add_scatter(x, used, rows, count, scatter);
}

/// Adds magnitudes with stream's add_magnitudes().
void add_band_magnitudes(const float* band, ptrdiff_t next, const PixelRun& run, float* magnitude) {
    stream::HWY_NAMESPACE::add_magnitudes(band, next, run, magnitude);
}

} // namespace
} // namespace HWY_NAMESPACE
} // namespace hsi::statistics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::statistics {
namespace {

using stream::at_lower;
using stream::PixelRun;

HWY_EXPORT(greatest_pixel);
HWY_EXPORT(greatest_pair);
HWY_EXPORT(look_at_pixels);
HWY_EXPORT(look_at_pairs);
HWY_EXPORT(slice_pixels);
HWY_EXPORT(slice_pairs);
HWY_EXPORT(add_exact_scatter);
HWY_EXPORT(add_band_magnitudes);

int padded_rows(int rows) {
    return (rows + stream::panel_columns - 1) / stream::panel_columns * stream::panel_columns;
}

/// Returns the units of slices, chosen so that the first slice can hold `most`, the greatest magnitude.
Slices slices_below(double most) {
    Slices slices;
    if (!(most > 0)) return slices;
    const int top = std::ilogb(most) + 1; // most < 2^top
    for (int k = 0; k < most_slices; ++k)
        slices.step[static_cast<size_t>(k)] = std::ldexp(1.5, 52 + top - slice_bits * (k + 1));
    return slices;
}

/// Adds values to the sums first, first + 1, and so on. Zeros are skipped, since they would use digits that
/// no other term needs.
void add_terms(math::ExactSums& sums, size_t first, const double* x, size_t count) {
    for (size_t i = 0; i < count;) {
        if (x[i] == 0) {
            ++i;
            continue;
        }
        size_t end = i + 1;
        while (end < count && x[end] != 0)
            ++end;
        sums.add(first + i, x + i, end - i);
        i = end;
    }
}

class ExactWorker final : public stream::Worker {
  public:
    explicit ExactWorker(const stream::CubeShape& scene, int64_t most_pixels)
        : sums(scene.bands), m_bands(scene.bands), m_slices(static_cast<size_t>(scene.bands)),
          m_magnitude(static_cast<size_t>(most_pixels)), m_valid(m_magnitude.size()),
          m_keep(static_cast<size_t>(block_pixels)), m_deep(m_keep.size()) {
        const auto n = static_cast<size_t>(scene.bands);
        extremes.low.assign(n, std::numeric_limits<float>::infinity());
        extremes.high.assign(n, -std::numeric_limits<float>::infinity());
    }
    /// Returns the bytes in addition to the sums, for tiles with this number of pixels.
    static uint64_t bytes(int bands, int64_t most_pixels) {
        const auto rows = static_cast<uint64_t>(padded_rows(most_slices * bands + 1));
        return rows * rows * 8 + rows * static_cast<uint64_t>(run_pixels) * 8 + rows * 64 +
               static_cast<uint64_t>(most_pixels) * 5 + static_cast<uint64_t>(block_pixels) * 16;
    }

    void process(const Tile&, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        find_valid(in);
        const int64_t pixels = in.lines * in.samples, pairs = in.lines * (in.samples - 1);
        for (int64_t first = 0; first < pixels; first += block_pixels)
            add_block<Kind::pixels>(
                in, {in.line_stride, in.samples, first, std::min(block_pixels, pixels - first)});
        for (int64_t first = 0; first < pairs; first += block_pixels)
            add_block<Kind::pairs>(
                in, {in.line_stride, in.samples - 1, first, std::min(block_pixels, pairs - first)});
    }

    Sums sums;
    Extremes extremes;

  private:
    /// A row of the product matrix: one slice of a band.
    struct Row {
        int band, slice;
    };

    void find_valid(const CubeView<float>& in) {
        const int64_t pixels = in.lines * in.samples;
        const PixelRun run{in.line_stride, in.samples, 0, pixels};
        std::fill_n(m_magnitude.begin(), pixels, 0.0f);
        for (int b = 0; b < m_bands; ++b)
            HWY_DYNAMIC_DISPATCH(add_band_magnitudes)
        (in.row(b, 0), b + 1 < m_bands ? in.band_stride : 0, run, m_magnitude.data());
        int64_t valid = 0;
        run.for_stretches(in.row(0, 0), [&](const float* x, int64_t n, int64_t at) {
            for (int64_t i = 0; i < n; ++i) {
                const bool is =
                    is_valid_sum(m_magnitude[static_cast<size_t>(at + i)], x + i, m_bands, in.band_stride);
                m_valid[static_cast<size_t>(at + i)] = is;
                valid += is;
            }
        });
        sums.valid += valid;
        sums.invalid += pixels - valid;
        for (int b = 0; b < m_bands; ++b)
            look_at_values(in.row(b, 0), run, static_cast<size_t>(b), valid == pixels);
    }
    /// Counts the finite values of a band, and updates its extremes.
    void look_at_values(const float* band, const PixelRun& run, size_t b, bool whole) {
        int64_t finite = whole ? run.count : 0;
        float low = extremes.low[b], high = extremes.high[b];
        run.for_stretches(band, [&](const float* x, int64_t n, int64_t at) {
            for (int64_t i = 0; i < n; ++i) {
                finite += !whole && std::isfinite(x[i]);
                if (!whole && !m_valid[static_cast<size_t>(at + i)]) continue;
                low = std::min(low, x[i]);
                high = std::max(high, x[i]);
            }
        });
        sums.finite[b] += finite;
        extremes.low[b] = low;
        extremes.high[b] = high;
    }

    /// Marks the pixels or pairs of a block that count, and returns their number.
    template <Kind kind>
    int64_t keep_counted(const PixelRun& run) {
        int64_t counted = 0;
        // Width of a line of the tile.
        const int64_t width = kind == Kind::pairs ? run.samples + 1 : run.samples;
        for (int64_t i = 0; i < run.count; ++i) {
            const int64_t number = run.first + i;
            const auto at = static_cast<size_t>(number / run.samples * width + number % run.samples);
            const bool is = kind == Kind::pairs ? m_valid[at] && m_valid[at + 1] : m_valid[at] != 0;
            m_keep[static_cast<size_t>(i)] = is;
            counted += is;
        }
        return counted;
    }

    template <Kind kind>
    void add_block(const CubeView<float>& in, const PixelRun& run) {
        constexpr bool pairs = kind == Kind::pairs;
        const int64_t counted = keep_counted<kind>(run);
        if (counted == 0) return;
        if (pairs) sums.pairs += counted;
        std::fill_n(m_deep.begin(), run.count, 0.0);
        m_rows.clear();
        bool deep = false;
        std::vector<BandLook> looks(static_cast<size_t>(m_bands));
        for (int b = 0; b < m_bands; ++b) {
            auto& slices = m_slices[static_cast<size_t>(b)];
            const float* const band = in.row(b, 0);
            slices = slices_below(pairs ? HWY_DYNAMIC_DISPATCH(greatest_pair)(band, run, m_keep.data())
                                        : HWY_DYNAMIC_DISPATCH(greatest_pixel)(band, run, m_keep.data()));
            if (slices.step[0] == 0) continue; // the block has only zeros
            auto& found = looks[static_cast<size_t>(b)];
            found =
                pairs ? HWY_DYNAMIC_DISPATCH(look_at_pairs)(band, run, m_keep.data(), slices, m_deep.data())
                      : HWY_DYNAMIC_DISPATCH(look_at_pixels)(band, run, m_keep.data(), slices, m_deep.data());
            deep = deep || found.deep;
        }
        // First come the first slices of all bands, then the second slices, and so on.
        for (int k = 0; k < most_slices; ++k)
            for (int b = 0; b < m_bands; ++b)
                if (looks[static_cast<size_t>(b)].used[static_cast<size_t>(k)]) m_rows.push_back({b, k});
        if (deep) add_deep<kind>(in, run);
        add_scatter_of<kind>(in, run);
        take_scatter<kind>();
    }

    /// Adds the pixels that have more digits than the slices hold, one by one.
    template <Kind kind>
    void add_deep(const CubeView<float>& in, const PixelRun& run) {
        const auto n = static_cast<size_t>(m_bands);
        std::vector<double> x(n), high(n), low(n);
        for (int64_t i = 0; i < run.count; ++i) {
            if (m_deep[static_cast<size_t>(i)] == 0) continue;
            m_keep[static_cast<size_t>(i)] = 0;
            const int64_t number = run.first + i, line = number / run.samples, sample = number % run.samples;
            for (int b = 0; b < m_bands; ++b) {
                const auto value = static_cast<double>(in.at(b, line, sample));
                x[static_cast<size_t>(b)] =
                    kind == Kind::pairs ? static_cast<double>(in.at(b, line, sample + 1)) - value : value;
            }
            if (kind == Kind::pixels) add_terms(sums.sum, 0, x.data(), n);
            auto& products = kind == Kind::pairs ? sums.difference : sums.product;
            for (size_t a = 0; a < n; ++a) {
                for (size_t b = 0; b <= a; ++b) {
                    high[b] = x[a] * x[b];
                    low[b] = std::fma(x[a], x[b], -high[b]); // rounding error of the product: zero for pixels
                }
                const size_t at = at_lower(static_cast<int>(a), 0);
                add_terms(products, at, high.data(), a + 1);
                add_terms(products, at, low.data(), a + 1);
            }
        }
    }

    /// Computes the products of all rows over the block. With `pixels`, also computes the sums, as products
    /// with a row of ones.
    template <Kind kind>
    void add_scatter_of(const CubeView<float>& in, const PixelRun& run) {
        const int used = static_cast<int>(m_rows.size()) + (kind == Kind::pixels ? 1 : 0);
        m_pitch = padded_rows(used);
        m_run.assign(static_cast<size_t>(m_pitch * run_pixels), 0.0);
        m_scatter.assign(static_cast<size_t>(m_pitch) * static_cast<size_t>(m_pitch), 0.0);
        std::vector<std::array<double*, most_slices>> to(static_cast<size_t>(m_bands));
        for (size_t r = 0; r < m_rows.size(); ++r)
            to[static_cast<size_t>(m_rows[r].band)][static_cast<size_t>(m_rows[r].slice)] =
                m_run.data() + static_cast<int64_t>(r) * run_pixels;
        for (int64_t from = 0; from < run.count; from += run_pixels) {
            PixelRun part = run;
            part.first += from;
            part.count = std::min(run_pixels, run.count - from);
            const double* const keep = m_keep.data() + from;
            if (part.count < run_pixels) std::fill(m_run.begin(), m_run.end(), 0.0);
            for (int b = 0; b < m_bands; ++b) {
                const auto& rows = to[static_cast<size_t>(b)];
                if (rows == std::array<double*, most_slices>{}) continue;
                const auto& slices = m_slices[static_cast<size_t>(b)];
                if (kind == Kind::pairs)
                    HWY_DYNAMIC_DISPATCH(slice_pairs)(in.row(b, 0), part, keep, slices, rows);
                else
                    HWY_DYNAMIC_DISPATCH(slice_pixels)(in.row(b, 0), part, keep, slices, rows);
            }
            if (kind == Kind::pixels)
                std::copy_n(keep, part.count,
                            m_run.data() + static_cast<int64_t>(m_rows.size()) * run_pixels);
            constexpr int64_t step = stream::scatter_sums<double>;
            HWY_DYNAMIC_DISPATCH(add_exact_scatter)
            (m_run.data(), used, m_pitch, (part.count + step - 1) / step * step, m_scatter.data());
        }
    }

    /// Adds the block's products of pairs of slices to the sums.
    template <Kind kind>
    void take_scatter() {
        auto& products = kind == Kind::pairs ? sums.difference : sums.product;
        const auto pitch = static_cast<size_t>(m_pitch);
        for (size_t r = 0; r < m_rows.size(); ++r) {
            const double* const row = m_scatter.data() + r * pitch;
            const int a = m_rows[r].band;
            for (size_t c = 0; c <= r;) {
                const int b = m_rows[c].band;
                // Rows with the same slice index are in the order of their bands. As long as their bands are
                // consecutive and not greater than a, their products are added together.
                size_t end = c;
                while (end < r && m_rows[end].band <= a && m_rows[end + 1].band == m_rows[end].band + 1 &&
                       m_rows[end + 1].band < a)
                    ++end;
                if (b < a) {
                    add_terms(products, at_lower(a, b), row + c, end - c + 1);
                } else {
                    // The product of two slices of one band occurs twice.
                    const double term = b == a && c != r ? 2 * row[c] : row[c];
                    add_terms(products, at_lower(b, a), &term, 1);
                    end = c;
                }
                c = end + 1;
            }
        }
        if (kind == Kind::pairs) return;
        const double* const ones = m_scatter.data() + m_rows.size() * pitch;
        for (size_t r = 0; r < m_rows.size(); ++r)
            add_terms(sums.sum, static_cast<size_t>(m_rows[r].band), ones + r, 1);
    }

    const int m_bands;
    std::vector<Slices> m_slices; ///< slices of each band in the block
    std::vector<Row> m_rows;      ///< rows of the block
    std::vector<float> m_magnitude;
    std::vector<char> m_valid;          ///< validity of each pixel of the tile
    std::vector<double> m_keep, m_deep; ///< 1 or 0 for each pixel of the block
    /// m_run: m_pitch rows of run_pixels values; m_scatter: m_pitch rows of m_pitch values.
    std::vector<double> m_run, m_scatter;
    int m_pitch = 0;
};

} // namespace

ExactScan::ExactScan(const stream::CubeShape& scene) : m_scene(scene), m_sums(scene.bands) {
    const auto n = static_cast<size_t>(scene.bands);
    m_extremes.low.assign(n, std::numeric_limits<float>::infinity());
    m_extremes.high.assign(n, -std::numeric_limits<float>::infinity());
}

uint64_t ExactScan::scratch_bytes(const stream::TileLimits& limits) const {
    return Sums::most_bytes(m_scene.bands) +
           ExactWorker::bytes(m_scene.bands, limits.window_samples * limits.window_lines);
}

uint64_t ExactScan::preferred_bytes() const {
    // Tiles have at least 2^14 pixels, so that blocks are full.
    constexpr int64_t pixels = 2 * block_pixels;
    return Sums::most_bytes(m_scene.bands) + ExactWorker::bytes(m_scene.bands, pixels) +
           static_cast<uint64_t>(pixels) * static_cast<uint64_t>(m_scene.bands) * sizeof(float);
}

std::unique_ptr<stream::Worker> ExactScan::start(int, const stream::TileLimits& limits) {
    return std::make_unique<ExactWorker>(m_scene, limits.window_samples * limits.window_lines);
}

namespace {

void widen(Extremes& all, const Extremes& by) {
    for (size_t b = 0; b < all.low.size(); ++b) {
        all.low[b] = std::min(all.low[b], by.low[b]);
        all.high[b] = std::max(all.high[b], by.high[b]);
    }
}

} // namespace

void ExactScan::stop(stream::Worker& worker) {
    const auto& one = static_cast<const ExactWorker&>(worker);
    m_sums.add(one.sums);
    widen(m_extremes, one.extremes);
}

void ExactScan::exchange(parallel::Group& ranks) {
    m_sums.unite(ranks);
    const auto read = [](const std::string& bytes) {
        Extremes of_rank;
        ByteUnpacker in(bytes);
        in.get(of_rank.low);
        in.get(of_rank.high);
        return of_rank;
    };
    ranks.unite(
        "extremes", [this] { return BytePacker().put(m_extremes.low).put(m_extremes.high).take(); },
        [&](const std::string& bytes) { widen(m_extremes, read(bytes)); },
        [&](const std::string& bytes) { m_extremes = read(bytes); });
}

} // namespace hsi::statistics
#endif
