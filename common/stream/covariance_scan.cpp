// SPDX-License-Identifier: MIT
#include "stream/covariance_scan.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stream/covariance_scan.cpp"
#include <hwy/foreach_target.h> // must come before highway.h

#include "stream/block_sum-inl.h"
#include "stream/scatter-inl.h"

#include <hwy/highway.h>

#ifndef HSI_COVARIANCE_CONSTANTS
#define HSI_COVARIANCE_CONSTANTS
namespace hsi::stream {
namespace {
/// A run of pixels of a block, counted line by line: where a band's values begin, and how they lie.
struct PixelRun {
    ptrdiff_t line_stride; ///< of the band's values
    int64_t samples;       ///< of a line of the block
    int64_t first, count;  ///< pixels

    /// The pixels with what fills the last vector, of 16 at most.
    int64_t whole() const { return (count + 15) / 16 * 16; }
    /// f(line, sample, pixels, pixel of the run), for every stretch of one line.
    template <class F>
    void for_stretches(F f) const {
        int64_t line = first / samples, sample = first % samples;
        for (int64_t done = 0; done < count; ++line, sample = 0) {
            const int64_t n = std::min(samples - sample, count - done);
            f(line, sample, n, done);
            done += n;
        }
    }
};

/// From a chunk's centres c to those of its block, g: with rest = sum of x - c (the rounding of c) and total
/// = sum of x - g, the sum of (x_a - g_a)(x_b - g_b) is that of (x_a - c_a)(x_b - c_b), and offset_a total_b
/// + rest_a offset_b.
struct Shift {
    const double *offset, *rest, *total; ///< c - g, and the sums; a row each
};
} // namespace
} // namespace hsi::stream
#endif

HWY_BEFORE_NAMESPACE();
namespace hsi::stream {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The sum of one band of a run, and its magnitudes (see add_stretch()). The same run of `next`, the band
/// that follows, is fetched meanwhile: it lies too far away for the processor to guess.
double sum_band(const float* band, const float* next, const PixelRun& run, float* magnitude) {
    StretchSum sums[stretch_registers];
    for (auto& s : sums)
        s = hn::Zero(StretchSumTag());
    double rest = 0;
    run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) HWY_ATTR {
        const ptrdiff_t from = line * run.line_stride + sample;
        add_stretch(band + from, next + from, n, sums, rest, magnitude + at);
    });
    return total_of(sums, rest);
}

/// out[i] = x_i - centre, for one band of a run.
void centre_single(const float* band, const PixelRun& run, float centre, float* out) {
    run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) HWY_ATTR {
        const hn::ScalableTag<float> d;
        const auto lanes = static_cast<int64_t>(hn::Lanes(d));
        const auto c = hn::Set(d, centre);
        const float* HWY_RESTRICT x = band + line * run.line_stride + sample;
        float* HWY_RESTRICT o = out + at;
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
            hn::StoreU(hn::Sub(hn::LoadU(d, x + i), c), d, o + i);
        for (; i < n; ++i)
            o[i] = x[i] - centre;
    });
}

void centre_twofold(const float* band, const PixelRun& run, float centre, double* out) {
    run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) HWY_ATTR {
        const hn::ScalableTag<double> d;
        const hn::Rebind<float, decltype(d)> dh;
        const auto lanes = static_cast<int64_t>(hn::Lanes(d));
        const auto c = hn::Set(d, static_cast<double>(centre));
        const float* HWY_RESTRICT x = band + line * run.line_stride + sample;
        double* HWY_RESTRICT o = out + at;
        int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
            hn::StoreU(hn::Sub(hn::PromoteTo(d, hn::LoadU(dh, x + i)), c), d, o + i);
        for (; i < n; ++i)
            o[i] = static_cast<double>(x[i]) - static_cast<double>(centre);
    });
}

template <class D>
HWY_INLINE hn::Vec<D> load_twofold(D d, const double* p) {
    return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load_twofold(D d, const float* p) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), p));
}

/// out[k] += in[k] + offset total[k] + rest offsets[k], k < 4
template <class T>
HWY_INLINE void add_four(const T* HWY_RESTRICT in, double offset, const double* HWY_RESTRICT total,
                         double rest, const double* HWY_RESTRICT offsets, double* HWY_RESTRICT out) {
    const hn::CappedTag<double, 4> dd;
    const auto o = hn::Set(dd, offset), r = hn::Set(dd, rest);
    for (size_t k = 0; k < 4; k += hn::Lanes(dd)) {
        auto sum = hn::MulAdd(o, hn::LoadU(dd, total + k), load_twofold(dd, in + k));
        sum = hn::MulAdd(r, hn::LoadU(dd, offsets + k), sum);
        hn::StoreU(hn::Add(hn::LoadU(dd, out + k), sum), dd, out + k);
    }
}

