// SPDX-License-Identifier: MIT
// Labels from a raster: its values, resampled if it has another grid, and a legend from category names,
// colour table and attribute table.
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/labels/labels_impl.h"
#include "raster/labels/numbered_labels.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/envi_map_info.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/sample_convert.h"

#include <cpl_string.h>
#include <gdal_priv.h>
#include <gdal_rat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace hsi::raster {
namespace {

using Legend = std::map<int, LabelClass>;

void read_categories(GDALRasterBand& band, const EnviHeader& header, Legend& legend) {
    const CPLStringList names(band.GetCategoryNames(), FALSE);
    const auto of_header = envi_class_names(header);
    const bool quoted = of_header.size() == static_cast<size_t>(names.Count());
    for (int i = 0; i < names.Count() && i <= max_class; ++i)
        if (std::string name = clean_name(quoted ? of_header[static_cast<size_t>(i)].c_str() : names[i]);
            !name.empty())
            legend[i].name = std::move(name);
}

void read_colour_table(GDALRasterBand& band, Legend& legend) {
    const GDALColorTable* table = band.GetColorTable();
    if (!table || table->GetPaletteInterpretation() != GPI_RGB) return;
    const int count = table->GetColorEntryCount();
    // Tables of TIFF files are padded to 256 entries with opaque black, so black entries of classes without a
    // name are skipped.
    for (int i = 0; i < count && i <= max_class; ++i) {
        const GDALColorEntry* e = table->GetColorEntry(i);
        const bool black = e->c1 == 0 && e->c2 == 0 && e->c3 == 0;
        if (black && legend.find(i) == legend.end()) continue;
        legend[i].colour = {static_cast<uint8_t>(e->c1), static_cast<uint8_t>(e->c2),
                            static_cast<uint8_t>(e->c3), static_cast<uint8_t>(e->c4)};
    }
}

void read_attribute_table(GDALRasterBand& band, Legend& legend) {
    const GDALRasterAttributeTable* table = band.GetDefaultRAT();
    if (!table) return;
    const auto find = [&](std::initializer_list<GDALRATFieldUsage> usages,
                          std::initializer_list<const char*> names) {
        for (const auto usage : usages)
            if (const int c = table->GetColOfUsage(usage); c >= 0) return c;
        for (const char* name : names)
            for (int c = 0; c < table->GetColumnCount(); ++c)
                if (EQUAL(table->GetNameOfCol(c), name)) return c;
        return -1;
    };
    const int value = find({GFU_MinMax, GFU_Min}, {"value", "class", "id", "code"});
    const int name = find({GFU_Name}, {"class_name", "classname", "name", "label"});
    const int red = find({GFU_Red}, {"red", "r"}), green = find({GFU_Green}, {"green", "g"}),
              blue = find({GFU_Blue}, {"blue", "b"}), alpha = find({GFU_Alpha}, {"alpha", "a", "opacity"});
    if (value < 0) return;
    for (int row = 0; row < table->GetRowCount(); ++row) {
        const int v = table->GetValueAsInt(row, value);
        if (v < 0 || v > max_class) continue;
        LabelClass& one = legend[v];
        if (name >= 0 && name != value && one.name.empty())
            one.name = clean_name(table->GetValueAsString(row, name));
        if (red >= 0 && green >= 0 && blue >= 0 && !one.colour) {
            const auto part = [&](int column) {
                const double x = table->GetValueAsDouble(row, column);
                const double scaled = table->GetTypeOfCol(column) == GFT_Real && x <= 1 ? 255 * x : x;
                return static_cast<uint8_t>(std::clamp(scaled, 0.0, 255.0));
            };
            one.colour = Colour{part(red), part(green), part(blue), alpha >= 0 ? part(alpha) : uint8_t{255}};
        }
    }
}

class RasterLabels final : public NumberedLabels {
  public:
    RasterLabels(DatasetHandle dataset, const LabelOptions& options, const Grid* grid)
        : m_dataset(std::move(dataset)) {
        m_path = options.path;
        m_mask = options.mask;
        check_bands();
        m_band = m_dataset->GetRasterBand(1);
        if (GDALDataTypeIsComplex(m_band->GetRasterDataType()))
            throw Error("'" + m_path + "' has complex numbers (" +
                        GDALGetDataTypeName(m_band->GetRasterDataType()) + "), not labels");
        m_own.samples = m_dataset->GetRasterXSize();
        m_own.lines = m_dataset->GetRasterYSize();
        if (const std::string header = envi_header_of(*m_dataset); !header.empty())
            m_header = read_envi_header(header);
        for (const std::string& list : m_header.unreadable())
            m_notes.push_back("a list of the ENVI header of '" + m_path + "' is ignored: " + list);
        for (const std::string& note : envi_map_info(m_header).notes)
            m_notes.push_back("the ENVI header of '" + m_path + "': " + note);
        m_own.geotransform = geotransform_of(*m_dataset, m_header);
        m_own.srs_wkt = wkt_of(m_dataset->GetSpatialRef());
        // nodata_of() is used because 64-bit types have a separate function.
        if (const auto nodata = nodata_of(*m_band)) {
            m_nodata = nodata->as_double();
            m_nothing = nodata_range(*nodata, sample_type(m_band->GetRasterDataType()));
        }
        int has_scale = FALSE, has_offset = FALSE;
        const double scale = m_band->GetScale(&has_scale), offset = m_band->GetOffset(&has_offset);
        if ((has_scale != 0 && scale != 1) || (has_offset != 0 && offset != 0))
            m_notes.push_back("scale and offset of '" + m_path + "' are ignored: " +
                              (options.values ? "values"
                               : m_mask       ? "masks"
                                              : "labels") +
                              " are read as stored");
        m_masked = (m_band->GetMaskFlags() & (GMF_ALL_VALID | GMF_NODATA)) == 0;
        if (!m_mask && !options.values) read_legend(options.zero);
        place(grid);
    }
    void add_notes(const std::vector<std::string>& notes) {
        m_notes.insert(m_notes.end(), notes.begin(), notes.end());
    }

