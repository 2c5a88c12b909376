// SPDX-License-Identifier: MIT
#include "raster/scene_metadata.h"

#include "raster/gdal_errors.h"

#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

namespace hsi::raster {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

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

/// "KEY=value" -> KEY; GDAL also allows ':' as separator.
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

/// Domains that tell how a file is stored, not what it shows.
bool storage_domain(const std::string& name) {
    static const std::set<std::string> names = {
        "IMAGE_STRUCTURE", "DERIVED_SUBDATASETS", "SUBDATASETS", "COLOR_PROFILE", "TIFF",
        "VRT_SOURCES",     "NEW_VRT_SOURCES",     "XML:VRT",     "ENVI"};
    const std::string n = upper(name);
    return names.count(n) > 0 || starts_with(n, "LOCATIONINFO");
}

MetadataDomains read_domains(GDALMajorObject& object, bool with_envi) {
    MetadataDomains out;
    const CPLStringList names(object.GetMetadataDomainList());
    std::vector<std::string> wanted = {""};
    for (int i = 0; i < names.size(); ++i)
        wanted.emplace_back(names[i]);
    if (with_envi) wanted.emplace_back("ENVI");
    for (const std::string& name : wanted) {
        if (storage_domain(name) && !(with_envi && name == "ENVI")) continue;
        if (out.count(name)) continue;
        CSLConstList items = object.GetMetadata(name.c_str());
        if (items == nullptr || *items == nullptr) continue;
        auto& list = out[name];
        for (; *items; ++items)
            list.emplace_back(*items);
    }
    return out;
}

std::string read_text(const std::string& path) {
    std::string text;
    VSILFILE* file = VSIFOpenL(path.c_str(), "rb");
    if (!file) return text;
    char buffer[65536];
    while (text.size() < (size_t{64} << 20)) {
        const size_t got = VSIFReadL(buffer, 1, sizeof buffer, file);
        if (got == 0) break;
        text.append(buffer, got);
    }
    VSIFCloseL(file);
    return text;
}

/// The header file itself where there is one: the driver turns spaces of keys into underscores and does not
/// tell.
EnviHeader read_envi(GDALDataset& dataset, const std::string& driver, const MetadataDomains& domains) {
    if (driver == "ENVI") {
        const CPLStringList files(dataset.GetFileList());
        for (int i = 0; i < files.size(); ++i) {
            if (!EQUAL(CPLGetExtension(files[i]), "hdr")) continue;
            EnviHeader header = EnviHeader::parse(read_text(files[i]));
            if (!header.fields().empty()) return header;
        }
    }
    EnviHeader header;
    const auto at = domains.find("ENVI");
    if (at != domains.end())
        for (const std::string& item : at->second)
            header.set(envi_key(item_key(item)), item_value(item));
    return header;
}

/// The element of `band` (1-based) in a list of one element a band.
std::string element(const std::vector<std::string>& list, int bands, int band) {
    return static_cast<int>(list.size()) == bands ? list[static_cast<size_t>(band - 1)] : std::string();
}

/// Fields whose lists never go by bands, however many elements they happen to have.
bool scene_list(const std::string& key) {
    static const std::set<std::string> names = {
        "description",   "map info",        "projection info", "coordinate system string",
        "default bands", "pixel size",      "geo points",      "rpc info",
        "z plot range",  "z plot average",  "z plot titles",   "class lookup",
        "class names",   "default stretch", "x start",         "y start",
        "spectra names"};
    return names.count(key) > 0;
}

/// Fields that speak of the bands of the source, whatever their form.
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
                                                "smoothing factors"};
    return names.count(key) > 0;
}

/// Fields that describe storage or georeference, which the output's own driver writes.
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
                                                "complex function"};
    return names.count(key) > 0;
}

std::vector<std::string> cut_list(const std::vector<std::string>& list, const SceneMetadata& scene) {
    std::vector<std::string> out;
    for (const BandMetadata& band : scene.bands)
        out.push_back(list[static_cast<size_t>(band.file_band - 1)]);
    return out;
}

bool statistics_item(const std::string& key) { return starts_with(upper(key), "STATISTICS_"); }

/// "Band_7", as the ENVI driver names its items.
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

/// A dataset's items as the output may have them.
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

std::string number_text(double v) { return CPLSPrintf("%.15g", v); }

bool in_micrometres(const std::string& units) {
    const std::string u = lower(units);
    return starts_with(u, "micro") || u == "um" || u == "\xc2\xb5m" || u == "\xce\xbcm";
}

bool in_nanometres(const std::string& units) {
    const std::string u = lower(units);
    return starts_with(u, "nano") || u == "nm";
}

