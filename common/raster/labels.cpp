// SPDX-License-Identifier: MIT
#include "raster/labels.h"

#include "core/error.h"
#include "raster/gdal_errors.h"

#include <cpl_string.h>
#include <gdal_alg.h>
#include <gdal_priv.h>
#include <gdal_rat.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

using GeoTransform = std::array<double, 6>;

// Lines that are read or burned together. Vectors are burned in strips anchored at line 0 whatever the caller
// asks for, so that a pixel's label does not depend on how the scene is read.
constexpr int64_t strip_lines = 256;

struct CloseDataset {
    void operator()(GDALDataset* d) const { GDALClose(GDALDataset::ToHandle(d)); }
};
using Dataset = std::unique_ptr<GDALDataset, CloseDataset>;

struct DestroyTransformation {
    void operator()(OGRCoordinateTransformation* t) const { OGRCoordinateTransformation::DestroyCT(t); }
};
using Transformation = std::unique_ptr<OGRCoordinateTransformation, DestroyTransformation>;

OGRSpatialReference srs_from(const std::string& wkt) {
    OGRSpatialReference srs;
    if (!wkt.empty()) srs.importFromWkt(wkt.c_str());
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

std::string wkt_of(const OGRSpatialReference* srs) {
    if (!srs || srs->IsEmpty()) return {};
    char* text = nullptr;
    const char* const options[] = {"FORMAT=WKT2_2019", nullptr};
    srs->exportToWkt(&text, options);
    std::string wkt = text ? text : "";
    CPLFree(text);
    return wkt;
}

bool same_srs(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == b) return true;
    const OGRSpatialReference first = srs_from(a), second = srs_from(b);
    const char* const options[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", "CRITERION=EQUIVALENT",
                                   nullptr};
    return first.IsSame(&second, options);
}

Transformation transformation(const std::string& from, const std::string& to, const std::string& path) {
    OGRSpatialReference source = srs_from(from), target = srs_from(to);
    const GdalErrors errors;
    Transformation t(OGRCreateCoordinateTransformation(&source, &target));
    if (!t)
        throw Error("'" + path + "': its coordinates cannot be turned into the scene's: " + errors.text(),
                    "Check the SRS of both files with gdalinfo and ogrinfo.");
    return t;
}

std::string size_text(int64_t samples, int64_t lines) {
    return std::to_string(samples) + "x" + std::to_string(lines);
}

bool equal_nocase(const std::string& a, const std::string& b) { return EQUAL(a.c_str(), b.c_str()); }

bool same_geotransform(const GeoTransform& a, const GeoTransform& b, int64_t samples, int64_t lines) {
    const double pixel = std::max(std::hypot(a[1], a[4]), std::hypot(a[2], a[5]));
    for (const double x : {0.0, static_cast<double>(samples)})
        for (const double y : {0.0, static_cast<double>(lines)})
            for (const size_t k : {size_t{0}, size_t{3}})
                if (!(std::fabs((a[k] - b[k]) + (a[k + 1] - b[k + 1]) * x + (a[k + 2] - b[k + 2]) * y) <=
                      1e-3 * pixel))
                    return false;
    return true;
}

/// The class that a number stands for; 0: none.
uint16_t class_of(double v, const std::string& path) {
    if (!(v > 0)) return 0; // negative numbers and NaN too
    if (v > max_class || v != std::floor(v))
        throw Error(
            "'" + path + "': " + CPLSPrintf("%.9g", v) + " is no class number (1 to 65535; 0: no label)",
            "Is this a raster of class labels? gdal_calc.py can turn other codes into class numbers.");
    return static_cast<uint16_t>(v);
}

// --- rasters

void read_categories(GDALRasterBand& band, std::map<int, LabelClass>& legend) {
    const CPLStringList names(band.GetCategoryNames(), FALSE);
    for (int i = 1; i < names.Count() && i <= max_class; ++i)
        if (*names[i]) legend[i].name = names[i];
}

