// SPDX-License-Identifier: MIT
// Computes angles that depend on the ground position of pixels. They come from rasters with another grid,
// from slopes of a DEM, or from the position of the sun.
#include "core/cube_view.h"
#include "core/error.h"
#include "core/text.h"
#include "math/elementary.h"
#include "raster/gdal/dataset_handle.h"
#include "raster/gdal_errors.h"
#include "raster/pixel_size.h"
#include "raster/view_geometry.h"

#include <gdal_priv.h>
#include <gdalwarper.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hsi::raster {
namespace {

constexpr double degree = 3.14159265358979323846 / 180;

using Affine = std::array<double, 6>;

std::array<double, 2> apply(const Affine& g, double x, double y) {
    return {g[0] + g[1] * x + g[2] * y, g[3] + g[4] * x + g[5] * y};
}
Affine inverse(const Affine& g, const std::string& whose) {
    Affine i{};
    double from[6];
    std::copy(g.begin(), g.end(), from);
    if (!GDALInvGeoTransform(from, i.data()))
        throw Error("the geotransform of '" + whose + "' has no inverse", "Correct it with gdal_edit.py.");
    return i;
}

OGRSpatialReference srs_of(const std::string& wkt) {
    OGRSpatialReference srs;
    if (!wkt.empty()) srs.importFromWkt(wkt.c_str());
    srs.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

/// Transforms coordinates from one SRS to another. It has no effect if both are equal, or if one of them is
/// unknown.
class Reprojection {
  public:
    Reprojection(const std::string& from, const std::string& to) {
        if (from.empty() || to.empty()) return;
        const auto a = srs_of(from), b = srs_of(to);
        if (a.IsSame(&b)) return;
        m_made.reset(OGRCreateCoordinateTransformation(&a, &b));
        if (!m_made)
            throw Error("PROJ cannot transform coordinates from the scene's SRS to the SRS of a file",
                        "Warp the file to the SRS of the scene (gdalwarp -t_srs).");
    }
    explicit operator bool() const { return m_made != nullptr; }
    /// Transforms points; coordinates become infinite if the transformation fails.
    void transform(std::vector<double>& x, std::vector<double>& y) const {
        if (m_made) m_made->Transform(static_cast<int>(x.size()), x.data(), y.data());
    }

  private:
    struct Destroy {
        void operator()(OGRCoordinateTransformation* t) const { OGRCoordinateTransformation::DestroyCT(t); }
    };
    std::unique_ptr<OGRCoordinateTransformation, Destroy> m_made;
};

std::string geographic_wkt(const std::string& wkt) {
    if (wkt.empty())
        throw Error(
            "the scene has no SRS, so its position on Earth is unknown",
            "Set its SRS (gdal_edit.py -a_srs), or give -angle solar_zenith=... and solar_azimuth=...");
    OGRSpatialReference srs;
    srs.SetWellKnownGeogCS("WGS84");
    char* text = nullptr;
    srs.exportToWkt(&text);
    const std::string made = text;
    CPLFree(text);
    return made;
}

/// Planes with the size of the scene that a reader computes.
class Planes : public stream::CubeSource {
  public:
    Planes(const Placement& scene, int bands) : m_scene(scene) { m_scene.shape.bands = bands; }
    stream::CubeShape shape() const override { return m_scene.shape; }
    stream::BlockLayout layout() const override { return {}; }

  protected:
    Placement m_scene;
};

const Affine& georeference(const std::optional<Affine>& geotransform, const std::string& whose) {
    if (!geotransform)
        throw Error(whose + " has no georeference",
                    "Only a file of the scene's size can be used without a georeference.");
    return *geotransform;
}

/// Returns the position of a pixel's centre in the SRS of the scene. i is the sample and y the line within
/// the window.
std::array<double, 2> centre(const Affine& scene, const Rect& window, size_t i, int64_t y) {
    return apply(scene, static_cast<double>(window.x) + static_cast<double>(i) + 0.5,
                 static_cast<double>(window.y + y) + 0.5);
}

// --- Rasters with another grid -----------------------------------------------

class Nearest final : public Planes {
  public:
    Nearest(std::shared_ptr<RasterSource> behind, const Placement& scene)
        : Planes(scene, behind->shape().bands), m_behind(std::move(behind)),
          m_from(georeference(scene.geotransform, "the scene")),
          m_to(inverse(georeference(m_behind->facts().geotransform, "'" + m_behind->path() + "'"),
                       m_behind->path())) {}
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }
    uint64_t reader_bytes() const override { return m_behind->reader_bytes(); }

  private:
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const Nearest& all)
            : m_all(all), m_reader(all.m_behind->open_reader()),
              m_way(all.m_scene.srs_wkt, all.m_behind->facts().srs_wkt()) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int64_t y = 0; y < window.h; ++y)
                read_line(window, y, dst);
        }

      private:
        void read_line(const Rect& window, int64_t y, const CubeView<float>& dst) {
            const auto n = static_cast<size_t>(window.w);
            m_x.resize(n);
            m_y.resize(n);
            for (size_t i = 0; i < n; ++i) {
                const auto at = centre(m_all.m_from, window, i, y);
                m_x[i] = at[0];
                m_y[i] = at[1];
            }
            m_way.transform(m_x, m_y);
            const auto shape = m_all.m_behind->shape();
            Rect box{shape.samples, shape.lines, 0, 0};
            int64_t right = -1, bottom = -1;
            for (size_t i = 0; i < n; ++i) {
                const auto at = apply(m_all.m_to, m_x[i], m_y[i]);
                const double c = std::floor(at[0]), r = std::floor(at[1]);
                const bool inside = c >= 0 && r >= 0 && c < static_cast<double>(shape.samples) &&
                                    r < static_cast<double>(shape.lines);
                m_x[i] = inside ? c : -1;
                m_y[i] = r;
                if (!inside) continue;
                box.x = std::min(box.x, static_cast<int64_t>(c));
                box.y = std::min(box.y, static_cast<int64_t>(r));
                right = std::max(right, static_cast<int64_t>(c));
                bottom = std::max(bottom, static_cast<int64_t>(r));
            }
            if (right >= 0) {
                box.w = right - box.x + 1;
                box.h = bottom - box.y + 1;
                m_values.resize(static_cast<size_t>(box.area() * shape.bands));
                m_reader->read(
                    box, CubeView<float>(m_values.data(), shape.bands, box.h, box.w, box.w, box.w * box.h));
            }
            for (int b = 0; b < shape.bands; ++b)
                for (size_t i = 0; i < n; ++i)
                    dst.row(b, y)[i] =
                        m_x[i] < 0 ? no_value
                                   : m_values[static_cast<size_t>(
                                         b * box.w * box.h + (static_cast<int64_t>(m_y[i]) - box.y) * box.w +
                                         static_cast<int64_t>(m_x[i]) - box.x)];
        }
        const Nearest& m_all;
        std::unique_ptr<stream::CubeReader> m_reader;
        const Reprojection m_way;
        std::vector<double> m_x, m_y;
        std::vector<float> m_values;
    };
    const std::shared_ptr<RasterSource> m_behind;
    const Affine m_from, m_to;
};