/// An item of the domain IMAGERY: the file's own digits where they are micrometres.
std::string micrometres(const std::string& text, double nanometres, const std::string& units) {
    return in_micrometres(units) ? text : number_text(nanometres / 1000);
}

/// One unit for all bands: the file's own when it is the same everywhere, else nanometres.
struct SpectralTexts {
    bool known = false, widths = false;
    std::string units;
    std::vector<std::string> wavelength, fwhm;
};

SpectralTexts spectral_texts(const SceneMetadata& scene) {
    SpectralTexts out;
    bool uniform = true;
    for (const BandMetadata& b : scene.bands) {
        out.known |= !b.wavelength.empty();
        out.widths |= !b.fwhm.empty();
        uniform &= b.wavelength_units == scene.bands.front().wavelength_units && !b.wavelength.empty();
    }
    if (scene.bands.empty()) return out;
    out.units = uniform ? scene.bands.front().wavelength_units : "Nanometers";
    for (const BandMetadata& b : scene.bands) {
        if (uniform) {
            out.wavelength.push_back(b.wavelength);
            out.fwhm.push_back(b.fwhm);
        } else {
            out.wavelength.push_back(std::isnan(b.wavelength_nm) ? std::string()
                                                                 : number_text(b.wavelength_nm));
            out.fwhm.push_back(std::isnan(b.fwhm_nm) ? std::string() : number_text(b.fwhm_nm));
        }
    }
    return out;
}

/// ENVI lists have no gaps: 0 stands where a band has no value.
std::string gapless_list(std::vector<std::string> texts) {
    for (std::string& t : texts)
        if (t.empty()) t = "0";
    return envi_list_text(texts);
}

void read_spectral(SceneMetadata& scene) {
    const auto list_of = [&](const char* key) {
        const std::string* value = scene.envi.find(key);
        return value ? envi_list(*value) : std::vector<std::string>();
    };
    const auto dataset_list = [&](const char* key) { return envi_list(value_of(scene.domains, "", key)); };
    auto wavelength = list_of("wavelength"), fwhm = list_of("fwhm"), bbl = list_of("bbl");
    if (wavelength.empty()) wavelength = dataset_list("wavelength");
    if (wavelength.empty()) wavelength = dataset_list("wavelengths");
    if (fwhm.empty()) fwhm = dataset_list("fwhm");
    if (bbl.empty()) bbl = dataset_list("bbl");
    std::string units;
    if (const std::string* u = scene.envi.find("wavelength units")) units = *u;
    if (units.empty()) units = value_of(scene.domains, "", "wavelength_units");
    if (EQUAL(units.c_str(), "unknown")) units.clear();

    double largest = 0;
    for (BandMetadata& b : scene.bands) {
        const int n = b.file_band;
        b.wavelength = value_of(b.domains, "", "wavelength");
        b.fwhm = value_of(b.domains, "", "fwhm");
        b.bbl = value_of(b.domains, "", "bbl");
        b.wavelength_units = value_of(b.domains, "", "wavelength_units");
        if (b.wavelength_units.empty()) b.wavelength_units = value_of(b.domains, "", "wavelength_unit");
        // The header's own texts before the band items that a driver made of them.
        if (const auto text = element(wavelength, scene.file_bands, n); !text.empty()) {
            b.wavelength = text;
            if (!units.empty()) b.wavelength_units = units;
        }
        if (const auto text = element(fwhm, scene.file_bands, n); !text.empty()) b.fwhm = text;
        if (const auto text = element(bbl, scene.file_bands, n); !text.empty()) b.bbl = text;
        if (b.wavelength_units.empty()) b.wavelength_units = units;
        if (EQUAL(b.wavelength_units.c_str(), "unknown")) b.wavelength_units.clear();
        if (b.wavelength.empty()) {
            b.wavelength = value_of(b.domains, "IMAGERY", "CENTRAL_WAVELENGTH_UM");
            b.fwhm = value_of(b.domains, "IMAGERY", "FWHM_UM");
            if (!b.wavelength.empty()) b.wavelength_units = "Micrometers";
        } else if (b.fwhm.empty()) {
            // A width that stands in this domain alone, in the unit of the wavelength.
            const std::string text = value_of(b.domains, "IMAGERY", "FWHM_UM");
            if (in_micrometres(b.wavelength_units))
                b.fwhm = text;
            else if (!text.empty() && in_nanometres(b.wavelength_units))
                b.fwhm = number_text(CPLAtof(text.c_str()) * 1000);
        }
        if (b.wavelength.empty()) { // the bands are a dimension of a netCDF variable
            b.wavelength = value_of(b.domains, "", "NETCDF_DIM_wavelength");
            if (!b.wavelength.empty()) b.wavelength_units = value_of(scene.domains, "", "wavelength#units");
        }
        if (!b.wavelength.empty()) largest = std::max(largest, CPLAtof(b.wavelength.c_str()));
    }
    for (BandMetadata& b : scene.bands) {
        b.wavelength_nm = b.fwhm_nm = nan;
        if (!b.wavelength.empty())
            b.wavelength_nm = to_nanometres(CPLAtof(b.wavelength.c_str()), b.wavelength_units, largest);
        // A width in wavenumbers is no width in nanometres.
        const std::string u = lower(b.wavelength_units);
        if (!b.fwhm.empty() && !starts_with(u, "wavenumber") && u != "cm-1")
            b.fwhm_nm = to_nanometres(CPLAtof(b.fwhm.c_str()), b.wavelength_units, largest);
    }
}

