// SPDX-License-Identifier: MIT
#include "raster/metadata/envi_map_info.h"

#include "raster/gdal_errors.h"
#include "raster/metadata/scene_metadata.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace hsi::raster {
namespace {

/// The number of leading entries of "map info" that define the position. They are the projection name, the
/// reference pixel (x, y), its map position (x, y), and the pixel size (x, y).
constexpr size_t placed = 7;

/// Returns the letters and digits of a text in upper case: "Datum: ETRS-89" -> "DATUMETRS89".
std::string letters(std::string_view text) {
    std::string out;
    for (const unsigned char c : text)
        if (std::isalnum(c) != 0) out += static_cast<char>(std::toupper(c));
    return out;
}

bool begins_with(const std::string& text, std::initializer_list<const char*> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](const char* beginning) { return starts_with(text, beginning); });
}

struct Datum {
    const char* spelling; ///< name of the datum in the form of letters()
    const char* name;     ///< name in GDAL's driver; null: the driver does not know the datum
    int epsg;             ///< EPSG code of the datum's geographic SRS
};

constexpr const char* wgs84 = "WGS-84";

const Datum* datum_of(const std::string& text) {
    constexpr const char *nad83 = "North America 1983", *nad27 = "North America 1927";
    static constexpr Datum known[] = {
        {"WGS84", wgs84, 4326},
        {"WGS1984", wgs84, 4326},
        {"WORLDGEODETICSYSTEM1984", wgs84, 4326},
        {"WGS72", "WGS-72", 4322},
        {"WGS1972", "WGS-72", 4322},
        {"NAD83", nad83, 4269},
        {"NAD1983", nad83, 4269},
        {"NORTHAMERICA1983", nad83, 4269},
        {"NORTHAMERICAN1983", nad83, 4269},
        {"NORTHAMERICANDATUM1983", nad83, 4269},
        {"NAD27", nad27, 4267},
        {"NAD1927", nad27, 4267},
        {"NORTHAMERICA1927", nad27, 4267},
        {"NORTHAMERICAN1927", nad27, 4267},
        {"NORTHAMERICANDATUM1927", nad27, 4267},
        {"NAD83CSRS", nullptr, 4617},
        {"NAD832011", nullptr, 6318},
        {"NAD83HARN", nullptr, 4152},
        {"ETRS89", nullptr, 4258},
        {"ETRS1989", nullptr, 4258},
        {"ETRF89", nullptr, 4258},
        {"EUROPEANTERRESTRIALREFERENCESYSTEM1989", nullptr, 4258},
        {"ED50", "European 1950", 4230},
        {"EUROPEAN1950", "European 1950", 4230},
        {"EUROPEANDATUM1950", "European 1950", 4230},
        {"GDA94", "Geocentric Datum of Australia 1994", 4283},
        {"GDA1994", "Geocentric Datum of Australia 1994", 4283},
        {"GEOCENTRICDATUMOFAUSTRALIA1994", "Geocentric Datum of Australia 1994", 4283},
        {"GDA2020", nullptr, 7844},
        {"AGD84", "Australian Geodetic 1984", 4203},
        {"AUSTRALIANGEODETIC1984", "Australian Geodetic 1984", 4203},
        {"AGD66", nullptr, 4202},
        {"AUSTRALIANGEODETIC1966", nullptr, 4202},
        {"NZGD2000", nullptr, 4167},
        {"NZGD49", nullptr, 4272},
        {"NZGD1949", nullptr, 4272},
        {"SIRGAS2000", nullptr, 4674},
        {"SAD69", nullptr, 4618},
        {"SAD1969", nullptr, 4618},
        {"SOUTHAMERICAN1969", nullptr, 4618},
        {"SAD69BRAZIL", "SAD-69/Brazil", 4291},
        {"OSGB36", "Ordnance Survey of Great Britain '36", 4277},
        {"OSGB1936", "Ordnance Survey of Great Britain '36", 4277},
        {"ORDNANCESURVEYOFGREATBRITAIN36", "Ordnance Survey of Great Britain '36", 4277},
        {"NOUVELLETRIANGULATIONFRANCAISEIGN", "Nouvelle Triangulation Francaise IGN", 4275},
        {"NTF", "Nouvelle Triangulation Francaise IGN", 4275},
        {"RGF93", nullptr, 4171},
        {"CH1903", nullptr, 4149},
        {"DHDN", nullptr, 4314},
        {"MGI", nullptr, 4312},
        {"PULKOVO1942", nullptr, 4284},
        {"TOKYO", nullptr, 4301},
        {"JGD2000", nullptr, 4612},
        {"JGD2011", nullptr, 6668},
        {"CGCS2000", nullptr, 4490},
        {"CHINAGEODETICCOORDINATESYSTEM2000", nullptr, 4490},
        {"BEIJING1954", nullptr, 4214},
        {"XIAN1980", nullptr, 4610},
        {"HARTEBEESTHOEK94", nullptr, 4148},
        {"ARC1960", nullptr, 4210},
        {"CAPE", nullptr, 4222},
        // The driver treats these ellipsoids as datums.
        {"GRS80", "GRS 80", 4269},
        {"AIRY", "Airy", 4001},
        {"AUSTRALIANNATIONAL", "Australian National", 4003},
        {"BESSEL1841", "Bessel 1841", 4004},
        {"CLARK1866", "Clark 1866", 4008},
        {"CLARKE1866", "Clark 1866", 4008},
    };
    std::string spelling = letters(text);
    // ESRI spells datums as in "D_WGS_1984" and "GCS_ETRS_1989".
    const bool esri = starts_with(text, "D_") || starts_with(text, "GCS_");
    if (esri) spelling.erase(0, starts_with(text, "D_") ? 1 : 3);
    for (const Datum& datum : known)
        if (spelling == datum.spelling) return &datum;
    return nullptr;
}

