// SPDX-License-Identifier: MIT
// Copies metadata from the source of an output: georeference, domains and band metadata of the dataset, and
// the fields of an ENVI header or domain.
#include "raster/metadata/envi_header.h"
#include "raster/metadata/envi_map_info.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"

#include <cpl_string.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

/// Returns true for fields that describe the bands of the source.
bool band_field(const std::string& key) {
    static const std::set<std::string> names = {"wavelength",
                                                "wavelength units",
                                                "fwhm",
                                                "bbl",
                                                "band names",
                                                "default bands",
                                                "default stretch",
                                                "data gain values",
                                                "data offset values",
                                                "data reflectance gain values",
                                                "data reflectance offset values",
                                                "reflectance scale factor",
                                                "z plot range",
                                                "z plot average",
                                                "z plot titles",
                                                "data units",
                                                "correction factors",
                                                "band",
                                                source_band_field,
                                                "smoothing factors"};
    return names.count(key) > 0;
}

/// Returns true for fields that describe the storage or the georeference; the driver of the output writes
/// these fields.
bool storage_field(const std::string& key) {
    static const std::set<std::string> names = {"samples",
                                                "lines",
                                                "bands",
                                                "header offset",
                                                "file type",
                                                "file compression",
                                                "data type",
                                                "interleave",
                                                "byte order",
                                                "major frame offsets",
                                                "minor frame offsets",
                                                "map info",
                                                "projection info",
                                                "coordinate system string",
                                                "geo points",
                                                "rpc info",
                                                "data ignore value",
                                                "classes",
                                                "class lookup",
                                                "class names",
                                                quoted_names_field,
                                                "complex function"};
    return names.count(key) > 0;
}

/// Returns a list for ENVI headers, in which 0 replaces missing values, because ENVI lists cannot have empty
/// elements.
std::string gapless_list(std::vector<std::string> texts) {
    for (std::string& t : texts)
        if (t.empty()) t = "0";
    return envi_list_text(texts);
}

/// Returns true for fields that are never lists of bands, even if they have as many elements as the file has
/// bands.
bool scene_list(const std::string& key) {
    static const std::set<std::string> names = {
        "description",   "map info",        "projection info",  "coordinate system string",
        "default bands", "pixel size",      "geo points",       "rpc info",
        "z plot range",  "z plot average",  "z plot titles",    "class lookup",
        "class names",   "default stretch", "x start",          "y start",
        "spectra names", "data units",      "wavelength units", "reflectance scale factor"};
    return names.count(key) > 0;
}

/// Returns the elements of the selected bands, in their order. `list` has one element per band of the file.
std::vector<std::string> cut_list(const std::vector<std::string>& list, const SceneMetadata& scene) {
    std::vector<std::string> out;
    for (const BandMetadata& band : scene.bands)
        out.push_back(list[static_cast<size_t>(band.file_band - 1)]);
    return out;
}

bool statistics_item(const std::string& key) { return starts_with(upper(key), "STATISTICS_"); }

/// Returns true for items such as "Band_7", which GDAL's ENVI driver creates.
bool numbered_band_item(const std::string& key, int bands) {
    if (!starts_with(key, "Band_")) return false;
    const char* digits = key.c_str() + 5;
    if (*digits == 0 || std::strspn(digits, "0123456789") != std::strlen(digits)) return false;
    const long n = std::strtol(digits, nullptr, 10);
    return n >= 1 && n <= bands;
}

bool spectral_item(const std::string& key) {
    const std::string k = lower(key);
    return k == "wavelength" || k == "wavelengths" || k == "wavelength_units" || k == "wavelength_unit" ||
           k == "wavelength units" || k == "fwhm" || k == "bbl" || k == "band_names";
}