/// scatter[a * rows + b] += sum of (x_a - g_a)(x_b - g_b) for b <= a (and some b > a), over `count` pixels. x
/// as add_products() has it: the values less the chunk's centres.
template <class T>
HWY_INLINE void add_scatter(const T* HWY_RESTRICT x, int bands, int rows, int64_t count, const Shift& shift,
                            double* HWY_RESTRICT scatter) {
    add_products(x, bands, rows, count, [&](const T(&sums)[tile_rows][tile_columns], int a, int b) HWY_ATTR {
        double* HWY_RESTRICT out = scatter + static_cast<ptrdiff_t>(a) * rows + b;
        for (int k = 0; k < tile_rows; ++k)
            add_four(sums[k], shift.offset[a + k], shift.total + b, shift.rest[a + k], shift.offset + b,
                     out + static_cast<ptrdiff_t>(k) * rows);
    });
}

void scatter_single(const float* x, int bands, int rows, int64_t count, const Shift& shift, double* scatter) {
    add_scatter(x, bands, rows, count, shift, scatter);
}
void scatter_twofold(const double* x, int bands, int rows, int64_t count, const Shift& shift,
                     double* scatter) {
    add_scatter(x, bands, rows, count, shift, scatter);
}

} // namespace HWY_NAMESPACE
} // namespace hsi::stream
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hsi::stream {
namespace {

HWY_EXPORT(sum_band);
HWY_EXPORT(centre_single);
HWY_EXPORT(centre_twofold);
HWY_EXPORT(scatter_single);
HWY_EXPORT(scatter_twofold);

void centre_band(const float* band, const PixelRun& run, float centre, float* out) {
    HWY_DYNAMIC_DISPATCH(centre_single)(band, run, centre, out);
}
void centre_band(const float* band, const PixelRun& run, float centre, double* out) {
    HWY_DYNAMIC_DISPATCH(centre_twofold)(band, run, centre, out);
}
void add_scatter(const float* x, int bands, int rows, int64_t count, const Shift& shift, double* scatter) {
    HWY_DYNAMIC_DISPATCH(scatter_single)(x, bands, rows, count, shift, scatter);
}
void add_scatter(const double* x, int bands, int rows, int64_t count, const Shift& shift, double* scatter) {
    HWY_DYNAMIC_DISPATCH(scatter_twofold)(x, bands, rows, count, shift, scatter);
}

int padded(int bands) { return (bands + panel_columns - 1) / panel_columns * panel_columns; }

uint64_t worker_bytes(int bands) {
    const auto rows = static_cast<uint64_t>(padded(bands));
    return CovarianceSums::bytes(bands) + rows * rows * 8 + rows * (chunk_of<float> * 4 + 56) +
           static_cast<uint64_t>(chunk_of<float>) * 5;
}

class SumsWorker : public Worker {
  public:
    explicit SumsWorker(int bands) : sums(bands) {}
    CovarianceSums sums;
};

/// T: what products are computed in.
template <class T>
class ScanWorker final : public SumsWorker {
  public:
    explicit ScanWorker(int bands)
        : SumsWorker(bands), m_rows(padded(bands)), m_sum(static_cast<size_t>(bands)),
          m_chunk_sum(m_sum.size()), m_centre(m_sum.size()), m_chunk_centre(m_sum.size()),
          m_offset(static_cast<size_t>(m_rows)), m_rest(m_offset.size()), m_total(m_offset.size()),
          m_chunk(static_cast<size_t>(m_rows * chunk_pixels)),
          m_scatter(static_cast<size_t>(m_rows) * static_cast<size_t>(m_rows)), m_magnitude(chunk_pixels),
          m_valid(chunk_pixels) {
        std::fill_n(m_chunk.data(), m_chunk.size(), T{0});
    }

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        for (int64_t y = 0; y < tile.window.h; y += covariance_block_lines)
            for (int64_t x = 0; x < tile.window.w; x += covariance_block_samples)
                add_block(in.cut(x, y, std::min(covariance_block_samples, tile.window.w - x),
                                 std::min(covariance_block_lines, tile.window.h - y)));
    }

  private:
    static constexpr int64_t chunk_pixels = chunk_of<T>;

    void add_block(const CubeView<float>& block) {
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
                const double g = static_cast<double>(m_centre[b]), c = static_cast<double>(m_chunk_centre[b]);
                m_sum[b] += m_chunk_sum[b];
                m_offset[b] = c - g;
                m_rest[b] = m_chunk_sum[b] - static_cast<double>(count) * c;
                m_total[b] = m_chunk_sum[b] - static_cast<double>(count) * g;
            }
            add_scatter(m_chunk.data(), block.bands, m_rows, run.whole(),
                        {m_offset.data(), m_rest.data(), m_total.data()}, m_scatter.data());
        }
        sums.valid += valid;
        sums.invalid += pixels - valid;
        if (valid > 0) sums.add_block(valid, m_sum.data(), m_centre.data(), m_scatter.data(), m_rows);
    }

    /// Takes a run's valid pixels: their sums, centres near their means, and what they differ from these by.
    /// Returns how many they are.
    int64_t take_chunk(const CubeView<float>& block, const PixelRun& run) {
        std::fill_n(m_magnitude.begin(), run.count, 0.0f);
        for (int b = 0; b < block.bands; ++b) {
            T* const row = m_chunk.data() + b * chunk_pixels;
            const float* const band = block.row(b, 0);
            const double sum = HWY_DYNAMIC_DISPATCH(sum_band)(
                band, block.row(std::min(b + 1, block.bands - 1), 0), run, m_magnitude.data());
            const auto centre = static_cast<float>(sum / static_cast<double>(run.count));
            centre_band(band, run, centre, row);
            std::fill(row + run.count, row + run.whole(), T{0});
            m_chunk_sum[static_cast<size_t>(b)] = sum;
            m_chunk_centre[static_cast<size_t>(b)] = centre;
        }
        if (!std::all_of(m_magnitude.begin(), m_magnitude.begin() + run.count,
                         [](float m) { return is_valid_sum(m); }))
            return take_valid_only(block, run);
        for (auto& f : sums.finite)
            f += run.count;
        return run.count;
    }

    /// The run again, leaving out invalid pixels and counting finite values a band.
    int64_t take_valid_only(const CubeView<float>& block, const PixelRun& run) {
        int64_t count = 0;
        run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) {
            for (int64_t i = 0; i < n; ++i) {
                const bool valid =
                    is_valid_sum(m_magnitude[static_cast<size_t>(at + i)], block.row(0, line) + sample + i,
                                 block.bands, block.band_stride);
                m_valid[static_cast<size_t>(at + i)] = valid;
                count += valid;
            }
        });
        for (int b = 0; b < block.bands; ++b) {
            double sum = 0;
            int64_t finite = 0;
            run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) {
                const float* const x = block.row(b, line) + sample;
                for (int64_t i = 0; i < n; ++i) {
                    finite += std::isfinite(x[i]);
                    if (m_valid[static_cast<size_t>(at + i)]) sum += static_cast<double>(x[i]);
                }
            });
            const auto centre = count ? static_cast<float>(sum / static_cast<double>(count)) : 0.0f;
            T* const row = m_chunk.data() + b * chunk_pixels;
            run.for_stretches([&](int64_t line, int64_t sample, int64_t n, int64_t at) {
                const float* const x = block.row(b, line) + sample;
                for (int64_t i = 0; i < n; ++i)
                    row[at + i] = m_valid[static_cast<size_t>(at + i)]
                                      ? static_cast<T>(x[i]) - static_cast<T>(centre)
                                      : T{0};
            });
            sums.finite[static_cast<size_t>(b)] += finite;
            m_chunk_sum[static_cast<size_t>(b)] = sum;
            m_chunk_centre[static_cast<size_t>(b)] = centre;
        }
        return count;
    }

    const int m_rows; ///< bands, rounded up to whole panels; the rows beyond are zero
    // A band each: of the block, and of its chunk.
    std::vector<double> m_sum, m_chunk_sum;
    std::vector<float> m_centre, m_chunk_centre;
    std::vector<double> m_offset, m_rest, m_total; ///< of the chunk, see Shift; m_rows each
    HostBuffer<T> m_chunk;                         ///< m_rows x chunk_pixels
    std::vector<double> m_scatter;                 ///< of the block, m_rows x m_rows
    std::vector<float> m_magnitude;                ///< of the chunk's pixels
    std::vector<char> m_valid;
};