BandMetadata read_band(GDALRasterBand& band, int number) {
    BandMetadata out;
    out.file_band = number;
    out.type = band.GetRasterDataType();
    out.interpretation = band.GetColorInterpretation();
    out.description = band.GetDescription();
    int has = 0;
    const double scale = band.GetScale(&has);
    if (has) out.scale = scale;
    const double offset = band.GetOffset(&has);
    if (has) out.offset = offset;
    if (const char* unit = band.GetUnitType()) out.unit = unit;
    if (CSLConstList names = band.GetCategoryNames())
        for (; *names; ++names)
            out.categories.emplace_back(*names);
    if (const GDALColorTable* table = band.GetColorTable()) out.colours.reset(table->Clone());
    NodataValue nodata;
    if (out.type == GDT_Int64) {
        nodata.kind = GDT_Int64;
        nodata.whole = band.GetNoDataValueAsInt64(&has);
    } else if (out.type == GDT_UInt64) {
        nodata.kind = GDT_UInt64;
        nodata.natural = band.GetNoDataValueAsUInt64(&has);
    } else {
        nodata.real = band.GetNoDataValue(&has);
    }
    if (has) out.nodata = nodata;
    out.domains = read_domains(band, false);
    return out;
}

std::shared_ptr<const OGRSpatialReference> copy_srs(const OGRSpatialReference* srs) {
    if (srs == nullptr || srs->IsEmpty()) return nullptr;
    return std::shared_ptr<const OGRSpatialReference>(srs->Clone(),
                                                      [](OGRSpatialReference* s) { s->Release(); });
}

