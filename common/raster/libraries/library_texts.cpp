// SPDX-License-Identifier: MIT
// Reads spectra as the archives of USGS and ECOSTRESS deliver them: one text file per spectrum.
#include "core/counted.h"
#include "core/file_path.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hsi::raster {
namespace {

/// The title and the numbers of a USGS text file.
struct Record {
    std::string title;
    std::vector<double> values;
};

Record usgs_record(const std::string& path, const std::string& text) {
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    Record record;
    if (lines.Count() == 0) refuse_library(path, "is empty");
    const std::string title = lines[0];
    record.title = title.substr(std::min(title.find(':'), title.size() - 1) + 1);
    record.title.erase(0, record.title.find_first_not_of(' '));
    for (int i = 1; i < lines.Count(); ++i) {
        const double v = library_number(CPLString(lines[i]).Trim());
        if (!std::isfinite(v)) refuse_library(path, "line " + std::to_string(i + 1) + " is not a number");
        record.values.push_back(v);
    }
    if (record.values.empty()) refuse_library(path, "has no values");
    return record;
}

/// Returns the spectrometer that a title names. The title of a spectrum has a letter for the purge ("ASDFRa",
/// "BECKb"); the title of a wavelength file begins with "Wavelengths ASD ...".
std::string spectrometer_of(const std::string& title) {
    for (const char* name :
         {"ASDFR", "ASDHR", "ASDNG", "ASD", "BECK", "NIC4", "AVIRIS", "CRISM", "HYPERION", "HYMAP"})
        if (upper(title).find(name) != std::string::npos) return STARTS_WITH(name, "ASD") ? "ASD" : name;
    return {};
}

/// Returns the collection of a USGS text: "s07_AV14" for " s07_AV14 Record=5448: ...". In convolved and
/// resampled libraries, the collection denotes a sensor.
std::string collection_of(const std::string& text) {
    const CPLStringList words(
        CSLTokenizeString2(text.substr(0, text.find_first_of("\r\n")).c_str(), " \t", 0));
    return words.Count() > 0 ? lower(words[0]) : std::string();
}

/// Returns true for splib06, splib07a and splib07b. These collections contain spectra at the channels of the
/// spectrometer that measured them.
bool is_of_spectrometers(const std::string& collection) { return starts_with(collection, "splib"); }

struct Wavelengths {
    std::string file;
    std::vector<double> micrometres;
};

/// Finds the wavelength file of a spectrum, in the folder of the spectrum or up to two folders above. The
/// file must have the same number of channels. In the collections of spectrometers, the file must be for the
/// same spectrometer; in a convolved library, the file must be from the same collection. Otherwise, a
/// convolved library uses the only file with this number of channels in the nearest folder.
Wavelengths usgs_wavelengths(const std::string& path, const std::string& text) {
    const Record spectrum = usgs_record(path, text);
    const std::string instrument = spectrometer_of(spectrum.title), collection = collection_of(text);
    std::string folder = folder_of(path);
    for (int up = 0; up < 3; ++up, folder = join_path(folder, "..")) {
        const CPLStringList names(VSIReadDirEx(folder.c_str(), 100000));
        std::vector<Wavelengths> fitting;
        for (int i = 0; i < names.Count(); ++i) {
            if (lower(names[i]).find("wavelength") == std::string::npos) continue;
            const std::string file = join_path(folder, names[i]);
            const std::string other = library_text(file);
            if (!is_usgs_text(other)) continue;
            Record record = usgs_record(file, other);
            if (record.values.size() != spectrum.values.size()) continue;
            Wavelengths found{file, std::move(record.values)};
            if (is_of_spectrometers(collection) ? spectrometer_of(record.title) == instrument
                                                : collection_of(other) == collection)
                return found;
            fitting.push_back(std::move(found));
        }
        if (!is_of_spectrometers(collection) && fitting.size() == 1) return std::move(fitting.front());
    }
    return {};
}

} // namespace

bool is_usgs_text(const std::string& text) {
    const std::string title = text.substr(0, text.find_first_of("\r\n"));
    const size_t record = title.find("Record=");
    return record != std::string::npos && title.find(':', record) != std::string::npos;
}

std::string usgs_wavelength_file(const std::string& path, const std::string& text) {
    return usgs_wavelengths(path, text).file;
}