size_t at_lower(int a, int b) {
    return static_cast<size_t>(a) * (static_cast<size_t>(a) + 1) / 2 + static_cast<size_t>(b);
}

/// The first 27 of a number's 53 bits.
double upper_bits(double x) {
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= ~((uint64_t{1} << 26) - 1);
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

} // namespace

std::vector<double> SceneCovariance::mean_products() const {
    std::vector<double> products = covariance;
    const auto n = static_cast<size_t>(bands);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            products[a * n + b] += mean[a] * mean[b];
    return products;
}

std::vector<int> SceneCovariance::empty_bands() const {
    std::vector<int> empty;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    return empty;
}

CovarianceSums::CovarianceSums(int n)
    : bands(n), finite(static_cast<size_t>(n)), sum(static_cast<size_t>(n)), product(at_lower(n, 0)),
      level(static_cast<size_t>(n)), varies(static_cast<size_t>(n)) {}

uint64_t CovarianceSums::bytes(int bands) {
    // Floats are multiples of 2^-149 below 2^128, and so are their sums and differences in double; what
    // add_block() makes of two of them is a multiple of 2^-298, below 2^258 a pixel. Room for 2^40 pixels.
    return math::ExactSums::most_bytes(at_lower(bands, 0), -298, 298) +
           math::ExactSums::most_bytes(static_cast<size_t>(bands), -149, 170);
}