void write_band(const BandMetadata& from, const SpectralTexts& spectra, size_t index, bool envi,
                GDALRasterBand& to) {
    if (!from.description.empty()) to.SetDescription(from.description.c_str());
    if (from.scale) to.SetScale(*from.scale);
    if (from.offset) to.SetOffset(*from.offset);
    if (!from.unit.empty()) to.SetUnitType(from.unit.c_str());
    if (!from.categories.empty()) {
        CPLStringList names = to_csl(from.categories);
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
                                   return statistics_item(key) || (envi && spectral_item(key));
                               }),
                items.end());
    if (!envi) {
        if (!spectra.wavelength[index].empty()) {
            set_item(items, "wavelength", spectra.wavelength[index]);
            if (!spectra.units.empty()) set_item(items, "wavelength_units", spectra.units);
        }
        if (!spectra.fwhm[index].empty()) set_item(items, "fwhm", spectra.fwhm[index]);
        if (!from.bbl.empty()) set_item(items, "bbl", from.bbl);
        // The source's own items may be a driver's work: GDAL's ENVI reader rounds to whole nanometres
        // from 3.10 on.
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

double NodataValue::as_double() const {
    if (kind == GDT_Int64) return static_cast<double>(whole);
    if (kind == GDT_UInt64) return static_cast<double>(natural);
    return real;
}

bool BandMetadata::bad() const {
    if (bbl.empty()) return false;
    char* end = nullptr;
    const double v = std::strtod(bbl.c_str(), &end);
    // ENVI: 0 is bad, 1 is good. EnMAP-Box also writes words.
    if (end == bbl.c_str()) return EQUAL(bbl.c_str(), "false") || EQUAL(bbl.c_str(), "bad");
    return v == 0;
}

double to_nanometres(double value, const std::string& units, double guess) {
    const std::string u = lower(units);
    if (u.empty())
        return guess < 100 ? value * 1000 : value; // a spectrum up to 100 nm would be extreme ultraviolet
    if (in_nanometres(units)) return value;
    if (in_micrometres(units)) return value * 1000;
    if (starts_with(u, "milli") || u == "mm") return value * 1e6;
    if (starts_with(u, "centi") || u == "cm") return value * 1e7;
    if (starts_with(u, "meter") || starts_with(u, "metre") || u == "m") return value * 1e9;
    if (starts_with(u, "angstrom")) return value * 0.1;
    if (starts_with(u, "wavenumber") || u == "cm-1") return value > 0 ? 1e7 / value : nan;
    return nan;
}

bool SceneMetadata::window_geotransform(double (&gt)[6]) const {
    if (!geotransform) return false;
    std::copy(geotransform->begin(), geotransform->end(), gt);
    const auto x = static_cast<double>(window.x), y = static_cast<double>(window.y);
    gt[0] += x * gt[1] + y * gt[2];
    gt[3] += x * gt[4] + y * gt[5];
    return true;
}

SceneMetadata read_scene(GDALDataset& dataset) {
    SceneMetadata scene;
    scene.driver = dataset.GetDriver() ? dataset.GetDriver()->GetDescription() : "";
    scene.file_bands = dataset.GetRasterCount();
    scene.window = Rect{0, 0, dataset.GetRasterXSize(), dataset.GetRasterYSize()};
    scene.srs = copy_srs(dataset.GetSpatialRef());
    std::array<double, 6> gt{};
    if (dataset.GetGeoTransform(gt.data()) == CE_None) scene.geotransform = gt;
    const GDAL_GCP* gcps = dataset.GetGCPs();
    for (int i = 0; i < dataset.GetGCPCount(); ++i)
        scene.gcps.push_back({gcps[i].pszId ? gcps[i].pszId : "", gcps[i].pszInfo ? gcps[i].pszInfo : "",
                              gcps[i].dfGCPPixel, gcps[i].dfGCPLine, gcps[i].dfGCPX, gcps[i].dfGCPY,
                              gcps[i].dfGCPZ});
    if (!scene.gcps.empty()) scene.gcp_srs = copy_srs(dataset.GetGCPSpatialRef());
    scene.domains = read_domains(dataset, true);
    scene.envi = read_envi(dataset, scene.driver, scene.domains);
    scene.domains.erase("ENVI");
    for (int b = 1; b <= scene.file_bands; ++b)
        scene.bands.push_back(read_band(*dataset.GetRasterBand(b), b));
    read_spectral(scene);
    return scene;
}

EnviHeader inherited_envi_fields(const SceneMetadata& scene, bool same_bands) {
    EnviHeader out;
    for (const EnviField& field : scene.envi.fields()) {
        const std::string key = envi_key(field.key);
        if (storage_field(key) || (!same_bands && band_field(key))) continue;
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

void write_scene(const SceneMetadata& scene, bool same_bands, GDALDataset& to) {
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
            // The driver makes these from the header.
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
        const SpectralTexts spectra = spectral_texts(scene);
        for (size_t k = 0; k < scene.bands.size(); ++k)
            write_band(scene.bands[k], spectra, k, envi, *to.GetRasterBand(static_cast<int>(k) + 1));
    }
}

namespace {

/// The name that a header gave a band: GDAL's ENVI driver appends the wavelength to it, or makes a name of
/// that alone. Empty for the latter.
std::string plain_name(const BandMetadata& band) {
    if (band.wavelength.empty()) return band.description;
    for (const std::string& tail : {band.wavelength + " " + band.wavelength_units, band.wavelength}) {
        if (band.description == tail) return {};
        const std::string suffix = " (" + tail + ")";
        if (band.description.size() > suffix.size() &&
            band.description.compare(band.description.size() - suffix.size(), suffix.size(), suffix) == 0)
            return band.description.substr(0, band.description.size() - suffix.size());
    }
    return band.description;
}

} // namespace

std::string finish_envi_header(const std::string& written, const SceneMetadata& scene, bool same_bands) {
    EnviHeader header = EnviHeader::parse(written);
    const EnviHeader inherited = inherited_envi_fields(scene, same_bands);
    for (const EnviField& f : inherited.fields()) {
        const std::string key = envi_key(f.key);
        // These come from the bands, where the driver has them already.
        if (key == "band names" || key == "data gain values" || key == "data offset values") continue;
        header.set(f.key, f.value);
    }
    if (same_bands) {
        std::vector<std::string> names;
        bool any = false;
        for (size_t k = 0; k < scene.bands.size(); ++k) {
            std::string name = plain_name(scene.bands[k]);
            any |= !name.empty();
            std::replace(name.begin(), name.end(), ',', ' '); // the list's separator
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
