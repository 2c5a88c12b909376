// SPDX-License-Identifier: MIT
#include "raster/spectral_library.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/text_table.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/text_input.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace hsi::raster {
namespace {

bool is_csv(const std::string& path) { return EQUAL(CPLGetExtension(path.c_str()), "csv"); }

std::string header_of(const std::string& path) { return CPLResetExtension(path.c_str(), "hdr"); }

/// Returns true if the file extension shows that the file is not an ENVI library.
bool has_own_extension(const std::string& path) {
    const std::string extension = CPLGetExtension(path.c_str());
    const auto others = {"csv",  "txt", "asc", "tsv", "json",    "geojson",
                         "gpkg", "asd", "sig", "sed", "spectrum"};
    return std::any_of(others.begin(), others.end(),
                       [&](const char* other) { return EQUAL(extension.c_str(), other); });
}

/// Refuses a pipe for a format that cannot be read sequentially.
[[noreturn]] void refuse_pipe(const std::string& path) {
    throw Error(
        "'" + path +
            "' is a pipe or a device, which can be read only once and in order; this library format needs a "
            "file",
        "Write it to a file first; only text tables, .asd, .sig, .sed and GeoJSON are read through pipes.");
}

bool is_of_several_files(const std::string& extension) {
    const auto names = {"sli", "hdr", "mat", "gpkg"};
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return EQUAL(extension.c_str(), name); });
}

/// Returns whether the bytes begin a MATLAB file: version 5, or version 7.3 (HDF5).
bool is_matlab_bytes(const std::string& bytes) {
    return bytes.rfind("MATLAB 5.0", 0) == 0 || bytes.rfind("MATLAB 7", 0) == 0 ||
           bytes.rfind("\x89HDF\r\n\x1a\n", 0) == 0;
}

SpectralLibrary read_form(const std::string& path, size_t scene_bands, bool bands_alone) {
    if (is_matlab(path)) return read_matlab_library(path, scene_bands);
    if (may_hold_arrays(path)) return read_array_library(path, scene_bands);
    const std::string extension = CPLGetExtension(path.c_str());
    if (is_pipe_or_device(path) && is_of_several_files(extension)) refuse_pipe(path);
    if (EQUAL(extension.c_str(), "sli") || EQUAL(extension.c_str(), "hdr")) {
        const auto files = envi_pair(path);
        if (!files) refuse_library(path, "has no header " + header_of(path));
        return read_envi_library(*files);
    }
    // A header crops.hdr belongs to crops.sli, and not to a file crops.geojson next to it.
    if (!has_own_extension(path))
        if (const auto files = envi_pair(path)) return read_envi_library(*files);
    const bool once = is_pipe_or_device(path);
    const std::string bytes = library_text(path);
    if (once && (is_matlab_bytes(bytes) || bytes.rfind("SQLite format 3", 0) == 0)) refuse_pipe(path);
    if (is_asd_file(bytes)) return read_asd_file(path, bytes);
    if (bytes.rfind("SQLite format 3", 0) == 0) return read_feature_spectra(path);
    const std::string text = utf8_text(bytes);
    if (text.find('\0') != std::string::npos) refuse_library(path, "is not a spectral library");
    if (is_envi_plot(text)) return read_envi_plot(path, text);
    if (is_old_usgs_text(text)) return read_old_usgs_text(path, text);
    if (is_csv(path)) return read_library_table(path, text, bands_alone);
    if (is_usgs_text(text)) return read_usgs_text(path, text);
    if (is_ecostress_text(text)) return read_ecostress_text(path, text);
    if (is_svc_text(text)) return read_svc_text(path, text);
    if (is_sed_text(text)) return read_sed_text(path, text);
    if (holds_features(text)) return once ? read_feature_spectra(path, &text) : read_feature_spectra(path);
    return read_library_table(path, text, bands_alone);
}

/// Returns true if the header states that the data are a spectral library.
bool says_library(const EnviPair& files) {
    const EnviHeader header = read_envi_header(files.header);
    const std::string* const type = header.find("file type");
    return type != nullptr && lower(*type).find("spectral library") != std::string::npos;
}

