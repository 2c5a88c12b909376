// SPDX-License-Identifier: MIT
#include "raster/metadata/spectral_metadata.h"

#include "core/counted.h"
#include "core/json.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"

#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace hsi::raster {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Returns NaN if the text is not a number, such as "N/A".
double number_in(const std::string& text) { return envi_number(text).value_or(nan); }

/// Separates units that are written with the values. The unit of a wavelength such as "450 nm" has priority
/// over the declared unit. A width such as "0.01 um" is converted to the unit of the wavelength.
void take_unit_along(BandMetadata& b) {
    if (!envi_number(b.wavelength))
        if (const auto written = written_wavelength(b.wavelength)) {
            b.wavelength = written->number;
            b.wavelength_units = written->unit->name;
        }
    const auto width = envi_number(b.fwhm) ? std::nullopt : written_wavelength(b.fwhm);
    const WavelengthUnit* const unit = width ? field_unit(b.wavelength_units) : nullptr;
    if (unit == nullptr) return;
    if (unit == width->unit)
        b.fwhm = width->number;
    else if (!unit->inverse && !width->unit->inverse)
        b.fwhm = number_text(width->unit->nanometres(number_in(width->number)) / unit->factor);
}

/// Returns the number as written in the file if the text contains only a number; empty for other texts such
/// as "N/A".
std::string plain_number(const std::string& text) {
    const auto number = envi_number(text);
    if (!number) return {};
    return text.find_first_not_of("0123456789.+-eE") == std::string::npos ? text : number_text(*number);
}

/// Replaces blanks and semicolons by commas: "400 500;600" -> "400,500,600".
std::string comma_list(std::string text) {
    for (char& c : text)
        if (c == ';' || c == '\n' || c == '\t') c = ' ';
    std::string out;
    for (const char c : text)
        if (c != ' ')
            out += c;
        else if (!out.empty() && out.back() != ',')
            out += ',';
    if (!out.empty() && out.back() == ',') out.pop_back();
    return out;
}

/// Returns the element of `band` (from 1) if the list has one element per band; otherwise an empty text.
std::string element(const std::vector<std::string>& list, int bands, int band) {
    return static_cast<int>(list.size()) == bands ? list[static_cast<size_t>(band - 1)] : std::string();
}

void drop_item(MetadataDomains& domains, const char* domain, const char* key) {
    const auto at = domains.find(domain);
    if (at == domains.end()) return;
    std::erase_if(at->second, [&](const std::string& item) { return EQUAL(item_key(item).c_str(), key); });
    if (at->second.empty()) domains.erase(at);
}

/// Lists with one element per band, and the unit of the wavelengths.
struct BandLists {
    std::vector<std::string> wavelength, fwhm, bbl;
    std::string units;
};

/// Returns the elements of a list in braces. If the braces are missing, or if blanks separate the elements,
/// the list must have one element per band.
std::vector<std::string> list_of(const std::string& text, int bands) {
    const bool braced = is_envi_list(text);
    const size_t begin = braced ? text.find('{') + 1 : 0;
    std::string inside = braced ? text.substr(begin, text.rfind('}') - begin) : text;
    constexpr size_t around = 2;
    if (!braced && inside.size() > around)
        for (const char* brackets : {"<>", "[]", "()"})
            if (inside.front() == brackets[0] && inside.back() == brackets[1])
                inside = inside.substr(1, inside.size() - around);
    for (const std::string& each : {"{" + inside + "}", "{" + comma_list(inside) + "}"})
        if (auto list = envi_list(each); static_cast<int>(list.size()) == bands) return list;
    return braced ? envi_list(text) : std::vector<std::string>();
}

/// Removes the hyphen with which ISIS breaks long lines; GDAL keeps this hyphen at the beginning of a value:
/// "-\n  0.65" -> "0.65".
std::string without_break(const std::string& text) {
    const size_t end = text.find_first_not_of(" \t\r\n", 1);
    const bool broken = text.size() > 1 && text[0] == '-' && (text[1] == '\n' || text[1] == '\r');
    return broken && end != std::string::npos ? text.substr(end) : text;
}

