// SPDX-License-Identifier: MIT
// Numbers of double precision that single precision does not hold.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/source_impl.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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
    uint64_t look_ahead(uint64_t bytes) override { return m_reader->look_ahead(bytes); }

  private:
    const std::unique_ptr<stream::CubeReader> m_reader;
    const std::shared_ptr<const SourceState> m_source;
};

} // namespace

std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source) {
    const auto& bands = source->scene.bands;
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