std::string in_quotes(const std::string& text) { return "'" + text + "'"; }

/// Returns a number in a form that GDAL's driver reads; empty if the text is not a number.
std::string number_for_gdal(const std::string& text) {
    const auto number = envi_number(text);
    if (!number) return {};
    return text.find_first_not_of("0123456789.+-eE") == std::string::npos
               ? text
               : std::string(CPLSPrintf("%.17g", *number));
}

/// Splits "map info" at commas or, if this gives too few entries, at semicolons or blanks.
std::vector<std::string> entries_of(const std::string& text) {
    auto list = envi_list(is_envi_list(text) ? text : "{" + text + "}");
    if (list.size() >= placed) return list;
    std::string inner = text;
    for (char& c : inner)
        if (c == '{' || c == '}') c = ' ';
    for (const char* separators : {";", "; ,\t\r\n"}) {
        const CPLStringList words(CSLTokenizeString2(
            inner.c_str(), separators, CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES | CSLT_HONOURSTRINGS));
        const std::vector<std::string> other(words.List(), words.List() + words.Count());
        if (other.size() >= placed && !number_for_gdal(other[1]).empty()) return other;
    }
    return list;
}

/// Returns whether "coordinate system string" states an SRS that GDAL can read; this SRS has priority.
bool has_coordinate_system(const EnviHeader& header) {
    const std::string* const text = header.find("coordinate system string");
    if (text == nullptr) return false;
    const GdalErrors quiet;
    const CPLStringList parts(CSLTokenizeString2(text->c_str(), "{}", CSLT_PRESERVEQUOTES));
    OGRSpatialReference srs;
    return parts.size() > 0 && srs.importFromESRI(const_cast<char**>(parts.List())) == OGRERR_NONE &&
           !srs.IsEmpty();
}

struct Unit {
    const char *name, *spellings; ///< the name in GDAL's driver; other spellings in the form of letters(),
                                  ///< separated by blanks
};

