// SPDX-License-Identifier: MIT
// Reads scenes and labels that are not products of an agency: arrays of netCDF, HDF5 and Zarr as xarray,
// MATLAB, IDL and other programs write them.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/array_axes.h"
#include "raster/products/array_facts.h"
#include "raster/products/product_readers.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal_priv.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

/// The arrays of a file, and the lengths of its lists of wavelengths.
struct FileContents {
    std::vector<Array> arrays;
    std::vector<int64_t> wavelengths; ///< lengths of the lists of wavelengths
};

bool is_list_of_widths(const std::string& name) {
    return starts_with(name, "fwhm") || name == "bandwidth" || name == "bandwidths" || name == "bandpass";
}

bool is_list_of_good_bands(const std::string& name) {
    return name == "good_wavelengths" || name == "bbl" || name == "bad_band_list" || name == "good_bands";
}

/// Returns the length of an attribute that is a list of wavelengths, as numbers or as text; 0 for other
/// attributes.
int64_t listed_wavelengths(const std::shared_ptr<GDALAttribute>& attribute) {
    if (!lists_wavelengths(attribute->GetName())) return 0;
    const size_t length = numbers_in(attribute).size();
    return length > 1 ? static_cast<int64_t>(length) : 0;
}

/// Returns whether the array contains texts with a unit of wavelengths, such as "450 nm". Arrays with a name
/// for FWHM are excluded.
bool has_texts_with_units(const ArrayFile& file, const Array& array) {
    return array->GetDataType().GetClass() == GEDTC_STRING && !is_list_of_widths(lower(array->GetName())) &&
           is_unit_of_wavelengths(file.list(array->GetFullName()).unit);
}

void collect_arrays(const ArrayFile& file, const std::shared_ptr<GDALGroup>& group, int depth, int& left,
                    FileContents& found) {
    for (const auto& attribute : group->GetAttributes())
        if (const int64_t length = listed_wavelengths(attribute)) found.wavelengths.push_back(length);
    for (const std::string& name : array_names(*group)) {
        if (--left < 0) return;
        auto array = group->OpenMDArray(name);
        if (!array) continue;
        const uint64_t length = list_length(*array);
        const bool tells = lists_wavelengths(name) || is_unit_of_wavelengths(unit_of(array)) ||
                           has_texts_with_units(file, array);
        if (length > 0 && tells) found.wavelengths.push_back(static_cast<int64_t>(length));
        for (const auto& attribute : array->GetAttributes())
            if (const int64_t told = listed_wavelengths(attribute)) found.wavelengths.push_back(told);
        found.arrays.push_back(std::move(array));
    }
    if (depth == 0) return;
    for (const std::string& name : group->GetGroupNames())
        if (const auto inner = group->OpenGroup(name)) collect_arrays(file, inner, depth - 1, left, found);
}

FileContents contents_of_file(const ArrayFile& file) {
    FileContents found;
    int left = 2000; // limit for the number of arrays; files have tens
    const auto root = file.group("/");
    if (root) collect_arrays(file, root, 8, left, found);
    // The arrays of a Zarr dataset are sorted by name, because they are folders without an order.
    if (file.driver() == "Zarr")
        std::sort(found.arrays.begin(), found.arrays.end(),
                  [](const Array& a, const Array& b) { return a->GetFullName() < b->GetFullName(); });
    return found;
}

struct Choice {
    Array array;
    ArrayLayout layout;
};

/// Returns true for arrays that describe other arrays: longitudes, latitudes, bounds of cells, and lists of
/// band properties.
bool is_about_others(const Array& array) {
    const std::string name = lower(array->GetName());
    const auto ends = [&](const std::string& tail) {
        return name.size() > tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
    };
    const std::string standard = lower(attribute_text(array, "standard_name"));
    if (list_length(*array) > 0 && (lists_wavelengths(name) || is_unit_of_wavelengths(unit_of(array)) ||
                                    is_list_of_widths(name) || is_list_of_good_bands(name)))
        return true;
    return starts_with(name, "lon") || starts_with(name, "lat") || ends("_bnds") || ends("_bounds") ||
           standard == "longitude" || standard == "latitude";
}

