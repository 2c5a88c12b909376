// SPDX-License-Identifier: MIT
#include "raster/scene/source_checks.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_type.h"
#include "raster/hdf5/hdf5_references.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/envi_map_info.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/regular_file.h"
#include "raster/scene/locations.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

namespace {

/// Ignores a "data ignore value" that is not a number, such as "none". GDAL reads it as 0, so pixels with the
/// value 0 would become missing.
void leave_out_word_for_nodata(SourceState& s) {
    const std::string* const text = s.scene.envi.find("data ignore value");
    if (text == nullptr) return;
    char* end = nullptr;
    CPLStrtod(text->c_str(), &end); // NaN is accepted as a number
    if (end != text->c_str() && *end == '\0') return;
    for (BandMetadata& b : s.scene.bands)
        b.nodata.reset();
    s.notes.push_back(s.name() + ": data ignore value = " + *text + " is not a number and is ignored");
}

/// Checks that a text is a whole number within 32 bits, because GDAL ignores text after the first digits and
/// uses 32 bits. \throws Error.
void check_whole_number(const std::string& text, const std::string& what) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) throw Error(what + ", which is not a whole number", "Write only digits.");
    constexpr size_t longest = 10; // maximum number of digits
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (text.size() > longest || std::stoll(text) > most)
        throw Error(what + ", but GDAL's limit is " + std::to_string(most),
                    "Cut the file into smaller pieces.");
}

/// Returns true for drivers that return samples in the order of the file.
bool keeps_order(const std::string& driver) {
    static const std::set<std::string> names = {"EHdr",  "ENVI",    "GTiff",   "GenBin", "ISCE",
                                                "ISIS2", "ISIS3",   "MFF",     "PAux",   "PDS",
                                                "PDS4",  "RRASTER", "ROI_PAC", "VICAR",  "VRT"};
    return names.count(driver) > 0;
}

using Sample = std::array<char, 8>; ///< a sample of any type; unused bytes are 0

/// Compares single samples, read with a raw layout and with RasterIO().
class LayoutTrial {
  public:
    LayoutTrial(const SourceState& s, GDALDataset& dataset) : m_s(s), m_dataset(dataset) {}

    /// Compares a sample. `band` counts from 1, `line` and `sample` from 0. Returns false if the two values
    /// differ, or if one cannot be read.
    bool agrees(int band, int64_t line, int64_t sample) const {
        Sample told{}, read{};
        if (!raw(band, line, sample, told)) return false;
        const CPLErr result = m_dataset.GetRasterBand(band)->RasterIO(
            GF_Read, static_cast<int>(sample), static_cast<int>(line), 1, 1, read.data(), 1, 1,
            m_s.raw()->layout.type, 0, 0, nullptr);
        return result == CE_None && told == read;
    }

    /// Returns true if the samples at two positions differ, both read with the raw layout.
    bool differ(int band, int64_t line, int64_t sample, int other_band, int64_t other_line,
                int64_t other_sample) const {
        Sample a{}, b{};
        return raw(band, line, sample, a) && raw(other_band, other_line, other_sample, b) && a != b;
    }

  private:
    bool raw(int band, int64_t line, int64_t sample, Sample& value) const {
        const RawLayout& at = m_s.raw()->layout;
        const auto size = static_cast<size_t>(at.sample_bytes);
        if (::pread(m_s.raw()->file->get(), value.data(), size, at.at(band - 1, line, sample)) !=
            at.sample_bytes)
            return false;
        if (at.swapped) swap_bytes(value.data(), sample_type(at.type), 1);
        return true;
    }

    const SourceState& m_s;
    GDALDataset& m_dataset;
};

bool is_signed_byte(GDALDataset& dataset, int band) {
    const char* const kind = dataset.GetRasterBand(band)->GetMetadataItem("PIXELTYPE", "IMAGE_STRUCTURE");
    return kind != nullptr && EQUAL(kind, "SIGNEDBYTE") &&
           dataset.GetRasterBand(band)->GetRasterDataType() == GDT_Byte;
}