const char* unit_of(const std::string& text) {
    static constexpr Unit known[] = {
        {"Meters", " METERS METER METRES METRE M METERSM "},
        {"Km", " KM KILOMETERS KILOMETER KILOMETRES KILOMETRE "},
        {"Feet", " FEET FOOT FT INTERNATIONALFEET "},
        {"Yards", " YARDS YARD YD "},
        {"Miles", " MILES MILE "},
        {"Nautical Miles", " NAUTICALMILES NAUTICALMILE "},
        {"Degrees", " DEGREES DEGREE DEG DECIMALDEGREES "},
        {"Minutes", " MINUTES MINUTE ARCMINUTES "},
        {"Seconds", " SECONDS SECOND ARCSECONDS "},
        {"Radians", " RADIANS RADIAN RAD "},
    };
    const std::string spelling = " " + letters(text) + " ";
    for (const Unit& unit : known)
        if (spelling.size() > 2 && std::string_view(unit.spellings).find(spelling) != std::string_view::npos)
            return unit.name;
    return nullptr;
}

enum class Hemisphere { unknown, north, south };

Hemisphere hemisphere_of(const std::string& text) {
    const std::string word = letters(text);
    if (word == "N" || begins_with(word, {"NORTH", "NORD", "NORTE"})) return Hemisphere::north;
    if (word == "S" || begins_with(word, {"SOUTH", "SUD", "SUR"})) return Hemisphere::south;
    return Hemisphere::unknown;
}

/// A UTM zone, from texts such as "32", "Zone 32", "-32", "32S" and "32 North".
struct Zone {
    int number = 0; ///< 0: unknown
    Hemisphere hemisphere = Hemisphere::unknown;
};

Zone zone_of(const std::string& text) {
    const size_t begin = text.find_first_of("+-0123456789");
    if (begin == std::string::npos) return {};
    const std::string before = letters(text.substr(0, begin));
    if (!before.empty() && before != "ZONE" && before != "UTM" && before != "UTMZONE") return {};
    char* end = nullptr;
    const double value = CPLStrtod(text.c_str() + begin, &end);
    const std::string behind = letters(end);
    Zone zone;
    constexpr double last = 60;
    if (value != std::floor(value) || std::fabs(value) < 1 || std::fabs(value) > last) return {};
    zone.hemisphere = hemisphere_of(behind);
    if (!behind.empty() && zone.hemisphere == Hemisphere::unknown) return {};
    if (value < 0) {
        if (zone.hemisphere == Hemisphere::north) return {};
        zone.hemisphere = Hemisphere::south;
    }
    zone.number = static_cast<int>(std::fabs(value));
    return zone;
}

class Reader {
  public:
    explicit Reader(const EnviHeader& header)
        : m_header(header), m_srs_is_told(has_coordinate_system(header)) {}

    EnviMapInfo read() {
        read_projection_info();
        const std::string* const text = m_header.find("map info");
        if (text == nullptr) return std::move(m_out);
        auto entries = entries_of(*text);
        if (entries.empty() || (entries.size() == 1 && entries.front().empty())) return std::move(m_out);
        if (!read_place(*text, entries)) {
            m_out.coordinate_system.clear();
            return std::move(m_out);
        }
        m_out.entries.assign(entries.begin(), entries.begin() + placed);
        std::vector<std::string> words; // zone, hemisphere and datum
        for (size_t k = placed; k < entries.size(); ++k)
            if (!entries[k].empty() && !take_named(entries[k])) words.push_back(entries[k]);
        read_srs(words);
        m_out.entries.insert(m_out.entries.end(), m_named.begin(), m_named.end());
        return std::move(m_out);
    }

  private:
    void note(const std::string& what) { m_out.notes.push_back("map info " + what); }

    /// Converts the position and the pixel size to GDAL's form. Returns false if the scene has no valid
    /// position.
    bool read_place(const std::string& text, std::vector<std::string>& entries) {
        size_t numbers = 0;
        while (numbers + 1 < entries.size() && envi_number(entries[numbers + 1]))
            ++numbers;
        const bool geographic = begins_with(letters(entries.front()), {"GEOGRAPHIC", "LAT", "LON"});
        if (numbers > placed - 1 + (geographic ? 0 : 1)) {
            m_out.notes.push_back("map info = " + text + " has decimal commas: the scene has no position");
            return false;
        }
        if (numbers < placed - 1) {
            note((numbers + 1 < entries.size()
                      ? "has " + in_quotes(entries[numbers + 1]) + " instead of a number"
                      : "has " + std::to_string(numbers) + " numbers, not 6") +
                 ": the scene has no position");
            return false;
        }
        for (size_t k = 1; k < placed; ++k)
            entries[k] = number_for_gdal(entries[k]);
        if (*envi_number(entries[placed - 2]) == 0 || *envi_number(entries[placed - 1]) == 0) {
            note("has pixels of size 0: the scene has no position");
            return false;
        }
        return true;
    }