using Use = WantedArray::Use;

/// The candidates, by the number of their axes. Cubes have lines, samples and bands; arrays that are refused
/// because of a further axis also count as cubes. Tables have spectra and bands.
struct Choices {
    std::vector<Choice> cubes, tables, planes, spectra;

    std::vector<Choice>& of(const ArrayLayout& layout, Use use) {
        if (!layout.refusal.empty()) return cubes;
        if (!layout.band_axis || (use == Use::plane && layout.bands == 1)) return planes;
        return layout.line_axis ? cubes : layout.sample_axis ? tables : spectra;
    }

    /// Returns the first kind of candidates that is not empty, in the order of preference for the wanted use.
    std::vector<Choice>& first_for(const WantedArray& wanted) {
        const auto fits = [&](const Choice& c) {
            return c.layout.lines == wanted.bands || c.layout.samples == wanted.bands;
        };
        const bool planes_first =
            wanted.use == Use::plane ||
            (wanted.use == Use::library && tables.empty() && std::any_of(planes.begin(), planes.end(), fits));
        if (planes_first && !planes.empty()) return planes;
        if (wanted.use == Use::library && !tables.empty()) return tables;
        for (auto* const kind : {&cubes, &tables, &planes})
            if (!kind->empty()) return *kind;
        return spectra;
    }
};

/// Returns all arrays that are candidates.
Choices choices_in(const ArrayFile& file, const FileContents& contents, Use use) {
    Choices found;
    for (const Array& array : contents.arrays) {
        auto layout = layout_of(file, array, contents.wavelengths, use == Use::plane);
        if (!layout) continue;
        auto& kind = found.of(*layout, use);
        if (GDALDataTypeIsComplex(array->GetDataType().GetNumericDataType()) != 0) continue;
        if ((&kind == &found.planes || list_length(*array) > 0) && is_about_others(array)) continue;
        kind.push_back({array, std::move(*layout)});
    }
    return found;
}

/// Returns the array called `name`. Without a name, returns the only candidate of the preferred kind. Among
/// several, returns the only candidate with a usual name for scenes or libraries, or the only one in the root
/// group.
std::optional<Choice> choose(const ArrayFile& file, const std::string& name, const FileContents& contents,
                             const WantedArray& wanted) {
    for (const Array& array : contents.arrays)
        if (!name.empty() && names_array(name, array->GetFullName()))
            if (auto layout = layout_of(file, array, contents.wavelengths, wanted.use == Use::plane))
                return Choice{array, std::move(*layout)};
    if (!name.empty()) return std::nullopt;
    Choices found = choices_in(file, contents, wanted.use);
    auto& all = found.first_for(wanted);
    const auto keep_if = [&](const auto& is_better) {
        if (all.size() < 2) return;
        std::vector<Choice> kept;
        std::copy_if(all.begin(), all.end(), std::back_inserter(kept), is_better);
        if (!kept.empty()) all = std::move(kept);
    };
    if (wanted.use == Use::plane) {
        keep_if([&](const Choice& c) {
            return c.layout.lines == wanted.lines && c.layout.samples == wanted.samples;
        });
        keep_if([](const Choice& c) {
            return GDALDataTypeIsInteger(c.array->GetDataType().GetNumericDataType()) != 0;
        });
    }
    if (wanted.use == Use::library) {
        keep_if([&](const Choice& c) {
            return (c.layout.band_axis ? c.layout.bands == wanted.bands
                                       : c.layout.lines == wanted.bands || c.layout.samples == wanted.bands);
        });
        keep_if([](const Choice& c) {
            return one_of(lower(c.array->GetName()), {"spectra", "endmembers", "library", "signatures"});
        });
    }
    keep_if([](const Choice& c) { return one_of(lower(c.array->GetName()), {"reflectance", "radiance"}); });
    keep_if([](const Choice& c) { return c.array->GetFullName().rfind('/') == 0; });
    if (all.size() != 1) return std::nullopt;
    if (wanted.use == Use::library && &all != &found.cubes && !found.cubes.empty())
        all.front().layout.doubt = "it is read as the library, although the file also has the scene " +
                                   found.cubes.front().array->GetFullName();
    return std::move(all.front());
}

