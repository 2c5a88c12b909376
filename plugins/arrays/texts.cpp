// SPDX-License-Identifier: MIT
// Texts, spectral libraries and layers of points for arrays in place of files: models and tables as they are,
// libraries as arrays or JSON, points as JSON. These functions replace those of common/raster, which use
// files.
#include "arrays/exchange.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/bad_band_list.h"
#include "raster/drivers.h"
#include "raster/library_output.h"
#include "raster/packed_text.h"
#include "raster/radiance_table.h"
#include "raster/regular_file.h"
#include "raster/run_files.h"
#include "raster/sample_convert.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "raster/text_input.h"
#include "raster/text_output.h"
#include "raster/vector_sink.h"
#include "raster/view_geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::raster {

// Files ----------------------------------------------------------------------------------------------------

std::shared_ptr<RunFiles> make_run_files() { return std::make_shared<RunFiles>(); }
std::vector<std::string> files_read_with(const std::string&) { return {}; }
void check_named_file(const std::string&, const std::string&) {}
std::vector<std::string> files_that_may_come(const std::string&) { return {}; }
std::string told_by_side_file(const std::string&) { return {}; }
std::vector<DocumentSource::File> files_as_they_are(const std::string&) { return {}; }
bool is_scene_document(const std::string&) { return false; }
bool is_pipe_or_device(const std::string&) { return false; }
std::string beginning_of_file(const std::string& path, size_t bytes) {
    const char* const text = arrays::Exchange::current().text(path);
    return text != nullptr ? std::string(text).substr(0, bytes) : std::string();
}
bool is_there(const std::string& path) { return arrays::Exchange::current().inputs().count(path) > 0; }
std::string with_final_names(std::string text) { return text; }
void register_drivers() {}
std::vector<std::string> settings_of_results() { return {}; }
std::string setting(const char* name, const char* otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? text : otherwise;
}
std::string gdal_version() { return "none"; }
std::vector<std::string> pixel_types() {
    std::vector<std::string> names;
    for (int32_t type = HSI_UINT8; type <= HSI_INT8; ++type)
        if (const char* const name = arrays::type_name(type)) names.emplace_back(name);
    return names;
}

std::string extension_of(const std::string&) { return {}; }

std::string pack_text(const std::string&) { throw Error("internal: no model is packed into an array"); }
std::string deflated(const std::string&) { throw Error("internal: no picture is packed into an array"); }
std::string packed_picture(int64_t, int64_t, const std::vector<std::array<uint8_t, 3>>&) {
    throw Error("internal: no picture is packed into an array");
}

// Texts ----------------------------------------------------------------------------------------------------

std::string read_input(const std::string& path, uint64_t limit) {
    const char* const text = arrays::Exchange::current().text(path);
    if (text == nullptr)
        throw UsageError(path + " is an array, but a text is required", "Give the model as JSON.");
    std::string whole = text;
    if (whole.size() > limit)
        throw Error(path + ": a text of " + std::to_string(whole.size()) + " bytes is too long");
    return whole;
}

void check_text_output(const TextOutput&) {}
bool names_envi_header(const std::string&) { return false; } // outputs are not files
void check_bad_band_list(const TextOutput&, int) {}
void set_bad_band_list(const TextOutput&, const std::vector<char>&) {}

void write_text_output(const TextOutput& output, const std::string& text) {
    if (output.path.empty()) return;
    auto& exchange = arrays::Exchange::current();
    const std::string role = arrays::role_of_path(output.path);
    exchange.describe(role, {{"kind", "text"}});
    exchange.put_text(role, text);
}

// Spectral libraries ---------------------------------------------------------------------------------------