    /// Handles an entry with a key, such as "units = m" or "rotation=30". Returns false if the entry has no
    /// key.
    bool take_named(const std::string& entry) {
        const size_t equals = entry.find('=');
        if (equals == std::string::npos) return false;
        const std::string key = envi_key(entry.substr(0, equals));
        std::string value = entry.substr(equals + 1);
        value.erase(0, std::min(value.find_first_not_of(" \t"), value.size()));
        if (key == "units") {
            const char* const unit = unit_of(value);
            if (unit == nullptr && !value.empty())
                note("has units = " + value + ", which are unknown: meters or degrees are assumed");
            if (unit == nullptr) return true;
            value = EQUAL(unit, value.c_str()) ? value : unit;
        } else if (key == "rotation") {
            const std::string number = number_for_gdal(value);
            if (number.empty()) note("has rotation = " + value + ", which is not a number: 0 is assumed");
            if (number.empty()) return true;
            value = number;
        }
        m_named.push_back(key + "=" + value);
        return true;
    }

    void read_srs(const std::vector<std::string>& words) {
        const std::string name = letters(m_out.entries.front());
        if (begins_with(name, {"UTM", "UNIVERSALTRANSVERSEMERCATOR"})) {
            read_utm(words);
        } else if (begins_with(name, {"GEOGRAPHIC", "LATLON", "LONLAT", "LATITUDE", "LONGITUDE"})) {
            if (!begins_with(name, {"GEOGRAPHICLAT"})) m_out.entries.front() = "Geographic Lat/Lon";
            take_datum(words, 0, "WGS-84", [](OGRSpatialReference&) {});
        } else {
            for (const std::string& word : words) {
                const Datum* const datum = datum_of(word);
                m_out.entries.push_back(datum != nullptr && datum->name != nullptr ? datum->name : word);
            }
            constexpr size_t least = 9; // minimum number of entries for a projection that the driver knows
            const bool known =
                begins_with(name, {"ARBITRARY", "STATEPLANE"}) || m_out.projection.size() >= least;
            if (!m_unknown_datum.empty() && !m_srs_is_told)
                m_out.notes.push_back("projection info names the datum " + in_quotes(m_unknown_datum) +
                                      ", which is unknown to GDAL: WGS-84 is assumed");
            if (!known && !m_srs_is_told) {
                note("names the projection " + in_quotes(m_out.entries.front()) +
                     " without a 'projection info' or 'coordinate system string' for it: the SRS is unknown");
                // GDAL's driver takes any other name for a local SRS in metres, even "Pixel".
                m_out.entries.front() = "Arbitrary";
            }
        }
    }

    void read_utm(const std::vector<std::string>& words) {
        if (!starts_with(letters(m_out.entries.front()), "UTM")) m_out.entries.front() = "UTM";
        size_t next = 0;
        Zone zone = words.empty() ? Zone() : zone_of(words.front());
        if (zone.number != 0)
            ++next;
        else
            zone = zone_of(m_out.entries.front()); // for example "UTM Zone 32N"
        const Hemisphere stated = next < words.size() ? hemisphere_of(words[next]) : Hemisphere::unknown;
        const std::string which = next < words.size() ? in_quotes(words[next]) : "nothing";
        if (stated != Hemisphere::unknown) ++next;
        const bool contradict = stated != Hemisphere::unknown && zone.hemisphere != Hemisphere::unknown &&
                                stated != zone.hemisphere;
        if (stated != Hemisphere::unknown) zone.hemisphere = stated;
        if (zone.number == 0 || zone.hemisphere == Hemisphere::unknown || contradict) {
            if (!m_srs_is_told)
                note(zone.number == 0 ? "has " + (words.empty() ? "nothing" : in_quotes(words.front())) +
                                            " instead of a UTM zone (1 to 60): the SRS is unknown"
                     : contradict ? "has the zone " + in_quotes(words.front()) + " and the hemisphere " +
                                        which + ", which contradict each other: the SRS is unknown"
                                  : "has " + which + " instead of North or South: the SRS is unknown");
            m_out.entries.front() = "Arbitrary";
            return;
        }
        const bool north = zone.hemisphere == Hemisphere::north;
        m_out.entries.push_back(std::to_string(zone.number));
        m_out.entries.push_back(north ? "North" : "South");
        take_datum(words, next, "North America 1927",
                   [&](OGRSpatialReference& srs) { srs.SetUTM(zone.number, north ? TRUE : FALSE); });
    }