/// Returns "band7" for "Band7", "band_07" and "B7", and other names in lower case.
std::string name_in_stack(const std::string& name) {
    const auto words = words_of(name);
    constexpr size_t longest = 5; // maximum number of digits
    if (words.size() != 2 || !one_of(words[0], {"band", "b"}) || words[1].size() > longest ||
        words[1].find_first_not_of("0123456789") != std::string::npos)
        return lower(name);
    return "band" + std::to_string(std::stoi(words[1]));
}

/// Returns planes of one size that belong together: Band1, Band2 ..., as GDAL writes bands to netCDF. If a
/// plane is wanted, glt_x and glt_y are also such planes. The list is empty if arrays with these names are
/// not planes of one size, or if there are fewer than two planes.
std::vector<Choice> choose_stack(const ArrayFile& file, const FileContents& contents,
                                 const WantedArray& wanted) {
    if (wanted.use == Use::library || wanted.lines > 0) return {};
    std::vector<Choice> stack;
    const auto add = [&](const std::string& name) {
        for (const Array& array : contents.arrays) {
            if (name_in_stack(array->GetName()) != name) continue;
            auto layout = layout_of(file, array, contents.wavelengths);
            if (!layout || !layout->refusal.empty() || layout->band_axis) return false;
            if (!stack.empty() && (layout->lines != stack.front().layout.lines ||
                                   layout->samples != stack.front().layout.samples))
                return false;
            stack.push_back({array, std::move(*layout)});
            return true;
        }
        return false;
    };
    if (wanted.use == Use::plane && add("glt_x") && add("glt_y")) return stack;
    stack.clear();
    while (add("band" + std::to_string(stack.size() + 1))) {
    }
    if (stack.size() < 2) stack.clear();
    return stack;
}

/// Returns whether GDAL's raster driver should read the file. This is so for files that GDAL has written,
/// which contain all metadata, and if the option GDAL_NETCDF_BOTTOMUP is set.
bool is_left_to_gdal(const ArrayFile& file, const ArrayLayout& layout, const Product& product) {
    const bool in_view = layout.band_axis && !layout.part.view.empty();
    if (file.driver() == "Zarr" || in_view) return false;
    const CubePart& part = layout.part;
    const bool ordered = !layout.band_axis ? layout.part.line_axis < layout.part.sample_axis
                                           : part.band_axis == 0 && part.line_axis == 1;
    if (!ordered) return false;
    if (CPLGetConfigOption("GDAL_NETCDF_BOTTOMUP", nullptr) != nullptr) return true;
    return !product.parts.front().invalid.any() && product.class_names.empty() &&
           !attribute_text(file.group("/"), "GDAL").empty();
}

/// Finds lists with one number per band: arrays along the band axis, arrays elsewhere in the file, and
/// attributes of the array or of the groups that contain it.
class BandLists {
  public:
    BandLists(const ArrayFile& file, const FileContents& contents, const Choice& choice)
        : m_file(file), m_contents(contents), m_array(choice.array), m_layout(choice.layout) {}

    struct List {
        Numbers numbers;
        std::string unit, name; ///< name: of the array or the attribute
    };

