// SPDX-License-Identifier: MIT
// Wavelengths, widths and the bad-band list, read in every form in which formats store them.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <string>
#include <vector>

namespace hsi::raster {

bool in_micrometres(const std::string& units);
bool in_nanometres(const std::string& units);

/// Returns the unit that the header states for its wavelengths: "wavelength units", else the title of the
/// first axis in "z plot titles". Empty if it states none.
std::string envi_wavelength_unit(const EnviHeader& header);

/// Returns notes for the user about the units of the scene's wavelengths: the assumed unit, or that a stated
/// unit cannot be converted.
std::vector<std::string> unit_notes(const SceneMetadata& scene);

/// Returns the number of values that the ENVI header or domain has in `key`, with or without braces; 0
/// without the key.
size_t band_list_size(const SceneMetadata& scene, const std::string& key);
/// Returns whether the ENVI header or domain has a list `key` whose length differs from the number of bands
/// in the file. Tools and outputs then ignore it.
bool is_wrong_band_list(const SceneMetadata& scene, const std::string& key);

/// Returns the name that a header gave a band. GDAL's ENVI driver appends the wavelength to the name, or uses
/// only the wavelength as name; the result is then empty.
std::string plain_band_name(const BandMetadata& band);

/// Fills wavelength, fwhm, bbl and their numbers in all bands of `scene`. Its domains and ENVI fields have
/// been read, and its bands are the file's.
void read_spectral(SceneMetadata& scene);

/// One unit for all bands: the file's own if it is the same for all bands, else nanometres.
struct SpectralTexts {
    bool known = false, widths = false;
    std::string units;
    std::vector<std::string> wavelength, fwhm;
};
SpectralTexts spectral_texts(const SceneMetadata& scene);

/// Returns an item of the domain IMAGERY: the file's own digits if they are micrometres.
std::string micrometres(const std::string& text, double nanometres, const std::string& units);

/// Returns the warning about invalid widths: `count` of them, the first of which is `width` of `band`.
std::string no_widths(int band, const std::string& width, size_t count);

/// Returns the warning about implausible widths: wider than the range of all wavelengths and than 20 times
/// the distance to the next band, or wider than twice the band's wavelength. Most of these are in another
/// unit. Empty if all are plausible. Both lists have one value per band (NaN if unknown), or are empty.
/// numbers: numbers of the bands, empty for 1, 2, 3 ...
std::string doubtful_widths(const std::vector<double>& wavelengths_nm, const std::vector<double>& fwhm_nm,
                            const std::vector<int>& numbers = {});

} // namespace hsi::raster
