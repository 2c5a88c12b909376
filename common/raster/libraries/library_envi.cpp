// SPDX-License-Identifier: MIT
// ENVI spectral libraries: rows of spectra with a header file.
#include "core/counted.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace hsi::raster {
namespace {

std::string without_extension(const std::string& path) {
    const std::string extension = CPLGetExtension(path.c_str());
    return extension.empty() ? path : path.substr(0, path.size() - extension.size() - 1);
}

/// Returns the whole number (0 to 1e9) of a header field, or `otherwise` if the header does not have the
/// field. \throws Error.
size_t header_number(const EnviHeader& header, const char* key, size_t otherwise, const std::string& path) {
    const std::string* text = header.find(key);
    if (!text) return otherwise;
    const double value = library_number(*text);
    if (!(value >= 0 && value <= 1e9))
        refuse_library(path, std::string("the header's '") + key + "' is not a number");
    return static_cast<size_t>(value);
}

/// Returns the elements of a header list, which should have `count` elements. A list without commas is split
/// at semicolons or, with `blanks`, at blanks, if the split gives `count` elements. `blanks` is meant for
/// lists of numbers, since names contain blanks.
std::vector<std::string> elements_of(const std::string& text, size_t count, bool blanks) {
    auto elements = envi_list(text);
    if (elements.size() != 1 || count < 2) return elements;
    for (const char* between : {";", " \t\r\n"}) {
        if (*between == ' ' && !blanks) break;
        const CPLStringList words(CSLTokenizeString2(elements.front().c_str(), between,
                                                     CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES));
        if (words.Count() == static_cast<int>(count)) return {words.List(), words.List() + words.Count()};
    }
    return elements;
}

/// Returns the numbers of a header list. If the length of the list is not `count`, the list is ignored with a
/// note and the result is empty.
std::vector<double> header_list(const EnviHeader& header, const char* key, size_t count,
                                const std::string& path, SpectralLibrary& library) {
    std::vector<double> values;
    if (const std::string* text = header.find(key))
        for (const auto& element : elements_of(*text, count, true))
            values.push_back(library_number(element));
    if (!values.empty() && values.size() != count) {
        note(library, path,
             std::string("the list '") + key + "' has " + counted(values.size(), "value") + " for " +
                 counted(count, "band") + " and is ignored");
        values.clear();
    }
    return values;
}

template <class T>
double element(const char* at, bool swap) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, at, sizeof(T));
    if (swap) std::reverse(bytes, bytes + sizeof(T));
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return static_cast<double>(value);
}

/// Type, width and reader of the stored values, for one code of ENVI's field "data type".
struct Storage {
    int type;
    size_t width;
    double (*value)(const char*, bool swap);
};

Storage storage_of(size_t type, const std::string& path) {
    static constexpr Storage known[] = {
        {1, 1, element<uint8_t>},   {2, 2, element<int16_t>},  {3, 4, element<int32_t>},
        {4, 4, element<float>},     {5, 8, element<double>},   {12, 2, element<uint16_t>},
        {13, 4, element<uint32_t>}, {14, 8, element<int64_t>}, {15, 8, element<uint64_t>}};
    for (const Storage& storage : known)
        if (static_cast<size_t>(storage.type) == type) return storage;
    refuse_library(path, "data type " + std::to_string(type) + " is not supported");
}

void read_wavelengths(const EnviHeader& header, const std::string& path, SpectralLibrary& library) {
    const size_t bands = library.bands();
    library.wavelengths_nm = header_list(header, "wavelength", bands, path, library);
    library.fwhm_nm = header_list(header, "fwhm", bands, path, library);
    const std::string units = envi_wavelength_unit(header);
    const std::string unit = wavelengths_to_nm(library, path, units);
    widths_to_nm(library, path, !unit.empty() ? unit : units.empty() ? "nm" : units);
}