    List wavelengths() const {
        if (const Array coordinate = coordinate_of(m_file, m_array, *m_layout.band_axis))
            if (tells_wavelengths(coordinate) || has_texts_with_units(m_file, coordinate))
                return of_array(coordinate);
        // An array along the band axis may have any name.
        for (const Array& array : m_contents.arrays)
            if (is_along(array) && (tells_wavelengths(array) || has_texts_with_units(m_file, array)))
                return of_array(array);
        const auto is_one = [](const std::string& name) {
            return lists_wavelengths(name) && !starts_with(name, "good") && !starts_with(name, "bad");
        };
        List found = named(is_one);
        // Finds lists with other texts than numbers, which get a note.
        for (const Array& array : m_contents.arrays)
            if (found.numbers.size() == 0 && found.name.empty() && is_one(lower(array->GetName())) &&
                static_cast<int64_t>(list_length(*array)) == m_layout.bands)
                found = {m_file.list(array->GetFullName()), {}, array->GetFullName()};
        return found;
    }

    List widths() const {
        List found = named(is_list_of_widths);
        if (found.numbers.size() == 0)
            if (const Array coordinate = coordinate_of(m_file, m_array, *m_layout.band_axis))
                found = in_attributes(coordinate->GetAttributes(), is_list_of_widths);
        return found;
    }

    Numbers good() const { return named(is_list_of_good_bands).numbers; }

  private:
    static bool tells_wavelengths(const Array& array) {
        if (is_unit_of_wavelengths(unit_of(array)) && !starts_with(lower(array->GetName()), "fwhm") &&
            lower(array->GetName()).find("width") == std::string::npos)
            return true;
        const std::string name = lower(array->GetName());
        return (lists_wavelengths(name) && !starts_with(name, "good") && !starts_with(name, "bad")) ||
               lower(attribute_text(array, "standard_name")).find("radiation_wavelength") == 0;
    }

    bool is_along(const Array& array) const {
        return array->GetDimensionCount() == 1 &&
               array->GetDimensions()[0]->GetFullName() == m_layout.band_axis->GetFullName() &&
               !m_layout.band_axis->GetFullName().empty() && fits(array) &&
               m_layout.band_axis->GetFullName()[0] == '/';
    }

    bool fits(const Array& array) const {
        return static_cast<int64_t>(list_length(*array)) == m_layout.bands &&
               (array->GetDataType().GetClass() == GEDTC_NUMERIC ||
                static_cast<int64_t>(m_file.list(array->GetFullName()).size()) == m_layout.bands);
    }

    List of_array(const Array& array) const {
        List list{unpacked_list(m_file, array), {}, array->GetFullName()};
        list.unit = list.numbers.unit.empty() ? unit_of(array) : list.numbers.unit;
        for (const char* name : {"unit", "Units", "Unit", "UNITS"})
            if (list.unit.empty()) list.unit = attribute_text(array, name);
        if (list.unit.empty()) list.unit = stated_unit(array->GetName());
        for (const auto& group : groups_above(array))
            if (list.unit.empty()) list.unit = stated_beside(group->GetAttributes(), lower(array->GetName()));
        return list;
    }

    /// Returns the unit of a list that another attribute of the same group states.
    static std::string stated_beside(const std::vector<std::shared_ptr<GDALAttribute>>& attributes,
                                     const std::string& name) {
        for (const std::string& of : {name + "_units", name + "_unit", std::string("wavelength_units"),
                                      std::string("wavelength_unit")})
            for (const auto& other : attributes)
                if (lower(other->GetName()) == of) return text_in(other);
        return {};
    }

    /// Returns the group of an array and all groups above it, up to the root.
    std::vector<std::shared_ptr<GDALGroup>> groups_above(const Array& array) const {
        std::vector<std::shared_ptr<GDALGroup>> groups;
        for (std::string name = array->GetFullName(); !name.empty();) {
            name.erase(name.rfind('/') == std::string::npos ? 0 : name.rfind('/'));
            if (auto group = m_file.group(name.empty() ? "/" : name)) groups.push_back(std::move(group));
        }
        return groups;
    }

