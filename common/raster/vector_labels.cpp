// SPDX-License-Identifier: MIT
// Labels from a vector file: its layer, its class field and names, and its features burned strip by strip.
#include "core/counted.h"
#include "core/error.h"
#include "core/utf8.h"
#include "raster/gdal_errors.h"
#include "raster/labels_impl.h"

#include <cpl_string.h>
#include <gdal_alg.h>
#include <gdal_priv.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

bool equal_nocase(const std::string& a, const std::string& b) { return EQUAL(a.c_str(), b.c_str()); }

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

/// What GDAL burns: it passes over curves and surfaces without a word.
std::unique_ptr<OGRGeometry> burnable(std::unique_ptr<OGRGeometry> geometry) {
    if (geometry->hasCurveGeometry()) geometry.reset(geometry->getLinearGeometry());
    const auto type = wkbFlatten(geometry->getGeometryType());
    if (OGR_GT_IsSubClassOf(type, wkbPolyhedralSurface) || type == wkbTriangle)
        geometry.reset(OGRGeometryFactory::forceToMultiPolygon(geometry.release()));
    return geometry;
}

struct OneShape {
    std::unique_ptr<OGRGeometry> geometry;
    OGREnvelope envelope;
    uint16_t value = 0;
};

class VectorLabels final : public LabelSource {
  public:
    VectorLabels(DatasetHandle dataset, const LabelOptions& options, const Grid* grid) {
        m_path = options.path;
        m_all_touched = options.all_touched;
        if (!grid)
            throw Error("'" + m_path + "' is a vector file and has no pixels of its own",
                        "Name the raster whose pixels are meant (-like).");
        if (!grid->geotransform)
            throw Error(grid->owner + " has no georeference: the features of '" + m_path +
                            "' cannot be placed on it",
                        "Georeference it (gdal_translate -a_srs -a_ullr), or give labels as a raster.");
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
    OGRLayer& choose_layer(GDALDataset& dataset, const LabelOptions& options) {
        if (!options.layer.empty()) {
            OGRLayer* layer = dataset.GetLayerByName(options.layer.c_str());
            if (layer) return *layer;
            std::string names;
            for (int i = 0; i < dataset.GetLayerCount(); ++i)
                names += (i ? ", " : "") + std::string(dataset.GetLayer(i)->GetName());
            throw Error("'" + m_path + "' has no layer '" + options.layer + "'",
                        "Its layers: " + names + ".");
        }
        OGRLayer *first = nullptr, *chosen = nullptr;
        std::string others;
        for (int i = 0; i < dataset.GetLayerCount(); ++i) {
            OGRLayer* layer = dataset.GetLayer(i);
            if (layer->GetGeomType() == wkbNone) continue;
            if (!first) first = layer;
            if (!options.mask && !options.field.empty() &&
                find_field(*layer->GetLayerDefn(), options.field) < 0)
                continue;
            if (!chosen)
                chosen = layer;
            else
                others += (others.empty() ? "" : ", ") + std::string(layer->GetName());
        }
        if (!first) throw Error("'" + m_path + "' has no layer with geometries");
        if (!others.empty())
            m_notes.push_back("'" + m_path + "': the layer " + chosen->GetName() + " is taken; there are " +
                              "others: " + others);
        return chosen ? *chosen : *first; // class_field() tells what is missing
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
                m_notes.push_back((own.empty() ? "'" + m_path + "'" : m_grid.owner) +
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
                text = utf8_text(feature->GetFieldAsString(field));
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
                    names[shape.value].insert(utf8_text(feature->GetFieldAsString(name_field)));
            }
            geometry = burnable(std::move(geometry));
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
        m_description += ", " + counted(m_shapes.size(), "feature");
        const auto count_note = [&](int64_t n, const char* one, const char* many) {
            if (n) m_notes.push_back("'" + m_path + "': " + counted(n, one, many) + " left out");
        };
        count_note(without_class, "feature has no class and is", "features have no class and are");
        count_note(without_geometry, "feature has no geometry and is", "features have no geometry and are");
        count_note(not_placed, "feature cannot be reprojected and is",
                   "features cannot be reprojected and are");
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
            DatasetHandle target(memory
                                     ? memory->Create("", static_cast<int>(m_grid.samples),
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

std::unique_ptr<LabelSource> make_vector_labels(DatasetHandle dataset, const LabelOptions& options,
                                                const Grid* grid) {
    return std::make_unique<VectorLabels>(std::move(dataset), options, grid);
}

} // namespace hsi::raster