void read_colour_table(GDALRasterBand& band, std::map<int, LabelClass>& legend) {
    const GDALColorTable* table = band.GetColorTable();
    if (!table || table->GetPaletteInterpretation() != GPI_RGB) return;
    const int count = table->GetColorEntryCount();
    // Tables of TIFF files are filled up to 256 entries with opaque black: entries of classes that have no
    // name are taken as long as they say something.
    for (int i = 1; i < count && i <= max_class; ++i) {
        const GDALColorEntry* e = table->GetColorEntry(i);
        const bool black = e->c1 == 0 && e->c2 == 0 && e->c3 == 0;
        if (black && legend.find(i) == legend.end()) continue;
        legend[i].colour = {static_cast<uint8_t>(e->c1), static_cast<uint8_t>(e->c2),
                            static_cast<uint8_t>(e->c3), static_cast<uint8_t>(e->c4)};
    }
}

void read_attribute_table(GDALRasterBand& band, std::map<int, LabelClass>& legend) {
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
        if (v < 1 || v > max_class) continue;
        LabelClass& one = legend[v];
        if (name >= 0 && name != value && one.name.empty()) one.name = table->GetValueAsString(row, name);
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

class RasterLabels final : public LabelSource {
  public:
    RasterLabels(Dataset dataset, const LabelOptions& options, const Grid* grid)
        : m_dataset(std::move(dataset)) {
        m_path = options.path;
        m_mask = options.mask;
        if (m_dataset->GetRasterCount() != 1)
            throw Error("'" + m_path + "' has " + std::to_string(m_dataset->GetRasterCount()) +
                            " bands; a raster of " + (m_mask ? "a mask" : "labels") + " has one",
                        "Extract the band with gdal_translate -b.");
        m_band = m_dataset->GetRasterBand(1);
        if (GDALDataTypeIsComplex(m_band->GetRasterDataType()))
            throw Error("'" + m_path + "' holds complex numbers (" +
                        GDALGetDataTypeName(m_band->GetRasterDataType()) + "), not labels");
        m_own.samples = m_dataset->GetRasterXSize();
        m_own.lines = m_dataset->GetRasterYSize();
        if (GeoTransform gt{}; m_dataset->GetGeoTransform(gt.data()) == CE_None) m_own.geotransform = gt;
        m_own.srs_wkt = wkt_of(m_dataset->GetSpatialRef());
        int has = FALSE;
        m_nodata = m_band->GetNoDataValue(&has);
        m_has_nodata = has != FALSE;
        m_masked = (m_band->GetMaskFlags() & (GMF_ALL_VALID | GMF_NODATA)) == 0;
        if (!m_mask) read_legend();
        place(grid);
    }

    void read(int64_t line, int64_t count, uint16_t* out) override {
        for (int64_t y = line; y < line + count; y += strip_lines) {
            const int64_t n = std::min(strip_lines, line + count - y);
            uint16_t* const to = out + (y - line) * m_grid.samples;
            if (m_same)
                read_own(Rect{0, y, m_grid.samples, n}, to);
            else
                resample(y, n, to);
        }
    }

  private:
    void read_legend() {
        std::map<int, LabelClass> legend;
        read_categories(*m_band, legend);
        read_attribute_table(*m_band, legend);
        read_colour_table(*m_band, legend);
        for (auto& [value, one] : legend) {
            one.value = value;
            if (one.name == std::to_string(value)) one.name.clear(); // what we write where there is no name
            m_legend.push_back(one);
        }
    }

    void place(const Grid* grid) {
        m_grid = grid ? *grid : m_own;
        m_description = "raster";
        const bool same_size = m_grid.samples == m_own.samples && m_grid.lines == m_own.lines;
        if (!m_grid.geotransform || !m_own.geotransform) {
            if (!same_size)
                throw Error(
                    "'" + m_path + "' has " + size_text(m_own.samples, m_own.lines) + " pixels, the scene " +
                        size_text(m_grid.samples, m_grid.lines) + ", and " +
                        (m_own.geotransform ? "the scene" : "the file") + " has no georeference",
                    "Give labels of the scene's size, or georeference both (gdal_translate -a_srs -a_ullr).");
            m_same = true;
            return;
        }
        const bool srs = same_srs(m_grid.srs_wkt, m_own.srs_wkt);
        if (m_grid.srs_wkt.empty() != m_own.srs_wkt.empty())
            m_notes.push_back("'" + (m_own.srs_wkt.empty() ? m_path : std::string("the scene")) +
                              "' has no SRS: taken to be that of the other file");
        m_same = same_size && srs &&
                 same_geotransform(*m_grid.geotransform, *m_own.geotransform, m_own.samples, m_own.lines);
        if (m_same) return;
        m_description = "raster, resampled";
        if (!srs) {
            m_description = "raster, reprojected";
            m_transformation = transformation(m_grid.srs_wkt, m_own.srs_wkt, m_path);
        }
        GeoTransform gt = *m_own.geotransform;
        if (!GDALInvGeoTransform(gt.data(), m_inverse.data()))
            throw Error("'" + m_path + "': its geotransform cannot be inverted");
    }

    /// A window of the file, as classes.
    void read_own(const Rect& window, uint16_t* out) {
        const auto n = static_cast<size_t>(window.area());
        m_values.resize(n);
        const GdalErrors errors;
        const auto x = static_cast<int>(window.x), y = static_cast<int>(window.y),
                   w = static_cast<int>(window.w), h = static_cast<int>(window.h);
        CPLErr status =
            m_band->RasterIO(GF_Read, x, y, w, h, m_values.data(), w, h, GDT_Float64, 0, 0, nullptr);
        if (status == CE_None && m_masked) {
            m_valid.resize(n);
            status = m_band->GetMaskBand()->RasterIO(GF_Read, x, y, w, h, m_valid.data(), w, h, GDT_Byte, 0,
                                                     0, nullptr);
        }
        if (status != CE_None) throw Error("'" + m_path + "' cannot be read: " + errors.text());
        for (size_t i = 0; i < n; ++i) {
            const double v = m_values[i];
            const bool none = (m_has_nodata && v == m_nodata) || (m_masked && m_valid[i] == 0);
            if (m_mask)
                out[i] = !none && v != 0 && !std::isnan(v);
            else
                out[i] = none ? uint16_t{0} : class_of(v, m_path);
        }
    }

    void resample(int64_t line, int64_t count, uint16_t* out) {
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
            const GdalErrors errors; // single points outside the projection's area are simply not labelled
            m_transformation->Transform(static_cast<int>(n), m_x.data(), m_y.data(), nullptr, m_ok.data());
        }
        Rect box{m_own.samples, m_own.lines, 0, 0};
        int64_t right = 0, bottom = 0;
        for (size_t i = 0; i < n; ++i) {
            const double px = m_inverse[0] + m_inverse[1] * m_x[i] + m_inverse[2] * m_y[i];
            const double py = m_inverse[3] + m_inverse[4] * m_x[i] + m_inverse[5] * m_y[i];
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
        std::fill_n(out, n, uint16_t{0});
        if (box.empty()) return;
        // The file's window in strips too: a coarse scene over a fine raster must not take it into memory
        // whole.
        for (int64_t y = box.y; y < box.bottom(); y += strip_lines) {
            const Rect part{box.x, y, box.w, std::min(strip_lines, box.bottom() - y)};
            m_part.resize(static_cast<size_t>(part.area()));
            read_own(part, m_part.data());
            for (size_t i = 0; i < n; ++i) {
                if (!m_ok[i]) continue;
                const auto py = static_cast<int64_t>(m_y[i]);
                if (py < part.y || py >= part.bottom()) continue;
                out[i] = m_part[static_cast<size_t>((py - part.y) * part.w + static_cast<int64_t>(m_x[i]) -
                                                    part.x)];
            }
        }
    }

    Dataset m_dataset;
    GDALRasterBand* m_band = nullptr;
    Grid m_own;
    Transformation m_transformation; ///< scene to file; null when they share an SRS
    GeoTransform m_inverse{};        ///< of the file
    double m_nodata = 0;
    bool m_has_nodata = false, m_masked = false, m_mask = false, m_same = false;
    std::vector<double> m_values, m_x, m_y;
    std::vector<int> m_ok;
    std::vector<uint8_t> m_valid;
    std::vector<uint16_t> m_part;
};

// --- vectors

std::string field_list(const OGRFeatureDefn& definition) {
    std::string text;
    for (int i = 0; i < definition.GetFieldCount(); ++i)
        text += (i ? ", " : "") + std::string(definition.GetFieldDefn(i)->GetNameRef());
    return text.empty() ? "none" : text;
}

int find_field(const OGRFeatureDefn& definition, const std::string& name) {
    for (int i = 0; i < definition.GetFieldCount(); ++i)
        if (equal_nocase(definition.GetFieldDefn(i)->GetNameRef(), name)) return i;
    return -1;
}

bool is_text(const OGRFieldDefn& f) { return f.GetType() == OFTString; }
bool is_number(const OGRFieldDefn& f) {
    return f.GetType() == OFTInteger || f.GetType() == OFTInteger64 || f.GetType() == OFTReal;
}

/// The field of class names that goes with a field of class numbers, by its name: Level_1_ID and Level_1,
/// class and class_name. -1: none.
int companion(const OGRFeatureDefn& definition, int numbers) {
    const std::string name = definition.GetFieldDefn(numbers)->GetNameRef();
    std::vector<std::string> wanted{name + "_name", name + "name"};
    for (const char* suffix : {"_id", "_code", "_nr", "_no", "_value", "id", "code"}) {
        const size_t n = std::string(suffix).size();
        if (name.size() > n && equal_nocase(name.substr(name.size() - n), suffix)) {
            wanted.push_back(name.substr(0, name.size() - n));
            wanted.push_back(name.substr(0, name.size() - n) + "_name");
        }
    }
    for (const auto& w : wanted)
        if (const int i = find_field(definition, w); i >= 0 && is_text(*definition.GetFieldDefn(i))) return i;
    return -1;
}

struct OneShape {
    std::unique_ptr<OGRGeometry> geometry;
    OGREnvelope envelope;
    uint16_t value = 0;
};

class VectorLabels final : public LabelSource {
  public:
    VectorLabels(Dataset dataset, const LabelOptions& options, const Grid* grid) {
        m_path = options.path;
        m_all_touched = options.all_touched;
        if (!grid)
            throw Error("'" + m_path + "' is a vector file and has no pixels of its own",
                        "Name the raster whose pixels are meant (-like).");
        if (!grid->geotransform)
            throw Error(
                "the scene has no georeference: the features of '" + m_path + "' cannot be placed on it",
                "Georeference the scene (gdal_translate -a_srs -a_ullr), or give labels as a raster.");
        m_grid = *grid;
        OGRLayer& layer = choose_layer(*dataset, options);
        const Transformation t = reprojection(layer);
        read_features(layer, options, t.get());
    }

    void read(int64_t line, int64_t count, uint16_t* out) override {
        for (int64_t y = line; y < line + count;) {
            const int64_t first = y / strip_lines * strip_lines;
            burn(first);
            const int64_t n = std::min(first + strip_lines, line + count) - y;
            std::copy_n(m_strip.begin() + (y - first) * m_grid.samples, n * m_grid.samples,
                        out + (y - line) * m_grid.samples);
            y += n;
        }
    }

  private:
    OGRLayer& choose_layer(GDALDataset& dataset, const LabelOptions& options) const {
        if (!options.layer.empty()) {
            OGRLayer* layer = dataset.GetLayerByName(options.layer.c_str());
            if (layer) return *layer;
            std::string names;
            for (int i = 0; i < dataset.GetLayerCount(); ++i)
                names += (i ? ", " : "") + std::string(dataset.GetLayer(i)->GetName());
            throw Error("'" + m_path + "' has no layer '" + options.layer + "'",
                        "Its layers: " + names + ".");
        }
        OGRLayer* first = nullptr;
        for (int i = 0; i < dataset.GetLayerCount(); ++i) {
            OGRLayer* layer = dataset.GetLayer(i);
            if (layer->GetGeomType() == wkbNone) continue;
            if (!first) first = layer;
            if (options.mask || options.field.empty() ||
                find_field(*layer->GetLayerDefn(), options.field) >= 0)
                return *layer;
        }
        if (!first) throw Error("'" + m_path + "' has no layer with geometries");
        return *first; // class_field() tells what is missing
    }

    int class_field(const OGRFeatureDefn& definition, const LabelOptions& options) const {
        const std::string advice =
            "Name the class field with -field. Fields: " + field_list(definition) + ".";
        if (!options.field.empty()) {
            const int i = find_field(definition, options.field);
            if (i < 0) throw Error("'" + m_path + "' has no field '" + options.field + "'", advice);
            const auto& f = *definition.GetFieldDefn(i);
            if (!is_text(f) && !is_number(f))
                throw Error("'" + m_path + "': field '" + options.field + "' holds neither numbers nor names",
                            advice);
            return i;
        }
        for (const char* name : {"class", "classid", "class_id", "class_name", "classname", "label"})
            if (const int i = find_field(definition, name); i >= 0) return i;
        std::vector<int> fitting;
        for (int i = 0; i < definition.GetFieldCount(); ++i) {
            const auto& f = *definition.GetFieldDefn(i);
            if (is_text(f) || f.GetType() == OFTInteger || f.GetType() == OFTInteger64) fitting.push_back(i);
        }
        if (fitting.size() == 1) return fitting.front();
        throw Error("'" + m_path + "': which field holds the classes?", advice);
    }

    Transformation reprojection(OGRLayer& layer) {
        const std::string own = wkt_of(layer.GetSpatialRef());
        m_description = "vector";
        if (own.empty() || m_grid.srs_wkt.empty()) {
            if (own.empty() != m_grid.srs_wkt.empty())
                m_notes.push_back((own.empty() ? "'" + m_path + "'" : std::string("the scene")) +
                                  " has no SRS: taken to be that of the other file");
            return {};
        }
        if (same_srs(own, m_grid.srs_wkt)) return {};
        m_description = "vector, reprojected";
        return transformation(own, m_grid.srs_wkt, m_path);
    }

    void read_features(OGRLayer& layer, const LabelOptions& options, OGRCoordinateTransformation* t) {
        const OGRFeatureDefn& definition = *layer.GetLayerDefn();
        const int field = options.mask ? -1 : class_field(definition, options);
        int name_field = -1;
        if (!options.mask && !options.name_field.empty()) {
            name_field = find_field(definition, options.name_field);
            if (name_field < 0)
                throw Error("'" + m_path + "' has no field '" + options.name_field + "'",
                            "Fields: " + field_list(definition) + ".");
        } else if (field >= 0 && is_number(*definition.GetFieldDefn(field))) {
            name_field = companion(definition, field);
        }

        std::vector<std::string> texts; // of features whose field is a text
        std::map<int, std::set<std::string>> names;
        int64_t without_class = 0, without_geometry = 0, not_placed = 0;
        GdalErrors errors;
        layer.ResetReading();
        while (true) {
            const std::unique_ptr<OGRFeature> feature(layer.GetNextFeature());
            if (!feature) break;
            std::unique_ptr<OGRGeometry> geometry(feature->StealGeometry());
            if (!geometry || geometry->IsEmpty()) {
                ++without_geometry;
                continue;
            }
            OneShape shape;
            std::string text;
            if (options.mask) {
                shape.value = 1;
            } else if (!feature->IsFieldSetAndNotNull(field)) {
                ++without_class;
                continue;
            } else if (is_text(*definition.GetFieldDefn(field))) {
                text = feature->GetFieldAsString(field);
                text.erase(0, text.find_first_not_of(" \t"));
                text.erase(text.find_last_not_of(" \t") + 1);
                if (text.empty()) {
                    ++without_class;
                    continue;
                }
            } else {
                shape.value = class_of(feature->GetFieldAsDouble(field), m_path);
                // 0 burns "no label" over what lies below, as it would in a raster.
                if (name_field >= 0 && shape.value && feature->IsFieldSetAndNotNull(name_field))
                    names[shape.value].insert(feature->GetFieldAsString(name_field));
            }
            if (t && geometry->transform(t) != OGRERR_NONE) {
                ++not_placed;
                continue;
            }
            geometry->getEnvelope(&shape.envelope);
            shape.geometry = std::move(geometry);
            m_shapes.push_back(std::move(shape));
            texts.push_back(std::move(text));
        }
        if (errors.any() && not_placed == 0) throw Error("'" + m_path + "' cannot be read: " + errors.text());
        if (field >= 0 && is_text(*definition.GetFieldDefn(field)))
            number_classes(texts);
        else
            name_classes(names);
        m_description += ", " + std::to_string(m_shapes.size()) + " features";
        const auto count_note = [&](int64_t n, const char* what) {
            if (n) m_notes.push_back("'" + m_path + "': " + std::to_string(n) + what);
        };
        count_note(without_class, " features have no class and are left out");
        count_note(without_geometry, " features have no geometry and are left out");
        count_note(not_placed, " features cannot be reprojected and are left out");
        if (m_shapes.empty())
            throw Error("'" + m_path + "' has no feature that can be used",
                        "Layer: " + std::string(layer.GetName()) + "; fields: " + field_list(definition) +
                            ".");
    }

    /// Classes from names: numbers when all of them are, else 1, 2 ... in alphabetical order.
    void number_classes(const std::vector<std::string>& texts) {
        bool numbers = true;
        for (const auto& t : texts)
            numbers = numbers && t.size() <= 5 && t.find_first_not_of("0123456789") == std::string::npos;
        if (numbers) {
            for (size_t i = 0; i < texts.size(); ++i)
                m_shapes[i].value = class_of(std::atof(texts[i].c_str()), m_path);
            return;
        }
        std::map<std::string, int> value;
        for (const auto& t : texts)
            value[t] = 0;
        if (value.size() > static_cast<size_t>(max_class))
            throw Error("'" + m_path + "': " + std::to_string(value.size()) +
                        " different class names are too many");
        for (auto& [name, v] : value) {
            LabelClass one;
            one.value = v = static_cast<int>(m_legend.size()) + 1;
            one.name = name;
            m_legend.push_back(std::move(one));
        }
        for (size_t i = 0; i < texts.size(); ++i)
            m_shapes[i].value = static_cast<uint16_t>(value[texts[i]]);
    }

    void name_classes(const std::map<int, std::set<std::string>>& names) {
        for (const auto& [value, all] : names) {
            LabelClass one;
            one.value = value;
            one.name = *all.begin();
            if (all.size() > 1)
                m_notes.push_back("'" + m_path + "': class " + std::to_string(value) + " has " +
                                  std::to_string(all.size()) + " names; '" + one.name + "' is taken");
            m_legend.push_back(std::move(one));
        }
    }

    /// Fills m_strip with the lines [first, first + strip_lines) of the scene.
    void burn(int64_t first) {
        if (first == m_burned) return;
        m_burned = -1;
        m_strip.assign(static_cast<size_t>(strip_lines * m_grid.samples), 0);
        GeoTransform gt = *m_grid.geotransform;
        gt[0] += gt[2] * static_cast<double>(first);
        gt[3] += gt[5] * static_cast<double>(first);
        OGREnvelope box;
        for (const double x : {-1.0, static_cast<double>(m_grid.samples) + 1})
            for (const double y : {-1.0, static_cast<double>(strip_lines) + 1})
                box.Merge(gt[0] + gt[1] * x + gt[2] * y, gt[3] + gt[4] * x + gt[5] * y);
        std::vector<OGRGeometryH> shapes;
        std::vector<double> values;
        for (const auto& s : m_shapes)
            if (s.envelope.Intersects(box)) {
                shapes.push_back(OGRGeometry::ToHandle(s.geometry.get()));
                values.push_back(s.value);
            }
        if (!shapes.empty()) {
            GdalErrors errors;
            GDALDriver* memory = GetGDALDriverManager()->GetDriverByName("MEM");
            Dataset target(memory ? memory->Create("", static_cast<int>(m_grid.samples),
                                                   static_cast<int>(strip_lines), 0, GDT_UInt16, nullptr)
                                  : nullptr);
            char pointer[64];
            pointer[CPLPrintPointer(pointer, m_strip.data(), sizeof pointer - 1)] = 0;
            CPLStringList band;
            band.SetNameValue("DATAPOINTER", pointer);
            if (!target || target->AddBand(GDT_UInt16, band.List()) != CE_None ||
                target->SetGeoTransform(gt.data()) != CE_None)
                throw Error("no memory raster to burn '" + m_path + "' into: " + errors.text());
            CPLStringList options;
            if (m_all_touched) options.SetNameValue("ALL_TOUCHED", "TRUE");
            int number = 1;
            const CPLErr status = GDALRasterizeGeometries(
                GDALDataset::ToHandle(target.get()), 1, &number, static_cast<int>(shapes.size()),
                shapes.data(), nullptr, nullptr, values.data(), options.List(), nullptr, nullptr);
            target->FlushCache();
            if (status != CE_None) throw Error("'" + m_path + "' cannot be burned: " + errors.text());
        }
        m_burned = first;
    }

    std::vector<OneShape> m_shapes; ///< in the scene's SRS
    bool m_all_touched = false;
    std::vector<uint16_t> m_strip;
    int64_t m_burned = -1;
};

} // namespace

