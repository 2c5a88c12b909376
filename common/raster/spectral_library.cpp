// SPDX-License-Identifier: MIT
#include "raster/spectral_library.h"

#include "core/counted.h"
#include "core/error.h"
#include "parallel/ranks.h"
#include "raster/atomic_file.h"
#include "raster/envi_header.h"
#include "raster/gdal_errors.h"
#include "raster/library_formats.h"
#include "raster/scene_metadata.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

namespace hsi::raster {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

bool is_csv(const std::string& path) { return EQUAL(CPLGetExtension(path.c_str()), "csv"); }

bool exists(const std::string& path) {
    VSIStatBufL status;
    return VSIStatL(path.c_str(), &status) == 0;
}

std::string header_of(const std::string& path) { return CPLResetExtension(path.c_str(), "hdr"); }

constexpr const char* library_type = "ENVI Spectral Library"; ///< of the field "file type"

/// True when the name itself says that the file is no ENVI library.
bool has_own_extension(const std::string& path) {
    const std::string extension = CPLGetExtension(path.c_str());
    const auto others = {"txt", "asc", "tsv", "json", "geojson", "gpkg", "spectrum"};
    return std::any_of(others.begin(), others.end(),
                       [&](const char* other) { return EQUAL(extension.c_str(), other); });
}

bool is_library_header(const std::string& header) {
    const EnviHeader fields = EnviHeader::parse(library_text(header));
    const std::string* type = fields.find("file type");
    return type != nullptr && EQUAL(type->c_str(), library_type);
}

int header_number(const EnviHeader& header, const char* key, int otherwise, const std::string& path) {
    const std::string* text = header.find(key);
    if (!text) return otherwise;
    const double value = library_number(*text);
    if (!(value >= 0 && value <= 1e9))
        refuse_library(path, std::string("the header's '") + key + "' is no number");
    return static_cast<int>(value);
}

/// Empty, and told in the notes, when it is not `count` long.
std::vector<double> header_list(const EnviHeader& header, const char* key, size_t count,
                                const std::string& path, SpectralLibrary& library) {
    std::vector<double> values;
    if (const std::string* text = header.find(key))
        for (const auto& element : envi_list(*text))
            values.push_back(library_number(element));
    if (!values.empty() && values.size() != count) {
        library.notes.push_back("'" + path + "': the list '" + key + "' has " +
                                counted(values.size(), "value") + " for " + counted(count, "band") +
                                ", and is left out");
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

SpectralLibrary read_envi(const std::string& path) {
    std::string header_path = header_of(path);
    if (!exists(header_path) && exists(path + ".hdr")) header_path = path + ".hdr";
    if (!exists(header_path)) refuse_library(path, "there is no header " + header_path);
    const EnviHeader header = EnviHeader::parse(library_text(header_path));
    const auto bands = static_cast<size_t>(header_number(header, "samples", 0, path));
    const auto count = static_cast<size_t>(header_number(header, "lines", 0, path));
    if (bands == 0 || count == 0 || header_number(header, "bands", 1, path) != 1)
        refuse_library(path, "its header does not describe a spectral library");
    const int order = header_number(header, "byte order", 0, path);
    if (order > 1)
        refuse_library(path, "its header has byte order = " + std::to_string(order) + ", which is none");
    const int type = header_number(header, "data type", 0, path);
    const bool swap = order != 0;
    size_t width = 0;
    double (*value)(const char*, bool) = nullptr;
    switch (type) {
    case 1:
        width = 1, value = element<uint8_t>;
        break;
    case 2:
        width = 2, value = element<int16_t>;
        break;
    case 3:
        width = 4, value = element<int32_t>;
        break;
    case 4:
        width = 4, value = element<float>;
        break;
    case 5:
        width = 8, value = element<double>;
        break;
    case 12:
        width = 2, value = element<uint16_t>;
        break;
    case 13:
        width = 4, value = element<uint32_t>;
        break;
    default:
        refuse_library(path, "data type " + std::to_string(type) + " is not supported");
    }
    const auto offset = static_cast<size_t>(header_number(header, "header offset", 0, path));
    const std::string data = library_text(path);
    if (data.size() < offset + bands * count * width)
        refuse_library(path, "is shorter than its header says (" + counted(data.size(), "byte") + ")");

    SpectralLibrary library;
    std::vector<std::string> names;
    if (const std::string* text = header.find("spectra names")) names = envi_list(*text);
    if (!names.empty() && names.size() != count)
        library.notes.push_back("'" + path + "': the list 'spectra names' has " +
                                counted(names.size(), "name") + " for " +
                                counted(count, "spectrum", "spectra"));
    for (size_t k = 0; k < count; ++k) {
        library.names.push_back(k < names.size() ? names[k] : "Spectrum " + std::to_string(k + 1));
        std::vector<double> spectrum(bands);
        for (size_t b = 0; b < bands; ++b)
            spectrum[b] = value(data.data() + offset + (k * bands + b) * width, swap);
        library.spectra.push_back(std::move(spectrum));
    }
    const std::string* units = header.find("wavelength units");
    library.wavelengths_nm = header_list(header, "wavelength", bands, path, library);
    library.fwhm_nm = header_list(header, "fwhm", bands, path, library);
    const std::string unit = units ? *units : "";
    const bool micrometres =
        unit.empty() && !library.wavelengths_nm.empty() &&
        *std::max_element(library.wavelengths_nm.begin(), library.wavelengths_nm.end()) < 100;
    library_to_nm(library.wavelengths_nm, unit);
    library_to_nm(library.fwhm_nm, micrometres ? "um" : unit.empty() ? "nm" : unit); // as the wavelengths
    const std::string* const ignored = header.find("data ignore value");
    const double nothing = ignored ? library_number(*ignored) : std::numeric_limits<double>::quiet_NaN();
    const auto good = header_list(header, "bbl", bands, path, library);
    for (auto& spectrum : library.spectra)
        for (size_t b = 0; b < bands; ++b) {
            const bool ignore = spectrum[b] == nothing ||
                                (type == 4 && static_cast<float>(spectrum[b]) == static_cast<float>(nothing));
            if (!ignore && (good.empty() || good[b] != 0)) continue;
            spectrum[b] = std::numeric_limits<double>::quiet_NaN();
            library.gaps = true;
        }
    return library;
}

SpectralLibrary read_some(const std::string& path) {
    if (is_csv(path)) return read_library_table(path, library_text(path));
    if (EQUAL(CPLGetExtension(path.c_str()), "sli")) return read_envi(path); // or says what is missing
    // The header of crops.sli says nothing of a crops.geojson beside it.
    if (!has_own_extension(path))
        for (const std::string& header : {header_of(path), path + ".hdr"})
            if (exists(header) && header != path) return read_envi(path);
    const std::string text = library_text(path);
    if (is_usgs_text(text)) return read_usgs_text(path, text);
    if (is_ecostress_text(text)) return read_ecostress_text(path, text);
    if (holds_features(text)) return read_profiles(path);
    if (text.find('\0') != std::string::npos) refuse_library(path, "is no spectral library");
    return read_library_table(path, text);
}

/// The spectra one after another, as samples of type T.
template <class T>
std::string stored(const SpectralLibrary& library) {
    std::string bytes;
    for (const auto& spectrum : library.spectra)
        for (const double v : spectrum) {
            const auto sample = static_cast<T>(v);
            char of_sample[sizeof sample];
            std::memcpy(of_sample, &sample, sizeof sample);
            if constexpr (std::endian::native == std::endian::big) // the header says byte order 0
                std::reverse(of_sample, of_sample + sizeof sample);
            bytes.append(of_sample, sizeof sample);
        }
    return bytes;
}

std::string number(double v, int digits = 9) {
    char text[40];
    CPLsnprintf(text, sizeof text, "%.*g", digits, v);
    return text;
}

/// With quotes where it needs them.
std::string csv_name(std::string name) {
    for (char& c : name)
        if (c == '\n' || c == '\r') c = ' ';
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    const bool edged = !name.empty() && (blank(name.front()) || blank(name.back()));
    if (!edged && name.find_first_of(",\"") == std::string::npos) return name;
    std::string quoted = "\"";
    for (char c : name) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + "\"";
}

} // namespace

void refuse_library(const std::string& path, const std::string& what) {
    throw Error("'" + path + "': " + what,
                "Give an ENVI spectral library (.sli with its .hdr), a .csv table, a text of USGS splib07 or "
                "ECOSTRESS, or profiles in GeoJSON or a GeoPackage.");
}

std::string library_text(const std::string& path) {
    const GdalErrors errors;
    GByte* data = nullptr;
    vsi_l_offset size = 0;
    if (!VSIIngestFile(nullptr, path.c_str(), &data, &size, int64_t{1} << 31))
        refuse_library(path, "cannot be read: " + errors.text("no such file"));
    std::string text(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    VSIFree(data);
    return text;
}

double library_number(const std::string& text) {
    const char* begin = text.c_str();
    char* end = nullptr;
    const double value = CPLStrtod(begin, &end);
    while (end && *end == ' ')
        ++end;
    return end == begin || *end != '\0' ? unknown : value;
}

void library_to_nm(std::vector<double>& values, const std::string& units) {
    double guess = 0;
    for (const double v : values)
        if (v > guess) guess = v;
    for (double& v : values)
        v = to_nanometres(v, units, guess);
    if (std::none_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) values.clear();
}

SpectralLibrary read_spectral_library(const std::string& path) {
    SpectralLibrary library = read_some(path);
    // USGS writes -1.23e34 where a channel was deleted, and its spectra are kept in every form.
    constexpr double deleted = -1e34;
    for (size_t k = 0; k < library.spectra.size(); ++k) {
        auto& spectrum = library.spectra[k];
        for (double& v : spectrum) {
            if (!(v <= deleted)) continue;
            v = std::numeric_limits<double>::quiet_NaN();
            library.gaps = true;
        }
        if (std::none_of(spectrum.begin(), spectrum.end(), [](double v) { return std::isfinite(v); }))
            refuse_library(path, "the spectrum '" + library.names[k] + "' has no value");
    }
    return library;
}

void check_library_output(const TextOutput& output, const std::string& also) {
    const std::string& path = output.path;
    const std::string extension = CPLGetExtension(path.c_str());
    if (!EQUAL(extension.c_str(), "sli") && !EQUAL(extension.c_str(), "csv"))
        throw UsageError(output.role + " " + path + ": spectra are written as .sli (ENVI spectral library)" +
                         (also.empty() ? std::string(" or .csv") : ", .csv or " + also));
    check_text_output(output);
    if (is_csv(path)) return;
    const std::string header = header_of(is_local(path) ? follow_links(path) : path);
    if (output.run) output.run->writes(output.role, path, {header});
    // A library's header without a library is what a run that was killed has left. Any other belongs to
    // something else, a scene perhaps.
    if (exists(header) && !(output.overwrite && (exists(path) || is_library_header(header))))
        throw Error("'" + header + "' is there already",
                    output.overwrite
                        ? "It is no library's: give another name for " + output.role + "."
                        : "Give -overwrite to replace it, or another name for " + output.role + ".");
}

void write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                            const std::string& history) {
    const std::string& path = output.path;
    const size_t bands = library.bands();
    if (is_csv(path)) {
        std::string text = "band,wavelength";
        for (const auto& name : library.names)
            text += "," + csv_name(name);
        text += "\n";
        for (size_t b = 0; b < bands; ++b) {
            text += std::to_string(b + 1) + ",";
            if (!library.wavelengths_nm.empty() && std::isfinite(library.wavelengths_nm[b]))
                text += number(library.wavelengths_nm[b]);
            for (const auto& spectrum : library.spectra)
                text += "," + number(spectrum[b], library.twofold ? 17 : 9);
            text += "\n";
        }
        return write_text_output(output, text);
    }
    const std::string values = library.twofold ? stored<double>(library) : stored<float>(library);
    EnviHeader header;
    header.set("description", "{" + envi_name(history) + "}");
    header.set("samples", std::to_string(bands));
    header.set("lines", std::to_string(library.spectra.size()));
    header.set("bands", "1");
    header.set("header offset", "0");
    header.set("file type", library_type);
    header.set("data type", library.twofold ? "5" : "4");
    header.set("interleave", "bsq");
    header.set("byte order", "0");
    const auto list = [&](const char* key, const std::vector<double>& numbers) {
        if (numbers.size() != bands) return;
        std::vector<std::string> texts;
        for (double v : numbers) {
            if (!std::isfinite(v)) return; // ENVI has no way to leave one out
            texts.push_back(number(v));
        }
        header.set(key, envi_list_text(texts));
    };
    if (!library.wavelengths_nm.empty()) header.set("wavelength units", "Nanometers");
    list("wavelength", library.wavelengths_nm);
    list("fwhm", library.fwhm_nm);
    std::vector<std::string> names;
    for (const auto& name : library.names)
        names.push_back(envi_name(name));
    header.set("spectra names", envi_list_text(names));
    if (!parallel::ranks().root()) return; // it is the root's file
    auto file = std::make_unique<AtomicFile>(path, output.overwrite);
    write_file(output, header_of(file->path()), header.text());
    write_file(output, file->path(), values);
    if (output.run)
        output.run->add(std::move(file));
    else
        file->commit();
}

SpectralLibrary resampled(const SpectralLibrary& library, const std::vector<double>& wavelengths_nm) {
    std::vector<size_t> order; // sensors' wavelengths overlap where spectrometers meet
    for (size_t b = 0; b < library.wavelengths_nm.size(); ++b)
        if (std::isfinite(library.wavelengths_nm[b])) order.push_back(b);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return library.wavelengths_nm[a] < library.wavelengths_nm[b];
    });
    SpectralLibrary out;
    out.names = library.names;
    out.wavelengths_nm = wavelengths_nm;
    for (const auto& spectrum : library.spectra) {
        std::vector<double> values;
        for (double w : wavelengths_nm) {
            const auto above = std::lower_bound(order.begin(), order.end(), w, [&](size_t b, double x) {
                return library.wavelengths_nm[b] < x;
            });
            if (!std::isfinite(w) || above == order.end() ||
                (above == order.begin() && library.wavelengths_nm[*above] != w)) {
                values.push_back(unknown);
                continue;
            }
            if (library.wavelengths_nm[*above] == w) {
                values.push_back(spectrum[*above]);
                continue;
            }
            const size_t lo = *(above - 1), hi = *above;
            const double share =
                (w - library.wavelengths_nm[lo]) / (library.wavelengths_nm[hi] - library.wavelengths_nm[lo]);
            values.push_back(spectrum[lo] + share * (spectrum[hi] - spectrum[lo]));
        }
        out.spectra.push_back(std::move(values));
    }
    return out;
}

} // namespace hsi::raster