// --- Slope and aspect of a DEM -----------------------------------------------

/// Metres per degree of longitude and latitude on the ellipsoid of WGS 84.
constexpr GroundScale per_degree{degree, 6378137, 0.00669437999014};

/// Returns the length of a unit of height in metres; 1 for an unknown unit.
double metres_per(const std::string& unit) {
    constexpr double international = 0.3048, survey = 1200.0 / 3937;
    for (const char* const name : {"us-ft", "ftUS", "us_survey_foot", "US survey foot", "US survey feet",
                                   "Foot_US", "foot (US survey)", "survey foot", "survey feet"})
        if (equal_names(unit, name)) return survey;
    for (const char* const name :
         {"ft", "foot", "feet", "international foot", "international feet", "intl ft"})
        if (equal_names(unit, name)) return international;
    constexpr std::pair<const char*, double> metric[] = {
        {"mm", 1e-3},         {"millimetre", 1e-3}, {"millimeter", 1e-3}, {"cm", 1e-2},
        {"centimetre", 1e-2}, {"centimeter", 1e-2}, {"dm", 0.1},          {"km", 1000},
        {"kilometre", 1000},  {"kilometer", 1000}};
    for (const auto& [name, metres] : metric)
        if (equal_names(unit, name)) return metres;
    return 1;
}