/// Adds a note if the bands have gains and the header also states a factor or gains for all bands. Only the
/// gains of the bands are used.
void note_two_scales(SourceState& s) {
    const std::string* const factor = s.scene.envi.find("reflectance scale factor");
    const double divisor = factor ? envi_number(*factor).value_or(0) : 0;
    const bool other = s.scene.envi.find("data reflectance gain values") != nullptr;
    const bool same = !other && std::all_of(s.scene.bands.begin(), s.scene.bands.end(), [&](const auto& b) {
        const double told = b.scale.value_or(1) * divisor;
        return b.offset.value_or(0) == 0 && std::fabs(told - 1) < 1e-6;
    });
    if (!s.scales.own || (divisor <= 0 && !other) || (!other && divisor == 1) || same) return;
    s.notes.push_back(s.name() + ": its bands have gains or offsets, but its header also states '" +
                      (other ? "data reflectance gain values" : "reflectance scale factor") +
                      "', which is ignored");
}

} // namespace

void check_envi_header(SourceState& s) {
    const EnviHeader& header = s.scene.envi;
    if (s.scene.driver != "ENVI" || header.fields().empty()) return;
    const std::string name = "the ENVI header of " + s.name();
    const bool several = s.scene.file_bands > 1,
               wide = GDALGetDataTypeSizeBytes(s.scene.bands.front().type) > 1;
    std::string missing;
    for (const auto& [key, needed] : {std::pair{"samples", true},
                                      {"lines", true},
                                      {"bands", true},
                                      {"data type", true},
                                      {"interleave", several}}) {
        if (needed && header.find(key) == nullptr)
            missing += (missing.empty() ? "'" : ", '") + std::string(key) + "'";
    }
    const std::string advice = "Complete the header: it was cut off, or written by hand.";
    if (const std::string* word = header.find("interleave");
        several && word != nullptr && !equal_names(*word, "bsq") && !equal_names(*word, "bil") &&
        !equal_names(*word, "bip"))
        throw Error(name + " has interleave = " + *word + ", which is invalid", "Write bsq, bil or bip.");
    if (!missing.empty()) throw Error(name + " does not state " + missing, advice);
    for (const char* key : {"samples", "lines", "bands", "data type", "header offset"})
        if (const std::string* text = header.find(key))
            check_whole_number(*text, name + " has " + key + " = " + *text);
    if (const std::string* order = header.find("byte order"); wide && order == nullptr)
        s.notes.push_back(name + " does not state 'byte order': 0 is assumed, least significant byte first");
    else if (wide && *order != "0" && *order != "1")
        throw Error(name + " has byte order = " + *order + ", which is invalid",
                    "Write 0 if the least significant byte comes first, else 1.");
    leave_out_word_for_nodata(s);
    for (const std::string& note : envi_map_info(header).notes)
        s.notes.push_back(name + ": " + note);
    for (const std::string& list : header.unreadable())
        s.notes.push_back("a list of " + name + " is ignored: " + list);
    for (const std::string& key : header.repeated())
        s.notes.push_back(name + " states '" + key + "' more than once: the last value is used");
    for (const EnviField& field : header.fields())
        if (field.value.rfind('{', 0) == 0 && field.value.find('}') == std::string::npos)
            throw Error(name + " ends within '" + field.key + "'", advice);
}

