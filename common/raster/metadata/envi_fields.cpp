// SPDX-License-Identifier: MIT
// What an output's ENVI header, or its ENVI domain, takes over from the source's.
#include "raster/metadata/envi_fields.h"

#include "raster/metadata/envi_header.h"
#include "raster/metadata/metadata_items.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/metadata/spectral_texts.h"

#include <cpl_string.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

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
                                                source_band_field,
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

/// ENVI lists have no gaps: 0 stands where a band has no value.
std::string gapless_list(std::vector<std::string> texts) {
    for (std::string& t : texts)
        if (t.empty()) t = "0";
    return envi_list_text(texts);
}

} // namespace

bool scene_list(const std::string& key) {
    static const std::set<std::string> names = {
        "description",   "map info",        "projection info", "coordinate system string",
        "default bands", "pixel size",      "geo points",      "rpc info",
        "z plot range",  "z plot average",  "z plot titles",   "class lookup",
        "class names",   "default stretch", "x start",         "y start",
        "spectra names"};
    return names.count(key) > 0;
}

std::vector<std::string> cut_list(const std::vector<std::string>& list, const SceneMetadata& scene) {
    std::vector<std::string> out;
    for (const BandMetadata& band : scene.bands)
        out.push_back(list[static_cast<size_t>(band.file_band - 1)]);
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
        if (key == source_band_field) continue; // told anew, where it has to be
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
        // These come from the bands, where the driver has them already.
        if (key == "band names" || key == "data gain values" || key == "data offset values") continue;
        header.set(f.key, f.value);
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
