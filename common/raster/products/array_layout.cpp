// SPDX-License-Identifier: MIT
// Determines which axes of an array are lines, samples and bands.
#include "core/counted.h"
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/array_axes.h"
#include "raster/products/array_facts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

namespace hsi::raster {
namespace {

enum class Role { unknown, bands, lines, samples, time };

struct AxisFacts {
    size_t index = 0; ///< index of the axis in the array
    Role role = Role::unknown;
    int64_t size = 0;
    std::string name;
};

Role role_by_attributes(const Array& coordinate) {
    const std::string standard = lower(attribute_text(coordinate, "standard_name")),
                      unit = lower(unit_of(coordinate)), axis = lower(attribute_text(coordinate, "axis"));
    const auto is = [&](std::initializer_list<const char*> names) {
        return std::any_of(names.begin(), names.end(), [&](const char* name) { return standard == name; });
    };
    if (is({"projection_y_coordinate", "projection_y_angular_coordinate", "latitude", "grid_latitude"}))
        return Role::lines;
    if (is({"projection_x_coordinate", "projection_x_angular_coordinate", "longitude", "grid_longitude"}))
        return Role::samples;
    if (standard.find("radiation_") == 0 || standard.find("sensor_band") == 0) return Role::bands;
    if (standard == "time" || unit.find(" since ") != std::string::npos || axis == "t") return Role::time;
    if (is_degrees(unit, 'n') || axis == "y") return Role::lines;
    if (is_degrees(unit, 'e') || axis == "x") return Role::samples;
    return is_unit_of_wavelengths(unit) ? Role::bands : Role::unknown;
}

Role role_of(const std::string& name, const Array& coordinate) {
    if (const Role told = coordinate ? role_by_attributes(coordinate) : Role::unknown; told != Role::unknown)
        return told;
    // If the axis has no name, the name of its coordinates decides.
    switch (axis_called(is_made_up(name) && coordinate ? coordinate->GetName() : name)) {
    case Axis::bands:
        return Role::bands;
    case Axis::lines:
        return Role::lines;
    case Axis::samples:
        return Role::samples;
    case Axis::unknown:
        break;
    }
    const std::string n = lower(name);
    return n == "t" || n == "date" || n.find("time") != std::string::npos ? Role::time : Role::unknown;
}

/// If several axes have the same role, only the axis that is longer than 1 keeps it. If several of these axes
/// are longer than 1, none of them keeps it.
void part_roles(std::vector<AxisFacts>& axes) {
    for (const Role role : {Role::bands, Role::lines, Role::samples}) {
        std::vector<AxisFacts*> all;
        for (AxisFacts& axis : axes)
            if (axis.role == role) all.push_back(&axis);
        if (all.size() < 2) continue;
        const auto longer =
            std::count_if(all.begin(), all.end(), [](const AxisFacts* axis) { return axis->size > 1; });
        for (AxisFacts* const axis : all)
            if (longer != 1 || axis->size == 1) axis->role = Role::unknown;
    }
}

/// Leaves out axes of length 1 until three axes remain. Axes without a spatial or spectral role are left out
/// first.
void leave_out_singles(std::vector<AxisFacts>& axes) {
    const auto drop = [&](bool any_role) {
        for (size_t k = 0; k < axes.size() && axes.size() > 3; ++k) {
            const bool other = axes[k].role == Role::time || axes[k].role == Role::unknown;
            if (axes[k].size != 1 || !(other || any_role)) continue;
            axes.erase(axes.begin() + static_cast<ptrdiff_t>(k));
            --k;
        }
    };
    drop(false);
    drop(true);
}

/// Returns the times for a message, such as " (0, 1, 2 days since 2000-01-01)".
std::string listed_times(const ArrayFile& file, const Array& coordinate) {
    constexpr size_t most = 12;
    const Numbers times = coordinate ? unpacked_list(file, coordinate) : Numbers();
    std::string text;
    for (size_t k = 0; k < std::min(times.size(), most); ++k)
        text += (k ? ", " : "") + times.texts[k];
    if (times.size() > most) text += " ...";
    const std::string unit = coordinate ? unit_of(coordinate) : std::string();
    return text.empty() ? text : " (" + text + (unit.empty() ? "" : " ") + unit + ")";
}

void refuse(ArrayLayout& layout, const ArrayFile& file, const Array& array,
            const std::vector<AxisFacts>& axes) {
    const auto& all = array->GetDimensions();
    const auto time =
        std::find_if(axes.begin(), axes.end(), [](const AxisFacts& axis) { return axis.role == Role::time; });
    const auto& chosen =
        time != axes.end() ? *time : *std::find_if(axes.begin(), axes.end(), [](const AxisFacts& axis) {
            return axis.role == Role::unknown;
        });
    const bool times = time != axes.end();
    std::string view, shape;
    for (size_t k = 0; k < all.size(); ++k) {
        view += (k ? "," : "") + std::string(k == chosen.index ? "0" : ":");
        shape += (k ? " x " : "") + all[k]->GetName() + " " + std::to_string(all[k]->GetSize());
    }
    layout.refusal = times ? "'" + file.path() + "': " + array->GetFullName() + " has " +
                                 counted(static_cast<size_t>(chosen.size), "time") +
                                 listed_times(file, coordinate_of(file, array, *all[chosen.index])) +
                                 ", but a scene has one"
                           : "'" + file.path() + "': " + array->GetFullName() + " is " + shape +
                                 ", but a scene has bands, lines and samples";
    layout.advice = "Extract one cube: gdalmdimtranslate -array 'name=" + array->GetFullName() + ",view=[" +
                    view + "]' '" + file.path() + "' one.nc";
}

/// Returns the index of the band axis among three axes; nullopt if it is unknown. Sets `doubtful` if another
/// axis has the same length and only the order of the axes decides.
std::optional<size_t> place_of_bands(const std::vector<AxisFacts>& axes, const std::vector<int64_t>& lists,
                                     bool plane, bool& doubtful) {
    const auto with = [&](Role role) -> std::optional<size_t> {
        for (size_t k = 0; k < axes.size(); ++k)
            if (axes[k].role == role) return k;
        return std::nullopt;
    };
    if (const auto told = with(Role::bands)) return told;
    const auto lines = with(Role::lines), samples = with(Role::samples);
    if (lines && samples) return 3 - *lines - *samples;
    const auto free = [&](size_t k) { return k != lines && k != samples; };
    for (const size_t k : {size_t{2}, size_t{0}, size_t{1}})
        if (plane && free(k) && axes[k].size == 1) return k;
    for (const size_t k : {size_t{0}, size_t{2}, size_t{1}}) {
        if (!free(k) || std::find(lists.begin(), lists.end(), axes[k].size) == lists.end()) continue;
        for (size_t other = 0; other < axes.size(); ++other)
            doubtful |= other != k && free(other) && axes[other].size == axes[k].size && axes[k].size > 1;
        return k;
    }
    if (const auto time = with(Role::time)) return time;
    if (free(2) && axes[2].size == 1 && axes[0].size > 1 && axes[1].size > 1) return 2;
    const bool nameless =
        std::all_of(axes.begin(), axes.end(), [](const AxisFacts& axis) { return is_made_up(axis.name); });
    if (nameless && axes[0].size > 4 * axes[2].size) return std::nullopt;
    for (size_t k = 0; k < axes.size(); ++k)
        if (free(k)) return k;
    return std::nullopt;
}

/// Returns the indices of the line axis and the sample axis. Lines come first unless the roles of the axes
/// state otherwise.
std::pair<size_t, size_t> lines_and_samples(const std::vector<AxisFacts>& axes, size_t a, size_t b) {
    const bool turned = axes[a].role == Role::samples || axes[b].role == Role::lines;
    return turned ? std::pair{b, a} : std::pair{a, b};
}

constexpr size_t absent = SIZE_MAX;

struct Places {
    size_t line = absent, sample = absent, band = absent; ///< indices among the axes that were not left out
};

/// Returns the index of the band axis of an array with two axes. The axis has the role of bands, or it is the
/// only axis that has the length of a list of wavelengths.
std::optional<size_t> band_axis_of_two(const std::vector<AxisFacts>& axes, const std::vector<int64_t>& lists,
                                       bool plane) {
    for (size_t k = 0; k < 2; ++k)
        if (axes[k].role == Role::bands && axes[k].size > 1) return k;
    const auto listed = [&](size_t k) {
        return axes[k].size > 1 && std::find(lists.begin(), lists.end(), axes[k].size) != lists.end();
    };
    const bool unknown = axes[0].role == Role::unknown && axes[1].role == Role::unknown;
    if (plane || !unknown || listed(0) == listed(1)) return std::nullopt;
    return listed(0) ? 0 : 1;
}

std::optional<Places> places_of(const std::vector<AxisFacts>& axes, const std::vector<int64_t>& lists,
                                bool plane, bool& doubtful) {
    Places at;
    if (axes.size() == 3) {
        const auto band = place_of_bands(axes, lists, plane, doubtful);
        if (!band) return std::nullopt;
        at.band = *band;
        std::tie(at.line, at.sample) = lines_and_samples(axes, at.band == 0 ? 1 : 0, at.band == 2 ? 1 : 2);
        return at;
    }
    if (const auto band = band_axis_of_two(axes, lists, plane)) { // the other axis is the samples of one line
        at.band = *band;
        at.sample = 1 - *band;
        return at;
    }
    std::tie(at.line, at.sample) = lines_and_samples(axes, 0, 1);
    return at;
}

/// Sets the axes of the part, and GDAL's view if the array itself does not have three axes.
void take_places(ArrayLayout& layout, const ArrayFile& file, const Array& array,
                 const std::vector<AxisFacts>& axes, const Places& at) {
    const auto& all = array->GetDimensions();
    CubePart& part = layout.part;
    part.array = array->GetFullName();
    // A view of two axes gets an additional first axis of length 1.
    const bool added = axes.size() == 2;
    if (all.size() != 3) {
        part.view = added ? "[newaxis" : "[";
        size_t kept = 0;
        for (size_t k = 0; k < all.size(); ++k) {
            const bool keep = kept < axes.size() && axes[kept].index == k;
            kept += keep;
            part.view += std::string(part.view.size() > 1 ? "," : "") + (keep ? ":" : "0");
        }
        part.view += "]";
    }
    const auto place = [&](size_t k, std::shared_ptr<GDALDimension>& axis, int64_t& size) {
        size = k == absent ? 1 : axes[k].size;
        if (k == absent) return 0;
        axis = all[axes[k].index];
        return static_cast<int>(k) + (added ? 1 : 0);
    };
    part.line_axis = place(at.line, layout.line_axis, layout.lines);
    part.sample_axis = place(at.sample, layout.sample_axis, layout.samples);
    part.band_axis = place(at.band, layout.band_axis, layout.bands);
    const auto chunk = file.chunks(part.array);
    for (size_t k = 0; k < axes.size() && chunk.size() == all.size(); ++k)
        part.chunk[k + (added ? 1 : 0)] = static_cast<int64_t>(chunk[axes[k].index]);
    if (added && part.chunk[1] > 0) part.chunk[0] = 1;
    if (std::count(part.chunk.begin(), part.chunk.end(), 0) > 0) part.chunk = {};
}

} // namespace

bool is_degrees(const std::string& unit, char letter) {
    for (const char* const begin : {"degrees_", "degrees", "degree_", "degree"})
        if (unit.starts_with(begin + std::string(1, letter))) return true;
    return false;
}

bool is_unit_of_wavelengths(const std::string& unit) {
    const WavelengthUnit* const found = field_unit(unit);
    // Metres, centimetres and millimetres also measure lengths on the ground.
    return found != nullptr && !one_of(found->symbol, {"m", "cm", "mm"});
}

std::string unit_of(const Array& array) {
    const std::string unit = array->GetUnit();
    return unit.empty() ? attribute_text(array, "units") : unit;
}

Array array_near(const ArrayFile& file, const Array& array, const std::string& name) {
    if (name.empty()) return nullptr;
    if (name[0] == '/') return file.array(name);
    std::string group = array->GetFullName();
    while (!group.empty()) {
        group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
        if (auto found = file.array(group + "/" + name)) return found;
    }
    return nullptr;
}

namespace {

/// Returns the coordinates of an axis without a name: an array in the same group with a name for lines or
/// samples and with the length of the axis. Null if another axis or another such array has this length.
Array list_by_length(const ArrayFile& file, const Array& array, const GDALDimension& axis) {
    const auto& axes = array->GetDimensions();
    const auto alike = std::count_if(axes.begin(), axes.end(),
                                     [&](const auto& other) { return other->GetSize() == axis.GetSize(); });
    const std::string name = array->GetFullName();
    const size_t end = name.rfind('/');
    const auto group = file.group(end == 0 || end == std::string::npos ? "/" : name.substr(0, end));
    if (alike != 1 || axis.GetSize() < 2 || !group) return nullptr;
    Array found;
    for (const std::string& other : array_names(*group)) {
        const Axis counts = axis_called(other);
        if (counts != Axis::lines && counts != Axis::samples) continue;
        auto list = group->OpenMDArray(other);
        if (!list || list_length(*list) != axis.GetSize()) continue;
        if (found) return nullptr;
        found = std::move(list);
    }
    return found;
}

/// Returns the layout of an array with one axis, which is the spectrum of a single pixel; nullopt if the axis
/// is not the bands.
std::optional<ArrayLayout> layout_of_spectrum(const Array& array, const AxisFacts& axis,
                                              const std::vector<int64_t>& lists) {
    const bool listed = std::find(lists.begin(), lists.end(), axis.size) != lists.end(),
               has_bands = axis.role == Role::bands || (axis.role == Role::unknown && listed);
    if (!has_bands || axis.size < 2) return std::nullopt;
    ArrayLayout layout;
    layout.part.array = array->GetFullName();
    layout.part.view = "[newaxis,newaxis,:]";
    layout.lines = layout.samples = 1;
    layout.bands = axis.size;
    layout.band_axis = array->GetDimensions()[0];
    layout.axes = axis.name;
    return layout;
}

} // namespace

Array coordinate_of(const ArrayFile& file, const Array& array, const GDALDimension& axis) {
    const auto fits = [&](const Array& list) {
        return list && list->GetDimensionCount() == 1 &&
               list->GetDimensions()[0]->GetSize() == axis.GetSize();
    };
    const GdalErrors quiet;
    if (auto told = axis.GetIndexingVariable(); fits(told)) return told;
    if (is_made_up(axis.GetName())) return list_by_length(file, array, axis);
    auto named = array_near(file, array, axis.GetName());
    return fits(named) ? named : nullptr;
}

Numbers unpacked_list(const ArrayFile& file, const Array& list) {
    Numbers numbers = file.list(list->GetFullName());
    const auto told = scale_of(list);
    const auto number = [&](const char* name, const std::optional<double>& known, double otherwise) {
        const Numbers digits = attribute_numbers(list, name);
        // A number in single precision is read from its shortest digits, which are the intended value.
        return digits.size() == 1 ? CPLAtof(digits.texts[0].c_str()) : known.value_or(otherwise);
    };
    const double scale = number("scale_factor", told.first, 1), offset = number("add_offset", told.second, 0);
    if (scale == 1 && offset == 0) return numbers;
    for (size_t k = 0; k < numbers.size(); ++k) {
        numbers.values[k] = numbers.values[k] * scale + offset;
        constexpr const char* digits = "%.12g"; // packed numbers have fewer significant digits
        numbers.texts[k] = CPLSPrintf(digits, numbers.values[k]);
    }
    return numbers;
}

std::optional<ArrayLayout> layout_of(const ArrayFile& file, const Array& array,
                                     const std::vector<int64_t>& lists, bool plane) {
    const auto& all = array->GetDimensions();
    if (all.empty() || array->GetDataType().GetClass() != GEDTC_NUMERIC) return std::nullopt;
    constexpr uint64_t longest = INT32_MAX;
    std::vector<AxisFacts> axes;
    for (size_t k = 0; k < all.size(); ++k) {
        const uint64_t size = all[k]->GetSize();
        if (size == 0 || size > longest) return std::nullopt;
        axes.push_back({k, role_of(all[k]->GetName(), coordinate_of(file, array, *all[k])),
                        static_cast<int64_t>(size), all[k]->GetName()});
    }
    if (axes.size() == 1) return layout_of_spectrum(array, axes.front(), lists);
    part_roles(axes);
    leave_out_singles(axes);
    ArrayLayout layout;
    for (size_t k = 0; k < all.size(); ++k)
        layout.axes += (k ? ", " : "") + all[k]->GetName();
    layout.part.array = array->GetFullName();
    if (axes.size() > 3) {
        refuse(layout, file, array, axes);
        return layout;
    }
    bool doubtful = false;
    const auto places = places_of(axes, lists, plane, doubtful);
    if (!places) return std::nullopt;
    if (doubtful) {
        constexpr const char* ordinals[] = {"first", "second", "last"};
        layout.doubt = "several axes are as long as the list of wavelengths (" +
                       std::to_string(axes[places->band].size) + "), and the " + ordinals[places->band] +
                       " is read as the bands. To choose another axis, name the axes with dimension scales "
                       "(h5py: make_scale, attach_scale)";
    }
    take_places(layout, file, array, axes, *places);
    return layout;
}

} // namespace hsi::raster
