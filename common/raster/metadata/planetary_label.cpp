// SPDX-License-Identifier: MIT
#include "raster/metadata/planetary_label.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/io/raw_file.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/regular_file.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

constexpr size_t longest_label = size_t{1} << 18;

/// The fields of a label. The key of a field within an object is "OBJECT.FIELD", for example "IMAGE.LINES".
class Label {
  public:
    explicit Label(const std::string& text) {
        std::vector<std::string> objects;
        std::string_view rest = text;
        const auto take_line = [&] {
            const size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
            const std::string_view line = rest.substr(0, end);
            rest.remove_prefix(std::min(rest.size(), end + 1));
            return trimmed(line.substr(0, line.find("/*")));
        };
        while (!rest.empty()) {
            const std::string_view line = take_line();
            if (line == "END") return;
            const size_t equals = line.find('=');
            const std::string key = upper(std::string(trimmed(line.substr(0, equals))));
            if (key == "END_OBJECT" && !objects.empty()) objects.pop_back();
            if (equals == std::string::npos) continue;
            std::string value(trimmed(line.substr(equals + 1)));
            while (value.rfind('(', 0) == 0 && value.find(')') == std::string::npos && !rest.empty())
                value.append(" ").append(take_line());
            if (key == "OBJECT")
                objects.push_back(upper(value));
            else
                m_fields.emplace(objects.empty() ? key : objects.back() + "." + key, value);
        }
    }

    std::string text(const std::string& key) const {
        const auto at = m_fields.find(key);
        return at == m_fields.end() ? std::string() : at->second;
    }
    /// Splits a value such as "(1, 2, 3)" or "5" into its elements, in upper case and without quotes.
    std::vector<std::string> list(const std::string& key) const {
        std::vector<std::string> out;
        std::string one;
        for (const char c : text(key) + ",")
            if (c == ',') {
                out.push_back(upper(std::string(trimmed(one))));
                one.clear();
            } else if (c != '(' && c != ')' && c != '"') {
                one += c;
            }
        return out;
    }
    int64_t number(const std::string& key, int64_t otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : std::atoll(value.c_str());
    }

  private:
    std::map<std::string, std::string> m_fields;
};

/// The layout of the samples that the label describes. Steps are in bytes; the position of the first sample
/// is not compared.
struct Described {
    int64_t samples = 0, lines = 0, bands = 0, pixel_step = 0, line_step = 0, band_step = 0;
    /// The fields of the label as "KEY = value", for messages.
    std::string type, type_field, order_field, suffix_field;
    int64_t bytes = 0;
    bool gaps = false; ///< the label describes suffix items between the lines of a band
};

std::optional<Described> image_in(const Label& label) {
    Described d;
    d.samples = label.number("IMAGE.LINE_SAMPLES", 0);
    d.lines = label.number("IMAGE.LINES", 0);
    d.bands = label.number("IMAGE.BANDS", 1);
    d.bytes = label.number("IMAGE.SAMPLE_BITS", 8) / 8;
    d.type = label.list("IMAGE.SAMPLE_TYPE").front();
    const int64_t around =
        label.number("IMAGE.LINE_PREFIX_BYTES", 0) + label.number("IMAGE.LINE_SUFFIX_BYTES", 0);
    const std::string order = label.list("IMAGE.BAND_STORAGE_TYPE").front();
    d.type_field = "SAMPLE_TYPE = " + d.type + " of " + std::to_string(8 * d.bytes) + " bits";
    d.order_field = "BAND_STORAGE_TYPE = " + (order.empty() ? "BAND_SEQUENTIAL" : order);
    d.suffix_field = "LINE_PREFIX_BYTES and LINE_SUFFIX_BYTES";
    d.gaps = around > 0;
    const int64_t row = d.samples * d.bytes + around;
    d.pixel_step = d.bytes;
    d.line_step = row;
    d.band_step = row * d.lines;
    if (order == "LINE_INTERLEAVED" || order == "LINE INTERLEAVED") {
        d.line_step = row * d.bands;
        d.band_step = row;
    } else if (order == "SAMPLE_INTERLEAVED" || order == "SAMPLE INTERLEAVED") {
        d.pixel_step = d.bytes * d.bands;
        d.line_step = d.samples * d.pixel_step + around;
        d.band_step = d.bytes;
    }
    return d.samples > 0 && d.lines > 0 && d.bytes > 0 ? std::optional(d) : std::nullopt;
}