/// Reads wavelengths and FWHM from the group BandBin of an ISIS3 label, whose field names depend on the
/// camera. The unit is part of the values or in a separate field.
void read_isis(const SceneMetadata& scene, BandLists& lists) {
    const auto at = scene.domains.find("json:ISIS3");
    if (at == scene.domains.end() || at->second.empty()) return;
    const Json label = Json::parse(at->second.front(), nullptr, false);
    const auto child = [](const Json& parent, const char* name) {
        return parent.is_object() && parent.contains(name) ? parent[name] : Json();
    };
    const Json bins = child(child(label, "IsisCube"), "BandBin");
    const auto values = [&](const char* name) {
        Json field = child(bins, name);
        std::vector<std::string> out;
        if (const Json unit = child(field, "unit"); unit.is_string() && lists.units.empty())
            lists.units = unit.get<std::string>();
        if (field.is_object()) field = child(field, "value");
        if (!field.is_array()) field = Json::array({field});
        for (const Json& value : field)
            out.push_back(value.is_number()   ? number_text(value.get<double>())
                          : value.is_string() ? without_break(value.get<std::string>())
                                              : std::string());
        if (static_cast<int>(out.size()) != scene.file_bands) out.clear();
        return out;
    };
    const auto first_of = [&](std::initializer_list<const char*> names) {
        for (const char* name : names) {
            auto found = values(name);
            // Values may contain a unit, such as "0.5 <um>".
            if (std::any_of(found.begin(), found.end(), [](const std::string& text) {
                    return !text.empty() && text.find_first_of("0123456789") <= text.find_first_not_of("+-.");
                }))
                return found;
        }
        return std::vector<std::string>();
    };
    lists.wavelength = first_of({"Center", "FilterCenter", "Wavelength", "Wavelengths", "CenterWavelength"});
    if (lists.wavelength.empty()) return;
    lists.fwhm = first_of({"Width", "FilterWidth", "Bandwidth", "FWHM"});
    for (const char* name : {"Units", "Unit", "WavelengthUnits", "CenterUnits"}) {
        Json unit = child(bins, name);
        if (unit.is_array() && !unit.empty()) unit = unit.front();
        if (unit.is_string() && is_blank_unit(lists.units)) lists.units = unit.get<std::string>();
    }
}

/// Returns the unit of a FITS axis by its type (CTYPEi). The text is empty if CUNITi must state the unit.
/// Returns null if the axis is not spectral.
const char* unit_of_fits_axis(const std::string& kind) {
    if (kind == "WAVE" || kind == "AWAV") return "m";
    if (kind == "FREQ") return "Hz";
    if (kind == "WAVN") return "1/m";
    if (kind == "ENER" || starts_with(kind, "LAMBDA") || starts_with(kind, "WAVEL")) return "";
    return nullptr;
}

/// Reads the spectral axis of a FITS image, which is the third axis (Greisen et al. 2006, A&A 446, 747). With
/// w = (b - CRPIX3) step, the coordinate of band b is CRVAL3 + w, or CRVAL3 exp(w / CRVAL3) for a logarithmic
/// axis (-LOG). Coordinates are in SI units unless CUNIT3 states a unit. The step is CD3_3, or PC3_3 CDELT3
/// (Greisen and Calabretta 2002, A&A 395, 1061).
void read_fits_axis(SceneMetadata& scene, BandLists& lists) {
    if (scene.driver != "FITS") return;
    const auto item = [&](const char* key) {
        std::string text = value_of(scene.domains, "", key);
        std::erase_if(text, [](char c) { return c == ' ' || c == '\''; });
        return text;
    };
    const auto number = [&](const char* key, double otherwise) {
        return envi_number(item(key)).value_or(otherwise);
    };
    const std::string stated = item("CTYPE3"), units = item("CUNIT3");
    std::string kind = upper(stated);
    const bool logarithmic = kind.ends_with("-LOG");
    if (logarithmic) kind.erase(kind.find('-'));
    const char* unit = unit_of_fits_axis(kind);
    const WavelengthUnit* const of_wavelengths = units.empty() ? nullptr : field_unit(units);
    if (unit == nullptr && (kind.empty() || kind == "LINEAR") && of_wavelengths != nullptr &&
        of_wavelengths->symbol != std::string("m"))
        unit = ""; // metres do not imply wavelengths, because they are used for all lengths
    const auto start = envi_number(item("CRVAL3"));
    const auto unknown = [&](const std::string& what) {
        scene.notes.push_back("the wavelengths are unknown: " + what);
    };
    if (unit == nullptr) {
        const std::string code = kind.substr(0, 4);
        for (const char* spectral :
             {"FREQ", "ENER", "WAVN", "VRAD", "WAVE", "VOPT", "ZOPT", "AWAV", "VELO", "BETA"})
            if (code == spectral && start)
                unknown("CTYPE3 = '" + stated + "' is not a linear axis of wavelengths");
        return;
    }
    const bool matrix = !item("CD3_3").empty(), scaled = matrix || !item("CDELT3").empty();
    if (!start || !scaled) return;
    for (const char* key : {"CD3_1", "CD3_2", "PC3_1", "PC3_2"})
        if (number(key, 0) != 0)
            return unknown(std::string(key) + " = " + item(key) + " makes them differ between pixels");
    const double step = matrix ? number("CD3_3", 0) : number("PC3_3", 1) * number("CDELT3", 0);
    const double pixel = number("CRPIX3", 0);
    for (int b = 1; b <= scene.file_bands; ++b) {
        const double along = (b - pixel) * step;
        lists.wavelength.push_back(
            number_text(logarithmic ? *start * std::exp(along / *start) : *start + along));
    }
    lists.units = units.empty() ? unit : units;
}