/// Replaces undeclared fill values by NaN.
void leave_out_fills(SpectralLibrary& library) {
    // No spectrum reaches this limit in any unit. USGS writes -1.23e34 for deleted channels. After
    // convolution, weighted sums with this value remain, such as -4.6e32 but also -3.
    constexpr double beyond = 1e20;
    bool deleted = false;
    for (const auto& spectrum : library.spectra)
        deleted |= std::any_of(spectrum.begin(), spectrum.end(), [](double v) { return v <= -beyond; });
    for (auto& spectrum : library.spectra) {
        double least = 0, largest = 1;
        constexpr double fills[] = {-99999, -32768, -9999, -999};
        const auto is_fill = [&](double v) {
            return std::find(std::begin(fills), std::end(fills), v) != std::end(fills);
        };
        for (const double v : spectrum) {
            if (!std::isfinite(v) || std::fabs(v) >= beyond || is_fill(v)) continue;
            least = std::min(least, v);
            largest = std::max(largest, v);
        }
        for (double& v : spectrum) {
            const bool remains = deleted && v < -largest;
            // Among other negative numbers of similar size, a number such as -999 is an ordinary value.
            const bool filled = is_fill(v) && least > v / 10;
            if (!std::isfinite(v) || !(std::fabs(v) >= beyond || remains || filled)) continue;
            v = no_library_value;
            ++library.missing;
        }
    }
}

SpectralLibrary read_some(const std::string& path, size_t scene_bands, bool bands_alone = false) {
    SpectralLibrary library = read_form(path, scene_bands, bands_alone);
    for (const std::string& told : {doubtful_wavelengths(library.wavelengths_nm),
                                    doubtful_widths(library.wavelengths_nm, library.fwhm_nm)})
        if (!told.empty()) note(library, path, told);
    return library;
}

} // namespace

void refuse_library(const std::string& path, const std::string& what) {
    throw Error("'" + path + "': " + what,
                "Give an ENVI spectral library (.sli with its .hdr), a .csv table, a text file of USGS "
                "(splib06, splib07) or ECOSTRESS, a field spectrometer's .asd, .sig or .sed, a MATLAB file, "
                "an array in netCDF, HDF5 or Zarr, or profiles in GeoJSON or a GeoPackage.");
}

std::string library_text(const std::string& path) {
    const GdalErrors quiet;
    return read_file(path, largest_file::library, FileHolds::bytes);
}

double library_number(const std::string& text) {
    const char* begin = text.c_str();
    char* end = nullptr;
    const double value = CPLStrtod(begin, &end);
    const char* const sign = *end != '\0' ? end + 1 : end;
    const char* const digit = *sign == '+' || *sign == '-' ? sign + 1 : sign;
    if (end != begin && (*end == 'D' || *end == 'd') && *digit >= '0' &&
        *digit <= '9') { // exponent D, as Fortran and IDL write it
        std::string other = text;
        other[static_cast<size_t>(end - begin)] = 'e';
        return library_number(other);
    }
    while (*end == ' ')
        ++end;
    return end == begin || *end != '\0' ? no_library_value : value;
}

void library_to_nm(std::vector<double>& values, const std::string& units) {
    double guess = 0;
    for (const double v : values)
        if (v > guess) guess = v;
    const WavelengthUnit* const unit =
        is_blank_unit(units) ? chosen_unit(units, guess, guess).unit : field_unit(units);
    for (double& v : values)
        v = unit != nullptr && v > 0 && std::isfinite(v) ? unit->nanometres(v) : no_library_value;
    if (std::none_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) values.clear();
}

std::string wavelengths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units) {
    double least = std::numeric_limits<double>::infinity(), largest = 0;
    for (const double v : library.wavelengths_nm)
        if (v > 0 && std::isfinite(v)) {
            least = std::min(least, v);
            largest = std::max(largest, v);
        }
    const UnitChoice choice = largest > 0 ? chosen_unit(units, least, largest) : UnitChoice();
    if (!choice.note.empty()) note(library, path, choice.note);
    if (choice.unit == nullptr) {
        library.other_axis = largest > 0;
        library.wavelengths_nm.clear();
        return {};
    }
    library_to_nm(library.wavelengths_nm, choice.unit->symbol);
    return choice.unit->symbol;
}

void widths_to_nm(SpectralLibrary& library, const std::string& path, const std::string& units) {
    size_t first = 0, count = 0;
    for (size_t b = library.fwhm_nm.size(); b-- > 0;)
        if (library.fwhm_nm[b] < 0 || std::isinf(library.fwhm_nm[b])) {
            first = b;
            ++count;
        }
    if (count > 0)
        note(library, path,
             no_widths(static_cast<int>(first) + 1, number_text(library.fwhm_nm[first]), count));
    // A width in wavenumbers, frequency or energy cannot be converted to nanometres.
    if (const WavelengthUnit* const unit = field_unit(units); unit != nullptr && unit->inverse)
        library.fwhm_nm.clear();
    library_to_nm(library.fwhm_nm, units);
}