    static std::string group_of(const Array& array) {
        const std::string name = array->GetFullName();
        return name.substr(0, name.rfind('/'));
    }

    /// Searches for a list by name: first along the band axis, then in the array's group, then in the whole
    /// file. Finally searches the attributes of the array and of the groups that contain it.
    template <class Name>
    List named(const Name& is_one) const {
        constexpr int along = 0, beside = 1, anywhere = 2;
        const auto distance = [&](const Array& array) {
            return is_along(array) ? along : group_of(array) == group_of(m_array) ? beside : anywhere;
        };
        for (const int far : {along, beside, anywhere})
            for (const Array& array : m_contents.arrays)
                if (distance(array) == far && fits(array) && is_one(lower(array->GetName())))
                    return of_array(array);
        List found = in_attributes(m_array->GetAttributes(), is_one);
        for (const auto& group : groups_above(m_array))
            if (found.numbers.size() == 0) found = in_attributes(group->GetAttributes(), is_one);
        return found;
    }

    template <class Name>
    List in_attributes(const std::vector<std::shared_ptr<GDALAttribute>>& attributes,
                       const Name& is_one) const {
        for (const auto& attribute : attributes) {
            const std::string name = lower(attribute->GetName());
            if (!is_one(name)) continue;
            List list{numbers_in(attribute), {}, "the attribute " + attribute->GetName()};
            const auto bands = static_cast<size_t>(m_layout.bands);
            if (list.numbers.size() == 1 && is_list_of_widths(name)) { // a single FWHM applies to all bands
                list.numbers.values.assign(bands, list.numbers.values.front());
                list.numbers.texts.assign(bands, std::string(list.numbers.texts.front()));
            }
            if (static_cast<int64_t>(list.numbers.size()) != m_layout.bands) continue;
            list.unit = list.numbers.unit;
            if (list.unit.empty()) list.unit = stated_beside(attributes, name);
            if (list.unit.empty()) list.unit = stated_unit(name);
            return list;
        }
        return {};
    }

    const ArrayFile& m_file;
    const FileContents& m_contents;
    const Array& m_array;
    const ArrayLayout& m_layout;
};

/// Converts the numbers to nanometres, as texts. The text is "0" for a number that cannot be converted.
void to_digits_in_nanometres(Numbers& numbers, const std::string& unit) {
    for (std::string& text : numbers.texts) {
        const double nm = to_nanometres(CPLAtof(text.c_str()), unit, 0);
        text = std::isnan(nm) ? std::string("0") : number_text(nm);
    }
}

/// Sets the bands of a stack of planes from the attributes of each plane.
void take_stacked_bands(Product& product, const std::vector<Choice>& stack) {
    std::string unit;
    for (size_t b = 0; b < stack.size(); ++b) {
        const Array& array = stack[b].array;
        ProductBand band;
        band.part = static_cast<int>(b);
        std::tie(band.scale, band.offset) = scale_of(array);
        const std::string name = attribute_text(array, "long_name");
        if (!starts_with(name, "GDAL Band Number")) band.description = name;
        std::string told;
        for (const auto& [attribute, text] :
             {std::pair("wavelength", &band.wavelength), {"fwhm", &band.fwhm}})
            if (const Numbers numbers = attribute_numbers(array, attribute); numbers.size() == 1) {
                *text = numbers.texts[0];
                if (attribute == std::string("wavelength")) told = numbers.unit;
            }
        if (told.empty()) told = attribute_text(array, "wavelength_units");
        if (b == 0) unit = told;
        if (told != unit) unit.clear();
        product.bands.push_back(std::move(band));
    }
    product.wavelength_units = unit;
}

