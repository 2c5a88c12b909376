// SPDX-License-Identifier: MIT
// Determines the data type and the missing values of an array. They come from the attributes _FillValue,
// missing_value, valid_min, valid_max, valid_range and _Unsigned (NetCDF Users Guide, "Attribute
// Conventions"), and from the fill values of the formats.
#include "core/counted.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/hdf5/hdf5_chunks.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/products/array_facts.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"
#include "raster/sample_convert.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

constexpr double no_end = std::numeric_limits<double>::infinity();

NodataValue of_number(double value) {
    NodataValue nodata;
    nodata.real = value;
    return nodata;
}

bool is_floating(GDALDataType type) { return type == GDT_Float32 || type == GDT_Float64; }

/// Returns the minimum and the maximum of an integer type.
std::pair<double, double> ends_of(GDALDataType type) {
    const int bits = 8 * GDALGetDataTypeSizeBytes(type);
    if (type == GDT_Byte || type == GDT_UInt16 || type == GDT_UInt32 || type == GDT_UInt64)
        return {0, std::ldexp(1, bits) - 1};
    return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
}

/// Returns the unsigned type of the same size.
GDALDataType as_unsigned(GDALDataType type) {
    switch (type) {
    case GDT_Int16:
        return GDT_UInt16;
    case GDT_Int32:
        return GDT_UInt32;
    case GDT_Int64:
        return GDT_UInt64;
    default:
        return sample_type(type) == SampleType::int8 ? GDT_Byte : type;
    }
}

GDALDataType as_signed(GDALDataType type) {
    return type == GDT_UInt16 ? GDT_Int16 : type == GDT_UInt32 ? GDT_Int32 : type;
}

bool is_unsigned(GDALDataType type) {
    return type == GDT_Byte || type == GDT_UInt16 || type == GDT_UInt32 || type == GDT_UInt64;
}

/// Returns the signed type of the same size. Signed bytes are stored as Int16.
GDALDataType signed_type(GDALDataType type) {
    return type == GDT_Byte ? GDT_Int16 : type == GDT_UInt64 ? GDT_Int64 : as_signed(type);
}

/// Returns whether a name such as FillValue, NoDataValue or bad_value denotes a nodata value. Programs use
/// these names although the conventions do not define them.
bool says_nodata(const std::string& name) {
    std::string letters = lower(name);
    std::erase_if(letters, [](char c) { return c == '_' || c == ' ' || c == '-'; });
    constexpr const char* known[] = {"fillvalue",       "nodata",       "nodatavalue", "nodatavalues",
                                     "nodatavals",      "missingvalue", "badvalue",    "ignorevalue",
                                     "dataignorevalue", "nullvalue",    "invalidvalue"};
    return std::any_of(std::begin(known), std::end(known), [&](const char* word) { return letters == word; });
}

/// Returns the names of the attributes of an array or group for which says_nodata() is true.
template <class Holder>
std::vector<std::string> nodata_attributes(const Holder& holder) {
    std::vector<std::string> names;
    const GdalErrors quiet;
    for (const auto& attribute : holder.GetAttributes())
        if (says_nodata(attribute->GetName())) names.push_back(attribute->GetName());
    return names;
}

/// Returns whether a dataset of Zarr version 2 stores the samples as signed bytes ("|i1"), which GDAL reads
/// as Int16.
bool are_bytes_in_zarr(const ArrayFile& file, const std::string& array) {
    constexpr size_t enough = 4096;
    return file.driver() == "Zarr" &&
           beginning_of_file(file.path() + array + "/.zarray", enough).find("|i1\"") != std::string::npos;
}

/// Returns the default fill value of netCDF for a type (netcdf.h); nullopt for bytes, all of whose values are
/// valid.
std::optional<NodataValue> default_fill(GDALDataType type) {
    NodataValue fill;
    switch (type) {
    case GDT_Int16:
        return of_number(-32767);
    case GDT_UInt16:
        return of_number(65535);
    case GDT_Int32:
        return of_number(-2147483647);
    case GDT_UInt32:
        return of_number(4294967295.0);
    case GDT_Int64:
        fill.kind = SampleType::int64;
        fill.whole = -9223372036854775806;
        return fill;
    case GDT_UInt64:
        fill.kind = SampleType::uint64;
        fill.natural = 18446744073709551614U;
        return fill;
    case GDT_Float32:
    case GDT_Float64:
        return of_number(9.9692099683868690e36);
    default:
        return std::nullopt;
    }
}

