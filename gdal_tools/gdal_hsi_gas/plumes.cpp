// SPDX-License-Identifier: MIT
#include "gdal_hsi_gas/plumes.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "gas/plumes.h"
#include "gdal_hsi_gas/settings.h"
#include "raster/output_set.h"
#include "raster/pixel_size.h"
#include "raster/vector_sink.h"
#include "stream/empty_source.h"
#include "tool/passes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::gas_tool {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Options
// ----------------------------------------------------------------------------------------------------------

Level level_of(const std::string& option, const std::string& text) {
    Level level;
    level.deviations = !text.empty() && (text.back() == 's' || text.back() == 'S');
    level.value = to_number(level.deviations ? text.substr(0, text.size() - 1) : text).value_or(unknown);
    if (!std::isfinite(level.value))
        throw UsageError(option + ": '" + text + "' is not a value in ppm m or in standard deviations",
                         "Write 500, or 3s for the median plus three standard deviations.");
    return level;
}

void take_ueff(PlumeSettings& s) {
    const auto colon = s.ueff_text.find(':'), comma = s.ueff_text.find(',');
    const std::string kind = s.ueff_text.substr(0, colon);
    s.logarithm = equal_names(kind, "log");
    if (colon != std::string::npos && comma != std::string::npos && comma > colon)
        s.ueff = {to_number(s.ueff_text.substr(colon + 1, comma - colon - 1)).value_or(unknown),
                  to_number(s.ueff_text.substr(comma + 1)).value_or(unknown)};
    else
        s.ueff = {unknown, unknown};
    if ((!s.logarithm && !equal_names(kind, "linear")) || !std::isfinite(s.ueff[0]) ||
        !std::isfinite(s.ueff[1]))
        throw UsageError("-ueff: '" + s.ueff_text + "' is not linear:A,B or log:A,B",
                         "Write linear:A,B for the effective wind A U + B, or log:A,B for A ln U + B, such "
                         "as linear:0.34,0.44.");
}

// Pixels on the ground
// ----------------------------------------------------------------------------------------------------------

/// Sizes and areas of the pixels on the ground.
class Ground {
  public:
    Ground(const PlumeSettings& s, const raster::RasterSource& grid)
        : m_middle(static_cast<double>(grid.shape().samples) / 2), m_scale(raster::ground_scale(grid)) {
        grid.facts().copy_geotransform(m_gt);
        if (s.pixel_size[0] > 0) m_size = s.pixel_size;
    }
    bool known() const { return m_size || m_scale; }
    /// Returns the area of a pixel in a row, in m2.
    double area(int64_t line) const {
        if (m_size) return (*m_size)[0] * (*m_size)[1];
        const auto [x, y] = metres(line);
        return std::fabs(m_gt[1] * m_gt[5] - m_gt[2] * m_gt[4]) * x * y;
    }
    /// Returns the distance between the centres of two pixels in metres, with the pixel size in the row of
    /// the first pixel.
    double distance(int64_t line, int64_t sample, int64_t to_line, int64_t to_sample) const {
        const auto l = static_cast<double>(to_line - line), s = static_cast<double>(to_sample - sample);
        if (m_size) return std::hypot(s * (*m_size)[0], l * (*m_size)[1]);
        const auto [x, y] = metres(line);
        return std::hypot((s * m_gt[1] + l * m_gt[2]) * x, (s * m_gt[4] + l * m_gt[5]) * y);
    }
    /// Returns the coordinates of a position in the grid (in pixels), in the SRS of the grid.
    std::array<double, 2> place(double sample, double line) const {
        return {m_gt[0] + sample * m_gt[1] + line * m_gt[2], m_gt[3] + sample * m_gt[4] + line * m_gt[5]};
    }

  private:
    std::array<double, 2> metres(int64_t line) const {
        return m_scale->at(place(m_middle, static_cast<double>(line) + 0.5)[1]);
    }
    const double m_middle;
    /// By default, the grid in which QGIS shows a scene without georeference.
    double m_gt[6] = {0, 1, 0, 0, 0, -1};
    std::optional<raster::GroundScale> m_scale;
    std::optional<std::array<double, 2>> m_size;
};

