// SPDX-License-Identifier: MIT
#include "raster/library_output.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "parallel/group.h"
#include "raster/files/already_exists.h"
#include "raster/files/file_register.h"
#include "raster/libraries/library_formats.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>

namespace hsi::raster {
namespace {

bool written_as_csv(const std::string& path) { return EQUAL(CPLGetExtension(path.c_str()), "csv"); }

std::string library_header_of(const std::string& path) { return CPLResetExtension(path.c_str(), "hdr"); }

constexpr const char* library_type = "ENVI Spectral Library"; ///< value of the header field "file type"

bool is_library_header(const std::string& header) {
    const EnviHeader fields = EnviHeader::parse(library_text(header));
    const std::string* type = fields.find("file type");
    return type != nullptr && EQUAL(type->c_str(), library_type);
}

/// Returns the bytes of all spectra, one after another, with samples of type T.
template <class T>
std::string stored(const SpectralLibrary& library) {
    std::string bytes;
    for (const auto& spectrum : library.spectra)
        for (const double v : spectrum) {
            const auto sample = static_cast<T>(v);
            char of_sample[sizeof sample];
            std::memcpy(of_sample, &sample, sizeof sample);
            // The header states byte order 0, little-endian.
            if constexpr (std::endian::native == std::endian::big)
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

/// Returns the name as a cell of a CSV table, in quotes if needed.
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

/// Returns the order of the bands in a table. Tables without wavelengths are read in the order of the band
/// numbers, so such a library is written in this order.
std::vector<size_t> lines_of(const SpectralLibrary& library) {
    std::vector<size_t> order(library.bands());
    std::iota(order.begin(), order.end(), size_t{0});
    if (library.wavelengths_nm.empty() && library.band_numbers.size() == order.size())
        std::sort(order.begin(), order.end(),
                  [&](size_t a, size_t b) { return library.band_numbers[a] < library.band_numbers[b]; });
    return order;
}

} // namespace

void check_library_output(const TextOutput& output, const std::string& also) {
    const std::string& path = output.path;
    const std::string extension = CPLGetExtension(path.c_str());
    if (!EQUAL(extension.c_str(), "sli") && !EQUAL(extension.c_str(), "csv"))
        throw UsageError(
            output.role + " " + path +
            " is not the name of a spectral library: spectra are written as .sli (ENVI spectral library)" +
            (also.empty() ? std::string(" or .csv") : ", .csv or " + also));
    check_text_output(output);
    if (written_as_csv(path)) return;
    const std::string header = library_header_of(is_local(path) ? follow_links(path) : path);
    std::vector<std::string> headers{header};
    for (const std::string& link : links_on_the_way(path))
        headers.push_back(library_header_of(link));
    if (output.run) output.run->writes(output.role, path, headers);
    // If a run is killed, the header of a library can be left without the library. Any other header belongs
    // to another file, such as a scene.
    if (!is_there(header)) return;
    const bool own = is_there(path) || is_library_header(header);
    if (!output.overwrite || !own)
        throw own ? already_exists(header, ", but '" + path +
                                               "' does not: it is the header of a missing or renamed library")
                  : Error("'" + header + "' already exists and is not the header of a library",
                          "Choose another name for " + output.role + ".");
}

namespace {

/// Returns a name that can be an element of a list in a header. Special characters become blanks, and several
/// blanks become one.
std::string header_name(const std::string& name) {
    std::string out;
    const std::string held = envi_name(name);
    if (held == name) return held;
    for (const char c : held)
        if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    if (!out.empty() && out.back() == ' ') out.pop_back();
    return out.empty() ? "Spectrum" : out;
}

/// Returns the names of all spectra for the header. A changed name gets a number if it would equal another
/// name.
std::vector<std::string> header_names(const std::vector<std::string>& names) {
    std::set<std::string> taken;
    std::vector<std::string> out;
    for (const auto& name : names)
        if (header_name(name) == name) taken.insert(name);
    for (const auto& name : names) {
        std::string one = header_name(name);
        if (one != name)
            for (int k = 2; !taken.insert(one).second; ++k)
                one = header_name(name) + " (" + std::to_string(k) + ")";
        out.push_back(std::move(one));
    }
    return out;
}

/// Returns the warning about names that were changed; empty if no name was changed.
std::string changed_names(const std::string& path, const std::vector<std::string>& before,
                          const std::vector<std::string>& after) {
    size_t count = 0, first = 0;
    for (size_t k = 0; k < before.size(); ++k)
        if (before[k] != after[k] && count++ == 0) first = k;
    if (count == 0) return {};
    return "'" + path + "': lists in an ENVI header cannot have commas, braces or leading semicolons: '" +
           before[first] + "' becomes '" + after[first] + "'" +
           (count > 1 ? ", and " + counted(count - 1, "other name") + worded(count - 1, " has", " have") +
                            " changed likewise"
                      : std::string()) +
           ". A .csv keeps all names";
}

} // namespace

std::string write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                                   const std::string& history) {
    const std::string& path = output.path;
    const size_t bands = library.bands();
    const bool numbered = library.band_numbers.size() == bands;
    if (written_as_csv(path)) {
        std::string text = "band,wavelength";
        // If a spectrum has the name of a special column (fwhm, bbl), an empty column with this name precedes
        // it, so that the spectrum is not taken for the special column.
        std::string empty;
        const bool widths = library.widths_in_table && library.fwhm_nm.size() == bands;
        if (widths) text += ",fwhm";
        for (const auto& [kind, head] :
             {std::pair(TableColumn::widths, "fwhm"), std::pair(TableColumn::marks, "bbl")})
            if (!(widths && kind == TableColumn::widths) &&
                std::any_of(library.names.begin(), library.names.end(),
                            [&, wanted = kind](const auto& name) { return table_column(name) == wanted; })) {
                text += std::string(",") + head;
                empty += ',';
            }
        for (const auto& name : library.names)
            text += "," + csv_name(name);
        text += "\n";
        for (const size_t b : lines_of(library)) {
            text += std::to_string(numbered ? library.band_numbers[b] : static_cast<int>(b) + 1) + ",";
            if (!library.wavelengths_nm.empty() && std::isfinite(library.wavelengths_nm[b]))
                text += number(library.wavelengths_nm[b]);
            if (widths)
                text +=
                    "," + (std::isfinite(library.fwhm_nm[b]) ? number(library.fwhm_nm[b]) : std::string());
            text += empty;
            for (const auto& spectrum : library.spectra)
                text += "," + number(spectrum[b], library.twofold ? 17 : 9);
            text += "\n";
        }
        write_text_output(output, text);
        return {};
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
        if (numbers.size() != bands ||
            std::none_of(numbers.begin(), numbers.end(), [](double v) { return std::isfinite(v); }))
            return;
        std::vector<std::string> texts;
        for (double v : numbers) {
            // ENVI does not define a text for unknown values. "nan" is used because IDL and most readers do
            // not read it as a number.
            texts.push_back(std::isfinite(v) ? number(v) : "nan");
        }
        header.set(key, envi_list_text(texts));
    };
    if (!library.wavelengths_nm.empty()) header.set("wavelength units", "Nanometers");
    list("wavelength", library.wavelengths_nm);
    list("fwhm", library.fwhm_nm);
    if (numbered) list(source_band_field, {library.band_numbers.begin(), library.band_numbers.end()});
    const auto names = header_names(library.names);
    header.set("spectra names", envi_list_text(names));
    const std::string told = changed_names(path, library.names, names);
    if (!parallel::group().root()) return told; // only the root process writes the file
    auto file = std::make_unique<AtomicFile>(path, output.overwrite);
    write_file(output, library_header_of(file->path()), header.text());
    write_file(output, file->path(), values);
    if (output.run)
        register_of(*output.run).add(std::move(file));
    else
        file->commit();
    return told;
}

} // namespace hsi::raster