/// Decodes a double that xarray writes into Zarr as base64 of 8 bytes, in little-endian order; nullopt for
/// other texts.
std::optional<double> packed_double(const std::string& text) {
    constexpr size_t letters = 12, bytes = 8;
    if (text.size() != letters) return std::nullopt;
    std::vector<GByte> decoded(text.begin(), text.end());
    decoded.push_back(0);
    if (CPLBase64DecodeInPlace(decoded.data()) != bytes) return std::nullopt;
    uint64_t bits = 0;
    for (size_t k = bytes; k-- > 0;)
        bits = bits << 8 | decoded[k];
    return std::bit_cast<double>(bits);
}

class Values {
  public:
    Values(Product& product, const ArrayFile& file, const Array& array, CubePart& part)
        : m_product(product), m_file(file), m_array(array), m_part(part) {}

    void take() {
        take_type();
        if (m_has_fill) take_fill();
        for (const std::string& name : nodata_attributes(*m_array))
            if (name != "_FillValue" && name != "missing_value") take_attribute(name.c_str());
        if (!m_has_fill) take_unwritten_fill();
        take_attribute("missing_value");
        if (!m_has_fill && !m_told) take_of_groups();
        take_range();
        if (m_values.empty() && m_part.invalid.any() && !is_floating(m_part.type)) {
            // Outputs need a nodata value that no valid pixel has, so a value outside the valid range is
            // used.
            const auto [least, most] = ends_of(m_part.type);
            add(of_number(m_part.invalid.least > least ? least : most));
        }
        for (const NodataValue& value : m_values)
            if (!m_part.nodata)
                m_part.nodata = value;
            else
                m_part.invalid.values.push_back(value.as_double());
    }

  private:
    void take_type() {
        m_part.type = m_array->GetDataType().GetNumericDataType();
        const bool is_hdf5 = m_file.driver() != "Zarr" && beginning_of_file(m_file.path(), 3) != "CDF";
        const std::string sign = attribute_text(m_array, "_Unsigned");
        m_marked = equal_names(sign, "true");
        m_signed = equal_names(sign, "false") && is_unsigned(m_part.type);
        const bool bytes_or_shorts = m_part.type == GDT_Int16;
        m_has_fill = has("_FillValue");
        if (is_hdf5 && (!m_has_fill || (m_marked && bytes_or_shorts)))
            m_storage = find_hdf5_storage(m_file.path(), m_part.array);
        if (m_signed) {
            m_part.stored = m_part.type;
            m_part.type = signed_type(m_part.type);
            return;
        }
        const GDALDataType meant = as_unsigned(m_part.type);
        if (!m_marked || meant == m_part.type) return;
        const bool narrow = bytes_or_shorts && (m_storage.known ? m_storage.sample_bytes == 1
                                                                : are_bytes_in_zarr(m_file, m_part.array));
        m_part.stored = m_part.type;
        m_part.type = narrow ? GDT_Byte : meant;
    }

    bool has(const char* name) const {
        const GdalErrors quiet;
        return m_array->GetAttribute(name) != nullptr;
    }

    std::vector<double> numbers(const char* name) { return numbers_of(m_array, name); }

    template <class Holder>
    std::vector<double> numbers_of(const std::shared_ptr<Holder>& holder, const char* name) {
        const Numbers told = attribute_numbers(holder, name);
        std::vector<double> values = told.values;
        if (!told.no_numbers.empty()) {
            const auto packed = m_file.driver() == "Zarr" ? packed_double(told.no_numbers) : std::nullopt;
            if (packed)
                values = {*packed};
            else
                note(std::string(name) + " is '" + told.no_numbers +
                     "', which is not a number; it is ignored");
        }
        for (double& value : values)
            value = in_sign(value);
        // If the attribute is signed and the samples are unsigned, -1 stands for the value with all bits set.
        if (is_unsigned(m_part.type) && !m_marked) {
            const GdalErrors quiet;
            const auto type = type_in(holder->GetAttribute(name));
            const bool same_bits = !is_floating(type) && // JSON does not distinguish integer types
                                   (signed_type(m_part.type) == type || m_file.driver() == "Zarr");
            for (double& value : values)
                if (same_bits && value == -1) value = ends_of(m_part.type).second;
        }
        return values;
    }

    /// Converts an attribute's value from the stored type of the samples to the type with the declared sign.
    double in_sign(double value) const {
        const GDALDataType stored = m_signed ? m_part.stored : m_part.type;
        const double all = std::ldexp(1, 8 * GDALGetDataTypeSizeBytes(stored));
        if (m_marked && value < 0) return value + all;
        return m_signed && value >= all / 2 && value < all ? value - all : value;
    }

