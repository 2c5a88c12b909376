// SPDX-License-Identifier: MIT
// What field spectrometers write, a spectrum a file: ASD, SVC, Spectral Evolution.
#include "core/counted.h"
#include "core/file_path.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/metadata_items.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace hsi::raster {
namespace {

/// A number of a file, which is little-endian.
template <class T>
T number_at(const std::string& bytes, size_t at) {
    char raw[sizeof(T)];
    std::memcpy(raw, bytes.data() + at, sizeof(T));
    if constexpr (std::endian::native == std::endian::big) std::reverse(raw, raw + sizeof(T));
    T value;
    std::memcpy(&value, raw, sizeof(T));
    return value;
}

std::string stem_of(const std::string& path) { return CPLGetBasename(path.c_str()); }

// Bytes of an ASD file's header (ASD File Format, version 8, revision B).
constexpr size_t asd_type_at = 186, asd_first_at = 191, asd_step_at = 195, asd_format_at = 199,
                 asd_channels_at = 204, asd_header = 484;

/// Numbers from `at` on, as the header's data format says: float, integer or double.
std::vector<double> asd_numbers(const std::string& bytes, size_t at, size_t count, int format) {
    std::vector<double> values(count);
    for (size_t k = 0; k < count; ++k)
        values[k] = format == 0   ? static_cast<double>(number_at<float>(bytes, at + 4 * k))
                    : format == 1 ? static_cast<double>(number_at<int32_t>(bytes, at + 4 * k))
                                  : number_at<double>(bytes, at + 8 * k);
    return values;
}

/// The white reference behind the spectrum: a flag, two times and a description stand before it. Empty when
/// the file ends before, or when it holds nothing.
std::vector<double> asd_reference(const std::string& bytes, size_t at, size_t channels, int format) {
    constexpr size_t flag_and_times = 2 + 8 + 8;
    const size_t width = format == 2 ? 8 : 4;
    if (bytes.size() < at + flag_and_times + 2) return {};
    const size_t begin = at + flag_and_times + 2 + number_at<uint16_t>(bytes, at + flag_and_times);
    if (bytes.size() < begin + channels * width) return {};
    auto values = asd_numbers(bytes, begin, channels, format);
    const bool sound = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    const bool empty = std::all_of(values.begin(), values.end(), [](double v) { return v == 0; });
    return sound && !empty ? values : std::vector<double>();
}

double largest_of(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

/// Numbers of a line; empty when a word of it is none.
std::vector<double> numbers_in(const std::string& line) {
    std::vector<double> values;
    const CPLStringList words(CSLTokenizeString2(line.c_str(), " \t;", 0));
    for (int i = 0; i < words.Count(); ++i) {
        values.push_back(number_with_comma(words[i]));
        if (std::isnan(values.back()) && !EQUAL(words[i], "nan")) return {};
    }
    return values;
}

/// Lines of numbers from `begin` on, all of one length. \throws Error.
std::vector<std::vector<double>> rows_from(const std::string& path, const CPLStringList& lines, int begin) {
    std::vector<std::vector<double>> rows;
    for (int i = begin; i < lines.Count(); ++i) {
        auto row = numbers_in(lines[i]);
        if (row.size() < 2 || (!rows.empty() && row.size() != rows.front().size()))
            refuse_library(path, "a line of its data is '" + std::string(lines[i]).substr(0, 60) + "'");
        rows.push_back(std::move(row));
    }
    if (rows.empty()) refuse_library(path, "holds no data");
    return rows;
}

/// A library of one spectrum, from rows that begin with the wavelength in nanometres.
SpectralLibrary one_spectrum(const std::string& name, const std::vector<std::vector<double>>& rows,
                             double (*value)(const std::vector<double>&, size_t), size_t column) {
    SpectralLibrary library;
    library.names.push_back(name);
    auto& spectrum = library.spectra.emplace_back();
    for (const auto& row : rows) {
        library.wavelengths_nm.push_back(row.front());
        spectrum.push_back(value(row, column));
        library.missing += std::isnan(spectrum.back());
    }
    library_to_nm(library.wavelengths_nm, "nm");
    return library;
}

double as_it_is(const std::vector<double>& row, size_t column) { return row[column]; }
double of_percent(const std::vector<double>& row, size_t column) { return row[column] / 100; }

} // namespace

bool is_asd_file(const std::string& bytes) {
    if (bytes.size() < asd_header || bytes.find('\0') >= asd_header) return false;
    const std::string version = bytes.substr(0, 3);
    return version == "ASD" || version == "asd" ||
           (version.compare(0, 2, "as") == 0 && version[2] >= '2' && version[2] <= '9');
}

SpectralLibrary read_asd_file(const std::string& path, const std::string& bytes) {
    static const char* const types[] = {"raw numbers",   "reflectance",     "radiance",
                                        "no unit",       "irradiance",      "a quality index",
                                        "transmittance", "an unknown type", "absorbance"};
    const int type = static_cast<unsigned char>(bytes[asd_type_at]);
    const int format = static_cast<unsigned char>(bytes[asd_format_at]);
    const size_t channels = number_at<uint16_t>(bytes, asd_channels_at);
    const double first = static_cast<double>(number_at<float>(bytes, asd_first_at));
    const double step = static_cast<double>(number_at<float>(bytes, asd_step_at));
    if (format > 2 || channels == 0 || !(first > 0) || !(step > 0) || !std::isfinite(first + step))
        refuse_library(path, "its ASD header tells no wavelengths or no type of numbers");
    const size_t end = asd_header + channels * (format == 2 ? 8 : 4);
    if (bytes.size() < end)
        refuse_library(path, "is shorter than its ASD header says (" + counted(bytes.size(), "byte") + ")");
    SpectralLibrary library;
    auto values = asd_numbers(bytes, asd_header, channels, format);
    const auto reference = asd_reference(bytes, end, channels, format);
    // What is stored is the target as it was measured, whatever the instrument showed; beside a reference of
    // counts, numbers up to 2 have been divided by it already.
    const bool measured = type <= 2 || type == 6;
    const bool divided = !reference.empty() && largest_of(values) <= 2 && largest_of(reference) > 10;
    if (measured && !reference.empty() && !divided) {
        for (size_t k = 0; k < channels; ++k)
            values[k] = reference[k] != 0 ? values[k] / reference[k] : no_library_value;
    } else if (type != 1 || (!divided && largest_of(values) > 2)) {
        note(library, path,
             std::string("holds ") + types[std::min(type, 8)] +
                 " and no white reference to divide by: its numbers are taken as they are");
    }
    for (size_t k = 0; k < channels; ++k) {
        library.wavelengths_nm.push_back(first + static_cast<double>(k) * step);
        library.missing += std::isnan(values[k]);
    }
    library.names.push_back(stem_of(path));
    library.spectra.push_back(std::move(values));
    return library;
}

bool is_svc_text(const std::string& text) { return text.rfind("/*** Spectra Vista SIG Data", 0) == 0; }

SpectralLibrary read_svc_text(const std::string& path, const std::string& text) {
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    std::string name = stem_of(path);
    int begin = 0;
    for (int i = 1; i < lines.Count() && begin == 0; ++i) {
        const std::string line = lines[i];
        const size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        const std::string key = lower(line.substr(0, equals));
        if (key == "data") begin = i + 1;
        if (key != "name") continue;
        const std::string told = CPLString(line.substr(equals + 1)).Trim();
        if (!told.empty()) name = CPLGetBasename(told.substr(told.find_last_of('\\') + 1).c_str());
    }
    if (begin == 0) refuse_library(path, "has no line 'data='");
    const auto rows = rows_from(path, lines, begin);
    // Wavelength, reference, target, and the target in percent of the reference.
    if (rows.front().size() != 4)
        refuse_library(path, "has " + counted(rows.front().size(), "column") + " of data instead of 4");
    return one_spectrum(name, rows, of_percent, 3);
}

bool is_sed_text(const std::string& text) {
    const std::string lines = "\n" + text;
    return lines.find("\nData:") != std::string::npos && lines.find("\nColumns [") != std::string::npos;
}

SpectralLibrary read_sed_text(const std::string& path, const std::string& text) {
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    int head = 0;
    for (int i = 0; i < lines.Count() && head == 0; ++i)
        if (STARTS_WITH_CI(lines[i], "Data:")) head = i + 1;
    if (head >= lines.Count()) refuse_library(path, "holds no data");
    const CPLStringList columns(CSLTokenizeString2(lines[head], "\t", 0));
    const auto rows = rows_from(path, lines, head + 1);
    if (static_cast<int>(rows.front().size()) != columns.Count())
        refuse_library(path, "has " + counted(rows.front().size(), "column") + " of data under " +
                                 counted(columns.Count(), "name"));
    // "Reflect. %", "Tgt./Ref. %", "Reflect. [1.0]"; else the target over the reference.
    size_t reflectance = 0, target = 0, reference = 0;
    for (int c = 1; c < columns.Count(); ++c) {
        const std::string column = lower(columns[c]);
        const auto at = static_cast<size_t>(c);
        if (starts_with(column, "reflect") || starts_with(column, "tgt./ref")) reflectance = at;
        if (column.find("(target)") != std::string::npos) target = at;
        if (column.find("(ref.)") != std::string::npos) reference = at;
    }
    const std::string name = stem_of(path);
    if (reflectance > 0)
        return one_spectrum(name, rows,
                            std::string(columns[static_cast<int>(reflectance)]).find('%') != std::string::npos
                                ? of_percent
                                : as_it_is,
                            reflectance);
    SpectralLibrary library =
        one_spectrum(name, rows, as_it_is, target > 0 ? target : rows.front().size() - 1);
    if (target > 0 && reference > 0) {
        for (size_t k = 0; k < rows.size(); ++k)
            library.spectra[0][k] =
                rows[k][reference] != 0 ? rows[k][target] / rows[k][reference] : no_library_value;
    } else {
        note(library, path,
             "has no column of reflectance: '" +
                 std::string(columns[static_cast<int>(target > 0 ? target : rows.front().size() - 1)]) +
                 "' is taken as it is");
    }
    return library;
}

} // namespace hsi::raster
