// SPDX-License-Identifier: MIT
// Spectral libraries as vector layers: the profiles of EnMAP-Box.
#include "core/counted.h"
#include "core/error.h"
#include "core/json.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/pipes_beside.h"

#include <cpl_string.h>
#include <cpl_vsi.h>
#include <ogrsf_frmts.h>

#include <algorithm>
#include <cmath>

namespace hsi::raster {
namespace {

/// Returns the text of a field. A binary field contains the bytes of JSON in newer files of EnMAP-Box.
std::string text_of(const OGRFeature& feature, int field) {
    if (!feature.IsFieldSetAndNotNull(field)) return {};
    if (feature.GetFieldDefnRef(field)->GetType() != OFTBinary) return feature.GetFieldAsString(field);
    int size = 0;
    const GByte* const bytes = const_cast<OGRFeature&>(feature).GetFieldAsBinary(field, &size);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size))
                 : std::string();
}

std::vector<double> numbers_of(const Json& list) {
    std::vector<double> values;
    for (const Json& item : list)
        values.push_back(item.is_number() ? item.get<double>() : no_library_value);
    return values;
}

struct FeatureSpectrum {
    std::vector<double> x, y;
    std::vector<double> good; ///< bad band multipliers: 0 marks a bad channel; empty: all channels are good
    std::string unit;
    /// Returns band numbers (from 1 on) if xUnit states "Band Number" or "Band Index", as EnMAP-Box writes. A
    /// band index counts from 0. The list is empty for other units.
    std::vector<double> band_numbers() const {
        const bool index = EQUAL(unit.c_str(), "Band Index");
        if (!index && !EQUAL(unit.c_str(), "Band Number")) return {};
        std::vector<double> numbers = x;
        for (double& number : numbers)
            number += index ? 1 : 0;
        return numbers;
    }
};

/// Reads the JSON of a profile; nullopt if the text is not a profile.
std::optional<FeatureSpectrum> spectrum_in(const std::string& text) {
    if (text.empty() || text.front() != '{') return std::nullopt;
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("y") || !json["y"].is_array()) return std::nullopt;
    FeatureSpectrum profile;
    profile.y = numbers_of(json["y"]);
    if (json.contains("x") && json["x"].is_array()) profile.x = numbers_of(json["x"]);
    if (json.contains("bbl") && json["bbl"].is_array()) profile.good = numbers_of(json["bbl"]);
    if (json.contains("xUnit") && json["xUnit"].is_string()) profile.unit = json["xUnit"].get<std::string>();
    return profile;
}

/// Returns whether two lists of wavelengths agree except for rounding in unit conversions. Two unknown
/// wavelengths (NaN) count as equal.
bool are_same(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= 1e-6 * std::fabs(x);
    });
}