void CovarianceSums::add_block(int64_t count, const double* block_sum, const float* centre,
                               const double* scatter, int64_t pitch) {
    const auto n = static_cast<double>(count);
    const auto size = static_cast<size_t>(bands);
    for (size_t b = 0; b < size; ++b) { // squares add up to zero where all are zero, and nowhere else
        if (valid == count) level[b] = centre[b];
        if (scatter[static_cast<ptrdiff_t>(b) * pitch + static_cast<ptrdiff_t>(b)] > 0 ||
            level[b] != centre[b])
            varies[b] = true;
    }
    sum.add(0, block_sum, size);
    std::vector<double> rest(size);
    for (size_t b = 0; b < size; ++b)
        rest[b] = block_sum[b] - n * static_cast<double>(centre[b]);
    add_products(count, centre, rest.data(), {scatter, pitch});
}

void CovarianceSums::add_products(int64_t count, const float* centres, const double* rest,
                                  const LowerRows& scatter) {
    const auto n = static_cast<double>(count);
    const auto size = static_cast<size_t>(bands);
    const std::vector<double> centre(centres, centres + size);
    std::vector<double> upper(size), lower(size), products(size);
    for (size_t a = 0; a < size; ++a) {
        const double* const row = scatter.row(static_cast<int>(a));
        // x_a x_b = (x_a - c_a)(x_b - c_b) + c_a (x_b - c_b) + c_b (x_a - c_a) + c_a c_b, of which the last
        // has all the digits and is added in two parts.
        for (size_t b = 0; b <= a; ++b) {
            const double of_centres = centre[a] * centre[b]; // exact: 48 bits
            const double high = upper_bits(of_centres);
            upper[b] = n * high; // exact: 27 bits of the product, then 26, times the count's 13
            lower[b] = n * (of_centres - high);
            products[b] = row[b] + (centre[a] * rest[b] + centre[b] * rest[a]);
        }
        const size_t at = at_lower(static_cast<int>(a), 0);
        product.add(at, upper.data(), a + 1);
        product.add(at, lower.data(), a + 1);
        product.add(at, products.data(), a + 1);
    }
}

std::vector<double> CovarianceSums::means() const {
    std::vector<double> mean;
    for (size_t b = 0; b < sum.size(); ++b)
        mean.push_back(sum.value(b) / static_cast<double>(valid));
    return mean;
}

std::vector<double> CovarianceSums::covariance() const {
    // Around m, the means rounded to single precision, so that what they have in common with the products
    // cancels without rounding: S the sum of x, R = S - n m, P the sum of x_a x_b,
    //   n C_ab = P_ab - n m_a m_b - m_a R_b - m_b R_a - R_a R_b / n.
    const auto size = static_cast<size_t>(bands);
    const auto n_low = static_cast<double>(valid % (int64_t{1} << 24)),
               n_high = static_cast<double>(valid - valid % (int64_t{1} << 24));
    const double pixels = n_low + n_high;
    std::vector<double> middle, rest, matrix(size * size);
    for (const double mean : means()) {
        middle.push_back(static_cast<double>(static_cast<float>(mean)));
        rest.push_back(sum.value_with(rest.size(), {-n_low * middle.back(), -n_high * middle.back()}));
    }
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const double of_middles = middle[i] * middle[j], upper = upper_bits(of_middles),
                         lower = of_middles - upper;
            const double scatter =
                product.value_with(at_lower(static_cast<int>(i), static_cast<int>(j)),
                                   {-n_low * upper, -n_high * upper, -n_low * lower, -n_high * lower}) -
                (middle[i] * rest[j] + middle[j] * rest[i]) - rest[i] * rest[j] / pixels;
            matrix[i * size + j] = matrix[j * size + i] = scatter / pixels;
        }
    return matrix;
}