namespace {

/// Adds notes about FWHM that are not in a list of an ENVI header, and about wavelengths and FWHM with an
/// unlikely magnitude.
void note_widths(SourceState& s) {
    std::vector<double> nm, widths;
    std::vector<int> numbers;
    const bool listed = s.scene.envi.find("fwhm") != nullptr;
    int first = 0;
    std::string below;
    size_t count = 0;
    for (BandMetadata& b : s.scene.bands) {
        if (CPLAtof(b.fwhm.c_str()) < 0) {
            if (count++ == 0) {
                first = b.file_band;
                below = b.fwhm;
            }
            b.fwhm.clear(); // outputs do not inherit the invalid value
        }
        nm.push_back(b.wavelength_nm);
        widths.push_back(b.fwhm_nm);
        numbers.push_back(b.file_band);
    }
    if (count > 0 && !listed) s.notes.push_back(s.name() + ": " + no_widths(first, below, count));
    for (const std::string& told : {doubtful_wavelengths(nm, numbers), doubtful_widths(nm, widths, numbers)})
        if (!told.empty()) s.notes.push_back(s.name() + ": " + told);
}

} // namespace

void check_band_lists(SourceState& s) {
    for (const std::string& note : unit_notes(s.scene))
        s.notes.push_back(s.name() + ": " + note);
    const auto known = [](const std::string& key, const std::string& entry, const BandMetadata& band) {
        // Wavelengths and FWHM may have a unit.
        if (key == "wavelength") return !band.wavelength.empty() && CPLAtof(band.wavelength.c_str()) >= 0;
        const auto number = envi_number(entry);
        if (key == "fwhm") return (number ? *number : envi_number(band.fwhm).value_or(-1)) >= 0;
        if (key == "bbl" && !number)
            return EQUAL(entry.c_str(), "true") || EQUAL(entry.c_str(), "false") ||
                   EQUAL(entry.c_str(), "good") || EQUAL(entry.c_str(), "bad");
        return number && (*number != 0 || key.find("gain") == std::string::npos);
    };
    // Finds the first invalid entry among the selected bands, and the number of invalid entries.
    const auto unknown = [&](const char* key) {
        std::pair<std::string, size_t> found;
        const std::string* const text = s.scene.envi.find(key);
        const auto list = text ? envi_list(*text) : std::vector<std::string>();
        if (list.size() != static_cast<size_t>(s.scene.file_bands)) return found;
        for (const BandMetadata& b : s.scene.bands) {
            const std::string& entry = list[static_cast<size_t>(b.file_band - 1)];
            if (known(key, entry, b)) continue;
            if (found.second++ == 0)
                found.first = "the list '" + std::string(key) + "' has '" + entry + "' for band " +
                              std::to_string(b.file_band);
        }
        if (found.second > 1) found.first += " (and " + counted(found.second - 1, "more such value") + ")";
        return found;
    };
    for (const char* key : {"wavelength", "fwhm", "bbl"})
        if (const auto [what, count] = unknown(key); count > 0)
            s.notes.push_back(
                s.name() + ": " + what + ", which is not a number" +
                (key == std::string("bbl") ? ": " : " above 0: ") +
                (key == std::string("bbl") ? "the band is used as good" : "the value is unknown there"));
    note_widths(s);
    for (const auto& [gains, offsets] :
         {std::pair{"data gain values", "data offset values"},
          {"data reflectance gain values", "data reflectance offset values"}}) {
        auto what = unknown(gains).first;
        if (what.empty()) what = unknown(offsets).first;
        if (what.empty()) continue;
        s.notes.push_back(s.name() + ": " + what +
                          ", which is not a valid scale: gains and offsets are ignored");
        s.scene.envi.erase(gains);
        s.scene.envi.erase(offsets);
        if (s.scene.driver != "ENVI" || gains != std::string("data gain values")) continue;
        for (BandMetadata& b : s.scene.bands) {
            b.scale.reset();
            b.offset.reset();
        }
        s.scales.own = false;
    }
    if (const std::string* text = s.scene.envi.find("reflectance scale factor");
        text != nullptr && envi_number(*text).value_or(0) <= 0) {
        s.notes.push_back(s.name() + ": reflectance scale factor = " + *text +
                          " is not a valid scale and is ignored");
        s.scene.envi.erase("reflectance scale factor");
    }
    note_two_scales(s);
}