namespace {

OrderedJson numbers(const std::vector<double>& values) {
    OrderedJson list = OrderedJson::array();
    for (const double v : values)
        list.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
    return list;
}

std::vector<double> numbers_in(const Json& list) {
    std::vector<double> values;
    for (const Json& v : list)
        values.push_back(v.is_number() ? v.get<double>() : std::numeric_limits<double>::quiet_NaN());
    return values;
}

/// Returns the library in `text`, which has the JSON format of write_spectral_library(). `bands_alone`: the
/// library may have bands without spectra.
SpectralLibrary library_in(const std::string& role, const char* text, bool bands_alone = false) {
    const auto refuse = [&](const std::string& why) {
        throw Error(role + " is not a spectral library: " + why,
                    R"(Give an array, or an object with "names" and "spectra" (one list per spectrum).)");
    };
    const Json json = Json::parse(text, nullptr, false);
    SpectralLibrary library;
    try {
        if (!json.is_object()) refuse("it is not an object");
        if (!json.contains("spectra") && !bands_alone) refuse("it is not an object with \"spectra\"");
        for (const Json& one : json.value("spectra", Json::array()))
            library.spectra.push_back(numbers_in(one));
        library.names = json.value("names", std::vector<std::string>());
        library.classes = json.value("classes", std::vector<std::string>());
        library.wavelengths_nm = numbers_in(json.value("wavelengths_nm", Json::array()));
        library.fwhm_nm = numbers_in(json.value("fwhm_nm", Json::array()));
        library.band_numbers = json.value("band_numbers", std::vector<int>());
    } catch (const Json::exception& error) {
        refuse(error.what());
    }
    library.numbers_told = !library.band_numbers.empty();
    return library;
}

SpectralLibrary library_of(const hsi_array& array) {
    SpectralLibrary library;
    const auto bands = static_cast<size_t>(array.shape[0]);
    for (int64_t k = 0; k < array.shape[2]; ++k) {
        auto& spectrum = library.spectra.emplace_back();
        for (size_t b = 0; b < bands; ++b) {
            const char* const at = static_cast<const char*>(array.data) +
                                   static_cast<int64_t>(b) * array.strides[0] + k * array.strides[2];
            double value = 0;
            if (array.type == HSI_FLOAT64)
                std::memcpy(&value, at, sizeof value);
            else // the sum of the three float parts restores an integer in double precision
                for (const SamplePart part : {SamplePart::rest, SamplePart::remainder, SamplePart::value}) {
                    float one;
                    to_part(part, at, array.strides[0], static_cast<SampleType>(array.type), false, {},
                            static_cast<SampleType>(array.type), &one, 1);
                    value += static_cast<double>(one);
                }
            spectrum.push_back(array.has_nodata != 0 && value == array.nodata
                                   ? std::numeric_limits<double>::quiet_NaN()
                                   : value);
        }
        const bool named = array.names != nullptr && k < array.name_count && array.names[k] != nullptr;
        library.names.emplace_back(named ? array.names[k] : "");
    }
    if (array.wavelengths != nullptr)
        library.wavelengths_nm.assign(array.wavelengths, array.wavelengths + bands);
    if (array.widths != nullptr) library.fwhm_nm.assign(array.widths, array.widths + bands);
    return library;
}

} // namespace

SpectralLibrary read_spectral_library(const std::string& path, size_t) {
    const auto& exchange = arrays::Exchange::current();
    const char* const text = exchange.text(path);
    if (text == nullptr && exchange.array(path).shape[1] != 1)
        throw UsageError(path + ": an array of spectra has the shape bands x 1 x spectra");
    SpectralLibrary library =
        text != nullptr ? library_in(path, text) : library_of(exchange.host_array(path));
    if (library.spectra.empty() || library.spectra.front().empty())
        throw Error(path + " has no spectra", "Give at least one spectrum.");
    const size_t bands = library.bands();
    for (const auto& spectrum : library.spectra)
        if (spectrum.size() != bands) throw Error(path + ": its spectra have different numbers of bands");
    for (const auto* list : {&library.wavelengths_nm, &library.fwhm_nm})
        if (!list->empty() && list->size() != bands)
            throw Error(path + " has " + std::to_string(list->size()) + " wavelengths or widths for " +
                        std::to_string(bands) + " bands");
    if (!library.band_numbers.empty() && library.band_numbers.size() != bands)
        throw Error(path + " has " + std::to_string(library.band_numbers.size()) + " band numbers for " +
                    std::to_string(bands) + " bands");
    if (!library.names.empty() && library.names.size() != library.spectra.size())
        throw Error(path + " has " + std::to_string(library.names.size()) + " names for " +
                    std::to_string(library.spectra.size()) + " spectra");
    if (!library.classes.empty() && library.classes.size() != library.spectra.size())
        throw Error(path + " has " + std::to_string(library.classes.size()) + " classes for " +
                    std::to_string(library.spectra.size()) + " spectra");
    library.names.resize(library.spectra.size());
    for (size_t k = 0; k < library.names.size(); ++k)
        if (library.names[k].empty()) library.names[k] = "spectrum " + std::to_string(k + 1);
    return library;
}