    std::string item(const std::string& key) const override {
        const char* const text = m_dataset->GetMetadataItem(key.c_str());
        return text != nullptr ? text : "";
    }

    void read_lines(int64_t line, int64_t count, uint16_t* out) override {
        read_runs(line, count, [&](int64_t first, int64_t n) {
            read_as(first, n, out + (first - line) * m_grid.samples, m_none,
                    [&](double v) { return label_of(v); });
        });
    }

    std::vector<ValueSample> values() override {
        std::vector<ValueSample> all;
        std::vector<double> strip(static_cast<size_t>(strip_lines * m_grid.samples));
        for (int64_t y = 0; y < m_grid.lines; y += strip_lines) {
            const int64_t n = std::min(strip_lines, m_grid.lines - y);
            read_as(y, n, strip.data(), std::numeric_limits<double>::quiet_NaN(), [](double v) { return v; });
            for (int64_t i = 0; i < n * m_grid.samples; ++i)
                if (const double v = strip[static_cast<size_t>(i)]; std::isfinite(v))
                    all.push_back({v, {}, {y * m_grid.samples + i}});
        }
        return all;
    }

  private:
    /// Reads whole lines of the grid and converts each value with `of`. Pixels outside of the file get
    /// `none`.
    template <class To, class Of>
    void read_as(int64_t line, int64_t count, To* out, To none, const Of& of) {
        for (int64_t y = line; y < line + count; y += strip_lines) {
            const int64_t n = std::min(strip_lines, line + count - y);
            To* const to = out + (y - line) * m_grid.samples;
            if (!m_same) {
                resample(y, n, to, none, of);
                continue;
            }
            read_own(Rect{0, y, m_grid.samples, n}, m_values);
            std::transform(m_values.begin(), m_values.end(), to, of);
        }
    }

    void check_bands() const {
        const int bands = m_dataset->GetRasterCount();
        if (bands == 1) return;
        // A second band may contain transparency, which GDAL uses as a mask.
        if (bands == 2 && m_dataset->GetRasterBand(2)->GetColorInterpretation() == GCI_AlphaBand) return;
        const std::string has = "'" + m_path + "' has " + std::to_string(bands) + " bands";
        if (m_dataset->GetRasterBand(1)->GetColorInterpretation() == GCI_RedBand)
            throw Error(has + " of colours (red, green, blue): it is a picture of " +
                            (m_mask ? "a mask" : "labels") + ", without class numbers",
                        "Use the file from which the picture was made, or convert each colour to a number "
                        "(rgb2pct.py, gdal_calc.py).");
        throw Error(
            has + "; a raster of " + (m_mask ? "a mask" : "labels") + " must have one",
            "Check that the file is not the scene, or extract the right band with gdal_translate -b.");
    }