/// Sets scale and offset of the bands if scale_factor or add_offset have one number per band.
void take_scales_of_bands(Product& product, const Array& array) {
    for (const auto& [name, of_band] :
         {std::pair("scale_factor", &ProductBand::scale), {"add_offset", &ProductBand::offset}}) {
        const Numbers told = attribute_numbers(array, name);
        if (told.size() < 2) continue;
        if (told.size() != product.bands.size()) {
            product.notes.push_back("'" + product.path + "' (" + product.name + "): " + name +
                                    " is ignored: it has " + counted(told.size(), "number") + ", not 1 or " +
                                    std::to_string(product.bands.size()));
            continue;
        }
        for (size_t b = 0; b < told.size(); ++b)
            product.bands[b].*of_band = told.values[b];
    }
}

void take_bands(Product& product, const ArrayFile& file, const FileContents& contents, const Choice& choice) {
    const auto bands = static_cast<size_t>(choice.layout.bands);
    product.bands.resize(bands);
    for (size_t b = 0; b < bands; ++b)
        product.bands[b].index = static_cast<int64_t>(b);
    const auto [scale, offset] = scale_of(choice.array);
    for (ProductBand& band : product.bands) {
        band.scale = scale;
        band.offset = offset;
    }
    take_scales_of_bands(product, choice.array);
    if (!choice.layout.band_axis) return;
    const BandLists lists(file, contents, choice);
    auto [wavelengths, unit, from] = lists.wavelengths();
    const auto& lengths = contents.wavelengths;
    if (wavelengths.size() == 0 && !lengths.empty() && bands > 1 &&
        std::find(lengths.begin(), lengths.end(), choice.layout.bands) == lengths.end())
        product.notes.push_back(
            "'" + product.path + "' (" + product.name + "): the list of wavelengths is ignored: it has " +
            counted(lengths.front(), "number") + ", but the scene has " + counted(bands, "band"));
    const Numbers good = lists.good();
    for (size_t b = 0; b < bands && good.size() == bands; ++b)
        product.bands[b].good = good.values[b] != 0;
    if (unit == "1") unit.clear(); // "1" is the unit of dimensionless numbers
    const bool known = is_blank_unit(unit) || field_unit(unit) != nullptr;
    if (!wavelengths.no_numbers.empty())
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + from + " is ignored: '" +
                                wavelengths.no_numbers + "' is not a number");
    if (wavelengths.size() != bands) {
        if (wavelengths.size() > 0)
            product.notes.push_back("'" + product.path + "' (" + product.name + "): " + from +
                                    " is ignored: it has " + counted(wavelengths.size(), "number") + " for " +
                                    counted(bands, "band"));
        return;
    }
    if (!known) {
        product.notes.push_back("'" + product.path + "': " + chosen_unit(unit, 0, 0).note);
        return;
    }
    if (is_blank_unit(unit)) product.wavelength_units.clear();
    if (!says_wavelength_in_full(from) && !is_unit_of_wavelengths(unit))
        product.notes.push_back("'" + product.path + "' (" + product.name +
                                "): the wavelengths are taken from " + from);
    auto widths = lists.widths();
    if (widths.numbers.size() != bands) widths.numbers = {};
    const std::string width_unit = widths.unit.empty() ? unit : widths.unit;
    if (in_micrometres(unit) && (in_micrometres(width_unit) || widths.numbers.size() == 0)) {
        product.wavelength_units = "Micrometers";
    } else if (known && !unit.empty() && !(in_nanometres(unit) && in_nanometres(width_unit))) {
        to_digits_in_nanometres(wavelengths, unit);
        to_digits_in_nanometres(widths.numbers, width_unit);
    }
    for (size_t b = 0; b < bands; ++b) {
        product.bands[b].wavelength = wavelengths.texts[b];
        if (widths.numbers.size() == bands) product.bands[b].fwhm = widths.numbers.texts[b];
    }
}