double number_with_comma(const std::string& text) {
    if (std::count(text.begin(), text.end(), ',') != 1 || text.find('.') != std::string::npos)
        return library_number(text);
    std::string point = text;
    point[point.find(',')] = '.';
    return library_number(point);
}

void take_band_numbers(SpectralLibrary& library, const std::vector<double>& numbers, bool told) {
    std::set<int> seen;
    std::vector<int> in_order;
    bool counted = true;
    for (const double number : numbers) {
        constexpr double most = 1e6;
        if (!(number >= 1 && number <= most) || number != std::floor(number)) return;
        in_order.push_back(static_cast<int>(number));
        seen.insert(in_order.back());
        counted &= in_order.back() == static_cast<int>(in_order.size());
    }
    if (in_order.empty() || seen.size() != in_order.size()) return;
    library.band_numbers = std::move(in_order);
    library.numbers_told = told || !counted;
}

void note(SpectralLibrary& library, const std::string& path, const std::string& what) {
    library.notes.push_back("'" + path + "': " + what);
}

SpectralLibrary read_spectral_library(const std::string& path, size_t scene_bands) {
    SpectralLibrary library = read_some(path, scene_bands);
    leave_out_fills(library);
    const auto has_value = [](const std::vector<double>& spectrum) {
        return std::any_of(spectrum.begin(), spectrum.end(), [](double v) { return !std::isnan(v); });
    };
    if (std::none_of(library.spectra.begin(), library.spectra.end(), has_value))
        refuse_library(path, library.spectra.size() == 1
                                 ? "the spectrum '" + library.names.front() + "' has no value"
                                 : "its " + counted(library.spectra.size(), "spectrum", "spectra") +
                                       " have no values");
    if (library.missing > 0)
        note(library, path,
             counted(library.missing, "value") + " of " +
                 std::to_string(library.spectra.size() * library.bands()) +
                 worded(library.missing, " is", " are") +
                 " missing: empty, not a number, or a fill value such as -9999 or -1.23e34");
    return library;
}

BandList read_band_list(const std::string& path) {
    const SpectralLibrary library = read_some(path, 0, true);
    if (library.wavelengths_nm.empty()) refuse_library(path, "has no wavelengths of a spectrometer's bands");
    return {library.wavelengths_nm, library.fwhm_nm, library.notes};
}

bool may_be_library(const std::string& path) {
    if (is_matlab(path)) return true;
    if (!is_regular_file(path)) return false;
    const GdalErrors quiet;
    if (const auto files = envi_pair(path); files && !has_own_extension(path)) return says_library(*files);
    constexpr size_t enough = 4096;
    const std::string bytes = beginning_of_file(path, enough);
    if (is_asd_file(bytes) || bytes.rfind("SQLite format 3", 0) == 0) return true;
    // XML documents, virtual scenes, models and statistics are text files but not libraries.
    const std::string text = utf8_text(bytes);
    return !text.empty() && text.find('\0') == std::string::npos && text.find_first_of('<') != 0 &&
           text.find(R"("format": "gdal_hsi_)") == std::string::npos &&
           !EQUAL(CPLGetExtension(path.c_str()), "hsi");
}

std::optional<SpectralLibrary> plain_library(const std::string& path) {
    if (!is_regular_file(path) && !may_hold_arrays(path)) return {};
    const GdalErrors quiet;
    bool said = false; // true: the ENVI header states that the file is a spectral library
    try {
        if (const auto files = envi_pair(path); files && !has_own_extension(path))
            said = says_library(*files);
        auto library = read_spectral_library(path);
        if (said || !library.wavelengths_nm.empty() || !library.band_numbers.empty() || library.other_axis)
            return library;
    } catch (const Error&) { // not a library
        if (said) throw;
    }
    return {};
}

std::vector<std::string> files_of_library(const std::string& path) {
    std::vector<std::string> files;
    if (const auto pair = envi_pair(path); pair && !has_own_extension(path)) {
        for (const std::string& file : {pair->data, pair->header})
            if (file != path && is_there(file)) files.push_back(file);
        return files;
    }
    // Only a USGS text has a separate file of wavelengths. Its title shows the format.
    if (!is_usgs_text(beginning_of_file(path, 200))) return files;
    if (const std::string other = usgs_wavelength_file(path, library_text(path)); !other.empty())
        files.push_back(other);
    return files;
}

SpectrumTable read_spectrum_table(const std::string& path, const std::vector<std::string>& needed,
                                  const std::vector<std::string>& optional) {
    return spectrum_table(path, utf8_text(read_file(path, largest_file::library)), needed, optional);
}

} // namespace hsi::raster