    void read_legend(ZeroMeans zero) {
        Legend legend;
        read_categories(*m_band, m_header, legend);
        read_attribute_table(*m_band, legend);
        decide_zero(zero, legend.count(0) > 0 ? legend[0].name : std::string());
        read_colour_table(*m_band, legend);
        if (!zero_is_class()) legend.erase(0);
        for (auto& [value, one] : legend) {
            one.value = value;
            if (one.name == std::to_string(value))
                one.name.clear(); // this suite writes the number as the name of a class without a name
            m_legend.push_back(one);
        }
    }

    void place(const Grid* grid) {
        m_own.owner = "'" + m_path + "'";
        m_grid = grid ? *grid : m_own;
        m_description = "raster";
        const bool same_size = m_grid.samples == m_own.samples && m_grid.lines == m_own.lines;
        if (!m_grid.geotransform || !m_own.geotransform) {
            if (!same_size)
                throw Error(
                    "'" + m_path + "' has " + size_text(m_own.samples, m_own.lines) + " pixels, " +
                        m_grid.owner + " has" + " " + size_text(m_grid.samples, m_grid.lines) + ", and " +
                        (m_own.geotransform    ? m_grid.owner + " has"
                         : m_grid.geotransform ? "the file has"
                                               : "both have") +
                        " no georeference",
                    "Use a file of the same size, or georeference both (gdal_translate -a_srs -a_ullr).");
            m_same = true;
            return;
        }
        const bool srs = same_srs(m_grid.srs_wkt, m_own.srs_wkt);
        if (m_grid.srs_wkt.empty() != m_own.srs_wkt.empty())
            m_notes.push_back((m_own.srs_wkt.empty() ? "'" + m_path + "'" : m_grid.owner) +
                              " has no SRS: the SRS of the other file is assumed");
        m_same = same_size && srs &&
                 same_geotransform(*m_grid.geotransform, *m_own.geotransform, m_own.samples, m_own.lines);
        if (m_same) return;
        m_description = "raster, resampled";
        if (!srs) {
            m_description = "raster, reprojected";
            m_transformation = transformation(m_grid.srs_wkt, m_own.srs_wkt, m_path, false);
        }
        GeoTransform gt = *m_own.geotransform;
        if (!GDALInvGeoTransform(gt.data(), m_inverse.data()))
            throw Error("'" + m_path + "': its geotransform cannot be inverted");
        // Only longitudes can differ by full turns.
        if (!counts_degrees(m_own.srs_wkt.empty() ? m_grid.srs_wkt : m_own.srs_wkt)) return;
        m_turn = full_turn;
        m_middle = gt[0] + gt[1] * static_cast<double>(m_own.samples) / 2 +
                   gt[2] * static_cast<double>(m_own.lines) / 2;
    }

    /// Reads a window of the file. Nodata and masked pixels become NaN.
    void read_own(const Rect& window, std::vector<double>& values) {
        const auto n = static_cast<size_t>(window.area());
        values.resize(n);
        const GdalErrors errors;
        const auto x = static_cast<int>(window.x), y = static_cast<int>(window.y),
                   w = static_cast<int>(window.w), h = static_cast<int>(window.h);
        CPLErr status =
            m_band->RasterIO(GF_Read, x, y, w, h, values.data(), w, h, GDT_Float64, 0, 0, nullptr);
        if (status == CE_None && m_masked) {
            m_valid.resize(n);
            status = m_band->GetMaskBand()->RasterIO(GF_Read, x, y, w, h, m_valid.data(), w, h, GDT_Byte, 0,
                                                     0, nullptr);
        }
        if (status != CE_None) throw Error("'" + m_path + "' cannot be read: " + errors.text());
        m_seen = true;
        for (size_t i = 0; i < n; ++i)
            if ((m_nodata && m_nothing && m_nothing->holds(values[i])) || (m_masked && m_valid[i] == 0))
                values[i] = std::numeric_limits<double>::quiet_NaN();
    }