/// Returns the metadata items of a dataset that are valid for the output, with lists cut to the selected
/// bands.
std::vector<std::string> inherited_items(const std::vector<std::string>& items, const SceneMetadata& scene,
                                         bool same_bands) {
    std::vector<std::string> out;
    for (const std::string& item : items) {
        const std::string key = item_key(item), value = item_value(item);
        if (numbered_band_item(key, scene.file_bands) || statistics_item(key)) continue;
        if (!same_bands && spectral_item(key)) continue;
        if (is_envi_list(value)) {
            const auto list = envi_list(value);
            const bool by_band = static_cast<int>(list.size()) == scene.file_bands &&
                                 (scene.file_bands > 1 || spectral_item(key)) && !scene_list(envi_key(key));
            if (by_band) {
                if (same_bands) out.push_back(key + "=" + envi_list_text(cut_list(list, scene)));
                continue;
            }
        }
        out.push_back(item);
    }
    return out;
}

void shift_number(std::vector<std::string>& items, const char* key, double by) {
    if (by == 0) return;
    if (const std::string* item = find_item(items, key))
        set_item(items, key, CPLSPrintf("%.15g", CPLAtof(item_value(*item).c_str()) + by));
}

/// The texts and facts about all bands of a scene that write_band() needs.
struct BandTexts {
    explicit BandTexts(const SceneMetadata& scene)
        : spectra(spectral_texts(scene)), numbers(told_band_numbers(scene)), scales(has_own_scales(scene)) {}
    SpectralTexts spectra;
    std::vector<int> numbers; ///< numbers of the bands in the original scene; empty: not written
    bool scales;              ///< the scale of some band differs from 1, or its offset from 0
};

void write_band(const BandMetadata& from, const BandTexts& texts, size_t index, bool envi,
                GDALRasterBand& to) {
    const SpectralTexts& spectra = texts.spectra;
    if (!from.description.empty()) to.SetDescription(from.description.c_str());
    if (texts.scales) set_scale(to, from.scale, from.offset);
    if (!from.unit.empty()) to.SetUnitType(from.unit.c_str());
    if (!from.categories.empty()) {
        CPLStringList names;
        for (const std::string& name : from.categories)
            names.AddString((envi ? envi_name(name) : name).c_str());
        to.SetCategoryNames(names.List());
    }
    if (from.colours) to.SetColorTable(const_cast<GDALColorTable*>(from.colours.get()));
    if (from.interpretation != GCI_Undefined && from.interpretation != GCI_GrayIndex &&
        from.interpretation != GCI_PaletteIndex)
        to.SetColorInterpretation(from.interpretation);

    MetadataDomains domains = from.domains;
    auto& items = domains[""];
    items.erase(std::remove_if(items.begin(), items.end(),
                               [&](const std::string& item) {
                                   const std::string key = item_key(item);
                                   return statistics_item(key) || EQUAL(key.c_str(), source_band_item) ||
                                          (envi && spectral_item(key));
                               }),
                items.end());
    if (!envi) {
        if (!texts.numbers.empty()) set_item(items, source_band_item, std::to_string(texts.numbers[index]));
        if (!spectra.wavelength[index].empty()) {
            set_item(items, "wavelength", spectra.wavelength[index]);
            if (!spectra.units.empty()) set_item(items, "wavelength_units", spectra.units);
        }
        if (!spectra.fwhm[index].empty()) set_item(items, "fwhm", spectra.fwhm[index]);
        if (!from.bbl.empty()) set_item(items, "bbl", from.bbl);
        // The source's items IMAGERY are replaced, because a driver may have made them from other items: from
        // 3.10 on, GDAL's ENVI driver rounds wavelengths to whole nanometres.
        if (!std::isnan(from.wavelength_nm))
            set_item(domains["IMAGERY"], "CENTRAL_WAVELENGTH_UM",
                     micrometres(from.wavelength, from.wavelength_nm, from.wavelength_units));
        if (!std::isnan(from.fwhm_nm))
            set_item(domains["IMAGERY"], "FWHM_UM",
                     micrometres(from.fwhm, from.fwhm_nm, from.wavelength_units));
    }
    for (const auto& [name, list] : domains)
        if (!list.empty()) to.SetMetadata(to_csl(list).List(), name.c_str());
}

} // namespace

