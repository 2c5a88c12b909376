// SPDX-License-Identifier: MIT
#include "gdal_hsi_normalise/geometry.h"

#include "core/cancel_scope.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/labels.h"
#include "raster/regular_file.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "shared/spectral_bands.h"
#include "stream/resident_source.h"
#include "stream/stacked_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace hsi::normalise_tool {
namespace {

using view::Angle;
using view::AngleInput;
using view::AngleInputs;

/// Collects angles from several sources.
class Collected {
  public:
    Collected(const raster::Placement& place, const std::vector<Angle>& needed)
        : m_place(place), m_needed(needed) {}
    /// Returns true if the angle is needed and has no source yet.
    bool wants(Angle angle) const {
        return std::find(m_needed.begin(), m_needed.end(), angle) != m_needed.end() &&
               !m_inputs[angle].known();
    }
    void add(Angle angle, double degrees) { m_inputs[angle].value = degrees; }
    void add(Angle angle, AngleInput input) { m_inputs[angle] = std::move(input); }
    /// Adds the bands of a source. Returns the index of its first band among all collected bands.
    int add(std::shared_ptr<const stream::CubeSource> planes) {
        const int first = m_bands;
        m_bands += planes->shape().bands;
        m_sources.push_back(std::move(planes));
        return first;
    }
    void add(Angle angle, std::shared_ptr<const stream::CubeSource> plane, double factor = 1,
             double plus = 0) {
        AngleInput input;
        input.band = add(std::move(plane));
        input.factor = factor;
        input.plus = plus;
        m_inputs[angle] = std::move(input);
    }
    Geometry made() const {
        Geometry g{m_inputs, nullptr, 0, grid()};
        if (m_sources.size() == 1) g.planes = m_sources.front();
        if (m_sources.size() > 1) g.planes = std::make_shared<stream::StackedSource>(m_sources);
        return g;
    }
    const raster::Placement& place() const { return m_place; }
    normalise::SceneGrid grid() const {
        normalise::SceneGrid made{m_place.all_samples, m_place.all_lines, m_place.geotransform};
        if (auto& g = made.geotransform)
            for (size_t k : {0, 3})
                (*g)[k] -= (*g)[k + 1] * static_cast<double>(m_place.first_sample) +
                           (*g)[k + 2] * static_cast<double>(m_place.first_line);
        return made;
    }
    std::vector<std::string> missing() const {
        std::vector<std::string> names;
        for (const Angle angle : m_needed)
            if (!m_inputs[angle].known()) names.emplace_back(view::angle_names[angle]);
        return names;
    }

