// SPDX-License-Identifier: MIT
// Reads files of field spectrometers (ASD, SVC, Spectral Evolution), which contain one spectrum each.
#include "core/counted.h"
#include "core/file_path.h"
#include "core/text.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/table_axis.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

namespace hsi::raster {
namespace {

/// Returns the little-endian number that starts at byte `at`, in the byte order of the CPU.
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

// Byte offsets in the header of an ASD file (ASD File Format, version 8, revision B).
constexpr size_t asd_type_at = 186, asd_first_at = 191, asd_step_at = 195, asd_format_at = 199,
                 asd_channels_at = 204, asd_header = 484;

/// Returns `count` numbers from byte `at` on. `format` is the header's code of the data type: 0 float, 1
/// int32, 2 double.
std::vector<double> asd_numbers(const std::string& bytes, size_t at, size_t count, int format) {
    std::vector<double> values(count);
    for (size_t k = 0; k < count; ++k)
        values[k] = format == 0   ? static_cast<double>(number_at<float>(bytes, at + 4 * k))
                    : format == 1 ? static_cast<double>(number_at<int32_t>(bytes, at + 4 * k))
                                  : number_at<double>(bytes, at + 8 * k);
    return values;
}

/// Returns the white reference, which follows the spectrum after a flag, two times and a description. Returns
/// an empty list if the file ends before the reference, or if the reference contains only zeros or an invalid
/// value.
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

/// Returns the numbers of a text line; empty if one of its words is not a number.
std::vector<double> numbers_in(const std::string& line) {
    std::vector<double> values;
    const CPLStringList words(CSLTokenizeString2(line.c_str(), " \t;", 0));
    for (int i = 0; i < words.Count(); ++i) {
        values.push_back(number_with_comma(words[i]));
        if (std::isnan(values.back()) && !EQUAL(words[i], "nan")) return {};
    }
    return values;
}

/// Returns the numbers of all text lines from index `begin` on. \throws Error if the lines have different
/// counts of numbers.
std::vector<std::vector<double>> rows_from(const std::string& path, const CPLStringList& lines, int begin) {
    std::vector<std::vector<double>> rows;
    for (int i = begin; i < lines.Count(); ++i) {
        auto row = numbers_in(lines[i]);
        if (row.size() < 2 || (!rows.empty() && row.size() != rows.front().size()))
            refuse_library(path,
                           "it has an invalid line of data: '" + std::string(lines[i]).substr(0, 60) + "'");
        rows.push_back(std::move(row));
    }
    if (rows.empty()) refuse_library(path, "has no data");
    return rows;
}

/// The index of the column of wavelengths, and the unit of the wavelengths.
struct Places {
    size_t column = 0;
    std::string unit = "nm";
};

/// Makes a library with one spectrum from the rows of a data table.
SpectralLibrary one_spectrum(const std::string& name, const std::vector<std::vector<double>>& rows,
                             const Places& places, double (*value)(const std::vector<double>&, size_t),
                             size_t column) {
    SpectralLibrary library;
    library.names.push_back(name);
    auto& spectrum = library.spectra.emplace_back();
    for (const auto& row : rows) {
        library.wavelengths_nm.push_back(row[places.column]);
        spectrum.push_back(value(row, column));
        library.missing += std::isnan(spectrum.back());
    }
    library_to_nm(library.wavelengths_nm, places.unit);
    return library;
}

Column column_of(const std::vector<std::vector<double>>& rows, size_t column) {
    Column numbers;
    for (const auto& row : rows)
        numbers.push_back(row[column]);
    return numbers;
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
        refuse_library(path, "its ASD header does not state the wavelengths or the data type");
    const size_t end = asd_header + channels * (format == 2 ? 8 : 4);
    if (bytes.size() < end)
        refuse_library(path, "is shorter than its ASD header states (" + counted(bytes.size(), "byte") + ")");
    SpectralLibrary library;
    auto values = asd_numbers(bytes, asd_header, channels, format);
    const auto reference = asd_reference(bytes, end, channels, format);
    // ASD files store the spectrum of the target as measured, even if the instrument displays reflectance. If
    // the reference contains counts (above 10), a spectrum with values up to 2 has already been divided by
    // the reference.
    const bool measured = type <= 2 || type == 6;
    const bool divided = !reference.empty() && largest_of(values) <= 2 && largest_of(reference) > 10;
    if (measured && !reference.empty() && !divided) {
        for (size_t k = 0; k < channels; ++k)
            values[k] = reference[k] != 0 ? values[k] / reference[k] : no_library_value;
    } else if (type != 1 || (!divided && largest_of(values) > 2)) {
        note(library, path,
             std::string("has ") + types[std::min(type, 8)] +
                 " without a white reference: its values are used unchanged");
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
    // The columns are wavelength, reference, target, and target in per cent of the reference.
    if (rows.front().size() != 4)
        refuse_library(path, "has " + counted(rows.front().size(), "column") + " of data instead of 4");
    if (!are_possible_wavelengths(column_of(rows, 0)))
        refuse_library(path, "has no wavelengths in the first column of its data");
    return one_spectrum(name, rows, {}, of_percent, 3);
}

bool is_sed_text(const std::string& text) {
    const std::string lines = "\n" + text;
    return lines.find("\nData:") != std::string::npos && lines.find("\nColumns [") != std::string::npos;
}

namespace {

/// Returns the column names in a text line; tabs, or two or more blanks, separate the names.
std::vector<std::string> names_of_columns(const std::string& line, size_t count) {
    std::string text = line;
    if (const CPLStringList names(CSLTokenizeString2(text.c_str(), "\t", 0));
        names.Count() != static_cast<int>(count))
        for (size_t at = text.find("  "); at != std::string::npos; at = text.find("  ", at + 1))
            text[at] = '\t';
    const CPLStringList names(
        CSLTokenizeString2(text.c_str(), "\t", CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES));
    std::vector<std::string> out;
    for (int c = 0; c < names.Count(); ++c)
        if (*names[c] != '\0') out.emplace_back(names[c]);
    return out;
}

/// Returns the column whose name denotes wavelengths. Otherwise returns the first column if its numbers can
/// be wavelengths.
Places sed_wavelengths(const std::string& path, const std::vector<std::string>& columns,
                       const std::vector<std::vector<double>>& rows) {
    for (const Said wanted : {Said::plainly, Said::perhaps})
        for (size_t c = 0; c < columns.size(); ++c)
            if (says_wavelengths(columns[c]) == wanted) {
                std::string unit = stated_unit(columns[c]);
                const Column numbers = column_of(rows, c);
                if (unit.empty() && *std::max_element(numbers.begin(), numbers.end()) < 100) unit = "um";
                return {c, unit.empty() ? "nm" : unit};
            }
    if (says_number(columns.front()) || counts_lines(column_of(rows, 0)) ||
        !are_possible_wavelengths(column_of(rows, 0)))
        refuse_library(path, "has no column called wavelength: " + joined(columns, ", "));
    return {};
}

} // namespace

SpectralLibrary read_sed_text(const std::string& path, const std::string& text) {
    const CPLStringList lines(CSLTokenizeString2(text.c_str(), "\r\n", 0));
    int head = 0;
    for (int i = 0; i < lines.Count() && head == 0; ++i)
        if (STARTS_WITH_CI(lines[i], "Data:")) head = i + 1;
    if (head >= lines.Count()) refuse_library(path, "has no data");
    const auto rows = rows_from(path, lines, head + 1);
    const auto columns = names_of_columns(lines[head], rows.front().size());
    if (rows.front().size() != columns.size())
        refuse_library(path, "has " + counted(rows.front().size(), "column") + " of data under " +
                                 counted(columns.size(), "name"));
    const Places places = sed_wavelengths(path, columns, rows);
    // The reflectance has a name such as "Reflect. %", "Tgt./Ref. %" or "Reflect. [1.0]". Without such a
    // column, the reflectance is the target divided by the reference.
    std::optional<size_t> reflectance, target, reference;
    for (size_t c = 0; c < columns.size(); ++c) {
        const std::string column = lower(columns[c]);
        if (c == places.column) continue;
        if (starts_with(column, "refl") || starts_with(column, "tgt./ref")) reflectance = c;
        if (column.find("(target)") != std::string::npos) target = c;
        if (column.find("(ref.)") != std::string::npos) reference = c;
    }
    const std::string name = stem_of(path);
    if (reflectance) {
        const std::string column = lower(columns[*reflectance]);
        const bool percent =
            column.find('%') != std::string::npos || column.find("percent") != std::string::npos;
        return one_spectrum(name, rows, places, percent ? of_percent : as_it_is, *reflectance);
    }
    size_t taken = rows.front().size() - 1;
    if (target) taken = *target;
    if (taken == places.column) refuse_library(path, "has only a column of wavelengths");
    SpectralLibrary library = one_spectrum(name, rows, places, as_it_is, taken);
    if (target && reference) {
        for (size_t k = 0; k < rows.size(); ++k)
            library.spectra[0][k] =
                rows[k][*reference] != 0 ? rows[k][*target] / rows[k][*reference] : no_library_value;
    } else {
        note(library, path, "has no column of reflectance: '" + columns[taken] + "' is used unchanged");
    }
    return library;
}

} // namespace hsi::raster
