// SPDX-License-Identifier: MIT
// What the numbers of a scene mean, and readers that deliver that.
#include "raster/source/reader_steps.h"
#include "raster/source/source_impl.h"

#include <cpl_conv.h>

#include <cmath>
#include <utility>

namespace hsi::raster {
namespace {

/// What numbers of the kept bands mean.
BandValues values_of(const SourceState& s) {
    const EnviHeader& envi = s.scene.envi;
    const auto field = [&](const char* key) {
        const std::string* text = envi.find(key);
        return text ? *text : std::string();
    };
    const auto list = [&](const char* key) {
        auto all = envi_list(field(key));
        if (all.size() != static_cast<size_t>(s.scene.file_bands)) all.clear();
        return all;
    };
    const auto gains = list("data reflectance gain values"), offsets = list("data reflectance offset values");
    const double divisor = envi_number(field("reflectance scale factor")).value_or(0);
    BandValues values;
    bool any = false, first = true;
    for (const BandMetadata& b : s.scene.bands) {
        double scale = b.scale.value_or(1), offset = b.offset.value_or(0);
        // One rule for all bands: a gain of 1 among others is one, and no place for the factor.
        if (!s.own_scales) {
            const auto index = static_cast<size_t>(b.file_band - 1);
            if (!gains.empty()) {
                scale = CPLAtof(gains[index].c_str());
                offset = offsets.empty() ? 0 : CPLAtof(offsets[index].c_str());
            } else if (divisor > 0) {
                scale = 1 / divisor;
            }
        }
        if (scale == 0 || !std::isfinite(scale) || !std::isfinite(offset)) {
            scale = 1;
            offset = 0;
        }
        any |= scale != 1 || offset != 0;
        values.scale.push_back(scale);
        values.offset.push_back(offset);
        if (first) values.unit = b.unit;
        if (values.unit != b.unit) values.unit.clear();
        first = false;
    }
    if (values.unit.empty()) values.unit = field("data units");
    if (!any) {
        values.scale.clear();
        values.offset.clear();
    }
    return values;
}

} // namespace

BandValues RasterSource::band_values() const {
    const SourceState& s = SourceAccess::state(*this);
    BandValues values = values_of(s);
    if (s.scaled) {
        values.scale.clear();
        values.offset.clear();
    }
    return values;
}

std::shared_ptr<RasterSource> RasterSource::scaled() const {
    SourceState s = SourceAccess::state(*this);
    s.scaled = true;
    return SourceAccess::make(std::move(s));
}

bool RasterSource::is_scaled() const { return SourceAccess::state(*this).scaled; }

std::unique_ptr<stream::CubeReader> scaled_reader(std::unique_ptr<stream::CubeReader> reader,
                                                  const std::shared_ptr<const SourceState>& source) {
    if (!source->scaled) return reader;
    return reader_of_meanings(std::move(reader), values_of(*source));
}

} // namespace hsi::raster