SpectralLibrary read_usgs_text(const std::string& path, const std::string& text) {
    Record record = usgs_record(path, text);
    SpectralLibrary library;
    library.wavelengths_nm = usgs_wavelengths(path, text).micrometres;
    library_to_nm(library.wavelengths_nm, "um");
    if (library.wavelengths_nm.empty())
        library.notes.push_back(path + ": its bands have no wavelengths, since no wavelength file with " +
                                std::to_string(record.values.size()) +
                                " channels of its spectrometer or sensor is next to it");
    // Reflectances below -1 are deleted channels (-1.23e34), or what remains of deleted channels after
    // convolution.
    for (double& v : record.values)
        if (v < -1) {
            v = no_library_value;
            ++library.missing;
        }
    library.names.push_back(record.title);
    library.spectra.push_back(std::move(record.values));
    return library;
}

bool is_old_usgs_text(const std::string& text) {
    return text.substr(0, text.find_first_of("\r\n")).find("USGS Digital Spectral Library") !=
               std::string::npos &&
           text.find("\n---", 0) != std::string::npos;
}

SpectralLibrary read_old_usgs_text(const std::string& path, const std::string& text) {
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    int rule = 0; // a line of dashes ends the description of the archive
    while (rule < lines.Count() && !STARTS_WITH(lines[rule], "---"))
        ++rule;
    if (rule + 1 >= lines.Count()) refuse_library(path, "has no title and no data");
    SpectralLibrary library;
    std::vector<double> values;
    for (int i = rule + 2; i < lines.Count(); ++i) {
        const CPLStringList words(CSLTokenizeString2(lines[i], " \t", 0));
        const double x = words.Count() >= 2 ? library_number(words[0]) : no_library_value;
        const double y = words.Count() >= 2 ? library_number(words[1]) : no_library_value;
        if (std::isnan(x) || std::isnan(y)) {
            if (values.empty()) continue; // text lines about the history of the spectrum
            refuse_library(path,
                           "it has an invalid line of data: '" + std::string(lines[i]).substr(0, 60) + "'");
        }
        library.wavelengths_nm.push_back(x > 0 ? x : no_library_value);
        values.push_back(y > -1 ? y : no_library_value); // -1.23e34 marks deleted channels
        library.missing += std::isnan(values.back());
    }
    if (values.empty()) refuse_library(path, "has no data");
    library_to_nm(library.wavelengths_nm, "um");
    library.names.emplace_back(CPLString(lines[rule + 1]).Trim());
    library.spectra.push_back(std::move(values));
    return library;
}

bool is_ecostress_text(const std::string& text) {
    return text.rfind("Name:", 0) == 0 && text.find("\nX Units:") != std::string::npos;
}

SpectralLibrary read_ecostress_text(const std::string& path, const std::string& text) {
    std::map<std::string, std::string> header;
    std::vector<std::pair<double, double>> pairs;
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    for (int i = 0; i < lines.Count(); ++i) {
        const CPLStringList words(CSLTokenizeString2(lines[i], " \t,", 0));
        if (words.Count() == 2 && std::isfinite(library_number(words[0])) &&
            std::isfinite(library_number(words[1]))) {
            pairs.emplace_back(library_number(words[0]), library_number(words[1]));
            continue;
        }
        const std::string line = lines[i];
        if (const size_t colon = line.find(':'); colon != std::string::npos && pairs.empty())
            header[lower(line.substr(0, colon))] = CPLString(line.substr(colon + 1)).Trim();
    }
    if (pairs.empty()) refuse_library(path, "has no pairs of a wavelength and a value");
    if (const auto told = header.find("number of x values");
        told != header.end() && library_number(told->second) != static_cast<double>(pairs.size()))
        refuse_library(path,
                       "has " + counted(pairs.size(), "value") + ", but its header states " + told->second);
    SpectralLibrary library;
    const double unit = lower(header["y units"]).find("percent") != std::string::npos ? 0.01 : 1;
    const bool falling = pairs.back().first < pairs.front().first;
    std::vector<double> values;
    for (size_t k = 0; k < pairs.size(); ++k) {
        const auto& [x, y] = pairs[falling ? pairs.size() - 1 - k : k];
        library.wavelengths_nm.push_back(x);
        values.push_back(y * unit);
    }
    wavelengths_to_nm(library, path, stated_unit(header["x units"]));
    library.names.push_back(header["name"].empty() ? name_of(path) : header["name"]);
    library.spectra.push_back(std::move(values));
    return library;
}

} // namespace hsi::raster