    /// Adds the datum in words[next]. If GDAL's driver does not know the datum, sets the whole SRS, whose
    /// projection `project` sets. GDAL assumes the datum `otherwise` if the header does not state one.
    template <class Project>
    void take_datum(const std::vector<std::string>& words, size_t next, const char* otherwise,
                    Project&& project) {
        const std::string text = next < words.size() ? words[next] : std::string();
        const Datum* const datum = datum_of(text);
        if (datum != nullptr && datum->name == nullptr && !m_srs_is_told) {
            OGRSpatialReference srs;
            project(srs);
            srs.SetWellKnownGeogCS(CPLSPrintf("EPSG:%d", datum->epsg));
            m_out.coordinate_system = envi_coordinate_system(srs);
        }
        if (datum == nullptr && !m_srs_is_told)
            note(text.empty()
                     ? std::string("names no datum: ") + otherwise + " is assumed"
                     : "names the datum " + in_quotes(text) + ", which is unknown: WGS-84 is assumed");
        m_out.entries.push_back(datum != nullptr && datum->name != nullptr
                                    ? (EQUAL(datum->name, text.c_str()) ? text : datum->name)
                                : text.empty() ? otherwise
                                               : wgs84);
    }

    /// Reads "projection info", which has the form "type, a, b, numbers, datum, name, units=Meters".
    void read_projection_info() {
        const std::string* const text = m_header.find("projection info");
        if (text == nullptr) return;
        for (std::string entry : entries_of(*text)) {
            if (const size_t equals = entry.find('='); equals != std::string::npos) {
                const size_t value = entry.find_first_not_of(" \t", equals + 1);
                entry = envi_key(entry.substr(0, equals)) + "=" +
                        (value == std::string::npos ? "" : entry.substr(value));
            } else if (const std::string number = number_for_gdal(entry); !number.empty()) {
                entry = number;
            }
            m_out.projection.push_back(entry);
        }
        // The driver expects the datum directly before the projection name, which is the last entry except
        // for the units.
        size_t at = m_out.projection.size();
        if (at > 0 && m_out.projection[at - 1].find('=') != std::string::npos) --at;
        if (at < 3) return;
        std::string& entry = m_out.projection[at - 2];
        if (entry.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos)
            return;
        const Datum* const datum = datum_of(entry);
        if (datum != nullptr && datum->name != nullptr) {
            entry = EQUAL(datum->name, entry.c_str()) ? entry : datum->name;
        } else {
            m_unknown_datum = entry;
            entry = wgs84;
        }
    }

    const EnviHeader& m_header;
    const bool m_srs_is_told;
    std::vector<std::string> m_named;
    std::string m_unknown_datum; ///< datum in "projection info" that is unknown to GDAL
    EnviMapInfo m_out;
};

} // namespace

std::string envi_coordinate_system(const OGRSpatialReference& srs, const char* const* options) {
    const GdalErrors quiet;
    char* wkt = nullptr;
    srs.exportToWkt(&wkt, options);
    std::string out = wkt != nullptr ? wkt : "";
    CPLFree(wkt);
    return out.find_first_of("{}\n") == std::string::npos ? out : std::string();
}

EnviMapInfo envi_map_info(const EnviHeader& header) { return Reader(header).read(); }

} // namespace hsi::raster