BandList read_band_list(const std::string& path) {
    const auto& exchange = arrays::Exchange::current();
    const char* const text = exchange.text(path);
    const SpectralLibrary library =
        text != nullptr ? library_in(path, text, true) : library_of(exchange.array(path));
    if (library.wavelengths_nm.empty()) throw Error(path + " has no wavelengths of a spectrometer's bands");
    if (!library.fwhm_nm.empty() && library.fwhm_nm.size() != library.wavelengths_nm.size())
        throw Error(path + " has " + std::to_string(library.fwhm_nm.size()) + " widths for " +
                    std::to_string(library.wavelengths_nm.size()) + " wavelengths");
    return {library.wavelengths_nm, library.fwhm_nm, {}};
}

SpectrumTable read_spectrum_table(const std::string& path, const std::vector<std::string>& needed,
                                  const std::vector<std::string>& optional) {
    const Json json = Json::parse(read_input(path, largest_file::library), nullptr, false);
    const std::string advice = R"(Give an object with one list per column: {"name": ["kaolinite"], ...}.)";
    if (!json.is_object()) throw Error(path + " is not a table", advice);
    SpectrumTable table;
    for (const auto& [name, column] : json.items()) {
        const auto asked = [&name = name](const std::string& one) { return equal_names(one, name); };
        if (!column.is_array() || (!table.rows.empty() && column.size() != table.rows.size()))
            throw Error(path + ": its columns are not lists of equal length", advice);
        table.rows.resize(column.size());
        if (std::none_of(needed.begin(), needed.end(), asked) &&
            std::none_of(optional.begin(), optional.end(), asked))
            table.further.push_back(name);
    }
    for (const auto* const names : {&needed, &optional})
        for (const auto& name : *names) {
            const Json* found = nullptr;
            for (const auto& [key, column] : json.items())
                if (equal_names(key, name)) found = &column;
            if (found == nullptr && names == &needed)
                throw Error(path + " has no column '" + name + "'", advice);
            for (size_t r = 0; r < table.rows.size(); ++r) {
                const Json cell = found != nullptr ? (*found)[r] : Json();
                table.rows[r].push_back(cell.is_string() ? cell.get<std::string>()
                                        : cell.is_null() ? std::string()
                                                         : cell.dump());
            }
        }
    if (table.rows.empty()) throw Error(path + " has no rows", advice);
    return table;
}

double table_number(const std::string& cell) {
    return to_number(cell).value_or(std::numeric_limits<double>::quiet_NaN());
}

SimulatedRadiances read_radiance_table(const std::string& path, const TableConditions&) {
    throw Error(path + ": radiance tables can be read only from files",
                "Run the program with -lut and -save-absorption, and use the saved absorption.");
}

// Angles ---------------------------------------------------------------------------------------------------

namespace {
[[noreturn]] void refuse_places() {
    throw UsageError("arrays have no position on the ground",
                     "Give angles as arrays of the scene's size, or run the program on files.");
}
} // namespace