// The plumes
// ----------------------------------------------------------------------------------------------------------

/// Reads a map row by row. Pixels outside of the mask become NaN.
class Lines {
  public:
    using Take = std::function<void(int64_t line, const float* enhancement, const float* uncertainty)>;
    Lines(tool::Run& run, const stream::CubeSource& source, const stream::PixelMask* mask)
        : m_run(run), m_source(source), m_mask(mask) {}
    void each(const Take& take) const {
        const auto shape = m_source.shape();
        const auto reader = m_source.open_reader();
        constexpr int64_t values = int64_t{1} << 20;
        const int64_t rows = std::clamp<int64_t>(values / shape.samples, 1, shape.lines);
        std::vector<float> buffer(static_cast<size_t>(rows * shape.samples * shape.bands));
        for (int64_t y = 0; y < shape.lines; y += rows) {
            if (m_run.cancel().requested()) throw Cancelled();
            const int64_t count = std::min(rows, shape.lines - y);
            const auto cube = CubeView<float>::packed(buffer.data(), shape.bands, count, shape.samples);
            reader->read({0, y, shape.samples, count}, cube);
            for (int64_t line = 0; line < count; ++line) {
                float* const row = cube.row(0, line);
                for (int64_t i = 0; i < shape.samples; ++i)
                    if (!std::isfinite(row[i]) || (m_mask != nullptr && !m_mask->at(y + line, i)))
                        row[i] = std::numeric_limits<float>::quiet_NaN();
                take(y + line, row, shape.bands > 1 ? cube.row(1, line) : nullptr);
            }
        }
    }
    float median(const std::function<float(float)>& of) const {
        return gas::median_of([&](const std::function<void(float)>& take) {
            each([&](int64_t, const float* row, const float*) {
                for (int64_t i = 0; i < m_source.shape().samples; ++i)
                    if (!std::isnan(row[i])) take(of(row[i]));
            });
        });
    }

  private:
    tool::Run& m_run;
    const stream::CubeSource& m_source;
    const stream::PixelMask* m_mask;
};

/// Returns the options of the search, with all levels in ppm m.
gas::PlumeOptions options_of(tool::Run& run, const PlumeSettings& s, const Lines& lines) {
    double median = 0, deviation = 0;
    if (s.threshold.deviations || s.extent.deviations) {
        const float middle = lines.median([](float v) { return v; });
        median = static_cast<double>(middle);
        deviation = 1.4826 * static_cast<double>(lines.median([&](float v) {
                        return static_cast<float>(std::fabs(static_cast<double>(v) - median));
                    }));
        if (!(deviation > 0))
            throw Error(std::isnan(middle) ? "no pixel has an enhancement"
                                           : "the enhancement has no median absolute deviation: most of its "
                                             "values are equal, as is usual for mag1c",
                        "Give -plume-threshold and -plume-extent in ppm m.");
        run.report()["plume_background"] = {{"median", median}, {"deviation", deviation}};
    }
    const auto level = [&](const Level& l) { return l.deviations ? median + l.value * deviation : l.value; };
    gas::PlumeOptions options{level(s.threshold), level(s.extent), s.min_pixels, s.connectivity == "8"};
    if (options.extent > options.threshold)
        throw Error("-plume-extent, " + number(options.extent) + " ppm m, is above -plume-threshold, " +
                        number(options.threshold) + " ppm m",
                    "Use a lower extent.");
    run.report()["plume_levels"] = {{"threshold", options.threshold}, {"extent", options.extent}};
    return options;
}