/// Returns the lists of the ENVI header. Lists that the header does not have are taken from the metadata
/// items of the dataset.
BandLists band_lists(SceneMetadata& scene) {
    const auto envi = [&](const char* key) {
        const std::string* value = scene.envi.find(key);
        return value ? list_of(*value, scene.file_bands) : std::vector<std::string>();
    };
    const auto item = [&](const char* key) {
        return list_of(value_of(scene.domains, "", key), scene.file_bands);
    };
    BandLists lists{envi("wavelength"), envi("fwhm"), envi("bbl"), {}};
    lists.units = envi_wavelength_unit(scene.envi);
    if (lists.wavelength.empty()) lists.wavelength = envi("wavelengths");
    if (lists.wavelength.empty()) lists.wavelength = item("wavelength");
    if (lists.wavelength.empty()) lists.wavelength = item("wavelengths");
    if (lists.fwhm.empty()) lists.fwhm = item("fwhm");
    // A single FWHM in the items applies to all bands, as in ENVI headers.
    if (const auto width = list_of(value_of(scene.domains, "", "fwhm"), 1);
        lists.fwhm.size() < 2 && width.size() == 1 &&
        (envi_number(width.front()) || written_wavelength(width.front())))
        lists.fwhm.assign(static_cast<size_t>(scene.file_bands), width.front());
    if (lists.bbl.empty()) lists.bbl = item("bbl");
    for (const char* key : {"wavelength_units", "wavelength units", "wavelength_unit"})
        if (lists.units.empty()) lists.units = value_of(scene.domains, "", key);
    if (lists.wavelength.empty()) read_isis(scene, lists);
    if (lists.wavelength.empty()) read_fits_axis(scene, lists);
    if (is_blank_unit(lists.units)) lists.units.clear();
    return lists;
}

void read_band_items(BandMetadata& b) {
    // EnMAP-Box and QGIS also store these items in the domain ENVI.
    const auto item = [&](std::initializer_list<const char*> keys) {
        for (const char* domain : {"", "ENVI"})
            for (const char* key : keys)
                if (std::string value = value_of(b.domains, domain, key); !value.empty()) return value;
        return std::string();
    };
    b.wavelength = item({"wavelength", "wavelengths"});
    b.fwhm = item({"fwhm"});
    b.bbl = item({"bbl"});
    b.wavelength_units = item({"wavelength_units", "wavelength_unit", "wavelength units", "wavelength unit"});
    for (const char* key :
         {"wavelength", "wavelengths", "wavelength_units", "wavelength units", "fwhm", "bbl"})
        drop_item(b.domains, "ENVI", key); // outputs contain these items only once
}