std::optional<Described> qube_in(const Label& label, const std::string& object) {
    const auto axes = label.list(object + ".AXIS_NAME"), items = label.list(object + ".CORE_ITEMS"),
               suffixes = label.list(object + ".SUFFIX_ITEMS");
    if (axes.size() != 3 || items.size() != 3) return std::nullopt;
    Described d;
    d.bytes = label.number(object + ".CORE_ITEM_BYTES", 0);
    d.type = label.list(object + ".CORE_ITEM_TYPE").front();
    d.type_field = "CORE_ITEM_TYPE = " + d.type + " of " + std::to_string(d.bytes) + " bytes";
    d.order_field = "AXIS_NAME = " + label.text(object + ".AXIS_NAME");
    d.suffix_field = "SUFFIX_ITEMS = " + label.text(object + ".SUFFIX_ITEMS");
    const auto suffix = [&](size_t axis) {
        return suffixes.size() == 3 ? std::atoll(suffixes[axis].c_str()) : int64_t{0};
    };
    d.gaps = suffix(0) > 0 || suffix(1) > 0;
    const int64_t suffix_bytes = label.number(object + ".SUFFIX_BYTES", 4);
    // Suffix items follow the core items along their axis. Suffix items of the third axis follow all other
    // data.
    const int64_t first = std::atoll(items[0].c_str()), second = std::atoll(items[1].c_str());
    const int64_t row = first * d.bytes + suffix(0) * suffix_bytes,
                  plane = second * row + suffix(1) * (first + suffix(0)) * suffix_bytes;
    const int64_t steps[] = {d.bytes, row, plane};
    for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t count = std::atoll(items[axis].c_str());
        if (axes[axis] == "SAMPLE")
            std::tie(d.samples, d.pixel_step) = std::pair(count, steps[axis]);
        else if (axes[axis] == "LINE")
            std::tie(d.lines, d.line_step) = std::pair(count, steps[axis]);
        else if (axes[axis] == "BAND")
            std::tie(d.bands, d.band_step) = std::pair(count, steps[axis]);
    }
    const bool known = d.samples > 0 && d.lines > 0 && d.bands > 0 && d.bytes > 0;
    return known ? std::optional(d) : std::nullopt;
}

bool contains(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

/// Returns whether GDAL reads the sample type that the label states (MSB_INTEGER, LSB_UNSIGNED_INTEGER,
/// PC_REAL, IEEE_REAL ...). The sign of 8-bit samples is not compared, because many labels describe values
/// from 0 to 255 as integers.
bool same_type(const Described& d, GDALDataType type, bool read_little) {
    const int64_t bytes = GDALGetDataTypeSizeBytes(type);
    if (d.type.empty() || d.bytes == 1) return d.bytes == bytes;
    const bool little = contains(d.type, "LSB") || contains(d.type, "PC_") || contains(d.type, "VAX");
    const bool real = contains(d.type, "REAL") || contains(d.type, "FLOAT");
    if (real && contains(d.type, "VAX")) return false; // VAX has its own format of real numbers
    const bool is_real = type == GDT_Float32 || type == GDT_Float64,
               is_unsigned = type == GDT_UInt16 || type == GDT_UInt32;
    return d.bytes == bytes && real == is_real && little == read_little &&
           (real || contains(d.type, "UNSIGNED") == is_unsigned);
}

/// Returns the field of the label that GDAL ignores, as "KEY = value"; empty if GDAL reads the samples
/// correctly.
std::string misread(const Described& d, GDALDataset& dataset) {
    if (dataset.GetRasterXSize() != d.samples || dataset.GetRasterYSize() != d.lines ||
        dataset.GetRasterCount() != d.bands)
        return d.order_field;
    const auto raw = raw_layout(dataset);
    constexpr bool native_little = std::endian::native == std::endian::little;
    // GDAL's driver ISIS2 does not provide the layout. It reads the types PC_ and VAX with the least
    // significant byte first.
    const bool little =
        raw ? raw->swapped != native_little : contains(d.type, "PC_") || contains(d.type, "VAX");
    if (!same_type(d, dataset.GetRasterBand(1)->GetRasterDataType(), little)) return d.type_field;
    const bool same =
        !raw || (raw->pixel_step == d.pixel_step && (d.lines == 1 || raw->line_step == d.line_step) &&
                 (d.bands == 1 || raw->band_step == d.band_step));
    return same ? "" : d.gaps ? d.suffix_field : d.order_field;
}

} // namespace

void check_planetary_label(GDALDataset& dataset) {
    const GDALDriver* const driver = dataset.GetDriver();
    if (driver == nullptr ||
        (!EQUAL(driver->GetDescription(), "PDS") && !EQUAL(driver->GetDescription(), "ISIS2")))
        return;
    const std::string path = dataset.GetDescription(), name = "'" + path + "'";
    const std::string text = beginning_of_file(path, longest_label);
    if (!contains(text, "PDS_VERSION_ID") && !contains(text, "CCSD3Z")) return;
    const Label label(text);
    for (const char* object : {"IMAGE", "SPECTRAL_QUBE", "QUBE"}) {
        const std::string pointer = label.text(std::string("^") + object);
        if (pointer.empty()) continue;
        const size_t begin = pointer.find_first_not_of("( ");
        if (begin != std::string::npos && std::isalpha(static_cast<unsigned char>(pointer[begin])) != 0)
            throw Error("cannot read " + name + ": its label names the data file without quotes (^" + object +
                            " = " + pointer + "), which GDAL does not understand",
                        "Write the name in quotes: \"" +
                            std::string(trimmed(std::string_view(pointer).substr(
                                begin, pointer.find_first_of(",)", begin) - begin))) +
                            "\"");
        const auto told = std::string(object) == "IMAGE" ? image_in(label) : qube_in(label, object);
        if (!told) continue;
        if (const std::string field = misread(*told, dataset); !field.empty())
            throw Error("cannot read " + name + ": GDAL's driver " + driver->GetDescription() +
                            " does not read the order of samples that its label describes (" + field + ")",
                        "Describe its samples with an ENVI header or a VRT of raw bands (VRTRawRasterBand).");
        return;
    }
}

} // namespace hsi::raster