  private:
    const raster::Placement& m_place;
    const std::vector<Angle>& m_needed;
    AngleInputs m_inputs;
    std::vector<std::shared_ptr<const stream::CubeSource>> m_sources;
    int m_bands = 0;
};

// Rasters
// ----------------------------------------------------------------------------------------------------------

/// Warns if a file with the size of the scene has another position. The file is used pixel by pixel, so
/// angles of another flight line would otherwise remain unnoticed.
void check_place(tool::Run& run, const raster::RasterSource& source, const raster::Placement& place) {
    const auto& own = source.facts().geotransform;
    if (!own || !place.geotransform) return;
    const double apart =
        normalise::pixels_apart(*place.geotransform, *own, place.shape.samples, place.shape.lines);
    // The warning does not state distances above `sensible` pixels: one of the positions is then probably in
    // degrees and the other in metres.
    constexpr double most = 0.5, sensible = 1e4;
    if (apart <= most) return;
    run.warn(
        "'" + source.path() + "' has the size of the scene, but its position differs" +
        (apart < sensible ? " by up to " + tools::short_number(std::ceil(10 * apart) / 10) + " pixels" : "") +
        ": check that it belongs to this flight line. The angles are used pixel by pixel");
}

/// Opens a file with the size of the scene, or a file that is read by its position on the ground. If -srcwin
/// is given and the file has the size of the whole scene, the same window is read.
std::shared_ptr<raster::RasterSource> open_plane_file(tool::Run& run, const std::string& path,
                                                      const raster::Placement& place) {
    raster::OpenOptions options;
    options.path = path;
    options.use_bbl = false;
    options.cancel = &run.cancel();
    auto source = raster::open_raster(options);
    const auto shape = source->shape();
    const bool whole = shape.samples == place.all_samples && shape.lines == place.all_lines;
    if (whole && (shape.samples != place.shape.samples || shape.lines != place.shape.lines)) {
        options.window = Rect{place.first_sample, place.first_line, place.shape.samples, place.shape.lines};
        source = raster::open_raster(options);
    }
    if (source->shape().samples == place.shape.samples && source->shape().lines == place.shape.lines)
        check_place(run, *source, place);
    return source;
}

std::shared_ptr<const stream::CubeSource> on_scene(const std::shared_ptr<raster::RasterSource>& source,
                                                   const raster::Placement& place) {
    const auto shape = source->shape();
    if (shape.samples == place.shape.samples && shape.lines == place.shape.lines) return source;
    return raster::nearest_on_ground(source, place);
}

/// Returns the angle of a band of an OBS file without band names.
std::optional<Angle> angle_at(size_t band) {
    static constexpr std::array<int, 8> order{
        -1, view::sensor_azimuth, view::sensor_zenith, view::solar_azimuth, view::solar_zenith,
        -1, view::slope,          view::aspect};
    if (band >= order.size() || order[band] < 0) return std::nullopt;
    return static_cast<Angle>(order[band]);
}

void add_plane(Collected& to, Angle angle, const std::shared_ptr<raster::RasterSource>& source) {
    auto one = source;
    const auto& values = one->facts().bands.values;
    const double factor = raster::degrees_per(values.unit);
    if (!values.scale.empty() || !values.offset.empty()) one = one->scaled();
    to.add(angle, on_scene(one, to.place()), factor);
}

void add_raster(tool::Run& run, Collected& to, const std::string& path) {
    const auto source = open_plane_file(run, path, to.place());
    const auto& names = source->facts().bands.names;
    const bool any =
        std::any_of(names.begin(), names.end(), [](const auto& n) { return raster::angle_called(n); });
    const bool unnamed = !any && (names.size() == 10 || names.size() == 11);
    std::array<int, view::angle_count> bands{};
    for (const auto& name : names)
        if (const auto angle = raster::angle_called(name); angle && to.wants(*angle)) ++bands[*angle];
    for (size_t k = 0; k < bands.size(); ++k)
        if (bands[k] > 1)
            run.warn("'" + path + "' has " + std::to_string(bands[k]) + " bands of " + view::angle_names[k] +
                     ": the first is used");
    for (size_t b = 0; b < names.size(); ++b)
        if (const auto angle = unnamed ? angle_at(b) : raster::angle_called(names[b]);
            angle && to.wants(*angle))
            add_plane(to, *angle, source->with_bands({static_cast<int>(b)}));
}

// Products
// ----------------------------------------------------------------------------------------------------------

/// Returns the path of the file with the scene's own angles. EnMAP stores them in an XML file next to the
/// image.
std::string own_file(const raster::RasterSource& scene) {
    const std::string& path = scene.path();
    const size_t stem = path.rfind("SPECTRAL_IMAGE");
    if (scene.facts().product.rfind("EnMAP", 0) != 0 || stem == std::string::npos) return path;
    const std::string xml = path.substr(0, stem) + "METADATA.XML";
    return raster::is_there(xml) ? xml : path;
}

/// Adds the angles of a product. Returns false if the file is not a known product.
bool add_product(tool::Run& run, Collected& to, const std::string& path) {
    auto angles = raster::angles_of_product(path, to.place());
    if (!angles) return false;
    for (auto& one : *angles) {
        if (!to.wants(one.angle)) continue;
        if (!one.fault.empty())
            run.warn("'" + path + "': " + one.fault + ", so these pixels have no " +
                     view::angle_names[one.angle]);
        if (one.plane) one.input.band = to.add(one.plane);
        to.add(one.angle, std::move(one.input));
    }
    return true;
}

// ----------------------------------------------------------------------------------------------------------

raster::Placement placement_of(tool::Run& run, const raster::RasterSource& scene, bool windowed) {
    raster::Placement place;
    place.shape = scene.shape();
    place.all_samples = place.shape.samples;
    place.all_lines = place.shape.lines;
    place.geotransform = scene.facts().geotransform;
    place.srs_wkt = scene.facts().srs_wkt();
    if (!windowed) return place;
    auto options = run.options().source;
    place.first_sample = options.window->x;
    place.first_line = options.window->y;
    options.window.reset();
    const auto whole = raster::open_raster(options)->shape();
    place.all_samples = whole.samples;
    place.all_lines = whole.lines;
    return place;
}

} // namespace

AngleSetting parse_angle(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    for (size_t k = 0; k < view::angle_names.size(); ++k) {
        if (equals == std::string::npos || !equal_names(name, view::angle_names[k])) continue;
        AngleSetting made{static_cast<Angle>(k), {}, {}};
        const std::string value = text.substr(equals + 1);
        const double v = raster::table_number(value);
        if (!std::isfinite(v)) {
            made.file = value;
            if (value.empty()) break;
            const bool sign = value[0] == '-' || value[0] == '+';
            for (const char* const word : {"nan", "inf", "infinity"})
                if (equal_names(value.substr(sign ? 1 : 0), word))
                    throw UsageError("-angle: " + name + " '" + value + "' is not a number");
            return made;
        }
        const bool plane = k == view::solar_azimuth || k == view::sensor_azimuth || k == view::aspect;
        if (plane ? !(v >= -360 && v <= 360) : !(v >= 0 && v < 90))
            throw UsageError("-angle: " + name + " " + value + " is out of range (" +
                             (plane ? "-360 to 360" : "0 to below 90") + ")");
        made.degrees = v;
        return made;
    }
    throw UsageError(
        "-angle: '" + text + "' is not NAME=DEGREES or NAME=FILE",
        "Use solar_zenith, solar_azimuth, sensor_zenith, sensor_azimuth, slope or aspect as NAME.");
}