/// Uses the arrays of longitude and latitude that the attribute "coordinates" names.
void take_swath(Product& product, const ArrayFile& file, const Choice& choice) {
    const ArrayLayout& layout = choice.layout;
    if (product.geotransform || !layout.line_axis || product.lines_rise || product.samples_fall) return;
    const CPLStringList names(
        CSLTokenizeString2(attribute_text(choice.array, "coordinates").c_str(), " ,", 0));
    std::string longitude, latitude;
    for (int k = 0; k < names.size(); ++k) {
        const Array array = array_near(file, choice.array, names[k]);
        if (!array || array->GetDimensionCount() != 2 ||
            static_cast<int64_t>(array->GetDimensions()[0]->GetSize()) != layout.lines ||
            static_cast<int64_t>(array->GetDimensions()[1]->GetSize()) != layout.samples)
            continue;
        const std::string name = lower(array->GetName()),
                          standard = lower(attribute_text(array, "standard_name"));
        if (standard == "longitude" || starts_with(name, "lon")) longitude = array->GetFullName();
        if (standard == "latitude" || starts_with(name, "lat")) latitude = array->GetFullName();
    }
    if (!longitude.empty() && !latitude.empty()) take_locations(product, file, longitude, latitude);
}

/// Sets the class names from flag_values and flag_meanings (CF conventions, "Flags"). Bit fields (flag_masks)
/// are not class maps.
void take_classes(Product& product, const Array& array) {
    const std::vector<double> values = attribute_numbers(array, "flag_values").values;
    const GdalErrors quiet;
    const auto meanings = array->GetAttribute("flag_meanings");
    if (values.empty() || !meanings || array->GetAttribute("flag_masks")) return;
    std::string text;
    const CPLStringList texts(meanings->ReadAsStringArray());
    for (int k = 0; k < texts.size(); ++k)
        text += std::string(texts[k]) + " ";
    const CPLStringList names(CSLTokenizeString2(text.c_str(), " ,\t\r\n", 0));
    if (static_cast<size_t>(names.size()) != values.size()) {
        product.notes.push_back(
            "'" + product.path + "' (" + product.name + "): flag_meanings is ignored: it has " +
            counted(static_cast<size_t>(names.size()), "name") + " for " + counted(values.size(), "value"));
        return;
    }
    constexpr double most = 65535; // maximum class value
    for (size_t k = 0; k < values.size(); ++k) {
        if (!(values[k] >= 0 && values[k] <= most) || values[k] != std::floor(values[k])) continue;
        const auto at = static_cast<size_t>(values[k]);
        if (product.class_names.size() <= at) product.class_names.resize(at + 1);
        product.class_names[at] = names[static_cast<int>(k)];
    }
}

} // namespace

/// Adds the attributes of a netCDF file as metadata items with the names that GDAL's raster driver uses.
/// Lists are in braces.
void take_attributes(Product& product, const ArrayFile& file) {
    if (file.driver() != "netCDF") return;
    const GdalErrors quiet;
    for (const auto& attribute : file.group("/")->GetAttributes()) {
        const std::string& name = attribute->GetName();
        // The netCDF library uses such attributes internally.
        if (name.empty() || name.front() == '_') continue;
        const CPLStringList texts(attribute->ReadAsStringArray());
        std::string all;
        for (int k = 0; k < texts.size(); ++k)
            all += (k > 0 ? "," : "") + std::string(texts[k]);
        product.attributes.push_back("NC_GLOBAL#" + name + "=" + (texts.size() > 1 ? "{" + all + "}" : all));
    }
}

