// SPDX-License-Identifier: MIT
// Determines the position of an array's pixels from the coordinates of its axes and from the SRS of its grid
// mapping (CF conventions, appendix F).
#include "core/text.h"
#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/products/array_axes.h"
#include "raster/products/array_facts.h"
#include "raster/products/product_readers.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

namespace hsi::raster {
namespace {

using Srs = std::shared_ptr<const OGRSpatialReference>;

bool evenly_spaced(const std::vector<double>& numbers) {
    if (numbers.size() < 2) return false;
    const double first = numbers.front(), count = static_cast<double>(numbers.size() - 1),
                 step = (numbers.back() - first) / count;
    // The maximum deviation as a fraction of a pixel; coordinates in single precision are not exact.
    constexpr double most = 0.1;
    for (size_t k = 0; k < numbers.size(); ++k)
        if (!(std::fabs(numbers[k] - first - step * static_cast<double>(k)) <= most * std::fabs(step)))
            return false;
    return step != 0;
}

/// The coordinates of the pixel centres along an axis.
struct Centres {
    std::vector<double> at; ///< coordinates; empty: unknown
    std::string name, unit, standard;
    bool even = false;
    bool single = false; ///< the axis has one pixel, so the pixel size is unknown
    /// The coordinates are pixel indices that do not start at the first pixel or skip pixels.
    bool part = false;
    bool rising() const { return at.size() > 1 && at.front() < at.back(); }
    double step() const { return (at.back() - at.front()) / static_cast<double>(at.size() - 1); }
};

bool is_geographic(const Centres& centres) {
    const std::string name = lower(centres.name);
    return one_of(centres.standard, {"longitude", "latitude", "grid_longitude", "grid_latitude"}) ||
           begins_with_any(name, {"lat", "lon", "rlat", "rlon"}) || contains_any(name, {"north", "east"});
}

bool tells_time(const Centres& centres) {
    return centres.standard == "time" || one_of(centres.unit, {"s", "ms", "us", "ns", "h", "d", "min"}) ||
           contains_any(centres.unit, {" since "}) ||
           begins_with_any(centres.unit, {"sec", "minute", "hour", "day", "milliseconds", "microseconds"});
}

bool is_unit_of_counts(const std::string& unit) {
    return contains_any(unit, {"pixel", "line", "sample", "row", "col", "index", "count"});
}

/// Returns whether coordinates are indices of lines or samples. If a part of a scene was cut out, it keeps
/// the indices in the whole scene (10, 11 ...; 0, 2, 4 ...). Some programs start at the centre of the first
/// pixel (0.5). `on_a_map`: the array has an SRS. Then x and y are map coordinates unless they start with the
/// first pixel.
bool counts_pixels(const Centres& centres, const std::vector<double>& numbers, bool on_a_map) {
    if (is_unit_of_counts(centres.unit)) return true;
    const bool plain = centres.unit.empty() || centres.unit == "1",
               of_map = on_a_map && contains_any(centres.standard, {"projection_"});
    if (!plain || of_map || is_geographic(centres)) return false;
    bool rising = true, by_one = true;
    for (size_t k = 0; k < numbers.size(); ++k) {
        if (!(numbers[k] >= 0) || 2 * numbers[k] != std::floor(2 * numbers[k])) return false;
        if (k > 0) rising = rising && numbers[k] > numbers[k - 1];
        if (k > 0) by_one = by_one && numbers[k] == numbers[k - 1] + 1;
    }
    const bool index = contains_any(lower(centres.name), {"row", "col", "line", "sample", "pixel", "track",
                                                          "scan", "along", "across", "index"});
    constexpr double most_lines = 1e5, most_counts = 1e7; // maximum number of lines: in a scene, in a flight
    if (index)
        return std::max(numbers.front(), numbers.back()) < (on_a_map || !by_one ? most_lines : most_counts);
    if (on_a_map) return numbers.front() <= 1 && by_one;
    return rising && numbers.back() < most_lines;
}

/// Makes longitudes continuous that jump from 180 to -180.
void unwrap(std::vector<double>& degrees) {
    constexpr double turn = 360, half = 180;
    for (size_t k = 1; k < degrees.size(); ++k) {
        const double jump = degrees[k] - degrees[k - 1];
        if (std::fabs(jump) > half && std::fabs(jump) < turn + half) degrees[k] -= std::copysign(turn, jump);
    }
}

Centres centres_of(const ArrayFile& file, const Array& array, const std::shared_ptr<GDALDimension>& axis,
                   bool on_a_map) {
    Centres centres;
    if (!axis) return centres;
    centres.name = axis->GetName();
    const Array list = coordinate_of(file, array, *axis);
    if (!list) return centres;
    if (is_made_up(centres.name)) centres.name = list->GetName();
    Numbers numbers = unpacked_list(file, list);
    if (numbers.size() == 0) return centres;
    centres.unit = lower(unit_of(list));
    centres.standard = lower(attribute_text(list, "standard_name"));
    if (tells_time(centres)) return centres;
    if (counts_pixels(centres, numbers.values, on_a_map)) {
        const double first = numbers.values.front(), last = numbers.values.back();
        centres.part = first > 1 || last - first != static_cast<double>(numbers.size() - 1);
        return centres;
    }
    centres.single = numbers.size() == 1;
    if (centres.single) return centres;
    centres.at = std::move(numbers.values);
    constexpr double metres = 1000;
    if (centres.unit == "km" || starts_with(centres.unit, "kilomet"))
        for (double& place : centres.at)
            place *= metres;
    if (is_degrees(centres.unit, 'e') || centres.standard == "longitude" ||
        starts_with(lower(centres.name), "lon"))
        unwrap(centres.at);
    centres.even = evenly_spaced(centres.at);
    return centres;
}

/// A parameter of PROJ, and the attribute of a grid mapping that states it.
struct Parameter {
    const char *attribute, *key;
};
struct Mapping {
    const char *name, *projection;
    std::vector<Parameter> parameters;
};

const std::vector<Mapping>& mappings() {
    constexpr Parameter lat{"latitude_of_projection_origin", "lat_0"},
        lon{"longitude_of_central_meridian", "lon_0"}, lon_origin{"longitude_of_projection_origin", "lon_0"},
        height{"perspective_point_height", "h"}, parallel{"standard_parallel", "lat_1"},
        true_scale{"standard_parallel", "lat_ts"};
    static const std::vector<Mapping> all = {
        {"transverse_mercator", "tmerc", {lat, lon, {"scale_factor_at_central_meridian", "k_0"}}},
        {"lambert_conformal_conic", "lcc", {lat, lon, parallel}},
        {"albers_conical_equal_area", "aea", {lat, lon, parallel}},
        {"lambert_azimuthal_equal_area", "laea", {lat, lon_origin}},
        {"azimuthal_equidistant", "aeqd", {lat, lon_origin}},
        {"orthographic", "ortho", {lat, lon_origin}},
        {"polar_stereographic",
         "stere",
         {lat,
          lon_origin,
          {"straight_vertical_longitude_from_pole", "lon_0"},
          true_scale,
          {"scale_factor_at_projection_origin", "k_0"}}},
        {"stereographic", "stere", {lat, lon_origin, {"scale_factor_at_projection_origin", "k_0"}}},
        {"mercator", "merc", {lon_origin, lon, true_scale, {"scale_factor_at_projection_origin", "k_0"}}},
        {"lambert_cylindrical_equal_area", "cea", {lon, true_scale}},
        {"sinusoidal", "sinu", {lon_origin, lon}},
        {"vertical_perspective", "nsper", {lat, lon_origin, height}},
        {"geostationary", "geos", {lon_origin, height, {"sweep_angle_axis", "sweep"}}},
        {"oblique_mercator",
         "omerc",
         {lat,
          {"longitude_of_projection_origin", "lonc"},
          {"azimuth_of_central_line", "alpha"},
          {"scale_factor_at_projection_origin", "k_0"}}}};
    return all;
}

std::optional<double> parameter(const Array& mapping, const char* name, size_t at = 0) {
    const Numbers told = attribute_numbers(mapping, name);
    return at < told.size() ? std::optional(told.values[at]) : std::nullopt;
}

std::string setting(const char* key, double value) { return CPLSPrintf(" +%s=%.17g", key, value); }

constexpr double wgs84_axis = 6378137, wgs84_flattening = 298.257223563;

/// Returns the ellipsoid as parameters of PROJ. If the attributes have the numbers of WGS 84, the datum is
/// WGS 84; otherwise the datum is not stated.
std::string ellipsoid_of(const Array& mapping) {
    const auto radius = parameter(mapping, "earth_radius"), a = parameter(mapping, "semi_major_axis"),
               b = parameter(mapping, "semi_minor_axis"), rf = parameter(mapping, "inverse_flattening");
    if (!a && radius) return setting("R", *radius);
    if (!a) return " +datum=WGS84";
    if (*a == wgs84_axis &&
        (rf ? std::fabs(*rf - wgs84_flattening) < 1e-6 : b && std::fabs(*b - 6356752.314245179) < 1e-3))
        return " +datum=WGS84";
    if (rf) return *rf == 0 ? setting("R", *a) : setting("a", *a) + setting("rf", *rf);
    return b ? setting("a", *a) + setting("b", *b) : setting("R", *a);
}

/// Returns the EPSG code of a UTM zone on WGS 84; empty for other transverse Mercator projections.
std::string utm_of(const Array& mapping) {
    const auto number = [&](const char* name, double otherwise) {
        return parameter(mapping, name).value_or(otherwise);
    };
    const double zone = (number("longitude_of_central_meridian", 0) + 183) / 6,
                 north = number("false_northing", 0);
    if (ellipsoid_of(mapping) != " +datum=WGS84" || zone != std::floor(zone) || zone < 1 || zone > 60 ||
        std::fabs(number("scale_factor_at_central_meridian", 1) - 0.9996) > 1e-9 ||
        number("latitude_of_projection_origin", 0) != 0 || number("false_easting", 0) != 500000 ||
        (north != 0 && north != 1e7))
        return {};
    constexpr int northern = 32600, southern = 32700;
    return "EPSG:" + std::to_string((north == 0 ? northern : southern) + static_cast<int>(zone));
}

Srs turned_pole(const Array& mapping) {
    const auto lat = parameter(mapping, "grid_north_pole_latitude"),
               lon = parameter(mapping, "grid_north_pole_longitude");
    const Srs base = srs_from("+proj=longlat" + ellipsoid_of(mapping) + " +no_defs");
    if (!lat || !lon || !base) return nullptr;
    auto srs =
        std::shared_ptr<OGRSpatialReference>(base->Clone(), [](OGRSpatialReference* s) { s->Release(); });
    if (srs->SetDerivedGeogCRSWithPoleRotationNetCDFCFConvention(
            "Rotated_pole", *lat, *lon, parameter(mapping, "north_pole_grid_longitude").value_or(0)) !=
        OGRERR_NONE)
        return nullptr;
    srs->SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

Srs srs_by_parameters(const Array& mapping) {
    const std::string name = lower(attribute_text(mapping, "grid_mapping_name"));
    if (name == "latitude_longitude") {
        const std::string ellipsoid = ellipsoid_of(mapping);
        return srs_from(ellipsoid == " +datum=WGS84" ? "EPSG:4326"
                                                     : "+proj=longlat" + ellipsoid + " +no_defs");
    }
    if (name == "rotated_latitude_longitude") return turned_pole(mapping);
    if (const std::string utm = name == "transverse_mercator" ? utm_of(mapping) : ""; !utm.empty())
        return srs_from(utm);
    for (const Mapping& known : mappings()) {
        if (name != known.name) continue;
        std::string proj = std::string("+proj=") + known.projection;
        for (const Parameter& each : known.parameters) {
            if (const auto value = parameter(mapping, each.attribute))
                proj += setting(each.key, *value);
            else if (const std::string text = attribute_text(mapping, each.attribute); !text.empty())
                proj += std::string(" +") + each.key + "=" + text;
        }
        if (const auto second = parameter(mapping, "standard_parallel", 1)) proj += setting("lat_2", *second);
        proj += setting("x_0", parameter(mapping, "false_easting").value_or(0)) +
                setting("y_0", parameter(mapping, "false_northing").value_or(0));
        return srs_from(proj + ellipsoid_of(mapping) + " +units=m +no_defs");
    }
    return nullptr;
}

/// Returns the array that describes the SRS. The attribute grid_mapping names it ("crs" or "crs: x y");
/// otherwise it has a usual name. Null if there is none.
Array mapping_of(const ArrayFile& file, const Array& array) {
    std::string told = attribute_text(array, "grid_mapping");
    told.erase(std::min(told.find_first_of(": "), told.size()));
    if (auto found = array_near(file, array, told)) return found;
    for (const char* name : {"spatial_ref", "crs", "transverse_mercator"})
        if (auto found = array_near(file, array, name); found && found->GetTotalElementsCount() == 1)
            return found;
    return nullptr;
}

/// Finds the SRS in attributes, and collects notes about attributes that are ignored.
class StatedSrs {
  public:
    explicit StatedSrs(const ArrayFile& file) : m_file(file) {}

    /// Returns the SRS of the first of the named attributes whose text PROJ supports.
    template <class Holder>
    Srs by_text(const std::shared_ptr<Holder>& holder, std::initializer_list<const char*> names) {
        for (const char* name : names) {
            const std::string text = attribute_text(holder, name);
            if (auto srs = srs_from(text)) return srs;
            // The text may be the name of an array.
            if (!text.empty() && !m_file.array("/" + text)) ignore(name, text);
        }
        return nullptr;
    }

    /// Returns the SRS that attributes state as PROJ parameters or as an EPSG code ("32632", "EPSG:32632").
    /// xarray, SNAP and other programs write such attributes.
    template <class Holder>
    Srs by_code(const std::shared_ptr<Holder>& holder) {
        if (auto srs = by_text(holder, {"proj4", "proj4_params", "proj4_string", "proj4text", "proj4string"}))
            return srs;
        for (const char* name : {"epsg_code", "spatial_epsg", "epsg", "EPSG", "epsg_id"}) {
            const Numbers code = attribute_numbers(holder, name);
            constexpr double most = 1e9;
            const bool number = code.size() == 1 && code.values[0] > 0 && code.values[0] < most;
            const std::string text = attribute_text(holder, name);
            if (auto srs = srs_from(number ? "EPSG:" + std::to_string(std::lround(code.values[0])) : text))
                return srs;
            if (!text.empty() && !(code.size() == 1 && code.values[0] == 0)) ignore(name, text);
        }
        return nullptr;
    }

    /// Returns the SRS that the parameters of a CF grid mapping define.
    Srs by_parameters(const Array& mapping) {
        const std::string name = attribute_text(mapping, "grid_mapping_name");
        auto srs = mapping ? srs_by_parameters(mapping) : nullptr;
        if (!srs && !name.empty()) ignore("grid_mapping_name", name);
        return srs;
    }

    const std::vector<std::string>& notes() const { return m_notes; }

  private:
    void ignore(const std::string& name, std::string text) {
        constexpr size_t longest = 60;
        if (text.size() > longest) text = text.substr(0, longest) + "...";
        const std::string note =
            "the attribute " + name + " = '" + text + "' is ignored: it is not a known reference system";
        if (std::find(m_notes.begin(), m_notes.end(), note) == m_notes.end()) m_notes.push_back(note);
    }

    const ArrayFile& m_file;
    std::vector<std::string> m_notes;
};

Srs srs_of(const ArrayFile& file, const Array& array, const Array& mapping, StatedSrs& stated) {
    const auto root = file.group("/");
    if (auto srs = stated.by_text(mapping, {"crs_wkt", "spatial_ref"})) return srs;
    if (auto srs = stated.by_parameters(mapping)) return srs;
    if (auto srs = stated.by_code(mapping)) return srs;
    if (auto srs = stated.by_text(root, {"crs_wkt", "spatial_ref", "crs"})) return srs;
    if (auto srs = stated.by_text(array, {"crs_wkt", "spatial_ref", "crs"})) return srs;
    if (auto srs = stated.by_code(array)) return srs;
    if (auto srs = stated.by_code(root)) return srs;
    const GdalErrors quiet;
    if (const auto told = array->GetSpatialRef(); told && !told->IsEmpty()) {
        std::shared_ptr<OGRSpatialReference> srs(told->Clone(), [](OGRSpatialReference* s) { s->Release(); });
        srs->SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
        return srs;
    }
    return nullptr;
}

bool are_degrees(const Centres& x, const Centres& y) {
    const auto is = [](const Centres& c, char letter, const char* standard, const char* name) {
        return is_degrees(c.unit, letter) || c.standard == standard || starts_with(lower(c.name), name);
    };
    return is(x, 'e', "longitude", "lon") && is(y, 'n', "latitude", "lat");
}

using Grid = std::array<double, 6>;

/// Returns the geotransform of the scene. The first line has the largest coordinate, and the first sample has
/// the smallest.
Grid grid_of(const Centres& x, const Centres& y) {
    const double dx = std::fabs(x.step()), dy = std::fabs(y.step());
    return {std::min(x.at.front(), x.at.back()) - dx / 2, dx,  0.0,
            std::max(y.at.front(), y.at.back()) + dy / 2, 0.0, -dy};
}

template <class Holder>
std::optional<Grid> told_grid(const std::shared_ptr<Holder>& holder) {
    const Numbers told = attribute_numbers(holder, "GeoTransform");
    if (told.size() != 6) return std::nullopt;
    Grid grid{};
    std::copy(told.values.begin(), told.values.end(), grid.begin());
    // GDAL writes these numbers for a raster without a position.
    if (grid == Grid{0, 1, 0, 0, 0, 1} || grid == Grid{0, 1, 0, 0, 0, -1}) return std::nullopt;
    return grid;
}

/// Returns whether the stated geotransform describes the same grid as the coordinates. The stated grid may
/// begin at any corner.
bool same_grid(const Grid& told, const Grid& of_coordinates, int64_t samples, int64_t lines) {
    Grid grid = told;
    const auto turn = [](double& origin, double& step, int64_t count) {
        origin += step * static_cast<double>(count);
        step = -step;
    };
    if (grid[1] < 0) turn(grid[0], grid[1], samples);
    if (grid[5] > 0) turn(grid[3], grid[5], lines);
    constexpr double most = 0.1; // maximum deviation in pixels
    for (const auto& [origin, step, count] : {std::tuple{size_t{0}, size_t{1}, samples}, {3, 5, lines}}) {
        const double pixel = std::fabs(of_coordinates[step]),
                     first = std::fabs(grid[origin] - of_coordinates[origin]),
                     last = std::fabs(grid[origin] + grid[step] * static_cast<double>(count) -
                                      of_coordinates[origin] -
                                      of_coordinates[step] * static_cast<double>(count));
        if (!(first <= most * pixel && last <= most * pixel)) return false;
    }
    return true;
}

/// Converts the coordinates of a geostationary view from angles (radians) to metres.
void angles_to_metres(const Array& mapping, Centres& x, Centres& y) {
    if (!mapping || lower(attribute_text(mapping, "grid_mapping_name")) != "geostationary") return;
    const auto height = parameter(mapping, "perspective_point_height");
    for (Centres* const each : {&x, &y})
        if (height && starts_with(each->unit, "rad"))
            for (double& place : each->at)
                place *= *height;
}

} // namespace

void take_grid(Product& product, const ArrayFile& file, const Array& array, const ArrayLayout& layout) {
    const GdalErrors quiet;
    const Array mapping = mapping_of(file, array);
    StatedSrs stated(file);
    const auto srs = srs_of(file, array, mapping, stated);
    Centres x = centres_of(file, array, layout.sample_axis, srs != nullptr),
            y = centres_of(file, array, layout.line_axis, srs != nullptr);
    angles_to_metres(mapping, x, y);
    product.lines_rise = y.rising();
    product.samples_fall = x.at.size() > 1 && !x.rising();
    auto told = told_grid(mapping);
    std::string teller = mapping ? mapping->GetName() : std::string();
    if (!told && (told = told_grid(array))) teller = array->GetName();
    // A geotransform of the whole file does not apply to a swath, which has arrays of longitude and latitude.
    const bool swath = contains_any(lower(attribute_text(array, "coordinates")), {"lon"});
    if (!told && !swath && (told = told_grid(file.group("/")))) teller = "the file";
    const auto note = [&](const std::string& text) {
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + text);
    };
    for (const std::string& text : stated.notes())
        note(text);
    if (!x.at.empty() && !y.at.empty() && (!x.even || !y.even))
        return note(x.name + " and " + y.name + " are not evenly spaced: the scene has no position");
    if (told && (x.part || y.part)) {
        note("the attribute GeoTransform of " + teller + " is ignored: the coordinates " + x.name + " and " +
             y.name + " are indices into a part of the grid");
        told.reset();
    }
    if (x.at.empty() || y.at.empty()) {
        const bool single = x.single || y.single;
        if (!told && single)
            note("the only coordinate of " + (x.single ? x.name : y.name) +
                 " does not state the pixel size: the scene has no position");
        if (!told || (!single && (!x.at.empty() || !y.at.empty()))) return;
        product.geotransform = *told;
    } else {
        product.geotransform = grid_of(x, y);
        if (told && !same_grid(*told, *product.geotransform, product.samples, product.lines))
            note("the attribute GeoTransform of " + teller + " is ignored: the coordinates " + x.name +
                 " and " + y.name + " state another position");
    }
    product.srs = srs;
    if (!product.srs && are_degrees(x, y)) product.srs = srs_from("EPSG:4326");
}

} // namespace hsi::raster