/// Uses the header's lists, which have priority over band items that GDAL's driver derived from the header.
void read_band_lists(const BandLists& lists, int file_bands, BandMetadata& b) {
    const int n = b.file_band;
    if (static_cast<int>(lists.wavelength.size()) == file_bands) {
        b.wavelength = element(lists.wavelength, file_bands, n);
        if (!lists.units.empty()) b.wavelength_units = lists.units;
    }
    if (static_cast<int>(lists.fwhm.size()) == file_bands) b.fwhm = element(lists.fwhm, file_bands, n);
    if (const auto text = element(lists.bbl, file_bands, n); !text.empty()) b.bbl = text;
    if (b.wavelength_units.empty()) b.wavelength_units = lists.units;
    if (is_blank_unit(b.wavelength_units)) b.wavelength_units.clear();
}

/// Drops band items that GDAL's ENVI driver made from a list of the wrong length. The driver assigns the
/// elements of such a list to the bands in turn, so the element of a band is unknown. Items of other drivers
/// are kept.
void drop_items_of_wrong_lists(SceneMetadata& scene) {
    if (scene.driver != "ENVI") return;
    const auto wrong = [&](const char* key) { return is_wrong_band_list(scene, key); };
    const bool wavelength = wrong("wavelength"), fwhm = wrong("fwhm"), bbl = wrong("bbl");
    for (BandMetadata& b : scene.bands) {
        if (wavelength) {
            // The driver appends the wavelength to the band name, or uses the wavelength as the name.
            b.wavelength = value_of(b.domains, "", "wavelength");
            b.wavelength_units = value_of(b.domains, "", "wavelength_units");
            b.description = plain_band_name(b);
            drop_item(b.domains, "", "wavelength");
            drop_item(b.domains, "", "wavelength_units");
            drop_item(b.domains, "IMAGERY", "CENTRAL_WAVELENGTH_UM");
        }
        if (fwhm) {
            drop_item(b.domains, "", "fwhm");
            drop_item(b.domains, "IMAGERY", "FWHM_UM");
        }
        if (bbl) drop_item(b.domains, "", "bbl");
    }
}

/// Uses the items of the domain IMAGERY if the other items and lists do not state the wavelength or the FWHM.
void read_imagery(BandMetadata& b) {
    if (b.wavelength.empty()) {
        b.wavelength = value_of(b.domains, "IMAGERY", "CENTRAL_WAVELENGTH_UM");
        b.fwhm = value_of(b.domains, "IMAGERY", "FWHM_UM");
        if (!b.wavelength.empty()) b.wavelength_units = "Micrometers";
    } else if (b.fwhm.empty()) {
        // If only this domain states the FWHM, in micrometres, it is converted to the unit of the wavelength.
        const std::string text = value_of(b.domains, "IMAGERY", "FWHM_UM");
        if (in_micrometres(b.wavelength_units))
            b.fwhm = text;
        else if (!text.empty() && in_nanometres(b.wavelength_units))
            b.fwhm = number_text(CPLAtof(text.c_str()) * 1000);
    }
}

/// Reads the wavelength of a band that GDAL made from a dimension of a netCDF variable.
void read_netcdf_dimension(const MetadataDomains& of_dataset, BandMetadata& b) {
    if (!b.wavelength.empty()) return;
    b.wavelength = value_of(b.domains, "", "NETCDF_DIM_wavelength");
    if (!b.wavelength.empty()) b.wavelength_units = value_of(of_dataset, "", "wavelength#units");
}

} // namespace

size_t band_list_size(const SceneMetadata& scene, const std::string& key) {
    const std::string* const text = scene.envi.find(key);
    if (text == nullptr || text->empty()) return 0;
    if (is_envi_list(*text)) return envi_list(*text).size();
    const auto list = list_of(*text, scene.file_bands);
    return list.empty() ? envi_list("{" + comma_list(*text) + "}").size() : list.size();
}

bool is_wrong_band_list(const SceneMetadata& scene, const std::string& key) {
    const size_t count = band_list_size(scene, key);
    return count != 0 && count != static_cast<size_t>(scene.file_bands);
}

