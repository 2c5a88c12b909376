// SPDX-License-Identifier: MIT
#include "raster/spectral_metadata.h"

#include "raster/envi_header.h"
#include "raster/metadata_items.h"

#include <cpl_string.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The element of `band` (1-based) in a list of one element a band.
std::string element(const std::vector<std::string>& list, int bands, int band) {
    return static_cast<int>(list.size()) == bands ? list[static_cast<size_t>(band - 1)] : std::string();
}

/// One element a band, and the unit of the wavelengths.
struct BandLists {
    std::vector<std::string> wavelength, fwhm, bbl;
    std::string units;
};

/// Of the ENVI header; what it lacks, of the dataset's items.
BandLists band_lists(const SceneMetadata& scene) {
    const auto list_of = [&](const char* key) {
        const std::string* value = scene.envi.find(key);
        return value ? envi_list(*value) : std::vector<std::string>();
    };
    const auto dataset_list = [&](const char* key) { return envi_list(value_of(scene.domains, "", key)); };
    BandLists lists{list_of("wavelength"), list_of("fwhm"), list_of("bbl"), {}};
    if (lists.wavelength.empty()) lists.wavelength = dataset_list("wavelength");
    if (lists.wavelength.empty()) lists.wavelength = dataset_list("wavelengths");
    if (lists.fwhm.empty()) lists.fwhm = dataset_list("fwhm");
    if (lists.bbl.empty()) lists.bbl = dataset_list("bbl");
    if (const std::string* u = scene.envi.find("wavelength units")) lists.units = *u;
    if (lists.units.empty()) lists.units = value_of(scene.domains, "", "wavelength_units");
    if (EQUAL(lists.units.c_str(), "unknown")) lists.units.clear();
    return lists;
}

void read_band_items(BandMetadata& b) {
    b.wavelength = value_of(b.domains, "", "wavelength");
    b.fwhm = value_of(b.domains, "", "fwhm");
    b.bbl = value_of(b.domains, "", "bbl");
    b.wavelength_units = value_of(b.domains, "", "wavelength_units");
    if (b.wavelength_units.empty()) b.wavelength_units = value_of(b.domains, "", "wavelength_unit");
}

/// The header's own texts before the band items that a driver made of them.
void read_band_lists(const BandLists& lists, int file_bands, BandMetadata& b) {
    const int n = b.file_band;
    if (const auto text = element(lists.wavelength, file_bands, n); !text.empty()) {
        b.wavelength = text;
        if (!lists.units.empty()) b.wavelength_units = lists.units;
    }
    if (const auto text = element(lists.fwhm, file_bands, n); !text.empty()) b.fwhm = text;
    if (const auto text = element(lists.bbl, file_bands, n); !text.empty()) b.bbl = text;
    if (b.wavelength_units.empty()) b.wavelength_units = lists.units;
    if (EQUAL(b.wavelength_units.c_str(), "unknown")) b.wavelength_units.clear();
}

void drop_item(MetadataDomains& domains, const char* domain, const char* key) {
    const auto at = domains.find(domain);
    if (at == domains.end()) return;
    std::erase_if(at->second, [&](const std::string& item) { return EQUAL(item_key(item).c_str(), key); });
    if (at->second.empty()) domains.erase(at);
}

/// GDAL's ENVI driver deals the elements of a header's list to the bands in turn even where the list has
/// another length, and then no element can be trusted to be its band's. Other drivers' items are their own.
void drop_items_of_wrong_lists(SceneMetadata& scene) {
    if (scene.driver != "ENVI") return;
    const auto wrong = [&](const char* key) { return is_wrong_band_list(scene, key); };
    const bool wavelength = wrong("wavelength"), fwhm = wrong("fwhm"), bbl = wrong("bbl");
    for (BandMetadata& b : scene.bands) {
        if (wavelength) {
            // The driver's names of bands end in the wavelength, or are nothing else.
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

/// The domain IMAGERY, for what no item and no list tells.
void read_imagery(BandMetadata& b) {
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
}

/// The bands are a dimension of a netCDF variable.
void read_netcdf_dimension(const MetadataDomains& of_dataset, BandMetadata& b) {
    if (!b.wavelength.empty()) return;
    b.wavelength = value_of(b.domains, "", "NETCDF_DIM_wavelength");
    if (!b.wavelength.empty()) b.wavelength_units = value_of(of_dataset, "", "wavelength#units");
}

} // namespace

bool is_wrong_band_list(const SceneMetadata& scene, const std::string& key) {
    const std::string* const text = scene.envi.find(key);
    const size_t count = text ? envi_list(*text).size() : 0;
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

bool in_micrometres(const std::string& units) {
    const std::string u = lower(units);
    return starts_with(u, "micro") || u == "um" || u == "\xc2\xb5m" || u == "\xce\xbcm";
}

bool in_nanometres(const std::string& units) {
    const std::string u = lower(units);
    return starts_with(u, "nano") || u == "nm";
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

void read_spectral(SceneMetadata& scene) {
    drop_items_of_wrong_lists(scene);
    const BandLists lists = band_lists(scene);
    double largest = 0;
    for (BandMetadata& b : scene.bands) {
        read_band_items(b);
        read_band_lists(lists, scene.file_bands, b);
        read_imagery(b);
        read_netcdf_dimension(scene.domains, b);
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

} // namespace hsi::raster
