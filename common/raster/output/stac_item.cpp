// SPDX-License-Identifier: MIT
#include "raster/output/stac_item.h"

#include "core/error.h"
#include "core/file_path.h"
#include "core/json.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/output_format.h"
#include "raster/run_files.h"
#include "raster/scene_document.h"
#include "raster/text_output.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal_alg.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

namespace hsi::raster {
namespace {

// --- Time of acquisition -----------------------------------------------------

/// Start and end of the acquisition in UTC (RFC 3339), which are equal for a single time.
struct StacTime {
    std::string start, end;
};

/// Returns the UTC time for seconds since 1970, in the form "2022-08-28T05:19:16".
std::string utc_text(std::time_t seconds) {
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    return text;
}

/// A text that is parsed from its beginning to its end.
class TimeText {
  public:
    explicit TimeText(std::string text) : m_text(std::move(text)) {}
    bool ended() const { return m_at == m_text.size(); }
    bool skip(const char* any_of) {
        if (ended() || std::string(any_of).find(m_text[m_at]) == std::string::npos) return false;
        ++m_at;
        return true;
    }
    /// Reads exactly `count` digits. Returns false if there are fewer.
    bool number(size_t count, int& value) {
        if (m_text.size() - m_at < count) return false;
        value = 0;
        for (size_t i = 0; i < count; ++i) {
            const char c = m_text[m_at + i];
            if (c < '0' || c > '9') return false;
            value = 10 * value + (c - '0');
        }
        m_at += count;
        return true;
    }
    /// Reads a decimal fraction such as ".125"; empty if there is none.
    std::string fraction() {
        if (ended() || m_text[m_at] != '.') return {};
        const size_t begin = m_at,
                     end = std::min(m_text.find_first_not_of("0123456789", m_at + 1), m_text.size());
        m_at = end;
        return end > begin + 1 ? m_text.substr(begin, end - begin) : std::string();
    }
    /// Parses the rest of the text as a time zone, and returns the minutes east of UTC. Zones have the form
    /// "Z", "+02:00", "+0200" or "-03"; an empty rest means UTC. nullopt for other texts.
    std::optional<int> zone() {
        skip(" ");
        if (ended() || (skip("Zz") && ended())) return 0;
        const bool west = skip("-");
        int hours = 0, minutes = 0;
        if ((!west && !skip("+")) || !number(2, hours)) return std::nullopt;
        skip(":");
        if (!ended() && !number(2, minutes)) return std::nullopt;
        if (!ended() || hours > 14 || minutes > 59) return std::nullopt;
        return (west ? -1 : 1) * (hours * 60 + minutes);
    }