/// Replaces values that the header marks as invalid by NaN: "data ignore value", and all values of a band
/// that `bbl` marks as bad.
void leave_out_marked(const EnviHeader& header, bool single, const std::string& path,
                      SpectralLibrary& library) {
    const std::string* const ignored = header.find("data ignore value");
    const double nothing = ignored ? library_number(*ignored) : no_library_value;
    const auto good = header_list(header, "bbl", library.bands(), path, library);
    for (auto& spectrum : library.spectra)
        for (size_t b = 0; b < spectrum.size(); ++b) {
            library.missing += std::isnan(spectrum[b]);
            const bool ignore = spectrum[b] == nothing ||
                                (single && static_cast<float>(spectrum[b]) == static_cast<float>(nothing));
            if (ignore || (!good.empty() && good[b] == 0)) spectrum[b] = no_library_value;
        }
}

} // namespace

std::optional<EnviPair> envi_pair(const std::string& path) {
    const std::string stem = without_extension(path);
    if (EQUAL(CPLGetExtension(path.c_str()), "hdr")) {
        std::string data;
        if (is_regular_file(stem)) data = stem; // also covers headers named x.sli.hdr
        for (const char* extension : {"sli", "esl", "slb", "lib", "dat", "img", "bin", "bsq"})
            for (const auto& spelling : {CPLString(extension), CPLString(extension).toupper()})
                if (data.empty() && is_regular_file(stem + "." + spelling)) data = stem + "." + spelling;
        return EnviPair{data, path};
    }
    for (const char* extension : {".hdr", ".HDR", ".Hdr"})
        for (const std::string& name : {stem, path})
            if (is_regular_file(name + extension)) return EnviPair{path, name + extension};
    return std::nullopt;
}

SpectralLibrary read_envi_library(const EnviPair& files) {
    const std::string& path = files.data.empty() ? files.header : files.data;
    std::string text = utf8_text(library_text(files.header));
    std::replace(text.begin(), text.end(), '\r', '\n');
    const EnviHeader header = EnviHeader::parse(text);
    const size_t bands = header_number(header, "samples", 0, path);
    const size_t count = header_number(header, "lines", 0, path);
    if (bands == 0 || count == 0 || header_number(header, "bands", 1, path) != 1)
        refuse_library(path, "its header does not describe a spectral library");
    if (files.data.empty())
        refuse_library(path, "is a header without its data (" + name_of(without_extension(path)) +
                                 ".sli) next to it");
    const size_t order = header_number(header, "byte order", 0, path);
    if (order > 1)
        refuse_library(path, "its header has byte order = " + std::to_string(order) + ", which is invalid");
    const Storage storage = storage_of(header_number(header, "data type", 0, path), path);
    const size_t offset = header_number(header, "header offset", 0, path);
    const std::string data = library_text(path);
    if (data.size() < offset + bands * count * storage.width)
        refuse_library(path, "is cut short: " + counted(data.size(), "byte") + " of the " +
                                 std::to_string(offset + bands * count * storage.width) +
                                 " that its header states");

    SpectralLibrary library;
    std::vector<std::string> names;
    if (const std::string* list = header.find("spectra names")) names = elements_of(*list, count, false);
    if (!names.empty() && names.size() != count)
        note(library, path,
             "the list 'spectra names' has " + counted(names.size(), "name") + " for " +
                 counted(count, "spectrum", "spectra"));
    for (size_t k = 0; k < count; ++k) {
        library.names.push_back(k < names.size() ? names[k] : "Spectrum " + std::to_string(k + 1));
        std::vector<double> spectrum(bands);
        for (size_t b = 0; b < bands; ++b)
            spectrum[b] = storage.value(data.data() + offset + (k * bands + b) * storage.width, order != 0);
        library.spectra.push_back(std::move(spectrum));
    }
    read_wavelengths(header, path, library);
    take_band_numbers(library, header_list(header, source_band_field, bands, path, library), true);
    leave_out_marked(header, storage.type == 4, path, library);
    return library;
}

} // namespace hsi::raster