/// Adds the attributes that all arrays of a stack share, because GDAL's Zarr driver writes the items of a
/// dataset to each band.
void take_shared_attributes(Product& product, const ArrayFile& file, const std::vector<Choice>& stack) {
    if (file.driver() == "netCDF") return; // take_attributes() adds the attributes of the file
    constexpr const char* known[] = {"grid_mapping",     "coordinates", "units",         "scale_factor",
                                     "add_offset",       "long_name",   "standard_name", "missing_value",
                                     "valid_min",        "valid_max",   "valid_range",   "wavelength",
                                     "wavelength_units", "fwhm"};
    const GdalErrors quiet;
    const auto text_of = [](const Array& array, const std::string& name) {
        const auto attribute = array->GetAttribute(name);
        const char* const text = attribute ? attribute->ReadAsString() : nullptr;
        return std::string(text != nullptr ? text : "");
    };
    for (const auto& attribute : stack.front().array->GetAttributes()) {
        const std::string name = attribute->GetName(), text = text_of(stack.front().array, name);
        const auto is_same = [&](const char* other) { return name == other; };
        if (name.empty() || name.front() == '_' || text.empty() ||
            std::any_of(std::begin(known), std::end(known), is_same))
            continue;
        if (std::all_of(stack.begin(), stack.end(),
                        [&](const Choice& one) { return text_of(one.array, name) == text; }))
            product.attributes.push_back(name + "=" + text);
    }
}

namespace {

/// Makes a product of the array `choice`, which has all bands. If `stack` is not empty, it contains planes
/// with one band each, and `choice` is the first of them.
std::optional<Product> product_of(const ArrayFile& file, const FileContents& contents, const Choice& choice,
                                  const std::vector<Choice>& stack) {
    if (!choice.layout.refusal.empty()) throw Error(choice.layout.refusal, choice.layout.advice);
    const ArrayLayout& layout = choice.layout;
    constexpr int64_t most_bands = 65535;
    if (layout.bands > most_bands) return std::nullopt;
    const bool cube = layout.band_axis && layout.line_axis;
    Product product = begin_product(file, std::string(cube ? "cube " : "array ") + choice.array->GetName() +
                                              " (" + layout.axes + ")");
    product.of_agency = false;
    if (!layout.doubt.empty())
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + layout.doubt);
    product.lines = layout.lines;
    product.samples = layout.samples;
    for (const Choice& each : stack.empty() ? std::vector{choice} : stack) {
        CubePart part = each.layout.part;
        take_values(product, file, each.array, part);
        product.parts.push_back(part);
    }
    if (stack.empty()) {
        if (!layout.band_axis) take_classes(product, choice.array);
        if (is_left_to_gdal(file, layout, product)) return std::nullopt;
        take_bands(product, file, contents, choice);
    } else {
        product.name = counted(stack.size(), "array") + " " + choice.array->GetName() + " to " +
                       stack.back().array->GetName() + " (" + layout.axes + ")";
        take_stacked_bands(product, stack);
    }
    product.unit = unit_of(choice.array);
    take_grid(product, file, choice.array, layout);
    take_swath(product, file, choice);
    take_attributes(product, file);
    if (!stack.empty()) take_shared_attributes(product, file, stack);
    return product;
}

} // namespace

std::optional<Product> read_array(const ArrayFile& file, const std::string& name, const WantedArray& wanted) {
    const FileContents contents = contents_of_file(file);
    auto choice = choose(file, name, contents, wanted);
    std::vector<Choice> stack;
    if (!choice && name.empty()) stack = choose_stack(file, contents, wanted);
    if (!stack.empty()) choice = stack.front();
    return choice ? product_of(file, contents, *choice, stack) : std::nullopt;
}

std::vector<Product> read_spectra(const ArrayFile& file, const WantedArray& wanted) {
    const FileContents contents = contents_of_file(file);
    const Choices found = choices_in(file, contents, Use::library);
    std::vector<Product> products;
    const auto bands = [](const Choice& c) { return c.layout.bands; };
    const bool one_length = std::all_of(found.spectra.begin(), found.spectra.end(), [&](const Choice& c) {
        return bands(c) == bands(found.spectra.front());
    });
    for (const Choice& each : found.spectra)
        if (one_length || bands(each) == wanted.bands)
            if (auto product = product_of(file, contents, each, {})) products.push_back(std::move(*product));
    return products;
}

} // namespace hsi::raster