/// Adds all profiles of a feature to the library. Sets `packed` if a field contains a pickled Python object,
/// which is not read.
void add_feature(const std::string& path, const OGRFeature& feature, SpectralLibrary& library, bool& packed) {
    const int fields = feature.GetFieldCount();
    std::string name;
    std::optional<std::string> its_class;
    for (int f = 0; f < fields; ++f) {
        if (EQUAL(feature.GetFieldDefnRef(f)->GetNameRef(), "name")) name = text_of(feature, f);
        if (EQUAL(feature.GetFieldDefnRef(f)->GetNameRef(), "class")) its_class = text_of(feature, f);
    }
    int found = 0;
    for (int f = 0; f < fields; ++f) {
        const std::string text = text_of(feature, f);
        auto profile = spectrum_in(text);
        // Pickled Python objects are never read, because unpickling can execute code.
        constexpr char pickle = '\x80';
        packed |= !profile && !text.empty() && text.front() == pickle;
        if (!profile) continue;
        if (profile->y.empty() || (!profile->x.empty() && profile->x.size() != profile->y.size()))
            refuse_library(path, "a profile has " + counted(profile->x.size(), "wavelength") + " for " +
                                     counted(profile->y.size(), "value"));
        if (!profile->good.empty() && profile->good.size() != profile->y.size())
            refuse_library(path, "a profile has a 'bbl' of " + counted(profile->good.size(), "number") +
                                     " for " + counted(profile->y.size(), "value"));
        for (const double v : profile->y)
            library.missing += std::isnan(v);
        for (size_t b = 0; b < profile->good.size(); ++b)
            if (profile->good[b] == 0) profile->y[b] = no_library_value;
        SpectralLibrary own;
        take_band_numbers(own, profile->band_numbers(), true);
        if (own.band_numbers.empty()) {
            own.wavelengths_nm = profile->x;
            wavelengths_to_nm(own, path, profile->unit);
        }
        const auto& nm = own.wavelengths_nm;
        if (library.spectra.empty()) {
            library.wavelengths_nm = nm;
            library.notes = own.notes;
            library.band_numbers = own.band_numbers;
            library.numbers_told = own.numbers_told;
        } else if (profile->y.size() != library.bands() || !are_same(nm, library.wavelengths_nm) ||
                   own.band_numbers != library.band_numbers) {
            throw Error("'" + path + "': its profiles have different wavelengths, or bands ('" +
                            library.names.front() + "' has " + counted(library.bands(), "band") + ", '" +
                            (name.empty() ? "Spectrum " + std::to_string(library.names.size() + 1) : name) +
                            "' " + std::to_string(profile->y.size()) + ")",
                        "Interpolate all spectra to the same wavelengths, or write one file per spectrum.");
        }
        const std::string called =
            name.empty() ? "Spectrum " + std::to_string(library.names.size() + 1) : name;
        library.names.push_back(found++ == 0 ? called
                                             : called + " " + feature.GetFieldDefnRef(f)->GetNameRef());
        library.spectra.push_back(std::move(profile->y));
        if (its_class) library.classes.push_back(*its_class);
    }
}

/// Makes a text readable for GDAL as a file in /vsimem while this object exists.
class TextInMemory {
  public:
    explicit TextInMemory(const std::string* text) {
        if (text == nullptr) return;
        m_name = CPLSPrintf("/vsimem/gdal_hsi_profiles_%p.geojson", static_cast<const void*>(this));
        // The const_cast is safe because GDAL only reads the bytes.
        auto* const bytes = reinterpret_cast<GByte*>(const_cast<char*>(text->data()));
        VSIFCloseL(VSIFileFromMemBuffer(m_name.c_str(), bytes, text->size(), FALSE));
    }
    ~TextInMemory() {
        if (!m_name.empty()) VSIUnlink(m_name.c_str());
    }
    TextInMemory(const TextInMemory&) = delete;
    TextInMemory& operator=(const TextInMemory&) = delete;
    const std::string& name() const { return m_name; }

  private:
    std::string m_name;
};

} // namespace

bool holds_features(const std::string& text) {
    const size_t at = text.find_first_not_of(" \t\r\n");
    return at != std::string::npos && text[at] == '{';
}

SpectralLibrary read_feature_spectra(const std::string& path, const std::string* text) {
    register_drivers();
    if (text == nullptr) refuse_pipe_beside(path);
    const GdalErrors errors;
    const TextInMemory file(text);
    const DatasetHandle dataset(
        GDALDataset::FromHandle(GDALOpenEx(text ? file.name().c_str() : path.c_str(),
                                           GDAL_OF_VECTOR | GDAL_OF_READONLY, nullptr, nullptr, nullptr)));
    if (!dataset) refuse_library(path, "is not a vector layer that GDAL can open: " + errors.text());
    SpectralLibrary library;
    bool packed = false;
    for (int l = 0; l < dataset->GetLayerCount(); ++l)
        for (const auto& feature : *dataset->GetLayer(l))
            add_feature(path, *feature, library, packed);
    if (library.spectra.empty())
        refuse_library(
            path,
            packed ? "has profiles in Python's pickle format, which is not read because it may run programs"
                   : "has no profiles: no field with {\"x\": [...], \"y\": [...]}");
    return library;
}

} // namespace hsi::raster