    template <class To, class Of>
    void resample(int64_t line, int64_t count, To* out, To none, const Of& of) {
        const auto n = static_cast<size_t>(count * m_grid.samples);
        m_x.resize(n);
        m_y.resize(n);
        m_ok.assign(n, TRUE);
        const GeoTransform& gt = *m_grid.geotransform;
        for (int64_t l = 0; l < count; ++l)
            for (int64_t s = 0; s < m_grid.samples; ++s) {
                const double px = static_cast<double>(s) + 0.5, py = static_cast<double>(line + l) + 0.5;
                const auto i = static_cast<size_t>(l * m_grid.samples + s);
                m_x[i] = gt[0] + gt[1] * px + gt[2] * py;
                m_y[i] = gt[3] + gt[4] * px + gt[5] * py;
            }
        if (m_transformation) {
            const GdalErrors errors; // points that cannot be transformed get no label
            m_transformation->Transform(static_cast<int>(n), m_x.data(), m_y.data(), nullptr, m_ok.data());
        }
        Rect box{m_own.samples, m_own.lines, 0, 0};
        int64_t right = 0, bottom = 0;
        for (size_t i = 0; i < n; ++i) {
            double px = m_inverse[0] + m_inverse[1] * m_x[i] + m_inverse[2] * m_y[i];
            double py = m_inverse[3] + m_inverse[4] * m_x[i] + m_inverse[5] * m_y[i];
            // The scene or the file may have longitudes from 0 to 360 instead of -180 to 180.
            if (m_turn != 0 && !(px >= 0 && px < static_cast<double>(m_own.samples))) {
                const double turns = std::round((m_middle - m_x[i]) / m_turn) * m_turn;
                px += m_inverse[1] * turns;
                py += m_inverse[4] * turns;
            }
            if (!m_ok[i] || !(px >= 0 && py >= 0 && px < static_cast<double>(m_own.samples) &&
                              py < static_cast<double>(m_own.lines))) {
                m_ok[i] = FALSE;
                continue;
            }
            m_x[i] = std::floor(px);
            m_y[i] = std::floor(py);
            box.x = std::min(box.x, static_cast<int64_t>(px));
            box.y = std::min(box.y, static_cast<int64_t>(py));
            right = std::max(right, static_cast<int64_t>(px) + 1);
            bottom = std::max(bottom, static_cast<int64_t>(py) + 1);
        }
        box.w = right - box.x;
        box.h = bottom - box.y;
        std::fill_n(out, n, none);
        if (box.empty()) return;
        // The window of the file is also read in strips. If the scene is coarse and the raster is fine, the
        // whole window may not fit into memory.
        for (int64_t y = box.y; y < box.bottom(); y += strip_lines) {
            const Rect part{box.x, y, box.w, std::min(strip_lines, box.bottom() - y)};
            read_own(part, m_values);
            for (size_t i = 0; i < n; ++i) {
                if (!m_ok[i]) continue;
                const auto py = static_cast<int64_t>(m_y[i]);
                if (py < part.y || py >= part.bottom()) continue;
                out[i] = of(m_values[static_cast<size_t>((py - part.y) * part.w +
                                                         static_cast<int64_t>(m_x[i]) - part.x)]);
            }
        }
    }

    DatasetHandle m_dataset;
    GDALRasterBand* m_band = nullptr;
    Grid m_own;
    Transformation m_transformation; ///< from the scene's SRS to the file's SRS; null if they are the same
    GeoTransform m_inverse{};        ///< inverse geotransform of the file
    /// m_turn: 360 if the file has longitudes, otherwise 0; m_middle: longitude of the file's centre
    double m_turn = 0, m_middle = 0;
    EnviHeader m_header; ///< ENVI header of the file; without fields if the file has none
    std::optional<NodataRange> m_nothing;
    bool m_masked = false, m_same = false;
    std::vector<double> m_values, m_x, m_y;
    std::vector<int> m_ok;
    std::vector<uint8_t> m_valid;
};

} // namespace

std::unique_ptr<LabelSource> make_raster_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid, const std::vector<std::string>& notes) {
    auto labels = std::make_unique<RasterLabels>(std::move(dataset), options, grid);
    labels->add_notes(notes);
    return labels;
}

} // namespace hsi::raster