class Dem {
  public:
    Dem(const std::string& path, const std::string& srs_wkt) {
        const GdalErrors errors;
        m_file.reset(GDALDataset::Open(path.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY));
        if (!m_file) throw Error("cannot read '" + path + "' (-dem): " + errors.text());
        m_used = m_file.get();
        char* wkt = nullptr;
        if (const auto* srs = m_file->GetSpatialRef(); srs != nullptr && !srs_wkt.empty()) {
            const auto wanted = srs_of(srs_wkt);
            OGRSpatialReference own(*srs);
            own.SetAxisMappingStrategy(OAMS_TRADITIONAL_GIS_ORDER);
            if (!own.IsSame(&wanted)) {
                wanted.exportToWkt(&wkt);
                constexpr double error = 0.125;
                m_warped.reset(GDALDataset::FromHandle(GDALAutoCreateWarpedVRT(
                    GDALDataset::ToHandle(m_file.get()), nullptr, wkt, GRA_Bilinear, error, nullptr)));
                CPLFree(wkt);
                if (!m_warped) throw Error("cannot warp '" + path + "' (-dem): " + errors.text());
                m_used = m_warped.get();
            }
        }
        if (m_used->GetGeoTransform(m_geotransform.data()) != CE_None)
            throw Error("'" + path + "' (-dem) has no georeference", "Give a DEM with a geotransform.");
        m_band = m_used->GetRasterBand(1);
        int has = 0;
        const double nodata = m_band->GetNoDataValue(&has);
        if (has != 0) m_nodata = nodata;
        const auto* const stated = m_used->GetSpatialRef();
        const auto srs = stated != nullptr ? *stated : srs_of(srs_wkt);
        m_geographic = srs.IsGeographic();
        if (!m_geographic && !srs.IsEmpty()) m_metres = srs.GetLinearUnits();
        const auto* const own = m_file->GetSpatialRef();
        const std::string unit = m_file->GetRasterBand(1)->GetUnitType();
        m_height_metres = unit.empty() && own != nullptr && own->IsCompound()
                              ? own->GetTargetLinearUnits("VERT_CS")
                              : metres_per(unit);
        m_path = path;
    }
    double metres() const { return m_metres; } ///< metres per unit of the grid if it is not geographic
    const Affine& geotransform() const { return m_geotransform; }
    int64_t samples() const { return m_used->GetRasterXSize(); }
    int64_t lines() const { return m_used->GetRasterYSize(); }
    bool geographic() const { return m_geographic; }
    void read(const Rect& box, std::vector<double>& values) const {
        values.resize(static_cast<size_t>(box.area()));
        const GdalErrors errors;
        if (m_band->RasterIO(GF_Read, static_cast<int>(box.x), static_cast<int>(box.y),
                             static_cast<int>(box.w), static_cast<int>(box.h), values.data(),
                             static_cast<int>(box.w), static_cast<int>(box.h), GDT_Float64, 0, 0) != CE_None)
            throw Error("cannot read '" + m_path + "' (-dem): " + errors.text());
        for (double& v : values)
            if (!std::isfinite(v) || (m_nodata && v == *m_nodata))
                v = std::numeric_limits<double>::quiet_NaN();
            else
                v *= m_height_metres;
    }