Grid grid_of(const RasterSource& source) {
    Grid grid;
    grid.samples = source.shape().samples;
    grid.lines = source.shape().lines;
    double gt[6];
    if (source.geotransform(gt)) {
        grid.geotransform.emplace();
        std::copy_n(gt, 6, grid.geotransform->begin());
    }
    grid.srs_wkt = source.srs_wkt();
    return grid;
}

std::unique_ptr<LabelSource> LabelSource::open(const LabelOptions& options, const Grid* grid) {
    register_drivers();
    GdalErrors errors;
    CPLStringList open_options;
    for (const auto& o : options.open_options)
        open_options.AddString(o.c_str());
    Dataset dataset(GDALDataset::FromHandle(GDALOpenEx(
        options.path.c_str(), GDAL_OF_RASTER | GDAL_OF_VECTOR | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
        nullptr, open_options.List(), nullptr)));
    if (!dataset)
        throw Error("cannot open '" + options.path + "': " + errors.text(),
                    "Labels are any raster or vector file that GDAL opens.");
    const bool vector_wanted = !options.field.empty() || !options.layer.empty();
    if (dataset->GetRasterCount() > 0 && !(vector_wanted && dataset->GetLayerCount() > 0)) {
        if (vector_wanted)
            throw Error("'" + options.path + "' is a raster: it has no fields or layers",
                        "Leave out -field and -layer.");
        return std::make_unique<RasterLabels>(std::move(dataset), options, grid);
    }
    if (dataset->GetLayerCount() == 0)
        throw Error("'" + options.path + "' has neither a band nor a layer",
                    "Labels are any raster or vector file that GDAL opens.");
    return std::make_unique<VectorLabels>(std::move(dataset), options, grid);
}

