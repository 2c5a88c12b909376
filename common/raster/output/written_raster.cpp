// SPDX-License-Identifier: MIT
#include "raster/output/written_raster.h"

#include "core/counted.h"
#include "core/text.h"
#include "raster/gdal/unknown_srs.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/output/creation_options.h"

#include <cpl_conv.h>
#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal_priv.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

namespace hsi::raster {

bool same_place(const double (&wanted)[6], const double (&found)[6], int64_t samples, int64_t lines,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs) {
    constexpr double tolerance = 0.1;
    double to_pixels[6];
    if (!GDALInvGeoTransform(const_cast<double*>(wanted), to_pixels))
        return true; // the expected geotransform is not invertible
    std::unique_ptr<OGRCoordinateTransformation> turned;
    constexpr const char* alike[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES",
                                     "CRITERION=EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS", nullptr};
    if (srs != nullptr && found_srs != nullptr && !srs->IsSame(found_srs, alike)) {
        turned.reset(OGRCreateCoordinateTransformation(found_srs, srs));
        if (!turned) return false;
    }
    // PROJ does not apply a datum shift if only one of two otherwise equal SRS has one. Therefore both SRS
    // are transformed to WGS 84, the target of the shift.
    std::unique_ptr<OGRCoordinateTransformation> there, back;
    double shift[7], found_shift[7];
    if (turned && srs->GetTOWGS84(shift) == OGRERR_NONE &&
        !(found_srs->GetTOWGS84(found_shift) == OGRERR_NONE && std::equal(shift, shift + 7, found_shift))) {
        OGRSpatialReference wgs84;
        wgs84.SetWellKnownGeogCS("WGS84");
        wgs84.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
        there.reset(OGRCreateCoordinateTransformation(found_srs, &wgs84));
        back.reset(OGRCreateCoordinateTransformation(&wgs84, srs));
        if (!there || !back) return false;
    }
    for (const double right : {0.0, 1.0})
        for (const double down : {0.0, 1.0}) {
            const double sample = right * static_cast<double>(samples),
                         line = down * static_cast<double>(lines);
            double x = 0, y = 0, back_x = 0, back_y = 0;
            GDALApplyGeoTransform(const_cast<double*>(found), sample, line, &x, &y);
            if (there ? !there->Transform(1, &x, &y) || !back->Transform(1, &x, &y)
                      : turned && !turned->Transform(1, &x, &y))
                return false;
            GDALApplyGeoTransform(to_pixels, x, y, &back_x, &back_y);
            // The condition is negated so that NaN counts as different.
            if (!(std::fabs(back_x - sample) < tolerance && std::fabs(back_y - line) < tolerance))
                return false;
        }
    return true;
}

WrittenRaster::WrittenRaster(const std::string& path) {
    const GdalErrors errors;
    const auto open = [](const char* name) {
        return DatasetHandle(GDALDataset::FromHandle(GDALOpenEx(
            name, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR, nullptr, nullptr, nullptr)));
    };
    DatasetHandle whole = open(path.c_str());
    m_reason = errors.text("it does not open");
    if (!whole) return;
    if (whole->GetRasterCount() > 0) {
        m_parts.push_back(std::move(whole));
        return;
    }
    // The format stores each band as an array. Other arrays, such as coordinates, are skipped.
    const CPLStringList items(CSLDuplicate(whole->GetMetadata("SUBDATASETS")));
    for (int b = 1;; ++b) {
        const std::string ending = "Band" + std::to_string(b);
        DatasetHandle part;
        for (int i = 0; i < items.size() && !part; ++i) {
            const std::string item = items[i];
            const size_t equals = item.find("_NAME=");
            if (equals == std::string::npos || item.size() <= ending.size() ||
                item.compare(item.size() - ending.size(), ending.size(), ending) != 0 ||
                std::isalnum(static_cast<unsigned char>(item[item.size() - ending.size() - 1])))
                continue;
            part = open(item.c_str() + equals + 6);
        }
        if (!part) return;
        m_parts.push_back(std::move(part));
    }
}

std::string WrittenRaster::fault(const stream::CubeShape& shape, GDALDataType type) const {
    if (m_parts.empty()) return "it does not open: " + m_reason;
    const int bands =
        m_parts.size() == 1 ? m_parts.front()->GetRasterCount() : static_cast<int>(m_parts.size());
    if (bands != shape.bands) return "it has " + counted(bands, "band");
    for (const DatasetHandle& part : m_parts)
        if (part->GetRasterXSize() != shape.samples || part->GetRasterYSize() != shape.lines)
            return "it has " + std::to_string(part->GetRasterXSize()) + "x" +
                   std::to_string(part->GetRasterYSize()) + " pixels";
    for (int b = 0; b < bands; ++b) {
        const GDALDataType got = band(b)->GetRasterDataType();
        // A format with few types may store a wider type than requested.
        if (GDALDataTypeUnion(type, got) != got)
            return "its type is " + std::string(GDALGetDataTypeName(got));
    }
    return {};
}

bool WrittenRaster::lacks_blocks() const {
    GDALDataset& whole = *m_parts.front();
    if (!EQUAL(whole.GetDriverName(), "GTiff")) return false;
    const char* const interleave = whole.GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    const int planes = interleave != nullptr && EQUAL(interleave, "PIXEL") ? 1 : whole.GetRasterCount();
    for (int b = 1; b <= planes; ++b) {
        GDALRasterBand& plane = *whole.GetRasterBand(b);
        int w = 0, h = 0;
        plane.GetBlockSize(&w, &h);
        for (int y = 0; y * int64_t{h} < plane.GetYSize(); ++y)
            for (int x = 0; x * int64_t{w} < plane.GetXSize(); ++x)
                if (!plane.GetMetadataItem(CPLSPrintf("BLOCK_OFFSET_%d_%d", x, y), "TIFF")) return true;
    }
    return false;
}

std::optional<NodataValue> WrittenRaster::number_for_nodata() const {
    auto found = nodata_of(*band(0));
    if (found && std::isnan(found->as_double())) found.reset();
    return found;
}

bool WrittenRaster::keeps(const NodataValue& nodata) const {
    const int bands =
        m_parts.size() == 1 ? m_parts.front()->GetRasterCount() : static_cast<int>(m_parts.size());
    for (int b = 0; b < bands; ++b) {
        const auto found = nodata_of(*band(b));
        const GDALDataType type = band(b)->GetRasterDataType();
        if (!found || !(match_in_type(*found, sample_type(type)) == match_in_type(nodata, sample_type(type))))
            return false;
    }
    return true;
}

namespace {

/// Returns whether the geotransform places the ground control points within two pixels of their positions.
/// Some formats convert control points to a geotransform, or the reverse. The netCDF driver numbers the
/// pixels if a file has neither.
bool follows(const double (&gt)[6], const SceneMetadata& scene) {
    const double near = 2 * std::max(std::hypot(gt[1], gt[4]), std::hypot(gt[2], gt[5]));
    return std::all_of(scene.gcps.begin(), scene.gcps.end(), [&](const GroundControlPoint& p) {
        const double x = p.pixel - static_cast<double>(scene.window.x),
                     y = p.line - static_cast<double>(scene.window.y);
        return std::fabs(gt[0] + gt[1] * x + gt[2] * y - p.x) <= near &&
               std::fabs(gt[3] + gt[4] * x + gt[5] * y - p.y) <= near;
    });
}

/// Local SRS with equal units differ only in their names, which IsSame() ignores.
bool another_local_srs(const OGRSpatialReference& wanted, const OGRSpatialReference& found) {
    return wanted.IsLocal() != 0 && (wanted.GetName() == nullptr || found.GetName() == nullptr ||
                                     !EQUAL(wanted.GetName(), found.GetName()));
}

} // namespace

std::string WrittenRaster::lost_place(const SceneMetadata& scene) const {
    GDALDataset& file = *m_parts.front();
    const GdalErrors quiet;
    double wanted[6], found[6];
    const bool placed = file.GetGeoTransform(found) == CE_None;
    if (!scene.window_geotransform(wanted)) {
        if (!scene.gcps.empty())
            return file.GetGCPCount() > 0 || (placed && follows(found, scene)) ? ""
                                                                               : "the ground control points";
        return scene.domains.count("RPC") > 0 && file.GetMetadata("RPC") == nullptr
                   ? "the rational polynomial coefficients (RPC)"
                   : "";
    }
    const OGRSpatialReference* const srs = file.GetSpatialRef();
    const bool unknown = scene.srs && (srs == nullptr || srs->IsEmpty() || stands_for_none(*srs) ||
                                       another_local_srs(*scene.srs, *srs));
    if (!placed) return unknown || !scene.srs ? "the georeference" : "the geotransform";
    if (!same_place(wanted, found, file.GetRasterXSize(), file.GetRasterYSize(),
                    unknown ? nullptr : scene.srs.get(), srs))
        return unknown ? "the georeference" : "the position of its pixels";
    return unknown ? "the SRS" : "";
}

namespace {

/// Returns true for items that describe the storage of a file, or that drivers write into each file.
bool made_by_drivers(const std::string& key) {
    return key == "AREA_OR_POINT" || starts_with(upper(key), "STATISTICS_") || starts_with(key, "NETCDF_") ||
           key == source_band_item || (key.find('#') != std::string::npos && !starts_with(key, "NC_GLOBAL#"));
}

/// Returns true for items about wavelengths and other band properties, whose meaning is compared instead of
/// their text.
bool is_spectral(const std::string& key) {
    return is_any(key, "wavelength wavelengths wavelength_units wavelength_unit fwhm bbl band_names "
                       "CENTRAL_WAVELENGTH_UM FWHM_UM");
}

/// Returns the items of `wanted` that `found` does not contain, ignoring the case of keys. In netCDF files,
/// keys begin with "NC_GLOBAL#".
std::vector<std::string> missing_items(const std::vector<std::string>& wanted,
                                       const std::vector<std::string>& found) {
    std::vector<std::string> out;
    for (const std::string& item : wanted) {
        const std::string key = item_key(item), value(trimmed(item_value(item)));
        const auto same = [&](const std::string& other) {
            const std::string other_key = item_key(other);
            return (EQUAL(other_key.c_str(), key.c_str()) ||
                    EQUAL(other_key.c_str(), ("NC_GLOBAL#" + key).c_str())) &&
                   trimmed(item_value(other)) == value;
        };
        if (!made_by_drivers(key) && !is_spectral(key) && std::none_of(found.begin(), found.end(), same))
            out.push_back(item);
    }
    return out;
}

std::map<std::string, std::vector<std::string>> missing_items(const MetadataDomains& wanted,
                                                              const MetadataDomains& found) {
    std::map<std::string, std::vector<std::string>> out;
    for (const auto& [domain, items] : wanted) {
        if (starts_with(lower(domain), "xml:") || domain == "ENVI") continue;
        const auto at = found.find(domain);
        auto missing = missing_items(items, at == found.end() ? std::vector<std::string>() : at->second);
        if (!missing.empty()) out[domain] = std::move(missing);
    }
    return out;
}

/// Returns true for a description that only contains the file name, as GDAL writes it into each header.
bool is_file_name(const EnviField& field) {
    const auto list = envi_list(field.value);
    return field.key == "description" && list.size() == 1 && list[0].find(' ') == std::string::npos;
}

/// Returns the fields of the ENVI header that the output does not contain. Fields about bands are compared
/// elsewhere.
std::vector<EnviField> missing_fields(const SceneMetadata& wanted, const SceneMetadata& found) {
    std::vector<EnviField> out;
    for (const EnviField& field : wanted.envi.fields()) {
        // Fields of the bands are compared band by band.
        if (is_any(envi_key(field.key), "wavelength fwhm bbl") || envi_key(field.key) == "wavelength units" ||
            envi_key(field.key) == "band names" || envi_key(field.key) == "data gain values" ||
            envi_key(field.key) == "data offset values" || is_file_name(field))
            continue;
        const std::string* const there = found.envi.find(field.key);
        if (there == nullptr || trimmed(*there) != trimmed(field.value)) out.push_back(field);
    }
    return out;
}

bool same_number(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::fabs(a - b) <= 1e-6 * std::max(std::fabs(a), std::fabs(b));
}

bool same_colours(const BandMetadata& wanted, const BandMetadata& found) {
    if (!wanted.colours) return true;
    for (int i = 0; i < wanted.colours->GetColorEntryCount(); ++i) {
        const GDALColorEntry& a = *wanted.colours->GetColorEntry(i);
        // Black also stands for values without a class.
        const bool black = a.c1 == 0 && a.c2 == 0 && a.c3 == 0;
        if (!found.colours || i >= found.colours->GetColorEntryCount()) {
            if (!black) return false;
            continue;
        }
        const GDALColorEntry& b = *found.colours->GetColorEntry(i);
        if (a.c1 != b.c1 || a.c2 != b.c2 || a.c3 != b.c3) return false;
    }
    return true;
}

bool same_classes(const BandMetadata& wanted, const BandMetadata& found, bool envi) {
    if (wanted.categories.size() > found.categories.size()) return false;
    for (size_t k = 0; k < wanted.categories.size(); ++k) {
        const auto held = [&](const std::string& name) {
            return std::string(trimmed(envi ? envi_name(name) : name));
        };
        if (held(found.categories[k]) != held(wanted.categories[k])) return false;
    }
    return true;
}

/// `number` is the band number, from 1. "Band NUMBER" counts as a missing name, because drivers write it for
/// bands without a name.
bool same_name(const BandMetadata& wanted, const BandMetadata& found, size_t number, bool envi) {
    const std::string name = plain_band_name(wanted);
    return name.empty() || name == "Band " + std::to_string(number) ||
           trimmed(plain_band_name(found)) == trimmed(envi ? envi_name(name) : name);
}

} // namespace

SceneMetadata WrittenRaster::found() const {
    SceneMetadata scene = read_metadata(*m_parts.front());
    for (size_t k = 1; k < m_parts.size(); ++k)
        scene.bands.push_back(read_metadata(*m_parts[k]).bands.front());
    return scene;
}

std::vector<std::string> WrittenRaster::lost(const SceneMetadata& wanted) const {
    const GdalErrors quiet;
    const SceneMetadata got = found();
    const bool envi = got.driver == "ENVI";
    std::vector<std::string> out;
    const auto any = [&](const char* what, const auto& kept) {
        for (size_t k = 0; k < std::min(wanted.bands.size(), got.bands.size()); ++k)
            if (!kept(wanted.bands[k], got.bands[k], k + 1)) return out.emplace_back(what), void();
    };
    using Band = const BandMetadata&;
    any("the wavelengths", [](Band a, Band b, size_t) {
        return std::isnan(a.wavelength_nm) || same_number(a.wavelength_nm, b.wavelength_nm);
    });
    any("the bands' widths (fwhm)",
        [](Band a, Band b, size_t) { return std::isnan(a.fwhm_nm) || same_number(a.fwhm_nm, b.fwhm_nm); });
    any("the bad-band list", [](Band a, Band b, size_t) { return a.bad() == b.bad(); });
    any("the bands' numbers in their source",
        [](Band a, Band b, size_t) { return a.source_band == b.source_band; });
    any("the band names", [&](Band a, Band b, size_t number) { return same_name(a, b, number, envi); });
    any("scale and offset", [](Band a, Band b, size_t) {
        return same_number(a.scale.value_or(1), b.scale.value_or(1)) &&
               same_number(a.offset.value_or(0), b.offset.value_or(0));
    });
    any("the unit", [](Band a, Band b, size_t) { return a.unit.empty() || a.unit == b.unit; });
    any("the class names", [&](Band a, Band b, size_t) { return same_classes(a, b, envi); });
    any("the colours", [](Band a, Band b, size_t) { return same_colours(a, b); });
    std::vector<std::string> keys; // keys of the scene, then of its bands, without duplicates
    const auto add = [&](const std::string& key) {
        if (std::find(keys.begin(), keys.end(), "'" + key + "'") == keys.end())
            keys.push_back("'" + key + "'");
    };
    for (const EnviField& field : missing_fields(wanted, got))
        add(field.key);
    const auto add_items = [&](const MetadataDomains& a, const MetadataDomains& b) {
        for (const auto& [domain, items] : missing_items(a, b))
            for (const std::string& item : items)
                if (domain != "RPC") add(item_key(item));
    };
    add_items(wanted.domains, got.domains);
    for (size_t k = 0; k < std::min(wanted.bands.size(), got.bands.size()); ++k)
        add_items(wanted.bands[k].domains, got.bands[k].domains);
    constexpr size_t most = 5;
    if (keys.size() > most + 1) {
        const size_t more = keys.size() - most;
        keys.resize(most);
        keys.push_back(counted(static_cast<int64_t>(more), "other item"));
    }
    out.insert(out.end(), keys.begin(), keys.end());
    return out;
}

namespace {

CPLXMLNode* element(CPLXMLNode* parent, const char* name, const char* attribute, const std::string& value) {
    for (CPLXMLNode* at = parent->psChild; at != nullptr; at = at->psNext)
        if (at->eType == CXT_Element && EQUAL(at->pszValue, name) &&
            value == CPLGetXMLValue(at, attribute, ""))
            return at;
    CPLXMLNode* const made = CPLCreateXMLNode(parent, CXT_Element, name);
    if (!value.empty()) CPLAddXMLAttributeAndValue(made, attribute, value.c_str());
    return made;
}

void put_items(CPLXMLNode* object, const std::string& domain, const std::vector<std::string>& items) {
    if (items.empty()) return;
    CPLXMLNode* const all = element(object, "Metadata", "domain", domain);
    for (const std::string& item : items) {
        CPLXMLNode* const entry = element(all, "MDI", "key", item_key(item));
        for (CPLXMLNode* at = entry->psChild; at != nullptr; at = at->psNext)
            if (at->eType == CXT_Text) {
                CPLRemoveXMLChild(entry, at);
                CPLDestroyXMLNode(at);
                break;
            }
        CPLCreateXMLNode(entry, CXT_Text, item_value(item).c_str());
    }
}

CPLXMLNode* emptied(CPLXMLNode* parent, const char* name) {
    if (CPLXMLNode* const old = CPLGetXMLNode(parent, name)) {
        CPLRemoveXMLChild(parent, old);
        CPLDestroyXMLNode(old);
    }
    return CPLCreateXMLNode(parent, CXT_Element, name);
}

/// Adds the facts about band `k` that are missing in the file to the node `to`. `a` is the wanted metadata of
/// the band, and `b` is the metadata in the file.
void put_band(CPLXMLNode* to, const BandMetadata& a, const BandMetadata& b, const SpectralTexts& spectra,
              size_t k, bool envi) {
    std::vector<std::string> items;
    const bool wavelength = !std::isnan(a.wavelength_nm) && !same_number(a.wavelength_nm, b.wavelength_nm),
               width = !std::isnan(a.fwhm_nm) && !same_number(a.fwhm_nm, b.fwhm_nm);
    if (!envi && (wavelength || width)) {
        items.push_back("wavelength=" + spectra.wavelength[k]);
        if (!spectra.units.empty()) items.push_back("wavelength_units=" + spectra.units);
        if (width) items.push_back("fwhm=" + spectra.fwhm[k]);
    }
    if (!envi && a.bad() != b.bad()) items.push_back("bbl=" + (a.bbl.empty() ? "1" : a.bbl));
    if (!envi && a.source_band != b.source_band)
        items.push_back(std::string(source_band_item) + "=" + std::to_string(a.source_band));
    put_items(to, "", items);
    for (const auto& [domain, missing] : missing_items(a.domains, b.domains))
        put_items(to, domain, missing);
    const auto set = [&](const char* name, const std::string& text) {
        CPLSetXMLValue(to, name, text.c_str());
    };
    if (!same_name(a, b, k + 1, envi)) set("Description", plain_band_name(a));
    if (!same_number(a.scale.value_or(1), b.scale.value_or(1)))
        set("Scale", CPLSPrintf("%.17g", a.scale.value_or(1)));
    if (!same_number(a.offset.value_or(0), b.offset.value_or(0)))
        set("Offset", CPLSPrintf("%.17g", a.offset.value_or(0)));
    if (!a.unit.empty() && a.unit != b.unit) set("UnitType", a.unit);
    if (!same_classes(a, b, envi)) {
        CPLXMLNode* const names = emptied(to, "CategoryNames");
        for (const std::string& name : a.categories)
            CPLCreateXMLElementAndValue(names, "Category", name.c_str());
    }
    if (!same_colours(a, b)) {
        CPLXMLNode* const table = emptied(to, "ColorTable");
        for (int i = 0; i < a.colours->GetColorEntryCount(); ++i) {
            const GDALColorEntry& c = *a.colours->GetColorEntry(i);
            CPLXMLNode* const entry = CPLCreateXMLNode(table, CXT_Element, "Entry");
            for (const auto& [name, value] :
                 {std::pair("c1", c.c1), {"c2", c.c2}, {"c3", c.c3}, {"c4", c.c4}})
                CPLAddXMLAttributeAndValue(entry, name, std::to_string(value).c_str());
        }
    }
}

} // namespace

std::string WrittenRaster::with_lost(const SceneMetadata& wanted, const std::string& side_file) const {
    const GdalErrors quiet;
    const SceneMetadata got = found();
    const bool envi = got.driver == "ENVI";
    CPLXMLTreeCloser tree(side_file.empty() ? nullptr : CPLParseXMLString(side_file.c_str()));
    CPLXMLNode* root = tree ? CPLGetXMLNode(tree.get(), "=PAMDataset") : nullptr;
    if (root == nullptr) {
        tree.reset(CPLCreateXMLNode(nullptr, CXT_Element, "PAMDataset"));
        root = tree.get();
    }
    for (const auto& [domain, items] : missing_items(wanted.domains, got.domains))
        put_items(root, domain, items);
    std::vector<std::string> fields;
    for (const EnviField& field : missing_fields(wanted, got)) {
        std::string key = field.key;
        std::replace(key.begin(), key.end(), ' ', '_');
        fields.push_back(key + "=" + field.value);
    }
    if (!envi) put_items(root, "ENVI", fields);
    const SpectralTexts spectra = spectral_texts(wanted);
    for (size_t k = 0; k < std::min(wanted.bands.size(), got.bands.size()); ++k) {
        CPLXMLNode* const band = element(root, "PAMRasterBand", "band", std::to_string(k + 1));
        put_band(band, wanted.bands[k], got.bands[k], spectra, k, envi);
        if (band->psChild->psNext != nullptr) continue;
        CPLRemoveXMLChild(root, band); // the node contains only the band number
        CPLDestroyXMLNode(band);
    }
    char* const text = CPLSerializeXMLTree(tree.get());
    std::string out = text ? text : "";
    CPLFree(text);
    return out;
}

GDALRasterBand* WrittenRaster::band(int index) const {
    return m_parts.size() == 1 ? m_parts.front()->GetRasterBand(index + 1)
                               : m_parts[static_cast<size_t>(index)]->GetRasterBand(1);
}

bool close_written(DatasetHandle dataset, bool pixels) {
    bool good = true;
    // Before GDAL 3.7, FlushCache() and GDALClose() do not return a result.
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    good = dataset->FlushCache(true) == CE_None;
#else
    dataset->FlushCache(true);
#endif
    float pixel[2]; // two values, for complex types
    if (pixels && dataset->GetRasterCount() > 0 &&
        dataset->GetRasterBand(1)->RasterIO(GF_Read, 0, 0, 1, 1, pixel, 1, 1, GDT_CFloat32, 0, 0, nullptr) !=
            CE_None)
        good = false;
    // Before GDAL 3.13, files are stdio streams, and GDAL ignores errors when it closes them.
    if (std::fflush(nullptr) != 0) good = false;
#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 7, 0)
    return GDALClose(GDALDataset::ToHandle(dataset.release())) == CE_None && good;
#else
    return good;
#endif
}

} // namespace hsi::raster