  private:
    DatasetHandle m_file, m_warped; ///< `m_warped` is a view of `m_file`
    GDALDataset* m_used = nullptr;
    GDALRasterBand* m_band = nullptr;
    Affine m_geotransform{};
    std::optional<double> m_nodata;
    bool m_geographic = false;
    double m_metres = 1, m_height_metres = 1;
    std::string m_path;
};

/// Returns the true azimuth of grid north at the centre of the scene, in degrees.
double convergence_of(const Placement& scene) {
    if (scene.srs_wkt.empty()) return 0;
    const auto srs = srs_of(scene.srs_wkt);
    if (srs.IsGeographic() || srs.IsLocal()) return 0;
    const auto& g = *scene.geotransform;
    const auto middle =
        apply(g, static_cast<double>(scene.shape.samples) / 2, static_cast<double>(scene.shape.lines) / 2);
    constexpr double step = 100; // in units of the grid
    std::vector<double> x{middle[0], middle[0]}, y{middle[1], middle[1] + step};
    const Reprojection way(scene.srs_wkt, geographic_wkt(scene.srs_wkt));
    way.transform(x, y);
    const double angle =
        std::atan2((x[1] - x[0]) * per_degree.at(y[0])[0], (y[1] - y[0]) * per_degree.at(y[0])[1]) / degree;
    return std::isfinite(angle) ? angle : 0;
}