std::string plain_band_name(const BandMetadata& band) {
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

namespace {

bool is_in(const std::string& units, const char* symbol) {
    const WavelengthUnit* const unit = field_unit(units);
    return unit != nullptr && unit->symbol == std::string(symbol);
}

} // namespace

bool in_micrometres(const std::string& units) { return is_in(units, "um"); }
bool in_nanometres(const std::string& units) { return is_in(units, "nm"); }

bool are_micrometres(double largest, const std::string& units) {
    constexpr double shortest = 100; // shortest wavelength of an imaging spectrometer, in nanometres
    return largest > 0 && largest < shortest && in_nanometres(units);
}

double to_nanometres(double value, const std::string& units, double guess) {
    if (!(value > 0) || !std::isfinite(value)) return nan; // a value of 0 fills gaps in ENVI lists
    const WavelengthUnit* const unit =
        is_blank_unit(units) ? chosen_unit(units, guess, guess).unit : field_unit(units);
    return unit == nullptr ? nan : unit->nanometres(value);
}

std::string envi_wavelength_unit(const EnviHeader& header) {
    const std::string* const units = header.find("wavelength units");
    if (units != nullptr && !is_blank_unit(*units)) return *units;
    // Headers of plots, and headers from the software of spectrometers, state the units in the titles of the
    // axes: {Wavenumbers (cm-1), %Transmittance}.
    const std::string* const titles = header.find("z plot titles");
    const auto list = titles != nullptr ? envi_list(*titles) : std::vector<std::string>();
    if (list.empty()) return {};
    if (is_other_axis(list.front())) return list.front();
    const WavelengthUnit* const unit = text_unit(list.front());
    return unit == nullptr ? std::string() : unit->name;
}

std::vector<std::string> unit_notes(const SceneMetadata& scene) {
    std::vector<std::string> notes;
    if (scene.told_nanometres) notes.push_back(chosen_unit("nm", 1, 1).note);
    double least = std::numeric_limits<double>::infinity(), largest = 0;
    std::set<std::string> units;
    for (const BandMetadata& b : scene.bands) {
        const double number = number_in(b.wavelength);
        if (!(number > 0)) continue;
        least = std::min(least, number);
        largest = std::max(largest, number);
        units.insert(b.wavelength_units);
    }
    for (const std::string& unit : units)
        if (auto note = chosen_unit(unit, least, largest).note; !note.empty())
            notes.push_back(std::move(note));
    return notes;
}

namespace {

/// Reads the original numbers of all bands. They are used only if every band has a whole positive number and
/// no number occurs twice.
void read_source_bands(SceneMetadata& scene) {
    std::vector<std::string> texts;
    for (const BandMetadata& b : scene.bands)
        texts.push_back(value_of(b.domains, "", source_band_item));
    if (std::all_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); })) {
        const std::string* const list = scene.envi.find(source_band_field);
        texts = list ? envi_list(*list) : std::vector<std::string>();
    }
    if (texts.size() != scene.bands.size()) return;
    constexpr double most = 1e6;
    std::set<int> numbers;
    std::vector<int> in_order;
    for (const std::string& text : texts) {
        const double number = number_in(text);
        if (!(number >= 1 && number <= most) || number != std::floor(number)) return;
        in_order.push_back(static_cast<int>(number));
        numbers.insert(in_order.back());
    }
    if (numbers.size() != in_order.size()) return;
    for (size_t k = 0; k < in_order.size(); ++k)
        scene.bands[k].source_band = in_order[k];
}

} // namespace

std::vector<int> told_band_numbers(const SceneMetadata& scene) {
    std::vector<int> numbers;
    bool told = true, whole = static_cast<int>(scene.bands.size()) == scene.file_bands, placed = true;
    for (const BandMetadata& b : scene.bands)
        told &= b.source_band > 0;
    for (const BandMetadata& b : scene.bands) {
        numbers.push_back(told ? b.source_band : b.file_band);
        whole &= b.file_band == static_cast<int>(numbers.size());
        placed &= std::isfinite(b.wavelength_nm);
    }
    if (placed || (whole && !told)) numbers.clear();
    return numbers;
}

namespace {

/// Adds notes about lists in the dataset's items that do not have one number per band. No note is added if
/// other metadata states the values.
void note_wrong_items(SceneMetadata& scene) {
    const auto note = [&](const char* key, std::string BandMetadata::*of_band) {
        const std::string text = value_of(scene.domains, "", key);
        const auto list = is_envi_list(text) ? envi_list(text) : envi_list("{" + comma_list(text) + "}");
        const auto told = [&](const BandMetadata& b) { return !(b.*of_band).empty(); };
        if (list.empty() || list.size() == static_cast<size_t>(scene.file_bands) ||
            !std::all_of(list.begin(), list.end(), [](const auto& entry) { return envi_number(entry); }) ||
            std::any_of(scene.bands.begin(), scene.bands.end(), told))
            return;
        scene.notes.push_back("the item '" + std::string(key) + "' is ignored: it has " +
                              counted(list.size(), "value") + " for " + counted(scene.file_bands, "band"));
    };
    note("wavelength", &BandMetadata::wavelength);
    note("wavelengths", &BandMetadata::wavelength);
    note("fwhm", &BandMetadata::fwhm);
    note("bbl", &BandMetadata::bbl);
}

} // namespace

