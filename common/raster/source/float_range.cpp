// SPDX-License-Identifier: MIT
// Numbers that single precision does not hold: too large for it, or too close together.
#include "core/error.h"
#include "raster/gdal/gdal_errors.h"
#include "raster/source/source_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

/// Looks only: what it finds may be an infinity of the file, too.
class WatchedReader final : public stream::CubeReader {
  public:
    WatchedReader(std::unique_ptr<stream::CubeReader> reader, std::shared_ptr<const SourceState> source)
        : m_reader(std::move(reader)), m_source(std::move(source)) {}

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_reader->read(window, dst);
        if (m_source->infinity->load(std::memory_order_relaxed)) return;
        for (int k = 0; k < dst.bands; ++k) {
            if (m_source->scene.bands[static_cast<size_t>(k)].type != GDT_Float64) continue;
            for (int64_t line = 0; line < dst.lines; ++line) {
                const float* row = dst.row(k, line);
                if (std::any_of(row, row + dst.samples, [](float v) { return std::isinf(v); }))
                    return m_source->infinity->store(true, std::memory_order_relaxed);
            }
        }
    }
    void prefetch(const Rect& window) override { m_reader->prefetch(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    const std::unique_ptr<stream::CubeReader> m_reader;
    const std::shared_ptr<const SourceState> m_source;
};

/// What is looked at of a scene: pieces of it, few of them where these have values enough.
constexpr int64_t piece_samples = 64, piece_lines = 16;
constexpr int least_pieces = 4, most_pieces = 64;
constexpr size_t enough_values = 512, most_values = 4096;

/// The n-th piece, all of them spread over the scene (M. Roberts, "The unreasonable effectiveness of
/// quasirandom sequences", 2018).
Rect piece_of(const stream::CubeShape& shape, int n) {
    const auto at = [n](double step, int64_t room) {
        const double share = 0.5 + step * n;
        return static_cast<int64_t>((share - std::floor(share)) * static_cast<double>(room + 1));
    };
    const int64_t w = std::min(piece_samples, shape.samples), h = std::min(piece_lines, shape.lines);
    return {at(0.7548776662466927, shape.samples - w), at(0.5698402909980532, shape.lines - h), w, h};
}

/// Some values of a source as doubles, a band each: those within the range of floats that are not 0.
std::vector<std::vector<double>> some_values(const RasterSource& source) {
    const auto bits = SourceAccess::divided(source, all_bits(GDT_Float64), GDT_Float64);
    const auto shape = bits->shape();
    const auto reader = bits->open_reader();
    const int parts = bit_parts(GDT_Float64);
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
                    if (!std::isnan(*first)) from_bit_parts(first, view.band_stride, GDT_Float64, &v);
                    if (v != 0 && std::fabs(v) <= static_cast<double>(std::numeric_limits<float>::max()))
                        values[b].push_back(v);
                }
        if (r.w == shape.samples && r.h == shape.lines) break; // that was all
    }
    return values;
}

/// The value that a share of all others lie below.
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

/// Level, spread and step of a band whose values single precision does not tell apart well enough. Few values
/// that lie elsewhere decide nothing.
std::optional<RasterSource::CoarseBand> judge(std::vector<double> values) {
    constexpr double share = 1.0 / 256; // of the spread, that rounding may be
    constexpr double quartile = 0.6745; // of a normal distribution, in standard deviations
    if (values.size() < 2) return std::nullopt;
    RasterSource::CoarseBand band;
    band.level = quantile(values, 0.5);
    band.spread = (quantile(values, 0.75) - quantile(values, 0.25)) / (2 * quartile);
    if (band.spread == 0) band.spread = deviation_from(values, band.level);
    std::vector<double> rounding;
    for (const double v : values)
        rounding.push_back(std::fabs(v - static_cast<double>(static_cast<float>(v))));
    const auto level = static_cast<float>(std::fabs(band.level));
    band.step = static_cast<double>(std::nextafter(level, std::numeric_limits<float>::infinity())) -
                static_cast<double>(level);
    // A spread of 0: there is nothing to tell apart.
    if (!(band.spread > 0 && quantile(rounding, 0.75) > band.spread * share)) return std::nullopt;
    return band;
}

} // namespace

std::vector<RasterSource::CoarseBand> RasterSource::coarse_bands() const {
    const SourceState& s = SourceAccess::state(*this);
    std::vector<CoarseBand> coarse;
    if (exact_in_float() || s.pixels || !s.parts.empty()) return coarse;
    std::vector<int> exact;
    for (size_t k = 0; k < s.bands.size(); ++k)
        if (raster::exact_in_float(s.scene.bands[k].type)) exact.push_back(static_cast<int>(k));
    const auto wide = without_bands(exact);
    const auto values = some_values(*wide);
    for (size_t k = 0; k < values.size(); ++k)
        if (auto band = judge(values[k])) {
            band->band = wide->bands()[k];
            coarse.push_back(*band);
        }
    return coarse;
}

std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source) {
    const auto& bands = source->scene.bands;
    if (!source->parts.empty() && source->parts[0] >= SamplePart::low_bits) return reader; // bits have no end
    if (std::none_of(bands.begin(), bands.end(), [](const auto& b) { return b.type == GDT_Float64; }))
        return reader;
    return std::make_unique<WatchedReader>(std::move(reader), std::move(source));
}

bool RasterSource::met_infinity() const { return SourceAccess::state(*this).infinity->load(); }

RasterSource::Beyond RasterSource::count_beyond_float() const {
    constexpr int64_t strip = 64;
    constexpr double top = std::numeric_limits<float>::max();
    const SourceState& s = SourceAccess::state(*this);
    const DatasetHandle dataset = s.pool->take();
    const Rect window = s.window();
    const auto w = static_cast<int>(window.w);
    std::vector<double> values(static_cast<size_t>(window.w * strip));
    std::vector<unsigned char> mask(values.size(), 1), beyond(values.size());
    Beyond count;
    const GdalErrors errors;
    for (int64_t y = 0; y < window.h; y += strip) {
        const auto h = static_cast<int>(std::min(strip, window.h - y));
        const auto x0 = static_cast<int>(window.x), y0 = static_cast<int>(window.y + y);
        const auto read = [&](GDALRasterBand& band, void* to, GDALDataType type) {
            if (band.RasterIO(GF_Read, x0, y0, w, h, to, w, h, type, 0, 0, nullptr) != CE_None)
                throw Error("cannot read " + s.name() + ": " + errors.text());
        };
        std::fill(beyond.begin(), beyond.end(), 0);
        for (size_t k = 0; k < s.bands.size(); ++k) {
            if (s.scene.bands[k].type != GDT_Float64) continue;
            GDALRasterBand& band = *dataset->GetRasterBand(s.bands[k]);
            read(band, values.data(), GDT_Float64);
            if (s.mask != MaskKind::none) read(s.mask_of(*dataset, s.bands[k]), mask.data(), GDT_Byte);
            const auto& nodata = s.scene.bands[k].nodata;
            const double nothing = nodata ? nodata->as_double() : 0;
            for (size_t i = 0; i < static_cast<size_t>(window.w * h); ++i) {
                const double v = values[i];
                if (!std::isfinite(v) || std::fabs(v) <= top || mask[i] == 0 || v == nothing) continue;
                ++count.values;
                count.pixels += beyond[i] == 0;
                beyond[i] = 1;
            }
        }
    }
    return count;
}

} // namespace hsi::raster