class Slopes final : public Planes {
  public:
    Slopes(std::string path, const Placement& scene)
        : Planes(scene, 2), m_path(std::move(path)), m_from(georeference(scene.geotransform, "the scene")),
          m_convergence(convergence_of(scene)) {
        (void)Dem(m_path, m_scene.srs_wkt);
    }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }

  private:
    struct Gradient {
        double p = 0, q = 0; ///< slope to the east and to the north of the grid
    };
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const Slopes& all)
            : m_all(all), m_dem(all.m_path, all.m_scene.srs_wkt),
              m_to(inverse(m_dem.geotransform(), all.m_path)) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int64_t y = 0; y < window.h; ++y)
                read_line(window, y, dst);
        }

      private:
        void read_line(const Rect& window, int64_t y, const CubeView<float>& dst) {
            const auto n = static_cast<size_t>(window.w);
            m_at.resize(n);
            Rect box{m_dem.samples(), m_dem.lines(), 0, 0};
            int64_t right = -1, bottom = -1;
            for (size_t i = 0; i < n; ++i) {
                const auto ground = centre(m_all.m_from, window, i, y);
                m_at[i] = apply(m_to, ground[0], ground[1]);
                m_at[i][0] = snapped(m_at[i][0] - 0.5);
                m_at[i][1] = snapped(m_at[i][1] - 0.5);
                const double c = std::floor(m_at[i][0]), r = std::floor(m_at[i][1]);
                if (!(c >= -1 && r >= -1 && c < static_cast<double>(m_dem.samples()) &&
                      r < static_cast<double>(m_dem.lines())))
                    continue;
                box.x = std::min(box.x, static_cast<int64_t>(c) - 1);
                box.y = std::min(box.y, static_cast<int64_t>(r) - 1);
                right = std::max(right, static_cast<int64_t>(c) + 2);
                bottom = std::max(bottom, static_cast<int64_t>(r) + 2);
            }
            box.x = std::max<int64_t>(box.x, 0);
            box.y = std::max<int64_t>(box.y, 0);
            box.w = std::min(right, m_dem.samples() - 1) - box.x + 1;
            box.h = std::min(bottom, m_dem.lines() - 1) - box.y + 1;
            m_box = box.w > 0 && box.h > 0 ? box : Rect{0, 0, 0, 0};
            if (m_box.w > 0) m_dem.read(m_box, m_heights);
            for (size_t i = 0; i < n; ++i) {
                const Gradient g = gradient(m_at[i][0], m_at[i][1]);
                double facing = std::atan2(-g.p, -g.q) / degree + m_all.m_convergence;
                facing = facing < 0 ? facing + 360 : facing >= 360 ? facing - 360 : facing;
                dst.row(0, y)[i] = static_cast<float>(std::atan(std::hypot(g.p, g.q)) / degree);
                dst.row(1, y)[i] = static_cast<float>(facing);
            }
        }
        /// Rounds a coordinate that is almost a whole number. If two grids agree, the pixel centres of one
        /// grid are at whole coordinates of the other.
        static double snapped(double v) {
            constexpr double near = 1e-6;
            return std::fabs(v - std::round(v)) < near ? std::round(v) : v;
        }
        /// Returns the gradient at a position by bilinear interpolation between the gradients at four pixel
        /// centres.
        Gradient gradient(double x, double y) const {
            const double c = std::floor(x), r = std::floor(y);
            Gradient all;
            for (int dy = 0; dy < 2; ++dy)
                for (int dx = 0; dx < 2; ++dx) {
                    const double weight = (dx ? x - c : 1 - (x - c)) * (dy ? y - r : 1 - (y - r));
                    if (weight == 0) continue;
                    const Gradient one = horn(static_cast<int64_t>(c) + dx, static_cast<int64_t>(r) + dy);
                    all.p += weight * one.p;
                    all.q += weight * one.q;
                }
            return all;
        }
        double height(int64_t c, int64_t r) const {
            c -= m_box.x;
            r -= m_box.y;
            return c >= 0 && r >= 0 && c < m_box.w && r < m_box.h
                       ? m_heights[static_cast<size_t>(r * m_box.w + c)]
                       : std::numeric_limits<double>::quiet_NaN();
        }
        Gradient horn(int64_t c, int64_t r) const {
            double along = 0, down = 0; // difference of height towards the next column and the next row
            for (int k = -1; k <= 1; ++k) {
                const double weight = k == 0 ? 2 : 1;
                along += weight * (height(c + 1, r + k) - height(c - 1, r + k));
                down += weight * (height(c + k, r + 1) - height(c + k, r - 1));
            }
            along /= 8;
            down /= 8;
            Affine g = m_dem.geotransform();
            if (m_dem.geographic()) {
                const auto m =
                    per_degree.at(apply(g, static_cast<double>(c) + 0.5, static_cast<double>(r) + 0.5)[1]);
                g[1] *= m[0];
                g[2] *= m[0];
                g[4] *= m[1];
                g[5] *= m[1];
            } else {
                for (const size_t k : {1, 2, 4, 5})
                    g[k] *= m_dem.metres();
            }
            const double area = g[1] * g[5] - g[2] * g[4];
            return {(along * g[5] - down * g[4]) / area, (down * g[1] - along * g[2]) / area};
        }

        const Slopes& m_all;
        const Dem m_dem;
        const Affine m_to;
        std::vector<std::array<double, 2>> m_at;
        std::vector<double> m_heights;
        Rect m_box;
    };
    const std::string m_path;
    const Affine m_from;
    const double m_convergence;
};

// --- Position of the sun -----------------------------------------------------

