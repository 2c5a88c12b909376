// SPDX-License-Identifier: MIT
// Determines the scales and units of a scene's stored values, and makes readers of scaled values.
#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/scene/reader_steps.h"
#include "raster/scene/source_impl.h"

#include <cpl_conv.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hsi::raster {

BandValues values_of(const SourceState& s) {
    BandScales scales = scales_of(s.scene, s.scales.own);
    BandValues values;
    if (!scales.unit.empty() && std::all_of(scales.unit.begin(), scales.unit.end(),
                                            [&](const auto& unit) { return unit == scales.unit.front(); }))
        values.unit = scales.unit.front();
    else if (const std::string* const all = s.scene.envi.find("data units"))
        values.unit = *all;
    if (scales.any) {
        values.scale = std::move(scales.scale);
        values.offset = std::move(scales.offset);
    }
    return values;
}

std::shared_ptr<RasterSource> FileSource::scaled() const {
    SourceState s = *m;
    s.scales.applied = true;
    return SourceAccess::make(std::move(s));
}

std::unique_ptr<stream::CubeReader> scaled_reader(std::unique_ptr<stream::CubeReader> reader,
                                                  const std::shared_ptr<const SourceState>& source) {
    if (!source->scales.applied) return reader;
    return reader_of_meanings(std::move(reader), values_of(*source));
}

std::vector<CoarseBand> FileSource::coarse_bands() const {
    const SourceState& s = *m;
    if (m_facts.exact_in_float || s.grid || !s.parts.empty()) return {};
    std::vector<int> exact;
    for (size_t k = 0; k < s.bands.size(); ++k)
        if (hsi::exact_in_float(sample_type(s.scene.bands[k].type))) exact.push_back(static_cast<int>(k));
    const auto wide = without_bands(exact);
    return coarse_among(*SourceAccess::divided(*wide, all_bits(SampleType::float64), GDT_Float64),
                        wide->bands());
}

std::unique_ptr<stream::CubeReader> watched(std::unique_ptr<stream::CubeReader> reader,
                                            std::shared_ptr<const SourceState> source) {
    if (!source->parts.empty() && source->parts[0] >= SamplePart::low_bits)
        return reader; // values that are made of bits are always finite
    std::vector<bool> doubles;
    for (const BandMetadata& b : source->scene.bands)
        doubles.push_back(b.type == GDT_Float64);
    if (std::find(doubles.begin(), doubles.end(), true) == doubles.end())
        return reader; // only doubles can exceed the range of floats
    return reader_that_watches(std::move(reader), std::move(doubles), source->infinity);
}

bool FileSource::met_infinity() const { return m->infinity->load(); }

RasterSource::Beyond FileSource::count_beyond_float() const {
    constexpr int64_t strip = 64;
    constexpr double top = std::numeric_limits<float>::max();
    const SourceState& s = *m;
    if (!s.pool) return {}; // the values do not come from a file
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
            if (s.masking.kind != MaskKind::none)
                read(s.mask_of(*dataset, s.bands[k]), mask.data(), GDT_Byte);
            const auto& value = s.scene.bands[k].nodata;
            const auto nodata = value ? nodata_range(*value, SampleType::float64) : std::nullopt;
            for (size_t i = 0; i < static_cast<size_t>(window.w * h); ++i) {
                const double v = values[i];
                if (!std::isfinite(v) || std::fabs(v) <= top || mask[i] == 0 || (nodata && nodata->holds(v)))
                    continue;
                ++count.values;
                count.pixels += beyond[i] == 0;
                beyond[i] = 1;
            }
        }
    }
    return count;
}

} // namespace hsi::raster