std::vector<gas::Plume> find_plumes(const PlumeSettings& s, const Lines& lines,
                                    const stream::CubeShape& shape, const Ground& ground,
                                    const gas::PlumeOptions& options) {
    const auto samples = static_cast<size_t>(shape.samples);
    gas::PlumeFinder finder(shape.samples, options);
    gas::LineSmoother smoother(shape.samples, shape.lines, s.smooth);
    // A line is smoothed when the next reach() lines have arrived. Its unsmoothed values and deviations are
    // kept until then.
    const auto held = static_cast<size_t>(smoother.reach()) + 1;
    std::vector<std::vector<float>> values(held), spreads(held);
    std::vector<double> smoothed(samples);
    int64_t given = 0;
    const auto area = [&](int64_t line) { return ground.known() ? ground.area(line) : unknown; };
    lines.each([&](int64_t line, const float* x, const float* u) {
        const auto at = static_cast<size_t>(line) % held;
        values[at].assign(x, x + samples);
        if (u != nullptr) spreads[at].assign(u, u + samples);
        smoother.take(x);
        while (smoother.next(smoothed.data())) {
            const auto own = static_cast<size_t>(given) % held;
            if (s.smooth == 0) std::copy(values[own].begin(), values[own].end(), smoothed.begin());
            finder.take(smoothed.data(), values[own].data(), u != nullptr ? spreads[own].data() : nullptr,
                        area(given));
            ++given;
        }
    });
    return finder.finish();
}

/// The properties of a plume, in the order of the output fields.
struct Told {
    double fetch = 0, length = 0, mass = 0, mass_deviation = 0, wind = unknown, flux = unknown;
};
Told told_of(const PlumeSettings& s, const gas::Plume& plume, const Ground& ground, double molar_mass) {
    Told t;
    for (const auto& run : plume.runs)
        for (const int64_t sample : {run.first, run.end - 1})
            t.fetch = std::max(t.fetch, ground.distance(plume.line, plume.sample, run.line, sample));
    t.length = std::sqrt(plume.area);
    const double to_kg = 1e-3 * (molar_mass / 22.4);
    t.mass = to_kg * plume.mass;
    t.mass_deviation = to_kg * std::sqrt(plume.variance);
    if (!s.wind) return t;
    t.wind = s.ueff[0] * (s.logarithm ? std::log(*s.wind) : *s.wind) + s.ueff[1];
    const double length = s.fetch ? t.fetch : t.length;
    if (t.wind > 0 && length > 0) t.flux = 3600 * t.wind * t.mass / length;
    return t;
}

raster::VectorOptions vector_options(const tool::Run& run, const PlumeSettings& s) {
    raster::VectorOptions options;
    options.path = s.path;
    options.overwrite = run.options().destination.overwrite;
    options.history = run.options().destination.history;
    options.role = "-plumes";
    options.run = run.files();
    return options;
}

void write_vectors(tool::Run& run, const PlumeSettings& s, const raster::RasterSource& grid,
                   const std::vector<gas::Plume>& plumes, const std::vector<Told>& told,
                   const Ground& ground) {
    raster::PointLayer outlines, origins;
    outlines.name = "plumes";
    origins.name = "origins";
    outlines.polygons = true;
    outlines.srs_wkt = grid.facts().srs_wkt();
    outlines.placed = grid.facts().geotransform.has_value();
    outlines.fields = {{"plume", true}, {"pixels", true}, {"area_m2"},  {"max_ppm_m"}, {"mean_ppm_m"},
                       {"line", true},  {"sample", true}, {"ime_kg"},   {"ime_sd_kg"}, {"length_m"},
                       {"fetch_m"},     {"ueff_m_s"},     {"flux_kg_h"}};
    origins.srs_wkt = outlines.srs_wkt;
    origins.placed = outlines.placed;
    origins.fields = outlines.fields;
    for (size_t k = 0; k < plumes.size(); ++k) {
        const auto& p = plumes[k];
        const auto& t = told[k];
        const auto count = static_cast<double>(p.pixels);
        const auto [x, y] =
            ground.place(static_cast<double>(p.sample) + 0.5, static_cast<double>(p.line) + 0.5);
        raster::Point point{x,
                            y,
                            {static_cast<double>(k + 1), count, p.area, static_cast<double>(p.greatest),
                             p.sum / count, static_cast<double>(p.line), static_cast<double>(p.sample),
                             t.mass, t.mass_deviation, t.length, t.fetch, t.wind, t.flux}};
        origins.points.push_back(point);
        for (const auto& polygon : gas::outline(p)) {
            auto& rings = point.polygons.emplace_back();
            for (const auto& corners : polygon) {
                auto& ring = rings.emplace_back();
                for (const auto& [sample, line] : corners)
                    ring.push_back(ground.place(static_cast<double>(sample), static_cast<double>(line)));
            }
        }
        outlines.points.push_back(std::move(point));
    }
    const auto options = vector_options(run, s);
    if (!raster::keeps_places(options, outlines))
        run.warn("'" + s.path + "': GeoJSON needs positions in degrees, but " + grid.path() +
                 " has no such positions: the plumes have no geometry. Write a GeoPackage (.gpkg) to use "
                 "pixels as coordinates");
    if (raster::write_layers(options, {outlines, origins}) < 2)
        run.warn("'" + s.path +
                 "': the format stores one layer, so the origins of the plumes are not written. Write a "
                 "GeoPackage (.gpkg) to store both");
}

