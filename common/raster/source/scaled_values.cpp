// SPDX-License-Identifier: MIT
// What the numbers of a scene mean, and readers that deliver that.
#include "raster/source/source_impl.h"

#include <cpl_conv.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
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

/// number * scale + offset of a reader's numbers. A pixel whose numbers are all 0 is invalid and becomes NaN.
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
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    const std::unique_ptr<stream::CubeReader> m_reader;
    const BandValues m_values;
    std::vector<char> m_some; ///< pixels of a line with a number that is not 0
};

} // namespace

bool BandValues::one_factor() const {
    return std::all_of(scale.begin(), scale.end(), [&](double v) { return v == scale.front(); }) &&
           std::all_of(offset.begin(), offset.end(), [](double v) { return v == 0; });
}

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
    BandValues values = values_of(*source);
    if (values.scale.empty()) return reader;
    return std::make_unique<ScaledReader>(std::move(reader), std::move(values));
}

} // namespace hsi::raster