    void note(const std::string& text) {
        m_product.notes.push_back("'" + m_product.path + "' (" + m_product.name + "): " + text);
    }

    void take_attribute(const char* name) {
        for (const double value : numbers(name))
            add_told(of_number(value), name);
    }

    /// Uses nodata attributes of the nearest group above the array, if the array has none. Values that the
    /// data type cannot represent are ignored, because they may be for other arrays.
    void take_of_groups() {
        bool found = false;
        for (std::string group = m_part.array; group.size() > 1 && !found;) {
            group.erase(std::max<size_t>(group.rfind('/'), 1));
            const auto holder = m_file.group(group);
            if (!holder) continue;
            for (const std::string& name : nodata_attributes(*holder))
                for (const double value : numbers_of(holder, name.c_str())) {
                    add(of_number(value));
                    found = true;
                }
        }
    }

    /// Adds the value of an attribute. For integers, NaN is ignored without a note, because programs write
    /// NaN to declare that there is no nodata value.
    void add_told(const NodataValue& value, const char* attribute) {
        m_told = true;
        if (!match_in_type(value, sample_type(m_part.type)).active && !std::isnan(value.as_double()))
            note(std::string(attribute) + " " + number_text(value.as_double()) +
                 " is ignored: " + GDALGetDataTypeName(m_part.type) + " cannot store it");
        add(value);
    }

    void add(const NodataValue& value) {
        const NodataMatch match = match_in_type(value, sample_type(m_part.type));
        if (!match.active) return;
        for (const NodataValue& known : m_values)
            if (match_in_type(known, sample_type(m_part.type)) == match) return;
        m_values.push_back(value);
    }

    void take_fill() {
        NodataValue fill;
        bool told = false;
        const GdalErrors quiet;
        fill.kind = m_part.type == GDT_Int64 || m_part.type == GDT_UInt64 ? sample_type(m_part.type)
                                                                          : SampleType::float64;
        const bool text = attribute_class() == GEDTC_STRING;
        if (fill.kind == SampleType::int64 && !text) fill.whole = m_array->GetNoDataValueAsInt64(&told);
        if (fill.kind == SampleType::uint64 && !text) fill.natural = m_array->GetNoDataValueAsUInt64(&told);
        if (told) return add(fill);
        take_attribute("_FillValue");
    }

    /// Uses the fill value of the format if the array does not have the attribute _FillValue.
    void take_unwritten_fill() {
        if (m_file.driver() == "Zarr") return take_fill_of_zarr();
        if (m_storage.known ? m_storage.fill.has_value() : m_file.driver() != "netCDF") {
            if (m_storage.fill) take_property(*m_storage.fill);
        } else if (!m_storage.known) {
            if (const auto fill = default_fill(m_signed   ? m_part.stored
                                               : m_marked ? as_signed(m_part.type)
                                                          : m_part.type))
                add(turned(*fill));
        }
    }

    GDALExtendedDataTypeClass attribute_class() const {
        const auto told = m_array->GetAttribute("_FillValue");
        return told ? told->GetDataType().GetClass() : GEDTC_NUMERIC;
    }

    NodataValue turned(NodataValue value) const {
        if (value.kind == SampleType::float64) value.real = in_sign(value.real);
        return value;
    }

    /// Uses the fill value property of HDF5. The value 0 is ignored because it is the library's default. In
    /// bytes of netCDF-4 files, the default fill value of netCDF is ignored because it is a valid value.
    void take_property(const NodataValue& fill) {
        constexpr size_t enough = 8192; // these bytes contain the attributes of the root group
        const bool bytes = m_storage.sample_bytes == 1;
        const double value = fill.as_double();
        if (value == 0) return;
        if (bytes && (value == 255 || value == -127) &&
            (m_file.driver() == "netCDF" ||
             beginning_of_file(m_file.path(), enough).find("_NCProperties") != std::string::npos))
            return;
        add(turned(fill));
    }

    void take_fill_of_zarr() {
        bool has = false;
        const GdalErrors quiet;
        const double fill = m_array->GetNoDataValueAsDouble(&has);
        if (has && fill != 0) add(turned(of_number(fill)));
    }