void read_spectral(SceneMetadata& scene) {
    read_source_bands(scene);
    drop_items_of_wrong_lists(scene);
    const BandLists lists = band_lists(scene);
    double largest = 0;
    for (BandMetadata& b : scene.bands) {
        read_band_items(b);
        read_band_lists(lists, scene.file_bands, b);
        read_imagery(b);
        read_netcdf_dimension(scene.domains, b);
        take_unit_along(b);
        b.wavelength = plain_number(b.wavelength);
        b.fwhm = plain_number(b.fwhm);
        largest = std::max(largest, number_in(b.wavelength));
    }
    note_wrong_items(scene);
    for (BandMetadata& b : scene.bands) {
        if (are_micrometres(largest, b.wavelength_units)) {
            b.wavelength_units = "Micrometers";
            scene.told_nanometres = true;
        }
        b.wavelength_nm = to_nanometres(number_in(b.wavelength), b.wavelength_units, largest);
        // A FWHM in wavenumbers or frequencies cannot be converted to nanometres without the wavelength.
        const WavelengthUnit* const unit = field_unit(b.wavelength_units);
        b.fwhm_nm = unit != nullptr && unit->inverse
                        ? nan
                        : to_nanometres(number_in(b.fwhm), b.wavelength_units, largest);
    }
}

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

std::string doubtful_widths(const std::vector<double>& wavelengths_nm, const std::vector<double>& fwhm_nm,
                            const std::vector<int>& numbers) {
    if (wavelengths_nm.size() != fwhm_nm.size()) return {};
    std::vector<double> known;
    for (const double nm : wavelengths_nm)
        if (std::isfinite(nm)) known.push_back(nm);
    if (known.empty()) return {};
    std::sort(known.begin(), known.end());
    const double span = known.back() - known.front();
    constexpr double most_steps = 20, most_wavelengths = 2;
    const auto is_doubtful = [&](double nm, double width) {
        if (!std::isfinite(nm) || !std::isfinite(width)) return false;
        if (width > most_wavelengths * nm) return true;
        const auto above = std::upper_bound(known.begin(), known.end(), nm),
                   from = std::lower_bound(known.begin(), known.end(), nm);
        const double step = std::max(above != known.end() ? *above - nm : 0,
                                     from != known.begin() ? nm - *std::prev(from) : 0);
        return span > 0 && width > span && width > most_steps * step;
    };
    size_t first = 0, count = 0;
    for (size_t b = wavelengths_nm.size(); b-- > 0;)
        if (is_doubtful(wavelengths_nm[b], fwhm_nm[b])) {
            first = b;
            ++count;
        }
    if (count == 0) return {};
    return "the width of band " +
           std::to_string(numbers.empty() ? static_cast<int>(first) + 1 : numbers[first]) + " is read as " +
           number_text(fwhm_nm[first]) + " nm, at a wavelength of " + number_text(wavelengths_nm[first]) +
           " nm" + (count > 1 ? " (and " + counted(count - 1, "more such width") + ")" : std::string()) +
           ": check its unit. FWHM have the unit of the wavelengths: 'wavelength units' of a header, or the "
           "unit in a table's column names, such as 'wavelength (um)' and 'fwhm (nm)'";
}

std::string no_widths(int band, const std::string& width, size_t count) {
    return "band " + std::to_string(band) + " has the width " + width +
           (count > 1 ? " (and " + counted(count - 1, "more such value") + ")" : "") +
           ", which is not a number above 0: the width is unknown there";
}

std::string micrometres(const std::string& text, double nanometres, const std::string& units) {
    return in_micrometres(units) ? text : number_text(nanometres / 1000);
}

} // namespace hsi::raster
