// SPDX-License-Identifier: MIT
#include "raster/metadata/scene_metadata.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/gdal/unknown_srs.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/envi_map_info.h"
#include "raster/metadata/esri_header.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/metadata/virtual_sources.h"
#include "raster/regular_file.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <set>

namespace hsi::raster {

bool BandMetadata::bad() const {
    if (bbl.empty()) return false;
    char* end = nullptr;
    const double v = CPLStrtod(bbl.c_str(), &end);
    // In ENVI headers, 0 means bad and 1 means good. EnMAP-Box also writes words.
    if (end == bbl.c_str()) return EQUAL(bbl.c_str(), "false") || EQUAL(bbl.c_str(), "bad");
    return v == 0;
}

bool SceneMetadata::window_geotransform(double (&gt)[6]) const {
    if (!geotransform) return false;
    std::copy(geotransform->begin(), geotransform->end(), gt);
    const auto x = static_cast<double>(window.x), y = static_cast<double>(window.y);
    gt[0] += x * gt[1] + y * gt[2];
    gt[3] += x * gt[4] + y * gt[5];
    return true;
}

namespace {

/// Returns true for metadata domains that describe the storage of a file, not its content.
bool storage_domain(const std::string& name) {
    static const std::set<std::string> names = {
        "IMAGE_STRUCTURE", "DERIVED_SUBDATASETS", "SUBDATASETS", "COLOR_PROFILE", "TIFF",
        "VRT_SOURCES",     "NEW_VRT_SOURCES",     "XML:VRT",     "ENVI",          "OVERVIEWS"};
    const std::string n = upper(name);
    return names.count(n) > 0 || starts_with(n, "LOCATIONINFO");
}

MetadataDomains read_domains(GDALMajorObject& object, bool with_envi) {
    MetadataDomains out;
    const CPLStringList names(object.GetMetadataDomainList());
    std::vector<std::string> wanted = {""};
    for (int i = 0; i < names.size(); ++i)
        wanted.emplace_back(names[i]);
    // Some drivers do not list these domains, although they can be read.
    for (const char* name : {"ENVI", "RPC", "GEOLOCATION"})
        if (with_envi) wanted.emplace_back(name);
    for (const std::string& name : wanted) {
        if (storage_domain(name) && !(with_envi && name == "ENVI")) continue;
        if (out.count(name)) continue;
        CSLConstList items = object.GetMetadata(name.c_str());
        if (items == nullptr || *items == nullptr) continue;
        auto& list = out[name];
        for (; *items; ++items)
            list.push_back(utf8_text(*items));
    }
    return out;
}

/// Reads the ENVI header file if it exists, because GDAL's driver silently replaces blanks in keys by
/// underscores. Otherwise uses the domain ENVI.
EnviHeader read_envi(GDALDataset& dataset, const MetadataDomains& domains) {
    if (const std::string path = envi_header_of(dataset); !path.empty())
        if (EnviHeader header = read_envi_header(path); !header.fields().empty()) return header;
    EnviHeader header;
    const auto at = domains.find("ENVI");
    if (at != domains.end())
        for (const std::string& item : at->second)
            header.set(envi_key(item_key(item)), item_value(item));
    return header;
}

BandMetadata read_band(GDALRasterBand& band, int number) {
    BandMetadata out;
    out.file_band = number;
    out.type = band.GetRasterDataType();
    if (sample_type(out.type) == SampleType::float16) out.type = GDT_Float32;
    out.interpretation = band.GetColorInterpretation();
    out.description = utf8_text(band.GetDescription());
    int has = 0;
    const double scale = band.GetScale(&has);
    if (has) out.scale = scale;
    const double offset = band.GetOffset(&has);
    if (has) out.offset = offset;
    if (const char* unit = band.GetUnitType()) out.unit = utf8_text(unit);
    if (CSLConstList names = band.GetCategoryNames())
        for (; *names; ++names)
            out.categories.push_back(utf8_text(*names));
    if (const GDALColorTable* table = band.GetColorTable()) out.colours.reset(table->Clone());
    out.nodata = nodata_of(band);
    out.domains = read_domains(band, true);
    return out;
}

std::shared_ptr<const OGRSpatialReference> copy_srs(const OGRSpatialReference* srs) {
    if (srs == nullptr || srs->IsEmpty() || stands_for_none(*srs)) return nullptr;
    return std::shared_ptr<const OGRSpatialReference>(srs->Clone(),
                                                      [](OGRSpatialReference* s) { s->Release(); });
}

/// Restores commas in band names: the header in GDAL's form contains the names without commas.
void restore_band_names(SceneMetadata& scene) {
    const std::string* const text = scene.envi.find("band names");
    const auto names = text ? envi_list(*text) : std::vector<std::string>();
    if (names.size() != scene.bands.size()) return;
    for (size_t k = 0; k < names.size(); ++k) {
        const std::string shown = envi_name(names[k]);
        std::string& found = scene.bands[k].description; // the driver may append the wavelength to the name
        if (shown != names[k] && found.rfind(shown, 0) == 0) found.replace(0, shown.size(), names[k]);
    }
}

} // namespace

std::optional<NodataValue> nodata_of(GDALRasterBand& band) {
    int has = FALSE;
    NodataValue nodata;
    if (band.GetRasterDataType() == GDT_Int64) {
        nodata.kind = SampleType::int64;
        nodata.whole = band.GetNoDataValueAsInt64(&has);
    } else if (band.GetRasterDataType() == GDT_UInt64) {
        nodata.kind = SampleType::uint64;
        nodata.natural = band.GetNoDataValueAsUInt64(&has);
    } else {
        nodata.real = band.GetNoDataValue(&has);
    }
    return has ? std::optional<NodataValue>(nodata) : std::nullopt;
}

std::optional<std::array<double, 6>> geotransform_of(GDALDataset& dataset, const EnviHeader& header) {
    std::array<double, 6> gt{};
    if (dataset.GetGeoTransform(gt.data()) != CE_None) return std::nullopt;
    if (header.find("map info") == nullptr || dataset.GetDriver() == nullptr ||
        !EQUAL(dataset.GetDriver()->GetDescription(), "ENVI"))
        return gt;
    // A map that is neither rotated nor flipped needs no correction.
    if (gt[2] == 0 && gt[4] == 0 && gt[1] > 0 && gt[5] < 0) return gt;
    const auto list = envi_map_info(header).entries;
    std::array<double, 4> at{}; // x and y of the reference pixel (from 1), x and y of its map position
    for (size_t k = 0; k < at.size(); ++k) {
        const auto number = k + 1 < list.size() ? envi_number(list[k + 1]) : std::nullopt;
        if (!number) return gt;
        at[k] = *number;
    }
    gt[0] = at[2] - (at[0] - 1) * gt[1] - (at[1] - 1) * gt[2];
    gt[3] = at[3] - (at[0] - 1) * gt[4] - (at[1] - 1) * gt[5];
    return gt;
}

std::string code_of_srs(const OGRSpatialReference& srs) {
    const auto told = [](const OGRSpatialReference& one) {
        const char* const authority = one.GetAuthorityName(nullptr);
        const char* const code = one.GetAuthorityCode(nullptr);
        return authority != nullptr && code != nullptr ? std::string(authority) + ":" + code : std::string();
    };
    if (std::string code = told(srs); !code.empty()) return code;
    const GdalErrors quiet; // GDAL reports an error if no code is found
    const auto best = [&](int alike) {
        return std::unique_ptr<OGRSpatialReference, void (*)(OGRSpatialReference*)>(
            srs.FindBestMatch(alike, "EPSG", nullptr), [](OGRSpatialReference* s) { s->Release(); });
    };
    // Confidence of PROJ in per cent. `same`: the SRS differs only in names; `perhaps`: the parameters must
    // be compared.
    constexpr int same = 90, perhaps = 50;
    if (const auto found = best(same)) return told(*found);
    const auto found = best(perhaps);
    const char* const axes_apart[] = {"IGNORE_DATA_AXIS_TO_SRS_AXIS_MAPPING=YES", nullptr};
    return found && srs.IsSame(found.get(), axes_apart) != 0 ? told(*found) : std::string();
}

namespace {

/// Removes the scale of a FITS file, because GDAL's driver FITS (3.6) already returns samples times BSCALE
/// plus BZERO, in the type of the stored samples. The driver nevertheless reports both numbers as the scale
/// and offset of the first band.
void drop_applied_scale(SceneMetadata& scene, const std::string& path) {
    for (BandMetadata& b : scene.bands) {
        const bool applied = b.scale.value_or(1) != 1 || b.offset.value_or(0) != 0;
        if (applied && GDALDataTypeIsInteger(b.type))
            throw Error("cannot read '" + path +
                            "': its samples are integers with BSCALE = " + number_text(b.scale.value_or(1)) +
                            " and BZERO = " + number_text(b.offset.value_or(0)) +
                            ", but GDAL's driver FITS rounds the scaled values",
                        "Store the scaled values as floats (astropy).");
        b.scale.reset();
        b.offset.reset();
    }
}

} // namespace

SceneMetadata read_metadata(GDALDataset& dataset, int depth) {
    SceneMetadata scene;
    scene.driver = dataset.GetDriver() ? dataset.GetDriver()->GetDescription() : "";
    scene.file_bands = dataset.GetRasterCount();
    scene.window = Rect{0, 0, dataset.GetRasterXSize(), dataset.GetRasterYSize()};
    scene.srs = copy_srs(dataset.GetSpatialRef());
    const GDAL_GCP* gcps = dataset.GetGCPs();
    for (int i = 0; i < dataset.GetGCPCount(); ++i)
        scene.gcps.push_back({gcps[i].pszId ? gcps[i].pszId : "", gcps[i].pszInfo ? gcps[i].pszInfo : "",
                              gcps[i].dfGCPPixel, gcps[i].dfGCPLine, gcps[i].dfGCPX, gcps[i].dfGCPY,
                              gcps[i].dfGCPZ});
    if (!scene.gcps.empty()) scene.gcp_srs = copy_srs(dataset.GetGCPSpatialRef());
    scene.domains = read_domains(dataset, true);
    // The netCDF driver adds this prefix to items from other formats.
    constexpr const char* foreign = "NC_GLOBAL#GDAL_";
    for (std::string& item : scene.domains[""])
        if (scene.driver == "netCDF" && starts_with(item, foreign)) item.erase(0, std::strlen(foreign));
    scene.envi = read_envi(dataset, scene.domains);
    scene.domains.erase("ENVI");
    EsriFacts esri = read_esri_header(dataset);
    if (!esri.wavelengths.empty()) scene.envi.set("wavelength", envi_list_text(esri.wavelengths));
    if (!esri.wavelength_units.empty()) scene.envi.set("wavelength units", esri.wavelength_units);
    scene.notes = std::move(esri.notes);
    scene.geotransform = geotransform_of(dataset, scene.envi);
    for (int b = 1; b <= scene.file_bands; ++b)
        scene.bands.push_back(read_band(*dataset.GetRasterBand(b), b));
    if (scene.driver == "FITS") drop_applied_scale(scene, dataset.GetDescription());
    if (const auto names = envi_class_names(scene.envi); scene.driver == "ENVI")
        for (BandMetadata& b : scene.bands)
            if (b.categories.size() == names.size()) b.categories = names;
    if (scene.driver == "ENVI") restore_band_names(scene);
    read_spectral(scene);
    if (scene.driver == "VRT") take_from_sources(dataset, scene, depth);
    return scene;
}

bool has_own_scales(const SceneMetadata& scene) {
    return std::any_of(scene.bands.begin(), scene.bands.end(), [](const BandMetadata& b) {
        return b.scale.value_or(1) != 1 || b.offset.value_or(0) != 0;
    });
}

BandScales scales_of(const SceneMetadata& scene, bool own_scales) {
    const auto field = [&](const char* key) {
        const std::string* text = scene.envi.find(key);
        return text ? *text : std::string();
    };
    const auto list = [&](const char* key) {
        auto all = envi_list(field(key));
        if (all.size() != static_cast<size_t>(scene.file_bands)) all.clear();
        return all;
    };
    const auto gains = list("data reflectance gain values"), offsets = list("data reflectance offset values");
    const double divisor = envi_number(field("reflectance scale factor")).value_or(0);
    const std::string unit = field("data units");
    BandScales out;
    for (const BandMetadata& b : scene.bands) {
        double scale = b.scale.value_or(1), offset = b.offset.value_or(0);
        // The scales of all bands come from the same source, because a gain of 1 next to other gains is a
        // stated value and not a missing one.
        if (!own_scales) {
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
        out.any |= scale != 1 || offset != 0;
        out.scale.push_back(scale);
        out.offset.push_back(offset);
        out.unit.push_back(b.unit.empty() ? unit : b.unit);
    }
    return out;
}

std::string upper(std::string s) {
    for (char& c : s)
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return s;
}

std::string lower(std::string s) {
    for (char& c : s)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return s;
}

bool starts_with(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

std::string number_text(double v) { return CPLSPrintf("%.15g", v); }

std::string item_key(const std::string& item) {
    const size_t at = item.find_first_of("=:");
    return at == std::string::npos ? item : item.substr(0, at);
}

std::string item_value(const std::string& item) {
    const size_t at = item.find_first_of("=:");
    return at == std::string::npos ? std::string() : item.substr(at + 1);
}

const std::string* find_item(const std::vector<std::string>& items, const char* key) {
    for (const std::string& item : items)
        if (EQUAL(item_key(item).c_str(), key)) return &item;
    return nullptr;
}

std::string value_of(const MetadataDomains& domains, const char* domain, const char* key) {
    const auto at = domains.find(domain);
    if (at == domains.end()) return {};
    const std::string* item = find_item(at->second, key);
    return item ? item_value(*item) : std::string();
}

void set_item(std::vector<std::string>& items, const std::string& key, const std::string& value) {
    for (std::string& item : items)
        if (EQUAL(item_key(item).c_str(), key.c_str())) {
            item = key + "=" + value;
            return;
        }
    items.push_back(key + "=" + value);
}

CPLStringList to_csl(const std::vector<std::string>& items) {
    CPLStringList list;
    for (const std::string& item : items)
        list.AddString(item.c_str());
    return list;
}

} // namespace hsi::raster