void write_metadata(const SceneMetadata& scene, bool same_bands, GDALDataset& to) {
    const bool envi = to.GetDriver() && EQUAL(to.GetDriver()->GetDescription(), "ENVI");
    const auto x = static_cast<double>(scene.window.x), y = static_cast<double>(scene.window.y);
    double gt[6];
    if (scene.srs) to.SetSpatialRef(scene.srs.get());
    if (scene.window_geotransform(gt)) to.SetGeoTransform(gt);
    if (!scene.gcps.empty()) {
        std::vector<GDAL_GCP> gcps;
        for (const GroundControlPoint& p : scene.gcps)
            gcps.push_back({const_cast<char*>(p.id.c_str()), const_cast<char*>(p.info.c_str()), p.pixel - x,
                            p.line - y, p.x, p.y, p.z});
        to.SetGCPs(static_cast<int>(gcps.size()), gcps.data(), scene.gcp_srs.get());
    }
    for (const auto& [name, items] : scene.domains) {
        std::vector<std::string> out;
        if (starts_with(lower(name), "xml:"))
            out = items;
        else
            out = inherited_items(items, scene, same_bands);
        if (name == "RPC") {
            shift_number(out, "LINE_OFF", -y);
            shift_number(out, "SAMP_OFF", -x);
        } else if (name == "GEOLOCATION") {
            shift_number(out, "PIXEL_OFFSET", -x);
            shift_number(out, "LINE_OFFSET", -y);
        } else if (name.empty() && envi) {
            // GDAL's ENVI driver creates these items from the header.
            out.erase(std::remove_if(out.begin(), out.end(),
                                     [](const std::string& item) { return spectral_item(item_key(item)); }),
                      out.end());
        }
        if (!out.empty()) to.SetMetadata(to_csl(out).List(), name.c_str());
    }
    if (!envi) {
        CPLStringList fields;
        const EnviHeader header = inherited_envi_fields(scene, same_bands);
        for (const EnviField& f : header.fields()) {
            std::string key = f.key;
            std::replace(key.begin(), key.end(), ' ', '_');
            fields.SetNameValue(key.c_str(), f.value.c_str());
        }
        if (fields.size() > 0) to.SetMetadata(fields.List(), "ENVI");
    }
    if (same_bands) {
        const BandTexts texts(scene);
        for (size_t k = 0; k < scene.bands.size(); ++k)
            write_band(scene.bands[k], texts, k, envi, *to.GetRasterBand(static_cast<int>(k) + 1));
    }
}

void set_scale(GDALRasterBand& band, std::optional<double> scale, std::optional<double> offset) {
    const GDALDriver* const driver = band.GetDataset() ? band.GetDataset()->GetDriver() : nullptr;
    if (driver != nullptr && EQUAL(driver->GetDescription(), "FITS")) return;
    if (scale) band.SetScale(*scale);
    if (offset) band.SetOffset(*offset);
}

void write_band_metadata(const SceneMetadata& scene, size_t index, GDALRasterBand& to) {
    // `envi` is false also for ENVI outputs: the wavelength becomes an item of the band, because the list in
    // an ENVI header must cover all bands.
    write_band(scene.bands[index], BandTexts(scene), index, false, to);
}

SceneMetadata with_bands(const SceneMetadata& scene, std::vector<BandMetadata> bands) {
    SceneMetadata out = scene;
    for (auto& [name, items] : out.domains)
        if (!starts_with(lower(name), "xml:")) items = inherited_items(items, scene, false);
    for (const EnviField& field : scene.envi.fields()) {
        const std::string key = envi_key(field.key);
        const auto list = envi_list(field.value);
        const bool by_band =
            scene.file_bands > 1 && static_cast<int>(list.size()) == scene.file_bands && !scene_list(key);
        if (band_field(key) || by_band) out.envi.erase(field.key);
    }
    out.file_bands = static_cast<int>(bands.size());
    for (size_t k = 0; k < bands.size(); ++k) {
        bands[k].file_band = static_cast<int>(k) + 1;
        bands[k].source_band = 0;
    }
    out.bands = std::move(bands);
    return out;
}