    /// Uses the valid range, which is normally in the units of the stored samples. For packed integers,
    /// bounds that are floats may be in scaled units (NetCDF Users Guide).
    void take_range() {
        double bounds[2] = {-no_end, no_end};
        std::vector<double> range = numbers("valid_range");
        bool floating = range.size() == 2 && is_floating(type_of("valid_range"));
        if (range.size() == 2) {
            bounds[0] = range[0];
            bounds[1] = range[1];
        } else {
            if (!range.empty())
                note("valid_range is ignored: it has " + counted(range.size(), "number") + ", not 2");
            size_t at = 0;
            for (const char* name : {"valid_min", "valid_max"}) {
                const auto told = numbers(name);
                if (told.size() == 1) {
                    bounds[at] = told[0];
                    floating |= is_floating(type_of(name));
                } else if (!told.empty()) {
                    note(std::string(name) + " is ignored: it has " + counted(told.size(), "number") +
                         ", not 1");
                }
                ++at;
            }
        }
        if (std::isnan(bounds[0])) bounds[0] = -no_end;
        if (std::isnan(bounds[1])) bounds[1] = no_end;
        if (floating && !is_floating(m_part.type)) to_stored_units(bounds);
        if (m_part.type == GDT_Float32) // GDAL compares in single precision
            for (double& bound : bounds)
                bound = static_cast<double>(static_cast<float>(bound));
        if (!(bounds[0] <= bounds[1]))
            return note("the valid range is ignored: its maximum is below its minimum");
        if (!is_floating(m_part.type)) {
            const auto [least, most] = ends_of(m_part.type);
            if (bounds[0] <= least) bounds[0] = -no_end;
            if (bounds[1] >= most) bounds[1] = no_end;
        }
        m_part.invalid.least = bounds[0];
        m_part.invalid.most = bounds[1];
    }

    GDALDataType type_of(const char* name) const {
        const GdalErrors quiet;
        return type_in(m_array->GetAttribute(name));
    }

    static GDALDataType type_in(const std::shared_ptr<GDALAttribute>& told) {
        const bool number = told && told->GetDataType().GetClass() == GEDTC_NUMERIC;
        return number ? told->GetDataType().GetNumericDataType() : GDT_Float64;
    }

    void to_stored_units(double (&bounds)[2]) const {
        const auto [scale, offset] = scale_of(m_array);
        const bool packed = scale.value_or(1) != 1 || offset.value_or(0) != 0;
        if (!packed || scale.value_or(1) == 0) return;
        double stored[2];
        for (size_t k = 0; k < 2; ++k)
            stored[k] = (bounds[k] - offset.value_or(0)) / scale.value_or(1);
        if (stored[0] > stored[1]) std::swap(stored[0], stored[1]);
        const auto ends = ends_of(m_part.type);
        const auto fits = [&](const double(&range)[2]) {
            return (range[0] >= ends.first || !std::isfinite(range[0])) &&
                   (range[1] <= ends.second || !std::isfinite(range[1]));
        };
        const bool whole = (bounds[0] == std::floor(bounds[0]) || !std::isfinite(bounds[0])) &&
                           (bounds[1] == std::floor(bounds[1]) || !std::isfinite(bounds[1]));
        // The bounds are stored as floats, but are in units of the samples.
        if (!fits(stored) && fits(bounds) && whole) return;
        constexpr double rounding = 0.01; // tolerance for rounding in single-precision bounds and scales
        stored[0] = std::ceil(stored[0] - rounding);
        stored[1] = std::floor(stored[1] + rounding);
        bounds[0] = stored[0];
        bounds[1] = stored[1];
    }

    Product& m_product;
    const ArrayFile& m_file;
    const Array& m_array;
    CubePart& m_part;
    Hdf5Storage m_storage;
    std::vector<NodataValue> m_values;
    bool m_has_fill = false;
    bool m_told = false; ///< an attribute of the array states a nodata value
    /// m_marked: stored signed samples mean unsigned values. m_signed: stored unsigned samples mean signed
    /// values.
    bool m_marked = false, m_signed = false;
};

} // namespace

std::pair<std::optional<double>, std::optional<double>> scale_of(const Array& array) {
    const GdalErrors quiet;
    const auto number = [&](const char* name, const char* other) -> std::optional<double> {
        for (const char* each : {name, other})
            if (const Numbers told = attribute_numbers(array, each); told.size() == 1) return told.values[0];
        return std::nullopt;
    };
    auto scale = number("scale_factor", "slope"), offset = number("add_offset", "intercept");
    bool has = false;
    if (const double told = array->GetScale(&has); has && !scale) scale = told;
    if (const double told = array->GetOffset(&has); has && !offset) offset = told;
    return {scale, offset};
}

void take_values(Product& product, const ArrayFile& file, const Array& array, CubePart& part) {
    Values(product, file, array, part).take();
}

} // namespace hsi::raster
