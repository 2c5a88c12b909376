// SPDX-License-Identifier: MIT
// Spectral libraries in MATLAB files: an array (band, spectrum), the names of the spectra, and wavelengths.
#include "core/error.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/matlab_scene.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace hsi::raster {
namespace {

using Variables = std::vector<const MatlabVariable*>;

/// Finds the array of spectra: the only array with two dimensions, or the only two-dimensional array that
/// fits the scene.
const MatlabVariable& find_spectra(const MatlabFile& file, const std::string& wanted, int64_t bands) {
    if (!wanted.empty()) return named_matlab_numbers(file, wanted);
    Variables fits;
    for (const MatlabVariable& one : file.variables())
        if (one.type != GDT_Unknown && one.rank() == 2 && std::min(one.dims[0], one.dims[1]) > 1)
            fits.push_back(&one);
    const auto only = [&](const auto& test) {
        Variables left;
        std::copy_if(fits.begin(), fits.end(), std::back_inserter(left), test);
        if (!left.empty()) fits = std::move(left);
    };
    only([&](const MatlabVariable* v) { return v->dims[0] == bands || v->dims[1] == bands; });
    // If several arrays have the number of bands of the scene, the array M is used. Data sets for unmixing
    // store endmembers under this name.
    if (fits.size() > 1) only([](const MatlabVariable* v) { return v->name == "M"; });
    if (fits.size() > 1) refuse_matlab(file, "has several arrays that may be the spectra", fits);
    if (fits.empty()) refuse_matlab(file, "has no array (band, spectrum)", {});
    return *fits.front();
}

/// Returns the names of `count` spectra. The list is empty if the file has no suitable variable, or several.
std::vector<std::string> find_names(const MatlabFile& file, int64_t count) {
    std::vector<std::vector<std::string>> lists;
    for (const MatlabVariable& one : file.variables()) {
        if (!(one.kind == "cell" && one.count() == count) && !(one.kind == "char" && one.dims[0] == count))
            continue;
        auto texts = file.texts(one);
        if (static_cast<int64_t>(texts.size()) != count ||
            std::all_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); }))
            continue;
        const std::string name = lower(one.name.substr(one.name.rfind('.') + 1));
        if (name == "cood" || name == "names" || name == "spectra_names") return texts;
        lists.push_back(std::move(texts));
    }
    return lists.size() == 1 ? lists.front() : std::vector<std::string>();
}

/// Returns the subscript of the bands; 0 (the first) if the data do not indicate the order.
size_t band_axis(const MatlabFile& file, const MatlabVariable& spectra, int64_t bands) {
    const int64_t rows = spectra.dims[0], columns = spectra.dims[1];
    if (rows == columns) return 0;
    const auto tell = [](bool first, bool second) { return first == second ? -1 : first ? 0 : 1; };
    int axis = tell(rows == bands, columns == bands);
    if (axis < 0)
        axis = tell(find_matlab_wavelengths(file, rows) != nullptr,
                    find_matlab_wavelengths(file, columns) != nullptr);
    if (axis < 0) axis = tell(!find_names(file, columns).empty(), !find_names(file, rows).empty());
    if (axis < 0) axis = tell(rows > 1, columns > 1); // one spectrum: the longer subscript is the bands
    return axis == 1 ? 1 : 0;
}

} // namespace

bool is_matlab(const std::string& path) { return matlab_name(path).has_value(); }

SpectralLibrary read_matlab_library(const std::string& name, size_t scene_bands) {
    const auto found = matlab_name(name);
    const auto file = found ? MatlabFile::open(found->path) : nullptr;
    if (!file) refuse_library(name, "is not a MATLAB file");
    const auto wanted_bands = static_cast<int64_t>(scene_bands);
    const MatlabVariable& spectra = find_spectra(*file, found->variable, wanted_bands);
    if (spectra.rank() != 2)
        throw Error("'" + file->path() + "': " + spectra.text() + " is not an array (band, spectrum)",
                    "For a scene, make a library with gdal_hsi_endmembers or gdal_hsi_spectra.");
    const size_t axis = band_axis(*file, spectra, wanted_bands);
    const int64_t bands = spectra.dims[axis], count = spectra.dims[1 - axis];
    const auto values = file->numbers(spectra);
    const auto names = find_names(*file, count);
    SpectralLibrary library;
    const auto rows = static_cast<size_t>(spectra.dims[0]);
    for (size_t k = 0; k < static_cast<size_t>(count); ++k) {
        library.names.push_back(names.empty() || names[k].empty() ? "Spectrum " + std::to_string(k + 1)
                                                                  : names[k]);
        auto& spectrum = library.spectra.emplace_back();
        for (size_t b = 0; b < static_cast<size_t>(bands); ++b)
            spectrum.push_back(values[axis == 0 ? k * rows + b : b * rows + k]);
    }
    if (const MatlabVariable* const wavelengths = find_matlab_wavelengths(*file, bands)) {
        library.wavelengths_nm = file->numbers(*wavelengths);
        wavelengths_to_nm(library, name, matlab_wavelength_units(*wavelengths));
    }
    return library;
}

} // namespace hsi::raster