LabelledPixels collect_labels(LabelSource& source) {
    LabelledPixels all;
    all.grid = source.grid();
    const int64_t samples = all.grid.samples;
    std::vector<int64_t> count(static_cast<size_t>(max_class) + 1);
    std::vector<uint16_t> strip(static_cast<size_t>(strip_lines * samples));
    for (int64_t y = 0; y < all.grid.lines; y += strip_lines) {
        const int64_t n = std::min(strip_lines, all.grid.lines - y);
        source.read(y, n, strip.data());
        for (int64_t i = 0; i < n * samples; ++i)
            if (const uint16_t v = strip[static_cast<size_t>(i)]; v != 0) {
                all.index.push_back(y * samples + i);
                all.value.push_back(v);
                ++count[v];
            }
    }
    if (all.index.empty())
        throw Error("'" + source.path() + "': no labelled pixel inside the scene",
                    "Do both lie in the same place? Compare their extents with gdalinfo and ogrinfo.");
    for (int v = 1; v <= max_class; ++v) {
        if (count[static_cast<size_t>(v)] == 0) continue;
        LabelClass one;
        for (const auto& known : source.legend())
            if (known.value == v) one = known;
        one.value = v;
        one.pixels = count[static_cast<size_t>(v)];
        all.classes.push_back(std::move(one));
    }
    return all;
}

