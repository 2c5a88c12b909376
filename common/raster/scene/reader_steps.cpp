// SPDX-License-Identifier: MIT
#include "raster/scene/reader_steps.h"

#include "raster/sample_convert.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

namespace hsi::raster {
namespace {

/// Returns scaled values: stored value * scale + offset. A pixel whose stored values are all 0 is invalid and
/// becomes NaN.
class ScaledReader final : public stream::CubeReader {
  public:
    ScaledReader(std::unique_ptr<stream::CubeReader> reader, BandValues values)
        : m_reader(std::move(reader)), m_values(std::move(values)) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_reader->read(window, dst);
        m_some.resize(static_cast<size_t>(dst.samples));
        for (int64_t line = 0; line < dst.lines; ++line) {
            std::fill(m_some.begin(), m_some.end(), char{0});
            for (int k = 0; k < dst.bands; ++k) {
                float* const row = dst.row(k, line);
                const double scale = m_values.scale[static_cast<size_t>(k)],
                             offset = m_values.offset[static_cast<size_t>(k)];
                for (size_t i = 0; i < m_some.size(); ++i) {
                    m_some[i] = static_cast<char>(m_some[i] | (row[i] != 0));
                    row[i] = static_cast<float>(static_cast<double>(row[i]) * scale + offset);
                }
            }
            for (size_t i = 0; i < m_some.size(); ++i)
                for (int k = 0; k < dst.bands && m_some[i] == 0; ++k)
                    dst.row(k, line)[i] = std::numeric_limits<float>::quiet_NaN();
        }
    }
    void prefetch(const Rect& window) override { m_reader->prefetch(window); }
    bool expect(const Rect& window) override { return m_reader->expect(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    const std::unique_ptr<stream::CubeReader> m_reader;
    const BandValues m_values;
    std::vector<char> m_some; ///< for each pixel of a line: whether it has a value other than 0
};

/// Detects infinite values in bands of doubles. They may come from the conversion to float, or may be
/// infinite in the file.
class WatchedReader final : public stream::CubeReader {
  public:
    WatchedReader(std::unique_ptr<stream::CubeReader> reader, std::vector<bool> doubles,
                  std::shared_ptr<std::atomic<bool>> infinity)
        : m_reader(std::move(reader)), m_doubles(std::move(doubles)), m_infinity(std::move(infinity)) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_reader->read(window, dst);
        if (m_infinity->load(std::memory_order_relaxed)) return;
        for (int k = 0; k < dst.bands; ++k) {
            if (!m_doubles[static_cast<size_t>(k)]) continue;
            for (int64_t line = 0; line < dst.lines; ++line) {
                const float* row = dst.row(k, line);
                if (std::any_of(row, row + dst.samples, [](float v) { return std::isinf(v); }))
                    return m_infinity->store(true, std::memory_order_relaxed);
            }
        }
    }
    void prefetch(const Rect& window) override { m_reader->prefetch(window); }
    bool expect(const Rect& window) override { return m_reader->expect(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    const std::unique_ptr<stream::CubeReader> m_reader;
    const std::vector<bool> m_doubles;
    const std::shared_ptr<std::atomic<bool>> m_infinity;
};

/// Size and number of the parts of a scene that are examined. Fewer parts are examined if they contain enough
/// values.
constexpr int64_t piece_samples = 64, piece_lines = 16;
constexpr int least_pieces = 4, most_pieces = 64;
constexpr size_t enough_values = 512, most_values = 4096;

/// Returns the n-th part. The parts are spread over the scene by a quasirandom sequence (M. Roberts, "The
/// unreasonable effectiveness of quasirandom sequences", 2018).
Rect piece_of(const stream::CubeShape& shape, int n) {
    const auto at = [n](double step, int64_t room) {
        const double share = 0.5 + step * n;
        return static_cast<int64_t>((share - std::floor(share)) * static_cast<double>(room + 1));
    };
    const int64_t w = std::min(piece_samples, shape.samples), h = std::min(piece_lines, shape.lines);
    return {at(0.7548776662466927, shape.samples - w), at(0.5698402909980532, shape.lines - h), w, h};
}

/// Returns sample values of each band: non-zero values within the range of floats. The bands of `bits` are
/// the bits of doubles.
std::vector<std::vector<double>> some_values(const stream::CubeSource& bits) {
    const auto shape = bits.shape();
    const auto reader = bits.open_reader();
    const int parts = bit_parts(SampleType::float64);
    std::vector<std::vector<double>> values(static_cast<size_t>(shape.bands / parts));
    std::vector<float> piece;
    for (int n = 0; n < most_pieces; ++n) {
        const bool enough = std::all_of(values.begin(), values.end(),
                                        [](const auto& v) { return v.size() >= enough_values; });
        if (n >= least_pieces && enough) break;
        const Rect r = piece_of(shape, n);
        piece.resize(static_cast<size_t>(r.area() * shape.bands));
        const auto view = CubeView<float>::packed(piece.data(), shape.bands, r.h, r.w);
        reader->read(r, view);
        for (size_t b = 0; b < values.size(); ++b)
            for (int64_t y = 0; y < r.h; ++y)
                for (int64_t x = 0; x < r.w && values[b].size() < most_values; ++x) {
                    const float* const first = view.row(static_cast<int>(b) * parts, y) + x;
                    double v = 0;
                    if (!std::isnan(*first)) from_bit_parts(first, view.band_stride, SampleType::float64, &v);
                    if (v != 0 && std::fabs(v) <= static_cast<double>(std::numeric_limits<float>::max()))
                        values[b].push_back(v);
                }
        if (r.w == shape.samples && r.h == shape.lines) break; // the whole scene was read
    }
    return values;
}

/// Returns the quantile of the values at the fraction `share`.
double quantile(std::vector<double>& values, double share) {
    const auto at = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<size_t>(at)];
}

double deviation_from(const std::vector<double>& values, double level) {
    double sum = 0;
    for (const double v : values)
        sum += (v - level) * (v - level) / static_cast<double>(values.size());
    return std::sqrt(sum);
}

/// Returns median, spread and step of a band if single precision does not resolve its values well enough;
/// nullopt otherwise. Quantiles are used, so that a few outliers have no influence.
std::optional<CoarseBand> judge(std::vector<double> values) {
    constexpr double share = 1.0 / 256; // maximum rounding error as a fraction of the spread
    constexpr double quartile = 0.6745; // quartile of a normal distribution in standard deviations
    if (values.size() < 2) return std::nullopt;
    CoarseBand band;
    band.level = quantile(values, 0.5);
    band.spread = (quantile(values, 0.75) - quantile(values, 0.25)) / (2 * quartile);
    if (band.spread == 0) band.spread = deviation_from(values, band.level);
    std::vector<double> rounding;
    rounding.reserve(values.size());
    for (const double v : values)
        rounding.push_back(std::fabs(v - static_cast<double>(static_cast<float>(v))));
    const auto level = static_cast<float>(std::fabs(band.level));
    band.step = static_cast<double>(std::nextafter(level, std::numeric_limits<float>::infinity())) -
                static_cast<double>(level);
    // If the spread is 0, there are no differences to resolve.
    if (!(band.spread > 0 && quantile(rounding, 0.75) > band.spread * share)) return std::nullopt;
    return band;
}

} // namespace

std::unique_ptr<stream::CubeReader> reader_of_meanings(std::unique_ptr<stream::CubeReader> reader,
                                                       BandValues values) {
    if (values.scale.empty()) return reader;
    return std::make_unique<ScaledReader>(std::move(reader), std::move(values));
}

std::unique_ptr<stream::CubeReader> reader_that_watches(std::unique_ptr<stream::CubeReader> reader,
                                                        std::vector<bool> doubles,
                                                        std::shared_ptr<std::atomic<bool>> infinity) {
    if (std::find(doubles.begin(), doubles.end(), true) == doubles.end()) return reader;
    return std::make_unique<WatchedReader>(std::move(reader), std::move(doubles), std::move(infinity));
}

std::vector<CoarseBand> coarse_among(const stream::CubeSource& bits, const std::vector<int>& numbers) {
    std::vector<CoarseBand> coarse;
    auto values = some_values(bits);
    for (size_t k = 0; k < values.size(); ++k)
        if (auto band = judge(std::move(values[k]))) {
            band->band = numbers[k];
            coarse.push_back(*band);
        }
    return coarse;
}

} // namespace hsi::raster