EnviHeader inherited_envi_fields(const SceneMetadata& scene, bool same_bands) {
    EnviHeader out;
    for (const EnviField& field : scene.envi.fields()) {
        const std::string key = envi_key(field.key);
        if (storage_field(key) || (!same_bands && band_field(key))) continue;
        if (band_field(key) && !scene_list(key) && is_wrong_band_list(scene, field.key)) continue;
        if (key == "x start" || key == "y start") {
            const auto shift = static_cast<double>(key[0] == 'x' ? scene.window.x : scene.window.y);
            out.set(field.key, number_text(CPLAtof(field.value.c_str()) + shift));
            continue;
        }
        const auto list = envi_list(field.value);
        if (key == "default bands") {
            std::vector<std::string> renumbered;
            for (const std::string& text : list)
                for (size_t k = 0; k < scene.bands.size(); ++k)
                    if (scene.bands[k].file_band == std::atoi(text.c_str())) {
                        renumbered.push_back(std::to_string(k + 1));
                        break;
                    }
            if (!list.empty() && renumbered.size() == list.size())
                out.set(field.key, envi_list_text(renumbered));
            continue;
        }
        if (key == source_band_field) continue; // added below if needed
        const bool by_band = !list.empty() && static_cast<int>(list.size()) == scene.file_bands &&
                             !scene_list(key) && (scene.file_bands > 1 || band_field(key));
        if (!by_band)
            out.set(field.key, field.value);
        else if (same_bands)
            out.set(field.key, envi_list_text(cut_list(list, scene)));
    }
    if (same_bands && !scene.bands.empty()) {
        const SpectralTexts spectra = spectral_texts(scene);
        if (spectra.known) {
            out.set("wavelength", gapless_list(spectra.wavelength));
            if (!spectra.units.empty()) out.set("wavelength units", spectra.units);
        }
        if (spectra.widths) out.set("fwhm", gapless_list(spectra.fwhm));
        if (const auto numbers = told_band_numbers(scene); !numbers.empty()) {
            std::vector<std::string> texts;
            for (const int number : numbers)
                texts.push_back(std::to_string(number));
            out.set(source_band_field, envi_list_text(texts));
        }
        std::vector<std::string> bbl;
        bool any = false;
        for (const BandMetadata& b : scene.bands) {
            any |= !b.bbl.empty();
            bbl.push_back(b.bad() ? "0" : b.bbl.empty() ? "1" : b.bbl);
        }
        if (any) out.set("bbl", envi_list_text(bbl));
    }
    return out;
}

std::string finish_envi_header(const std::string& written, const SceneMetadata& scene, bool same_bands) {
    EnviHeader header = EnviHeader::parse(written);
    const EnviHeader inherited = inherited_envi_fields(scene, same_bands);
    for (const EnviField& f : inherited.fields()) {
        const std::string key = envi_key(f.key);
        // GDAL's ENVI driver has already written these fields from the metadata of the bands.
        if (key == "band names" || key == "data gain values" || key == "data offset values") continue;
        header.set(f.key, f.value);
    }
    // GDAL's ENVI driver writes a local SRS as "Arbitrary", without its name.
    if (const std::string* const map = header.find("map info");
        map != nullptr && starts_with(*map, "{Arbitrary") && scene.srs && scene.srs->IsLocal() != 0) {
        constexpr const char* as_esri[] = {"FORMAT=WKT1_ESRI", nullptr};
        if (const std::string text = envi_coordinate_system(*scene.srs, as_esri); !text.empty())
            header.set("coordinate system string", "{" + text + "}");
    }
    if (same_bands) {
        std::vector<std::string> names;
        bool any = false;
        for (size_t k = 0; k < scene.bands.size(); ++k) {
            const std::string name = envi_name(plain_band_name(scene.bands[k]));
            any |= !name.empty();
            names.push_back(name.empty() ? "Band " + std::to_string(k + 1) : name);
        }
        if (any)
            header.set("band names", envi_list_text(names));
        else
            header.erase("band names");
    }
    return header.text();
}

} // namespace hsi::raster