void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset) {
    if (s.scene.driver != "VRT") return;
    const CPLStringList files(dataset.GetFileList());
    for (int i = 0; i < files.size(); ++i)
        if (files[i] != s.options.path && !gdal_sees_pixels(files[i], {}, false))
            throw Error(s.name() + " shows '" + files[i] + "', whose header GDAL misreads",
                        "Use that file itself. GDAL does not support lines of 10,000 characters, comments in "
                        "braces or a byte-order mark.");
}

void check_types(SourceState& s, GDALDataset* dataset) {
    for (const BandMetadata& b : s.scene.bands) {
        if (dataset != nullptr && is_signed_byte(*dataset, b.file_band))
            throw Error("band " + std::to_string(b.file_band) + " of " + s.name() +
                            " has signed bytes, which this GDAL reads as 0 to 255",
                        "Convert the file with gdal_calc.py -A FILE --allBands A --calc A --type Int16 "
                        "--outfile NEW, or use GDAL 3.7 or newer.");
        if (GDALDataTypeIsComplex(b.type))
            throw Error("band " + std::to_string(b.file_band) + " of " + s.name() + " is complex (" +
                            GDALGetDataTypeName(b.type) + "); real values are needed",
                        "Use gdal_translate -ot Float32 to keep the real part.");
        if (!convertible(sample_type(b.type)))
            throw Error("band " + std::to_string(b.file_band) + " of " + s.name() + " has the type " +
                        GDALGetDataTypeName(b.type) + ", which is not supported");
        s.type = s.type == GDT_Unknown ? b.type : GDALDataTypeUnion(s.type, b.type);
    }
}

bool lies_as_told(const SourceState& s, GDALDataset& dataset) {
    constexpr int64_t most = int64_t{64} << 20; // GDAL decodes whole blocks for a sample
    const bool known = keeps_order(s.scene.driver);
    if (known) check_raw_span(s);    // GDAL reads 0 beyond the end of the file
    if (s.server.file) return known; // each comparison would be a request
    const int64_t block =
        std::max<int64_t>(s.blocks.samples, 1) * s.blocks.lines * s.raw()->layout.sample_bytes;
    if ((s.blocks.bands_apart ? block : block * s.scene.file_bands) > most) return known;
    // If samples at mirrored positions differ, agreement of both readings proves the order. Samples of the
    // whole file are compared, because large parts of it may be empty.
    const Rect area = known ? s.window() : Rect{0, 0, s.file.samples, s.file.lines};
    const int last_band = s.scene.file_bands;
    const int64_t last_line = area.bottom() - 1, last_sample = area.right() - 1;
    std::set<int> bands = {s.bands.front(), s.bands.back()};
    std::set<int64_t> lines = {area.y, last_line};
    if (!known) {
        bands.insert({1, last_band});
        for (const int64_t part : {1, 2, 3})
            lines.insert({last_line * part / 8, last_line - last_line * part / 8});
    }
    const LayoutTrial trial(s, dataset);
    bool line_order = last_line == 0, band_order = last_band == 1, sample_order = last_sample == 0;
    for (const int64_t line : lines)
        for (const int band : bands)
            for (const int64_t sample : std::set<int64_t>{area.x, area.x + area.w / 2, last_sample}) {
                if (!trial.agrees(band, line, sample)) return false;
                if (known) continue;
                line_order = line_order || trial.differ(band, line, sample, band, last_line - line, sample);
                sample_order =
                    sample_order || trial.differ(band, line, sample, band, line, last_sample - sample);
                band_order =
                    band_order || trial.differ(band, line, sample, last_band + 1 - band, line, sample);
            }
    return known || (line_order && band_order && sample_order);
}

void note_lost_locations(SourceState& s) {
    const std::string product = product_of_locations(s.scene);
    if (!product.empty() && !is_there(product))
        s.notes.push_back(s.name() + " was made from '" + product +
                          "', which is missing: its pixels have no longitude and latitude");
}

} // namespace hsi::raster