/// Writes the map of plume numbers, row by row.
class MapOperation final : public stream::Operation {
  public:
    explicit MapOperation(const std::vector<gas::Plume>& plumes) {
        for (size_t k = 0; k < plumes.size(); ++k)
            for (const auto& run : plumes[k].runs)
                m_runs.push_back({run, static_cast<float>(k + 1)});
        std::sort(m_runs.begin(), m_runs.end(),
                  [](const auto& a, const auto& b) { return a.first.line < b.first.line; });
    }
    std::vector<int> output_bands() const override { return {1}; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Painter>(m_runs);
    }
    bool divides() const override { return true; }

  private:
    using Runs = std::vector<std::pair<gas::PlumeRun, float>>;
    class Painter final : public stream::Worker {
      public:
        explicit Painter(const Runs& runs) : m_runs(runs) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            for (int64_t line = 0; line < tile.core.h; ++line)
                std::fill_n(out[0].row(0, line), tile.core.w, 0.0f);
            auto at = std::lower_bound(m_runs.begin(), m_runs.end(), tile.core.y,
                                       [](const auto& run, int64_t y) { return run.first.line < y; });
            for (; at != m_runs.end() && at->first.line < tile.core.y + tile.core.h; ++at) {
                const int64_t from = std::max(at->first.first, tile.core.x),
                              to = std::min(at->first.end, tile.core.right());
                if (from < to)
                    std::fill_n(out[0].row(0, at->first.line - tile.core.y) + (from - tile.core.x), to - from,
                                at->second);
            }
        }

      private:
        const Runs& m_runs;
    };
    Runs m_runs;
};

raster::OutputSet map_output(const tool::Run& run, const PlumeSettings& s, const stream::CubeShape& shape) {
    raster::OutputSet outputs;
    if (s.map.empty()) return outputs;
    auto options = run.side_output("-plume-map", s.map);
    // The nodata value is meant for the enhancement; the map has 0 for pixels without a plume.
    options.nodata.reset();
    raster::OutputSpec spec;
    spec.shape = {shape.samples, shape.lines, 1};
    spec.type = "Int32";
    spec.bands = {{"plume", {}}};
    outputs.plan(options, spec);
    return outputs;
}

} // namespace

void declare_plumes(tool::Builder& args, PlumeSettings& s) {
    const char* const group = "Plumes";
    args.output("plumes", s.path, tool::Content::vector,
                "Also write the plumes to the vector FILE: polygons (plumes) and their strongest pixels "
                "(origins)")
        .under(group);
    args.output("plume-map", s.map, tool::Content::raster,
                "Also write the number of each pixel's plume (0: no plume) to FILE")
        .under(group);
    args.option(
            "plume-threshold", s.threshold_text,
            "Minimum peak enhancement of a plume, in ppm m, or in standard deviations above the median: 3s")
        .shown_as("V|Ns")
        .defaults_to("500 for ch4")
        .under(group);
    args.option("plume-extent", s.extent_text, "Minimum enhancement of the connected pixels of a plume")
        .shown_as("V|Ns")
        .defaults_to("-plume-threshold")
        .under(group);
    args.option("min-pixels", s.min_pixels, "Minimum number of pixels of a plume").from(1).under(group);
    args.choice<std::string>("connectivity", s.connectivity, "Connected pixels",
                             {{"8", "8", "share an edge or a corner"}, {"4", "4", "share an edge"}})
        .under(group);
    args.option("plume-smooth", s.smooth,
                "Standard deviation of the Gaussian that smooths the enhancement for the plume search")
        .between(0, 100)
        .in_unit("pixels")
        .under(group);
    args.option("wind", s.wind, "Wind at a height of 10 m, for the flux")
        .above(0)
        .in_unit("m/s")
        .under(group);
    args.option("ueff", s.ueff_text, "Effective wind: A U + B, or A ln U + B")
        .shown_as("linear:A,B|log:A,B")
        .under(group);
    args.choice<bool>("length", s.fetch, "Length of a plume in its flux",
                      {{"area", false, "the square root of its area"},
                       {"fetch", true, "the distance from the origin to the farthest pixel"}})
        .under(group);
    args.option("pixel-size", s.pixel_size, "Size of a pixel, instead of the size in the georeference")
        .shown_as("X Y")
        .above(0)
        .in_unit("metres")
        .under(group);
}