namespace {
/// Returns the time in days since 2000-01-01T12:00 UTC.
double parse_time(const std::string& text) {
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
    double second = 0;
    const int found =
        std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[T ]%2d:%2d%n", &year, &month, &day, &hour, &minute, &used);
    std::string rest = found == 5 ? text.substr(static_cast<size_t>(used)) : "x";
    if (!rest.empty() && (rest.back() == 'Z' || rest.back() == 'z')) rest.pop_back();
    bool good = found == 5;
    if (good && !rest.empty()) {
        second = rest[0] == ':' ? raster::table_number(rest.substr(1)) : std::nan("");
        good = second >= 0 && second < 61;
    }
    static constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    good = good && year >= 1900 && year <= 2100 && month >= 1 && month <= 12 && day >= 1 &&
           day <= lengths[month - 1] + (month == 2 && leap) && hour >= 0 && hour < 24 && minute >= 0 &&
           minute < 60;
    if (!good)
        throw UsageError("-time: '" + text + "' is not a time", "Write it as 2022-08-28T10:19:16Z (UTC).");
    // Counts days of the Gregorian calendar. The year begins in March, so that the leap day is the last day
    // of a year.
    const int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    const int64_t days = int64_t{365} * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    constexpr int64_t of_2000 = 730425; // number of the day 2000-01-01 in this count
    return static_cast<double>(days - of_2000) + (hour - 12 + minute / 60.0 + second / 3600) / 24;
}
} // namespace

void Geometry::read(const tool::Run& run) {
    constexpr uint64_t little = 8;
    if (!planes || held > 0 || run.options().dry_run ||
        planes->shape().float_bytes() > run.buffer_memory() / little)
        return;
    const auto shape = planes->shape();
    const auto kept = std::make_shared<stream::ResidentSource>(planes);
    const auto reader = kept->open_reader();
    const int64_t lines = std::min(std::max<int64_t>(planes->layout().block_lines, 16), shape.lines);
    std::vector<float> values(static_cast<size_t>(shape.bands * lines * shape.samples));
    for (int64_t y = 0; y < shape.lines; y += lines) {
        check_cancelled();
        const int64_t height = std::min(lines, shape.lines - y);
        reader->read({0, y, shape.samples, height},
                     CubeView<float>::packed(values.data(), shape.bands, height, shape.samples));
    }
    kept->seal();
    held = shape.float_bytes();
    planes = kept;
}

std::array<double, 2> parse_times(const std::string& text) {
    const size_t slash = text.find('/');
    const double first = parse_time(text.substr(0, slash));
    if (slash == std::string::npos) return {first, first};
    return {first, parse_time(text.substr(slash + 1))};
}

Geometry open_geometry(tool::Run& run, const AngleSettings& settings, const raster::RasterSource& scene,
                       const std::string& given, bool windowed, const std::vector<Angle>& needed) {
    const std::string file = given.empty() ? own_file(scene) : given;
    const raster::Placement place = placement_of(run, scene, windowed);
    Collected to(place, needed);
    for (const AngleSetting& one : settings.angles) {
        if (!to.wants(one.angle)) continue;
        if (one.degrees) {
            to.add(one.angle, *one.degrees);
            continue;
        }
        run.files()->reads("-angle", one.file, raster::files_read_with(one.file));
        const auto source = open_plane_file(run, one.file, place);
        if (source->shape().bands != 1)
            throw Error("'" + one.file + "' (-angle) has " + std::to_string(source->shape().bands) +
                            " bands; a raster of an angle must have one",
                        "Give a file with several angles with -geometry.");
        add_plane(to, one.angle, source);
    }
    if (!settings.dem.empty() && (to.wants(view::slope) || to.wants(view::aspect))) {
        run.files()->reads("-dem", settings.dem, raster::files_read_with(settings.dem));
        const int first = to.add(raster::slopes_of_dem(settings.dem, place));
        for (const Angle angle : {view::slope, view::aspect})
            if (to.wants(angle)) {
                AngleInput input;
                input.band = first + (angle == view::aspect);
                to.add(angle, std::move(input));
            }
    }
    if (settings.days && (to.wants(view::solar_zenith) || to.wants(view::solar_azimuth))) {
        const int first = to.add(raster::sun_positions(*settings.days, place));
        for (const Angle angle : {view::solar_zenith, view::solar_azimuth})
            if (to.wants(angle)) {
                AngleInput input;
                input.band = first + (angle == view::solar_azimuth);
                to.add(angle, std::move(input));
            }
    }
    if (!to.missing().empty()) {
        run.files()->reads("-geometry", file, raster::files_read_with(file));
        if (!add_product(run, to, file)) add_raster(run, to, file);
    }
    if (const auto missing = to.missing(); !missing.empty())
        throw Error(joined(missing, ", ") + " of '" + scene.path() + "' " +
                        (missing.size() > 1 ? "are" : "is") + " missing",
                    "Give a file of angles (-geometry), -angle NAME=DEGREES|FILE, -dem (slope, aspect) or "
                    "-time (sun).");
    return to.made();
}

} // namespace hsi::normalise_tool