void unite(parallel::Group& ranks, const std::string& what, math::ExactSums& sums) {
    ranks.unite(
        what, [&] { return sums.packed(); }, [&](const std::string& bytes) { sums.add_packed(bytes); },
        [&](const std::string& bytes) { sums.set_packed(bytes); });
}

void CovarianceSums::unite(parallel::Group& ranks) {
    // All but the products, which are most of it: these go apart, from where they are to where they belong.
    const auto packed = [this] {
        return BytePacker()
            .put(valid)
            .put(invalid)
            .put(finite)
            .put(level)
            .put(varies)
            .put(sum.packed())
            .take();
    };
    const auto unpacked = [this](const std::string& bytes) {
        CovarianceSums sums(bands);
        ByteUnpacker in(bytes);
        in.get(sums.valid);
        in.get(sums.invalid);
        in.get(sums.finite);
        in.get(sums.level);
        in.get(sums.varies);
        std::string exact;
        in.get(exact);
        sums.sum.add_packed(exact);
        return sums;
    };
    ranks.unite(
        "covariance", packed, [&](const std::string& bytes) { add(unpacked(bytes)); },
        [&](const std::string& bytes) {
            CovarianceSums whole = unpacked(bytes);
            std::swap(whole.product, product);
            *this = std::move(whole);
        });
    stream::unite(ranks, "products", product);
}

void CovarianceSums::add(const CovarianceSums& other) {
    for (size_t b = 0; b < level.size() && other.valid > 0; ++b) {
        if (valid == 0) level[b] = other.level[b];
        if (other.varies[b] || level[b] != other.level[b]) varies[b] = true;
    }
    valid += other.valid;
    invalid += other.invalid;
    for (size_t b = 0; b < finite.size(); ++b)
        finite[b] += other.finite[b];
    sum.add(other.sum);
    product.add(other.product);
}

uint64_t CovarianceScan::scratch_bytes(const TileLimits&) const { return worker_bytes(bands()); }

/// Tiles that both lanes of a small machine keep in its last-level cache between reading and adding up.
uint64_t CovarianceScan::preferred_bytes() const { return worker_bytes(bands()) + (uint64_t{8} << 20); }

std::unique_ptr<Worker> CovarianceScan::start(int, const TileLimits&) {
    if (m_products == Products::twofold) return std::make_unique<ScanWorker<double>>(bands());
    return std::make_unique<ScanWorker<float>>(bands());
}

void CovarianceScan::stop(Worker& worker) { merge(static_cast<const SumsWorker&>(worker).sums); }

void CovarianceScan::exchange(parallel::Group& ranks) { m_total.unite(ranks); }

SceneCovariance CovarianceScan::result() const {
    SceneCovariance r;
    const int n = bands();
    r.bands = n;
    r.valid_pixels = m_total.valid;
    r.invalid_pixels = m_total.invalid;
    r.finite = m_total.finite;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    r.mean.assign(static_cast<size_t>(n), nan);
    r.covariance.assign(static_cast<size_t>(n) * static_cast<size_t>(n), nan);
    if (m_total.valid == 0) return r;
    r.mean = m_total.means();
    r.covariance = m_total.covariance();
    double greatest = 0;
    for (int b = 0; b < n; ++b) {
        if (!m_total.varies[static_cast<size_t>(b)]) r.constant.push_back(b);
        greatest = std::max(greatest, r.covariance[static_cast<size_t>(b) * static_cast<size_t>(n + 1)]);
    }
    // The least normal float is 1e-38: below this, products lose more than ten digits of the whole variance.
    constexpr double least_variance = 1e-28;
    if (m_products == Products::single && static_cast<int>(r.constant.size()) < n &&
        greatest < least_variance)
        throw Error(
            "the scene's values vary by less than 1e-14, and their products vanish in single precision",
            "Multiply them first, by 1e15 for example (gdal_calc.py).");
    return r;
}

} // namespace hsi::stream
#endif