std::optional<std::vector<FileAngle>> angles_of_product(const std::string&, const Placement&) { return {}; }
std::shared_ptr<const stream::CubeSource> nearest_on_ground(const std::shared_ptr<RasterSource>&,
                                                            const Placement&) {
    refuse_places();
}
std::shared_ptr<const stream::CubeSource> slopes_of_dem(const std::string&, const Placement&) {
    refuse_places();
}
std::shared_ptr<const stream::CubeSource> sun_positions(const std::array<double, 2>&, const Placement&) {
    refuse_places();
}

bool may_be_library(const std::string&) { return false; }
std::optional<SpectralLibrary> plain_library(const std::string&) { return std::nullopt; }
std::vector<std::string> files_of_library(const std::string&) { return {}; }

void check_library_output(const TextOutput&, const std::string&) {}

std::string write_spectral_library(const TextOutput& output, const SpectralLibrary& library,
                                   const std::string&) {
    OrderedJson json{{"names", library.names}};
    json["spectra"] = OrderedJson::array();
    for (const auto& spectrum : library.spectra)
        json["spectra"].push_back(numbers(spectrum));
    if (!library.wavelengths_nm.empty()) json["wavelengths_nm"] = numbers(library.wavelengths_nm);
    if (!library.fwhm_nm.empty()) json["fwhm_nm"] = numbers(library.fwhm_nm);
    if (!library.band_numbers.empty()) json["band_numbers"] = library.band_numbers;
    json["double_precision"] = library.twofold;
    write_text_output(output, json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
    arrays::Exchange::current().describe(arrays::role_of_path(output.path), {{"kind", "spectra"}});
    return {}; // no warning, since JSON can store any name
}

// Points ---------------------------------------------------------------------------------------------------

void check_vector_output(const VectorOptions&) {}
bool keeps_places(const VectorOptions&, const PointLayer&) { return true; }
std::string layer_name(const std::string& path) { return arrays::role_of_path(path); }
std::string srs_of_places(const RasterSource&) { return {}; }
std::string unread_georeference(const RasterSource&) { return {}; }

std::vector<PixelPlace> places_of_pixels(const RasterSource&,
                                         const std::vector<std::pair<int64_t, int64_t>>& pixels) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    std::vector<PixelPlace> places;
    places.reserve(pixels.size());
    for (const auto& [line, sample] : pixels)
        places.push_back(
            {static_cast<double>(sample) + 0.5, -(static_cast<double>(line) + 0.5), unknown, unknown});
    return places;
}

void write_points(const VectorOptions& options, const PointLayer& layer) {
    OrderedJson json{{"fields", OrderedJson::array()}, {"points", OrderedJson::array()}};
    // Points of arrays have no ground coordinates; their lines and samples are fields. Fields without any
    // value are left out.
    std::vector<size_t> known;
    for (size_t f = 0; f < layer.fields.size(); ++f) {
        bool any = layer.points.empty();
        for (const Point& point : layer.points)
            any = any || !std::isnan(point.values[f]);
        if (!any) continue;
        known.push_back(f);
        json["fields"].push_back({{"name", layer.fields[f].name}, {"whole", layer.fields[f].whole}});
    }
    for (const Point& point : layer.points) {
        OrderedJson row = OrderedJson::array();
        for (const size_t f : known) {
            const double v = point.values[f];
            if (layer.fields[f].whole && std::isfinite(v))
                row.push_back(static_cast<int64_t>(v));
            else
                row.push_back(std::isfinite(v) ? OrderedJson(v) : OrderedJson());
        }
        json["points"].push_back(std::move(row));
    }
    auto& exchange = arrays::Exchange::current();
    const std::string role = arrays::role_of_path(options.path);
    exchange.describe(role, {{"kind", "points"}});
    exchange.put_text(role, json.dump());
}

size_t write_layers(const VectorOptions& options, const std::vector<PointLayer>& layers) {
    write_points(options, layers.back());
    return 1;
}

} // namespace hsi::raster