void settle_plumes(PlumeSettings& s, const tool::Call& call, bool methane) {
    if (!s.given()) {
        for (const char* const name : {"plume-threshold", "plume-extent", "min-pixels", "connectivity",
                                       "plume-smooth", "wind", "ueff", "length", "pixel-size"})
            if (call.given(name))
                throw UsageError("-" + std::string(name) + " requires -plumes or -plume-map");
        return;
    }
    if (s.threshold_text.empty() && !methane)
        throw UsageError("-plumes and -plume-map of CO2 require -plume-threshold",
                         "Give it in ppm m, or in standard deviations above the median: 3s.");
    s.threshold =
        s.threshold_text.empty() ? Level{500, false} : level_of("-plume-threshold", s.threshold_text);
    s.extent = s.extent_text.empty() ? s.threshold : level_of("-plume-extent", s.extent_text);
    if (s.extent.deviations == s.threshold.deviations && s.extent.value > s.threshold.value)
        throw UsageError("-plume-extent: " + number(s.extent.value) + " is above -plume-threshold, " +
                         number(s.threshold.value));
    for (const char* const name : {"ueff", "length"})
        if (call.given(name) && !s.wind) throw UsageError("-" + std::string(name) + " requires -wind");
    take_ueff(s);
}

void check_plumes(const tool::Run& run, const PlumeSettings& s, const raster::RasterSource& grid) {
    if (!s.given()) return;
    if (!Ground(s, grid).known())
        throw Error(grid.path() + " is not on a map grid, so the area of its pixels is unknown",
                    "Resample the enhancement to a grid (gdal_hsi_orthorectify), then use -method none; or "
                    "give -pixel-size.");
    map_output(run, s, grid.shape()).check(grid);
    if (!s.path.empty()) raster::check_vector_output(vector_options(run, s));
}

void write_plumes(tool::Run& run, const PlumeSettings& s, const raster::RasterSource& grid,
                  const stream::CubeSource& enhancement, const stream::PixelMask* mask, double molar_mass) {
    const Ground ground(s, grid);
    const auto shape = grid.shape();
    const Lines lines(run, enhancement, mask);
    const auto options = options_of(run, s, lines);
    const auto plumes = find_plumes(s, lines, shape, ground, options);
    std::vector<Told> told;
    double mass = 0;
    for (const auto& plume : plumes) {
        told.push_back(told_of(s, plume, ground, molar_mass));
        mass += told.back().mass;
    }
    run.report()["plumes"] = {{"count", plumes.size()}, {"ime_kg", mass}};
    std::string text = counted(plumes.size(), "plume");
    if (!plumes.empty())
        text += ", " + number(std::round(10 * mass) / 10) +
                " kg; the first: " + number(std::round(10 * told[0].mass) / 10) + " kg" +
                (std::isfinite(told[0].flux) ? ", " + number(std::round(told[0].flux)) + " kg/h" : "");
    run.note(text);
    if (!s.path.empty()) write_vectors(run, s, grid, plumes, told, ground);
    if (s.map.empty()) return;
    auto outputs = map_output(run, s, shape);
    MapOperation operation(plumes);
    const stream::EmptySource empty(shape);
    tool::write(run, empty, operation, outputs, &grid, [&] { return run.pass("plume map", 0); });
    outputs.commit();
}

} // namespace hsi::gas_tool