/// Computes the position of the sun. Longitude and latitude are transformed at nodes and linearly
/// interpolated between them.
class Sun final : public Planes {
  public:
    Sun(const std::array<double, 2>& days, const Placement& scene)
        : Planes(scene, 2), m_days(days), m_from(georeference(scene.geotransform, "the scene")),
          m_to_wkt(geographic_wkt(scene.srs_wkt)) {}
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this);
    }

  private:
    static constexpr int64_t spacing = 32; ///< distance of the nodes in pixels
    class Reader final : public stream::CubeReader {
      public:
        explicit Reader(const Sun& all) : m_all(all), m_way(all.m_scene.srs_wkt, all.m_to_wkt) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int64_t y = 0; y < window.h; ++y) {
                const int64_t line = window.y + y, above = line / spacing * spacing;
                const double down = static_cast<double>(line - above) / spacing;
                const auto top = nodes(above, window), bottom = nodes(above + spacing, window);
                const double days = day(line);
                for (int64_t x = 0; x < window.w; ++x) {
                    const int64_t sample = window.x + x;
                    const auto k = static_cast<size_t>(sample / spacing - window.x / spacing);
                    const double along = static_cast<double>(sample % spacing) / spacing;
                    double place[2];
                    for (size_t j = 0; j < 2; ++j)
                        place[j] = (1 - down) * ((1 - along) * top[j][k] + along * top[j][k + 1]) +
                                   down * ((1 - along) * bottom[j][k] + along * bottom[j][k + 1]);
                    const auto sun = sun_position(place[0], place[1], days);
                    dst.row(0, y)[x] = static_cast<float>(sun[0]);
                    dst.row(1, y)[x] = static_cast<float>(sun[1]);
                }
            }
        }

      private:
        /// Returns longitude and latitude of the nodes on a line.
        std::array<std::vector<double>, 2> nodes(int64_t line, const Rect& window) const {
            std::array<std::vector<double>, 2> made;
            const int64_t first = window.x / spacing, last = (window.x + window.w - 1) / spacing + 1;
            for (int64_t k = first; k <= last; ++k) {
                const auto at = apply(m_all.m_from, static_cast<double>(k * spacing) + 0.5,
                                      static_cast<double>(line) + 0.5);
                made[0].push_back(at[0]);
                made[1].push_back(at[1]);
            }
            m_way.transform(made[0], made[1]);
            return made;
        }
        double day(int64_t line) const {
            const auto& scene = m_all.m_scene;
            const double share = scene.all_lines > 1 ? static_cast<double>(scene.first_line + line) /
                                                           static_cast<double>(scene.all_lines - 1)
                                                     : 0;
            return m_all.m_days[0] + share * (m_all.m_days[1] - m_all.m_days[0]);
        }
        const Sun& m_all;
        const Reprojection m_way;
    };
    const std::array<double, 2> m_days;
    const Affine m_from;
    const std::string m_to_wkt;
};

} // namespace

std::array<double, 2> sun_position(double longitude, double latitude, double d) {
    const auto sin_of = [](double v) { return math::sin(v * degree); };
    const auto cos_of = [](double v) { return math::cos(v * degree); };
    const double g = 357.529 + 0.98560028 * d;
    const double l = 280.459 + 0.98564736 * d + 1.915 * sin_of(g) + 0.020 * sin_of(2 * g);
    const double e = 23.439 - 0.00000036 * d;
    const double a = math::atan2(cos_of(e) * sin_of(l), cos_of(l)) / degree;
    const double sin_t = sin_of(e) * sin_of(l), cos_t = std::sqrt(1 - sin_t * sin_t);
    const double h =
        std::fmod(15 * std::fmod(18.697374558 + 24.06570982441908 * d, 24.0), 360.0) + longitude - a;
    const double cos_z = sin_of(latitude) * sin_t + cos_of(latitude) * cos_t * cos_of(h);
    const double azimuth =
        math::atan2(-cos_t * sin_of(h), sin_t * cos_of(latitude) - cos_t * sin_of(latitude) * cos_of(h)) /
        degree;
    return {math::acos(std::clamp(cos_z, -1.0, 1.0)) / degree, azimuth < 0 ? azimuth + 360 : azimuth};
}

std::shared_ptr<const stream::CubeSource> nearest_on_ground(const std::shared_ptr<RasterSource>& behind,
                                                            const Placement& scene) {
    return std::make_shared<Nearest>(behind, scene);
}
std::shared_ptr<const stream::CubeSource> slopes_of_dem(const std::string& dem, const Placement& scene) {
    return std::make_shared<Slopes>(dem, scene);
}
std::shared_ptr<const stream::CubeSource> sun_positions(const std::array<double, 2>& days,
                                                        const Placement& scene) {
    return std::make_shared<Sun>(days, scene);
}

} // namespace hsi::raster