Colour default_colour(int value) {
    // Hues a golden section apart; saturation and brightness alternate, so that near hues still differ.
    const double hue = std::fmod(0.11 + 0.6180339887498949 * value, 1.0) * 6;
    const double saturation = value % 2 ? 0.85 : 0.6, brightness = value % 3 == 2 ? 0.7 : 0.95;
    Colour colour{0, 0, 0, 255};
    for (size_t k = 0; k < 3; ++k) {
        const double t = std::fmod(hue + (k == 0 ? 5.0 : k == 1 ? 3.0 : 1.0), 6.0);
        const double part = brightness - brightness * saturation * std::clamp(std::min(t, 4 - t), 0.0, 1.0);
        colour[k] = static_cast<uint8_t>(std::lround(255 * part));
    }
    return colour;
}

void describe_class_map(const std::vector<LabelClass>& classes, OutputOptions& options, OutputSpec& spec) {
    int largest = 0;
    for (const auto& c : classes)
        largest = std::max(largest, c.value);
    spec.type = largest <= 255 ? "Byte" : "UInt16";
    spec.shape.bands = 1;
    spec.categories.assign(static_cast<size_t>(largest) + 1, std::string());
    spec.colours.assign(static_cast<size_t>(largest) + 1, Colour{0, 0, 0, 0});
    spec.categories[0] = "Unclassified";
    for (const auto& c : classes) {
        const auto v = static_cast<size_t>(c.value);
        spec.categories[v] = c.name.empty() ? std::to_string(c.value) : c.name;
        spec.colours[v] = c.colour.value_or(default_colour(c.value));
    }
    spec.holes = true;
    if (!options.nodata) options.nodata = 0;
}

} // namespace hsi::raster