  private:
    std::string m_text;
    size_t m_at = 0;
};

/// Parses a date, which means the whole day, or a date and a time. nullopt for other texts and for years
/// before 1900.
std::optional<StacTime> parse_time(const std::string& given) {
    TimeText text(CPLString(given).Trim());
    std::tm parts{};
    if (!text.number(4, parts.tm_year) || !text.skip("-") || !text.number(2, parts.tm_mon) ||
        !text.skip("-") || !text.number(2, parts.tm_mday) || parts.tm_year < 1900)
        return std::nullopt;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    const auto seconds_of = [](const std::tm& wanted) -> std::optional<std::time_t> {
        std::tm normal = wanted; // timegm() changes invalid dates, such as 31 June to 1 July
        const std::time_t seconds = timegm(&normal);
        const bool same = normal.tm_year == wanted.tm_year && normal.tm_mon == wanted.tm_mon &&
                          normal.tm_mday == wanted.tm_mday && normal.tm_hour == wanted.tm_hour &&
                          normal.tm_min == wanted.tm_min;
        return same ? std::optional<std::time_t>(seconds) : std::nullopt;
    };
    if (text.ended() || (text.skip("Zz") && text.ended())) {
        const auto day = seconds_of(parts);
        if (!day) return std::nullopt;
        return StacTime{utc_text(*day) + "Z", utc_text(*day + 24 * 3600 - 1) + "Z"};
    }
    if (!text.skip("Tt ") || !text.number(2, parts.tm_hour) || !text.skip(":") ||
        !text.number(2, parts.tm_min))
        return std::nullopt;
    std::string fraction;
    if (text.skip(":")) {
        if (!text.number(2, parts.tm_sec)) return std::nullopt;
        fraction = text.fraction();
    }
    const auto zone = text.zone();
    const auto local = seconds_of(parts);
    if (!zone || !local) return std::nullopt;
    const std::string time = utc_text(*local - static_cast<std::time_t>(*zone) * 60) + fraction + "Z";
    return StacTime{time, time};
}

/// Parses one time, or two times separated by a slash.
std::optional<StacTime> parse_times(const std::string& text) {
    const size_t slash = text.find('/');
    const auto first = parse_time(text.substr(0, slash));
    if (slash == std::string::npos || !first) return first;
    const auto last = parse_time(text.substr(slash + 1));
    if (!last || last->end < first->start) return std::nullopt;
    return StacTime{first->start, last->end};
}

/// Returns the time of acquisition that the metadata of a scene states. The time at which the file was
/// written is not used.
std::optional<StacTime> acquisition_of(const SceneMetadata& scene) {
    if (const std::string* const text = scene.envi.find("acquisition time")) {
        CPLString bare = *text;
        bare.erase(
            std::remove_if(bare.begin(), bare.end(), [](char c) { return c == '{' || c == '}' || c == '"'; }),
            bare.end());
        if (auto time = parse_times(bare)) return time;
    }
    const auto item = [&](const char* domain, const std::string& key) -> std::string {
        const auto found = scene.domains.find(domain);
        if (found == scene.domains.end()) return {};
        // Items of netCDF have keys such as "NC_GLOBAL#time_coverage_start".
        for (const std::string& one : found->second) {
            const size_t equal = one.find('=');
            if (equal == std::string::npos) continue;
            const size_t hash = one.substr(0, equal).rfind('#');
            const size_t begin = hash == std::string::npos ? 0 : hash + 1;
            if (lower(one.substr(begin, equal - begin)) == key) return one.substr(equal + 1);
        }
        return {};
    };
    for (const char* domain : {"IMAGERY", ""})
        if (auto time = parse_times(item(domain, "acquisitiondatetime"))) return time;
    constexpr std::pair<const char*, const char*> spans[] = {{"time_coverage_start", "time_coverage_end"},
                                                             {"product_starttime", "product_stoptime"},
                                                             {"acquisition_time", ""},
                                                             {"acquisition time", ""}};
    for (const auto& [start, end] : spans) {
        const auto first = parse_times(item("", start));
        if (!first) continue;
        const auto last = parse_times(item("", end));
        return last && last->end >= first->start ? StacTime{first->start, last->end} : first;
    }
    return std::nullopt;
}

// --- Footprint ---------------------------------------------------------------

using Point = std::array<double, 2>;
using Ring = std::vector<Point>;

struct Footprint {
    /// Closed rings, one per polygon, counter-clockwise, in longitude and latitude (WGS 84).
    std::vector<Ring> rings;
    /// West, south, east, north; west > east if the footprint crosses longitude 180.
    std::array<double, 4> box{};
};

constexpr int steps_a_side = 16;

/// Returns points (sample, line) along the border of a raster, `steps_a_side` points on each side. `inset` is
/// 0 for the outer edges of the pixels, and 0.5 for the pixel centres.
Ring border_of(int samples, int lines, double inset) {
    const double left = inset, top = inset, right = samples - inset, bottom = lines - inset;
    const Point corners[] = {{left, top}, {left, bottom}, {right, bottom}, {right, top}, {left, top}};
    Ring ring;
    for (int side = 0; side < 4; ++side)
        for (int step = 0; step < steps_a_side; ++step) {
            const double t = static_cast<double>(step) / steps_a_side;
            ring.push_back({corners[side][0] + t * (corners[side + 1][0] - corners[side][0]),
                            corners[side][1] + t * (corners[side + 1][1] - corners[side][1])});
        }
    return ring;
}

bool to_wgs84(const OGRSpatialReference* from, Ring& ring) {
    if (from == nullptr || from->IsEmpty()) return false;
    OGRSpatialReference own(*from), wgs84;
    own.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    wgs84.importFromEPSG(4326);
    wgs84.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    const std::unique_ptr<OGRCoordinateTransformation> way(OGRCreateCoordinateTransformation(&own, &wgs84));
    if (!way) return false;
    for (Point& p : ring)
        if (!way->Transform(1, &p[0], &p[1])) return false;
    return true;
}

/// Transforms the points to WGS 84 with ground control points, by the same polynomial as GDAL's tools.
bool by_control_points(GDALDataset& dataset, Ring& ring) {
    const std::unique_ptr<void, void (*)(void*)> polynomial(
        GDALCreateGCPTransformer(dataset.GetGCPCount(), dataset.GetGCPs(), 0, FALSE), [](void* made) {
            if (made) GDALDestroyGCPTransformer(made);
        });
    if (!polynomial) return false;
    for (Point& p : ring) {
        double z = 0;
        int good = 0;
        if (!GDALGCPTransform(polynomial.get(), FALSE, 1, &p[0], &p[1], &z, &good) || !good) return false;
    }
    return to_wgs84(dataset.GetGCPSpatialRef(), ring);
}

/// Transforms the points to WGS 84 with arrays of the longitude and latitude of each pixel, which the domain
/// GEOLOCATION names.
bool by_arrays(GDALDataset& dataset, Ring& ring) {
    const auto item = [&](const char* key) {
        const char* const text = dataset.GetMetadataItem(key, "GEOLOCATION");
        return std::string(text ? text : "");
    };
    if (item("PIXEL_STEP") != "1" || item("LINE_STEP") != "1" ||
        item("GEOREFERENCING_CONVENTION") != "PIXEL_CENTER")
        return false;
    const DatasetHandle x(GDALDataset::Open(item("X_DATASET").c_str(), GDAL_OF_RASTER));
    const DatasetHandle y(GDALDataset::Open(item("Y_DATASET").c_str(), GDAL_OF_RASTER));
    OGRSpatialReference srs;
    if (!x || !y || srs.SetFromUserInput(item("SRS").c_str()) != OGRERR_NONE) return false;
    GDALRasterBand* const bands[] = {x->GetRasterBand(std::max(1, std::atoi(item("X_BAND").c_str()))),
                                     y->GetRasterBand(std::max(1, std::atoi(item("Y_BAND").c_str())))};
    if (bands[0] == nullptr || bands[1] == nullptr) return false;
    const double first[] = {-CPLAtof(item("PIXEL_OFFSET").c_str()), -CPLAtof(item("LINE_OFFSET").c_str())};
    for (Point& p : ring) {
        const double sample = std::floor(p[0]) + first[0], line = std::floor(p[1]) + first[1];
        for (size_t axis = 0; axis < 2; ++axis) {
            GDALRasterBand& band = *bands[axis];
            if (sample < 0 || line < 0 || sample >= band.GetXSize() || line >= band.GetYSize()) return false;
            int has = FALSE;
            const double none = band.GetNoDataValue(&has);
            if (band.RasterIO(GF_Read, static_cast<int>(sample), static_cast<int>(line), 1, 1, &p[axis], 1, 1,
                              GDT_Float64, 0, 0, nullptr) != CE_None ||
                (has && p[axis] == none))
                return false;
        }
    }
    return to_wgs84(&srs, ring);
}

/// Returns the border of the raster in WGS 84; nullopt if the raster has no position on the Earth.
std::optional<Ring> outline_of(GDALDataset& dataset) {
    const GdalErrors quiet; // a raster without a position is not an error
    const int samples = dataset.GetRasterXSize(), lines = dataset.GetRasterYSize();
    Ring ring = border_of(samples, lines, 0);
    double gt[6];
    bool found = false;
    if (dataset.GetGeoTransform(gt) == CE_None) {
        for (Point& p : ring)
            p = {gt[0] + p[0] * gt[1] + p[1] * gt[2], gt[3] + p[0] * gt[4] + p[1] * gt[5]};
        found = to_wgs84(dataset.GetSpatialRef(), ring);
    } else if (dataset.GetGCPCount() > 0) {
        found = by_control_points(dataset, ring);
    } else if (dataset.GetMetadata("GEOLOCATION") != nullptr) {
        ring = border_of(samples, lines, 0.5);
        found = by_arrays(dataset, ring);
    }
    for (Point& p : ring) {
        found = found && std::isfinite(p[0]) && std::isfinite(p[1]) && std::fabs(p[1]) <= 90 + 1e-9;
        p[1] = std::clamp(p[1], -90.0, 90.0);
    }
    return found ? std::optional<Ring>(std::move(ring)) : std::nullopt;
}

/// Returns the signed area of a ring, positive if the ring is counter-clockwise.
double area_of(const Ring& ring) {
    double twice = 0;
    for (size_t i = 0; i < ring.size(); ++i) {
        const Point &a = ring[i], &b = ring[(i + 1) % ring.size()];
        twice += a[0] * b[1] - b[0] * a[1];
    }
    return twice / 2;
}

/// Returns the part of a ring that is east (side = 1) or west (side = -1) of a longitude.
Ring cut(const Ring& ring, double longitude, double side) {
    Ring kept;
    for (size_t i = 0; i < ring.size(); ++i) {
        const Point &a = ring[i], &b = ring[(i + 1) % ring.size()];
        const double from = side * (a[0] - longitude), to = side * (b[0] - longitude);
        if (from >= 0) kept.push_back(a);
        if ((from > 0 && to < 0) || (from < 0 && to > 0))
            kept.push_back({longitude, a[1] + (b[1] - a[1]) * from / (from - to)});
    }
    return kept;
}

/// Returns the ring without the points between corners where the border is straight within a hundredth of a
/// pixel.
Ring without_needless_points(const Ring& ring, int samples, int lines) {
    Ring kept;
    for (size_t side = 0; side < 4; ++side) {
        const Point &a = ring[side * steps_a_side], &b = ring[(side + 1) * steps_a_side % ring.size()];
        const double length = std::hypot(b[0] - a[0], b[1] - a[1]);
        const double near = 0.01 * length / (side % 2 == 0 ? lines : samples);
        bool straight = length > 0;
        for (size_t k = 1; k < steps_a_side; ++k) {
            const Point& p = ring[side * steps_a_side + k];
            const double away = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
            straight = straight && std::fabs(away) <= near * length;
        }
        for (size_t k = 0; k < (straight ? 1 : steps_a_side); ++k)
            kept.push_back(ring[side * steps_a_side + k]);
    }
    return kept;
}

double rounded(double degrees) { return std::round(degrees * 1e9) / 1e9 + 0.0; } // turns -0 into 0

/// Returns the footprint of a raster for GeoJSON. The footprint is cut where it crosses longitude 180, and
/// includes the pole if the ring encloses a pole. nullopt if the footprint does not have an area.
std::optional<Footprint> footprint_of(Ring ring, int samples, int lines) {
    for (size_t i = 1; i < ring.size(); ++i)
        ring[i][0] += 360 * std::round((ring[i - 1][0] - ring[i][0]) / 360);
    const double turn = 360 * std::round((ring.back()[0] - ring.front()[0]) / 360);
    double south = 90, north = -90, sum = 0;
    for (const Point& p : ring) {
        south = std::min(south, p[1]);
        north = std::max(north, p[1]);
        sum += p[1];
    }
    if (turn != 0) { // the ring encloses a pole
        const double pole = sum > 0 ? 90 : -90;
        const Point first = ring.front();
        ring.push_back({first[0] + turn, first[1]});
        ring.push_back({first[0] + turn, pole});
        ring.push_back({first[0], pole});
        (pole > 0 ? north : south) = pole;
    } else {
        ring = without_needless_points(ring, samples, lines);
    }
    if (area_of(ring) < 0) std::reverse(ring.begin(), ring.end());
    const auto by_longitude = [](const Point& a, const Point& b) { return a[0] < b[0]; };
    const double west = std::min_element(ring.begin(), ring.end(), by_longitude)->at(0);
    const double east = std::max_element(ring.begin(), ring.end(), by_longitude)->at(0);
    Footprint place;
    const double least = 1e-9 * area_of(ring);
    for (double shift = -360 * std::ceil((east - 180) / 360); west + shift < 180; shift += 360) {
        Ring part = ring;
        for (Point& p : part)
            p[0] += shift;
        part = cut(cut(part, -180, 1), 180, -1);
        if (part.size() < 3 || area_of(part) <= least) continue;
        for (Point& p : part)
            p = {rounded(p[0]), rounded(p[1])};
        part.push_back(part.front());
        place.rings.push_back(std::move(part));
    }
    const auto within = [](double longitude) {
        return longitude - 360 * std::floor((longitude + 180) / 360);
    };
    place.box = {rounded(within(west)), rounded(south), rounded(within(east)), rounded(north)};
    if (within(east) == -180) place.box[2] = 180;
    if (east - west >= 360 - 1e-9) place.box[0] = -180, place.box[2] = 180;
    const bool area = !place.rings.empty() && place.box[0] != place.box[2] && place.box[1] < place.box[3];
    return area ? std::optional<Footprint>(std::move(place)) : std::nullopt;
}

// --- Bands, projection and files ---------------------------------------------

OrderedJson number_json(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (value == std::round(value) && std::fabs(value) < 1e15) return static_cast<int64_t>(value);
    return value;
}

OrderedJson nodata_json(const NodataValue& nodata) {
    if (nodata.kind == SampleType::int64) return nodata.whole;
    if (nodata.kind == SampleType::uint64) return nodata.natural;
    return number_json(nodata.real);
}

std::string data_type(GDALDataType type) {
    const char* const name = GDALGetDataTypeName(type);
    return type == GDT_Byte ? "uint8" : name ? lower(name) : "other";
}

/// Returns the name with underscores instead of characters other than letters, digits, _ and -.
std::string plain_name(const std::string& text) {
    std::string name;
    for (const char c : text)
        name += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 128 ? c
                : c == '-'                                                                         ? c
                                                                                                   : '_';
    return name;
}

/// Returns the classes of a class map; values without a name are left out.
OrderedJson classes_of(const BandMetadata& band) {
    OrderedJson classes = OrderedJson::array();
    for (size_t value = 0; value < band.categories.size(); ++value) {
        const std::string& name = band.categories[value];
        if (name.empty()) continue;
        OrderedJson one{{"value", value}, {"name", plain_name(name)}, {"title", name}};
        GDALColorEntry colour{};
        if (band.colours && static_cast<int>(value) < band.colours->GetColorEntryCount() &&
            band.colours->GetColorEntryAsRGB(static_cast<int>(value), &colour) && colour.c4 > 0) {
            char hex[16];
            std::snprintf(hex, sizeof hex, "%02X%02X%02X", colour.c1 & 255, colour.c2 & 255, colour.c3 & 255);
            one["color_hint"] = hex;
        }
        if (band.nodata && band.nodata->as_double() == static_cast<double>(value)) one["nodata"] = true;
        classes.push_back(std::move(one));
    }
    return classes;
}

OrderedJson band_json(const BandMetadata& band, int number, double scale, double offset,
                      const std::string& unit) {
    constexpr double nanometres = 1000; // nanometres per micrometre
    OrderedJson json{{"name", band.description.empty() ? "Band " + std::to_string(number) : band.description},
                     {"data_type", data_type(band.type)}};
    if (band.nodata) json["nodata"] = nodata_json(*band.nodata);
    if (!unit.empty()) json["unit"] = unit;
    if (std::isfinite(band.scale.value_or(1)) && std::isfinite(band.offset.value_or(0))) {
        json["raster:scale"] = number_json(scale);
        json["raster:offset"] = number_json(offset);
    }
    // The wavelength is rounded to a millionth of a nanometre before the division, so that 450 nm gives
    // exactly 0.45.
    const auto add_micrometres = [&](const char* key, double nm) {
        const double micrometres = std::round(nm * 1e6) / 1e6 / nanometres;
        if (micrometres > 0 && std::isfinite(micrometres)) json[key] = micrometres;
    };
    add_micrometres("eo:center_wavelength", band.wavelength_nm);
    add_micrometres("eo:full_width_half_max", band.fwhm_nm);
    if (auto classes = classes_of(band); !classes.empty())
        json["classification:classes"] = std::move(classes);
    return json;
}

/// Adds the bands to the asset. Properties that are equal for all bands are moved to the asset, as the STAC
/// specification recommends.
void add_bands(OrderedJson& asset, const SceneMetadata& scene) {
    OrderedJson bands = OrderedJson::array();
    const BandScales values = scales_of(scene, has_own_scales(scene));
    for (size_t k = 0; k < scene.bands.size(); ++k)
        bands.push_back(band_json(scene.bands[k], static_cast<int>(k) + 1, values.scale[k], values.offset[k],
                                  values.unit[k]));
    const bool single = bands.size() == 1;
    for (const char* key :
         {"data_type", "nodata", "unit", "raster:scale", "raster:offset", "classification:classes"}) {
        const auto same = [&](const OrderedJson& band) {
            return band.contains(key) && band[key] == bands[0].value(key, OrderedJson());
        };
        if ((!single && std::string(key) == "classification:classes") ||
            !std::all_of(bands.begin(), bands.end(), same))
            continue;
        asset[key] = bands[0][key];
        for (OrderedJson& band : bands)
            band.erase(key);
    }
    asset["bands"] = std::move(bands);
}

/// Adds the fields of the STAC projection extension. Returns the code of the SRS.
OrderedJson add_projection(OrderedJson& asset, GDALDataset& dataset) {
    const OGRSpatialReference* const srs = dataset.GetSpatialRef();
    const bool known = srs != nullptr && !srs->IsEmpty();
    const std::string told = known ? code_of_srs(*srs) : std::string();
    const OrderedJson code = told.empty() ? OrderedJson() : OrderedJson(told);
    asset["proj:code"] = code;
    if (known) {
        char* wkt = nullptr;
        const char* const form[] = {"FORMAT=WKT2_2019", nullptr};
        const GdalErrors quiet;
        if (srs->exportToWkt(&wkt, form) == OGRERR_NONE) asset["proj:wkt2"] = wkt;
        CPLFree(wkt);
    }
    const int samples = dataset.GetRasterXSize(), lines = dataset.GetRasterYSize();
    asset["proj:shape"] = {lines, samples};
    double gt[6];
    if (dataset.GetGeoTransform(gt) != CE_None) return code;
    std::array<double, 4> box{HUGE_VAL, HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    for (const Point& p : border_of(samples, lines, 0))
        for (size_t axis = 0; axis < 2; ++axis) {
            const double at = gt[3 * axis] + p[0] * gt[3 * axis + 1] + p[1] * gt[3 * axis + 2];
            box[axis] = std::min(box[axis], at);
            box[axis + 2] = std::max(box[axis + 2], at);
        }
    const auto finite = [](double one) { return std::isfinite(one); };
    if (!std::all_of(box.begin(), box.end(), finite)) return code; // JSON supports only finite numbers
    asset["proj:transform"] = {gt[1], gt[2], gt[0], gt[4], gt[5], gt[3]};
    asset["proj:bbox"] = box;
    return code;
}

struct MediaType {
    const char *extension, *type;
    bool data; ///< false: the file contains metadata
};
constexpr const char* geotiff_type = "image/tiff; application=geotiff";
constexpr MediaType media_types[] = {
    {"tif", geotiff_type, true},
    {"tiff", geotiff_type, true},
    {"png", "image/png", true},
    {"jpg", "image/jpeg", true},
    {"jp2", "image/jp2", true},
    {"nc", "application/netcdf", true},
    {"h5", "application/x-hdf5", true},
    {"zarr", "application/vnd+zarr", true},
    {"vrt", "application/xml", true},
    {"hsi", "application/json", true},
    {"gpkg", "application/geopackage+sqlite3", true},
    {"geojson", "application/geo+json", true},
    {"json", "application/json", false},
    {"csv", "text/csv", false},
    {"hdr", "text/plain", false},
    {"txt", "text/plain", false},
    {"html", "text/html", false},
};

const MediaType* media_type_of(const std::string& path) {
    const std::string extension = lower(CPLGetExtension(path.c_str()));
    for (const MediaType& one : media_types)
        if (extension == one.extension) return &one;
    return nullptr;
}

/// Returns the link to a file for the item: relative to the folder of the item, or the URL of a remote file.
/// `place` is the path of the item; if it is a link, the item is written to its target.
std::string href_of(const std::string& path, const std::string& place) {
    const std::string item = is_local(place) ? follow_links(place) : place;
    constexpr std::pair<const char*, const char*> schemes[] = {
        {"/vsicurl/", ""}, {"/vsis3/", "s3://"}, {"/vsigs/", "gs://"}, {"/vsiaz/", "az://"}};
    for (const auto& [prefix, scheme] : schemes)
        if (starts_with(path, prefix)) return scheme + path.substr(std::string(prefix).size());
    FileName name = name_from(path, item, true);
    if (!is_local(path)) { // a remote file may be in the same remote folder as the item
        const std::string folder = folder_of(item) + "/";
        if (!is_local(item) && starts_with(path, folder.c_str())) name = {path.substr(folder.size()), true};
    }
    std::string href = name.relative && !starts_with(name.text, "..") ? "./" : "";
    // Letters beyond ASCII are allowed in an IRI. Bytes that are not UTF-8 are escaped, because JSON does not
    // allow them.
    const bool utf8 = CPLIsUTF8(name.text.c_str(), -1);
    // Characters that are allowed in a URI are not escaped.
    for (const char c : name.text) {
        const bool beyond = static_cast<unsigned char>(c) >= 128;
        const bool plain = beyond ? utf8
                                  : std::isalnum(static_cast<unsigned char>(c)) ||
                                        std::string("-._~/!$&'()*+,;=:@").find(c) != std::string::npos;
        if (plain)
            href += c;
        else
            href += CPLSPrintf("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    return href;
}

bool is_no_file(const std::string& path) {
    return path == standard_output || (is_local(path) && kind_of_path(path) == PathKind::pipe);
}

/// Adds the other outputs of the run to the assets, under the names of their options.
void add_other_files(OrderedJson& assets, const OutputOptions& options) {
    if (!options.run) return;
    for (const auto& [role, path] : options.run->written()) {
        const std::string key = role.substr(role.find_first_not_of('-'));
        if (role == "-stac" || role == options.role || is_no_file(path) || assets.contains(key)) continue;
        OrderedJson asset{{"href", href_of(path, options.stac.path)}};
        const MediaType* const known = media_type_of(path);
        if (known != nullptr) asset["type"] = known->type;
        asset["roles"] = {known == nullptr || known->data ? "data" : "metadata"};
        assets[key] = std::move(asset);
    }
}

OrderedJson place_json(const Footprint& place) {
    OrderedJson polygons = OrderedJson::array();
    for (const Ring& ring : place.rings)
        polygons.push_back(OrderedJson::array({OrderedJson(ring)}));
    const bool one = polygons.size() == 1;
    return {{"type", one ? "Polygon" : "MultiPolygon"}, {"coordinates", one ? polygons[0] : polygons}};
}

/// Adds datetime, or start_datetime and end_datetime, to the properties. Readers expect datetime first.
void add_time(OrderedJson& properties, const OutputOptions& options, const SceneMetadata& output,
              const SceneMetadata* scene) {
    std::optional<StacTime> time = parse_times(options.stac.datetime);
    if (!time && scene != nullptr) time = acquisition_of(*scene);
    if (!time) time = acquisition_of(output);
    if (!time) {
        time = StacTime{"1970-01-01T00:00:00Z", utc_text(std::time(nullptr)) + "Z"};
        if (options.run)
            options.run->warn("'" + options.stac.path + "' (-stac): the metadata of '" + options.path +
                              "' do not state an acquisition time, so the item covers all times until now. "
                              "Set the time with -stac-datetime");
    }
    const bool one = time->start == time->end;
    properties["datetime"] = one ? OrderedJson(time->start) : OrderedJson();
    if (one) return;
    properties["start_datetime"] = time->start;
    properties["end_datetime"] = time->end;
}

/// Returns the extensions whose fields occur in the item. The schema of an extension rejects an item without
/// fields of the extension.
OrderedJson extensions_of(const OrderedJson& asset) {
    const auto has = [&](const std::string& prefix) {
        const auto in = [&](const OrderedJson& object) {
            for (const auto& [key, value] : object.items())
                if (key.rfind(prefix, 0) == 0) return true;
            return false;
        };
        return in(asset) || std::any_of(asset["bands"].begin(), asset["bands"].end(), in);
    };
    OrderedJson list = OrderedJson::array();
    const auto add = [&](const std::string& name) {
        list.push_back("https://stac-extensions.github.io/" + name + "/schema.json");
    };
    add("projection/v2.0.0");
    add("processing/v1.2.0");
    if (has("eo:")) add("eo/v2.0.0");
    if (has("raster:")) add("raster/v2.0.0");
    if (has("classification:")) add("classification/v2.0.0");
    return list;
}

} // namespace

void check_stac_item(const OutputOptions& options) {
    const StacOptions& stac = options.stac;
    if (options.path == standard_output || is_no_file(options.path))
        throw UsageError("-stac describes a file, but dst is not a file", "Use a file as dst.");
    if (options.role != "dst")
        throw UsageError("-stac describes one raster, but this run makes several (" + options.role + ")",
                         "Leave out -stac.");
    if (!stac.datetime.empty() && !parse_times(stac.datetime))
        throw UsageError(
            "-stac-datetime: '" + stac.datetime + "' is not a time",
            "Give a time such as 2022-08-28T05:19:16Z, a day such as 2022-08-28, or a range START/END.");
    check_text_output({"-stac", stac.path, options.overwrite, options.run});
}

std::string stac_item(const OutputOptions& options, GDALDriver& driver, const std::vector<std::string>& files,
                      GDALDataset& described, const SceneMetadata* scene) {
    const SceneMetadata output = read_metadata(described);
    OrderedJson asset{{"href", href_of(options.path, options.stac.path)}};
    const MediaType* const known = media_type_of(options.path);
    const char* const registered = driver.GetMetadataItem(GDAL_DMD_MIMETYPE);
    if (is(&driver, "COG"))
        asset["type"] = std::string(geotiff_type) + "; profile=cloud-optimized";
    else if (is(&driver, "GTiff"))
        asset["type"] = geotiff_type;
    else if (is(&driver, "ENVI"))
        asset["type"] = "application/octet-stream";
    else if (known != nullptr && known->data)
        asset["type"] = known->type;
    else if (registered != nullptr && *registered != '\0')
        asset["type"] = registered;
    asset["roles"] = {"data"};
    const OrderedJson code = add_projection(asset, described);
    add_bands(asset, output);

    OrderedJson properties = OrderedJson::object();
    add_time(properties, options, output, scene);
    properties["proj:code"] = code;
    properties["processing:software"] = {{"gdal-hsi", options.stac.version},
                                         {"GDAL", GDALVersionInfo("RELEASE_NAME")}};
    if (!options.history.empty()) properties["processing:lineage"] = options.history;

    const std::string name = name_of(options.path);
    const size_t dot = name.rfind('.');
    OrderedJson item{{"type", "Feature"},
                     {"stac_version", "1.1.0"},
                     {"stac_extensions", extensions_of(asset)},
                     {"id", dot == 0 || dot == std::string::npos ? name : name.substr(0, dot)},
                     {"geometry", nullptr}};
    if (auto outline = outline_of(described))
        if (const auto place =
                footprint_of(std::move(*outline), described.GetRasterXSize(), described.GetRasterYSize())) {
            item["geometry"] = place_json(*place);
            item["bbox"] = place->box;
        }
    item["properties"] = std::move(properties);
    item["links"] = OrderedJson::array();
    OrderedJson assets{{"data", std::move(asset)}};
    for (const std::string& file : files)
        if (lower(CPLGetExtension(file.c_str())) == "hdr")
            assets["header"] = {{"href", href_of(file, options.stac.path)},
                                {"type", "text/plain"},
                                {"roles", OrderedJson::array({"metadata"})}};
    add_other_files(assets, options);
    item["assets"] = std::move(assets);
    return item.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

} // namespace hsi::raster
