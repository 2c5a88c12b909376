// SPDX-License-Identifier: MIT
// raster::LabelSource of an array of class numbers, on the grid of the scene that it belongs to.
#include "arrays/exchange.h"

#include "core/error.h"
#include "core/rect.h"
#include "raster/labels.h"
#include "raster/labels/numbered_labels.h"
#include "raster/quality_flags.h"
#include "raster/sample_convert.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace hsi::raster {
namespace {

/// Returns the number in one element, in double precision.
double number_at(const char* p, int32_t type) {
    double number = 0;
    with_type(static_cast<SampleType>(type), [&](auto value) {
        std::memcpy(&value, p, sizeof value);
        number = static_cast<double>(value);
    });
    return number;
}

class ArrayLabels final : public NumberedLabels {
  public:
    ArrayLabels(const LabelOptions& options, const Grid* grid)
        : m_array(arrays::Exchange::current().host_array(options.path)) {
        m_path = options.path;
        m_mask = options.mask;
        if (m_array.shape[0] != 1)
            throw Error("'" + m_path + "' has " + std::to_string(m_array.shape[0]) + " bands; " +
                            (m_mask ? "a mask" : "an array of labels") + " must have one",
                        "Give an array of lines x samples.");
        const bool wants_features = !options.field.empty() || !options.layer.empty() ||
                                    !options.name_field.empty() || !options.group_field.empty() ||
                                    options.all_touched || options.inside_only || options.min_cover ||
                                    options.shares || options.pixel_coordinates;
        if (wants_features && !options.said_of_another)
            throw Error("'" + m_path + "' is an array, which has no vector features",
                        "Leave out the options for vector files.");
        if (grid != nullptr && (grid->samples != m_array.shape[2] || grid->lines != m_array.shape[1]))
            throw Error("'" + m_path + "' has " + size_text(m_array.shape[2], m_array.shape[1]) +
                            " pixels, " + grid->owner + " " + size_text(grid->samples, grid->lines),
                        "Give arrays of the same size.");
        m_grid.samples = m_array.shape[2];
        m_grid.lines = m_array.shape[1];
        m_grid.owner = grid != nullptr ? grid->owner : "'" + m_path + "'";
        m_description = "array";
        if (m_array.has_nodata != 0) m_nodata = m_array.nodata;
        if (!m_mask && !options.values) read_legend(options.zero);
    }

    std::vector<ValueSample> values() override {
        m_seen = true;
        std::vector<ValueSample> all;
        for (int64_t y = 0; y < m_grid.lines; ++y)
            for (int64_t x = 0; x < m_grid.samples; ++x)
                if (const double v = value_at(y, x); std::isfinite(v))
                    all.push_back({v, {}, {y * m_grid.samples + x}});
        return all;
    }

  protected:
    void read_lines(int64_t line, int64_t count, uint16_t* out) override {
        m_seen = true;
        read_runs(line, count, [&](int64_t first, int64_t n) {
            for (int64_t y = first; y < first + n; ++y)
                for (int64_t x = 0; x < m_grid.samples; ++x)
                    *out++ = label_of(value_at(y, x));
        });
    }

  private:
    double value_at(int64_t line, int64_t sample) const {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        if (m_array.mask != nullptr &&
            static_cast<const unsigned char*>(
                m_array.mask)[line * m_array.mask_strides[0] + sample * m_array.mask_strides[1]] == 0)
            return none;
        const double v = number_at(static_cast<const char*>(m_array.data) + line * m_array.strides[1] +
                                       sample * m_array.strides[2],
                                   m_array.type);
        return m_nodata && v == *m_nodata ? none : v;
    }

    void read_legend(ZeroMeans zero) {
        const auto name = [&](int64_t value) {
            const bool known = m_array.names != nullptr && value < m_array.name_count;
            return std::string(known && m_array.names[value] != nullptr ? m_array.names[value] : "");
        };
        decide_zero(zero, name(0));
        for (int64_t value = zero_is_class() ? 0 : 1; value < m_array.name_count && value <= max_class;
             ++value)
            if (const std::string text = name(value); !text.empty())
                m_legend.push_back(
                    {static_cast<int>(value), text == std::to_string(value) ? std::string() : text});
    }

    const hsi_array m_array;
};

} // namespace

std::unique_ptr<LabelSource> open_all_labels(const LabelOptions& options, const Grid* grid) {
    return std::make_unique<ArrayLabels>(options, grid);
}

Grid grid_of(const RasterSource& source) {
    Grid grid;
    grid.samples = source.shape().samples;
    grid.lines = source.shape().lines;
    return grid;
}

bool same_grid(const Grid& a, const Grid& b) { return a.samples == b.samples && a.lines == b.lines; }

FlagMask open_flag_mask(const RasterSource& scene, const std::string& /*file*/,
                        const std::vector<FlagItem>& /*items*/) {
    throw Error("-mask-flags: '" + scene.path() + "' is an array, which has no quality layers",
                "Use mask_exclude to leave out pixels.");
}

} // namespace hsi::raster
