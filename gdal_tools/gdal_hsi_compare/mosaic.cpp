// SPDX-License-Identifier: MIT
#include "gdal_hsi_compare/mosaic.h"

#include "compare/measurement.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/json.h"
#include "gdal_hsi_compare/findings.h"
#include "raster/labels.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "shared/many_scenes.h"
#include "stream/copy_operation.h"
#include "stream/stacked_source.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::compare_tool {
namespace {

using GeoTransform = std::array<double, 6>;

std::array<double, 2> applied(const GeoTransform& gt, double x, double y) {
    return {gt[0] + x * gt[1] + y * gt[2], gt[3] + x * gt[4] + y * gt[5]};
}

GeoTransform inverse(const GeoTransform& gt, const std::string& name) {
    const double d = gt[1] * gt[5] - gt[2] * gt[4];
    if (d == 0 || !std::isfinite(d)) throw Error(name + ": the pixels of its geotransform have no area");
    return {(gt[2] * gt[3] - gt[0] * gt[5]) / d, gt[5] / d,  -gt[2] / d,
            (gt[0] * gt[4] - gt[1] * gt[3]) / d, -gt[4] / d, gt[1] / d};
}

/// Returns the smallest window that contains both windows.
Rect united(const Rect& a, const Rect& b) {
    const int64_t x = std::min(a.x, b.x), y = std::min(a.y, b.y);
    return {x, y, std::max(a.right(), b.right()) - x, std::max(a.bottom(), b.bottom()) - y};
}

/// The common grid. If the axes of src's grid are parallel to those of the map, this is the grid of src; else
/// a grid with pixels of the same area. Columns and rows may be negative.
struct MosaicGrid {
    GeoTransform place{};
    Rect all;                  ///< extent of all scenes
    std::vector<Rect> extents; ///< extent of each scene

    /// Returns the scene that enlarges the grid most, and the extent of the grid without this scene. There
    /// must be at least two scenes.
    std::pair<size_t, Rect> farthest() const {
        std::pair<size_t, Rect> best{0, all};
        for (size_t k = 0; k < extents.size(); ++k) {
            Rect others;
            for (size_t i = 0; i < extents.size(); ++i)
                if (i != k) others = others.empty() ? extents[i] : united(others, extents[i]);
            if (others.area() < best.second.area()) best = {k, others};
        }
        return best;
    }
};

/// A scene, resampled to a window of the common grid. A pixel of the grid gets the value of the scene's pixel
/// that contains its centre. Pixels outside of the scene are missing.
class PlacedSource final : public stream::CubeSource {
  public:
    PlacedSource(std::shared_ptr<const raster::RasterSource> scene, const GeoTransform& to_scene,
                 const GeoTransform& grid, const Rect& window)
        : m_scene(std::move(scene)), m_to_scene(to_scene), m_grid(grid), m_window(window) {}
    stream::CubeShape shape() const override { return {m_window.w, m_window.h, m_scene->shape().bands}; }
    stream::BlockLayout layout() const override { return {block, block, 0}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        return std::make_unique<Reader>(*this, m_scene->open_reader());
    }
    uint64_t reader_bytes() const override {
        const auto [w, h] = most_of_scene();
        return m_scene->reader_bytes() +
               static_cast<uint64_t>(w) * static_cast<uint64_t>(h) * static_cast<uint64_t>(shape().bands) * 4;
    }
    uint64_t stored_bytes_per_pixel() const override { return m_scene->stored_bytes_per_pixel(); }

  private:
    static constexpr int64_t block = 64; ///< side of a block of grid pixels whose values are read together

    /// Returns the largest number of samples and of rows of the scene that a block covers.
    std::array<int64_t, 2> most_of_scene() const {
        const auto span = [&](size_t k) {
            const double of_x = m_to_scene[k + 1] * m_grid[1] + m_to_scene[k + 2] * m_grid[4],
                         of_y = m_to_scene[k + 1] * m_grid[2] + m_to_scene[k + 2] * m_grid[5];
            return static_cast<int64_t>(std::ceil((std::fabs(of_x) + std::fabs(of_y)) * block)) + 2;
        };
        const auto shape = m_scene->shape();
        return {std::min(span(0), shape.samples), std::min(span(3), shape.lines)};
    }

    class Reader final : public stream::CubeReader {
      public:
        Reader(const PlacedSource& owner, std::unique_ptr<stream::CubeReader> from)
            : m_owner(owner), m_from(std::move(from)) {}
        void read(const Rect& window, const CubeView<float>& dst) override {
            for (int64_t y = window.y; y < window.bottom(); y += block)
                for (int64_t x = window.x; x < window.right(); x += block) {
                    const Rect part{x, y, std::min(block, window.right() - x),
                                    std::min(block, window.bottom() - y)};
                    read_block(part, dst.cut(x - window.x, y - window.y, part.w, part.h));
                }
        }

      private:
        void read_block(const Rect& part, const CubeView<float>& dst) {
            const auto shape = m_owner.m_scene->shape();
            m_places.clear();
            Rect needed;
            for (int64_t y = 0; y < part.h; ++y)
                for (int64_t x = 0; x < part.w; ++x) {
                    const auto map =
                        applied(m_owner.m_grid, static_cast<double>(m_owner.m_window.x + part.x + x) + 0.5,
                                static_cast<double>(m_owner.m_window.y + part.y + y) + 0.5);
                    const auto at = applied(m_owner.m_to_scene, map[0], map[1]);
                    // If rounding has moved a centre onto the border between two pixels, the same pixel is
                    // always chosen.
                    const double s = std::floor(at[0] + 1e-6), l = std::floor(at[1] + 1e-6);
                    const bool inside = s >= 0 && l >= 0 && s < static_cast<double>(shape.samples) &&
                                        l < static_cast<double>(shape.lines);
                    m_places.push_back(
                        inside ? std::array<int64_t, 2>{static_cast<int64_t>(s), static_cast<int64_t>(l)}
                               : std::array<int64_t, 2>{-1, -1});
                    if (!inside) continue;
                    const auto [sample, line] = m_places.back();
                    if (needed.w == 0) {
                        needed = {sample, line, 1, 1};
                        continue;
                    }
                    const int64_t right = std::max(needed.right(), sample + 1),
                                  bottom = std::max(needed.bottom(), line + 1);
                    needed.x = std::min(needed.x, sample);
                    needed.y = std::min(needed.y, line);
                    needed.w = right - needed.x;
                    needed.h = bottom - needed.y;
                }
            m_values.resize(static_cast<size_t>(needed.w * needed.h * shape.bands));
            const auto seen = CubeView<float>::packed(m_values.data(), shape.bands, needed.h, needed.w);
            if (needed.w > 0) m_from->read(needed, seen);
            for (int b = 0; b < shape.bands; ++b)
                for (int64_t y = 0; y < part.h; ++y)
                    for (int64_t x = 0; x < part.w; ++x) {
                        const auto [sample, line] = m_places[static_cast<size_t>(y * part.w + x)];
                        dst.at(b, y, x) = sample < 0 ? std::numeric_limits<float>::quiet_NaN()
                                                     : seen.at(b, line - needed.y, sample - needed.x);
                    }
        }
        const PlacedSource& m_owner;
        std::unique_ptr<stream::CubeReader> m_from;
        std::vector<std::array<int64_t, 2>> m_places; ///< [sample, line] in the scene; -1: outside
        std::vector<float> m_values;
    };

    std::shared_ptr<const raster::RasterSource> m_scene;
    const GeoTransform m_to_scene, m_grid;
    const Rect m_window;
};

GeoTransform place_of(const raster::RasterSource& scene) {
    double gt[6];
    if (!scene.facts().copy_geotransform(gt))
        throw Error("-mosaic: " + scene.path() + " has no geotransform",
                    "Use gdal_hsi_orthorectify to map a scene with longitudes and latitudes to a grid.");
    GeoTransform place;
    std::copy(gt, gt + 6, place.begin());
    return place;
}

MosaicGrid grid_of_all(const std::vector<std::shared_ptr<raster::RasterSource>>& scenes) {
    MosaicGrid grid;
    grid.place = place_of(*scenes.front());
    if (grid.place[2] != 0 || grid.place[4] != 0) {
        const double side =
            std::sqrt(std::fabs(grid.place[1] * grid.place[5] - grid.place[2] * grid.place[4]));
        grid.place = {grid.place[0], side, 0, grid.place[3], 0, -side};
    }
    const auto to_grid = inverse(grid.place, scenes.front()->path());
    for (const auto& scene : scenes) {
        const auto place = place_of(*scene);
        const auto shape = scene->shape();
        double low[2] = {0, 0}, high[2] = {0, 0};
        for (int corner = 0; corner < 4; ++corner) {
            const auto map = applied(place, corner & 1 ? static_cast<double>(shape.samples) : 0,
                                     corner & 2 ? static_cast<double>(shape.lines) : 0);
            const auto at = applied(to_grid, map[0], map[1]);
            for (size_t k = 0; k < 2; ++k) {
                low[k] = corner == 0 ? at[k] : std::min(low[k], at[k]);
                high[k] = corner == 0 ? at[k] : std::max(high[k], at[k]);
            }
        }
        for (size_t k = 0; k < 2; ++k)
            if (!(std::max(std::fabs(low[k]), std::fabs(high[k])) < 0x1p30))
                throw Error("-mosaic: " + scene->path() + " is more than 2^30 pixels from " +
                                scenes.front()->path(),
                            "Check that their geotransforms have the same unit.");
        const auto first = [](double v) { return static_cast<int64_t>(std::floor(v + 1e-6)); };
        const auto last = [](double v) { return static_cast<int64_t>(std::ceil(v - 1e-6)); };
        const Rect extent{first(low[0]), first(low[1]), last(high[0]) - first(low[0]),
                          last(high[1]) - first(low[1])};
        grid.all = grid.extents.empty() ? extent : united(grid.all, extent);
        grid.extents.push_back(extent);
    }
    return grid;
}

/// The metrics of each pixel of the common grid: the mean over all pairs that overlap at the pixel.
class MosaicMap {
  public:
    /// \throws Error if the map does not fit into a quarter of -memory. The message names the scene that
    /// enlarges the map most.
    MosaicMap(const tool::Run& run, const MosaicGrid& grid, const std::vector<std::string>& names,
              size_t metrics)
        : m_all(grid.all), m_sums(metrics) {
        const auto& all = grid.all;
        const auto size = [](const Rect& r) { return std::to_string(r.w) + "x" + std::to_string(r.h); };
        // The product may exceed 64 bits for a grid with 2^31 pixels per side, so it is computed in double
        // precision.
        const double wanted = static_cast<double>(all.area()) * (8 * static_cast<double>(metrics) + 2);
        const auto bytes = static_cast<uint64_t>(std::min(wanted, 0x1p62));
        if (bytes > tool::quarter(run.options().memory)) {
            const auto [farthest, others] = grid.farthest();
            throw Error("-map: the mosaic has " + size(all) + " pixels (" + size(others) + " without " +
                            names[farthest] + "), and the metrics of all take " + format_byte_size(bytes) +
                            ", more than a quarter of -memory",
                        "Give -memory " + format_byte_size(4 * bytes) + " or more, or fewer scenes.");
        }
        m_pairs.resize(static_cast<size_t>(all.area()));
        for (auto& plane : m_sums)
            plane.assign(static_cast<size_t>(all.area()), 0.0);
    }
    uint64_t bytes() const { return static_cast<uint64_t>(m_all.area()) * (8 * m_sums.size() + 2); }

    /// Receives the metrics of one pair of scenes in a window of the grid.
    class PairSink final : public stream::CubeSink {
      public:
        PairSink(MosaicMap& to, const Rect& window) : m_to(to), m_window(window) {}
        stream::CubeShape shape() const override {
            return {m_window.w, m_window.h, static_cast<int>(m_to.m_sums.size())};
        }
        bool concurrent() const override { return true; } // each pass writes each pixel once
        void write(const Rect& core, const CubeView<float>& src) override {
            for (int64_t y = 0; y < core.h; ++y)
                for (int64_t x = 0; x < core.w; ++x) {
                    if (std::isnan(src.at(0, y, x))) continue;
                    const auto at =
                        static_cast<size_t>((m_window.y + core.y + y - m_to.m_all.y) * m_to.m_all.w +
                                            m_window.x + core.x + x - m_to.m_all.x);
                    ++m_to.m_pairs[at];
                    for (size_t k = 0; k < m_to.m_sums.size(); ++k)
                        m_to.m_sums[k][at] += static_cast<double>(src.at(static_cast<int>(k), y, x));
                }
        }

      private:
        MosaicMap& m_to;
        const Rect m_window;
    };

    /// A cube with the metrics, followed by the number of pairs.
    class Planes final : public stream::CubeSource {
      public:
        explicit Planes(const MosaicMap& map) : m_map(map) {}
        stream::CubeShape shape() const override {
            return {m_map.m_all.w, m_map.m_all.h, static_cast<int>(m_map.m_sums.size()) + 1};
        }
        stream::BlockLayout layout() const override { return {}; }
        std::unique_ptr<stream::CubeReader> open_reader() const override {
            return std::make_unique<Reader>(m_map);
        }

      private:
        class Reader final : public stream::CubeReader {
          public:
            explicit Reader(const MosaicMap& map) : m_map(map) {}
            void read(const Rect& window, const CubeView<float>& dst) override {
                for (int64_t y = 0; y < window.h; ++y)
                    for (int64_t x = 0; x < window.w; ++x) {
                        const auto at = static_cast<size_t>((window.y + y) * m_map.m_all.w + window.x + x);
                        const int pairs = m_map.m_pairs[at];
                        for (size_t k = 0; k < m_map.m_sums.size(); ++k)
                            dst.at(static_cast<int>(k), y, x) =
                                pairs > 0 ? static_cast<float>(m_map.m_sums[k][at] / pairs)
                                          : std::numeric_limits<float>::quiet_NaN();
                        dst.at(dst.bands - 1, y, x) =
                            pairs > 0 ? static_cast<float>(pairs) : std::numeric_limits<float>::quiet_NaN();
                    }
            }

          private:
            const MosaicMap& m_map;
        };
        const MosaicMap& m_map;
    };

  private:
    const Rect m_all;
    std::vector<std::vector<double>> m_sums; ///< sum over the pairs, [metric][pixel]
    std::vector<uint16_t> m_pairs;
};

/// Two scenes that overlap, and how well they agree in the overlap.
struct PairOfScenes {
    size_t first, second;
    Rect window; ///< overlap in the grid
    compare::Findings found;
};

Json pair_json(const compare::Findings& f) {
    Json metrics = Json::object();
    for (size_t k = 0; k < f.spectral.size(); ++k)
        metrics[compare::metric_name(f.spectral[k])] = {{"mean", json_number(f.summaries[k].mean)},
                                                        {"maximum", json_number(f.summaries[k].maximum)}};
    if (metrics.contains("rmse")) metrics["rmse"]["all_values"] = json_number(f.rmse);
    return metrics;
}

/// Summarises all pairs: the mean over their pixels, and the largest of their maxima.
compare::Findings of_all_pairs(const std::vector<PairOfScenes>& pairs) {
    compare::Findings all;
    for (const auto& pair : pairs) {
        if (all.spectral.empty()) {
            all.spectral = pair.found.spectral;
            all.summaries.resize(all.spectral.size());
        }
        const auto pixels = static_cast<double>(pair.found.counts.compared);
        all.counts.compared += pair.found.counts.compared;
        all.rmse += pixels * pair.found.rmse * pair.found.rmse;
        for (size_t k = 0; k < all.spectral.size(); ++k) {
            all.summaries[k].mean += pixels * pair.found.summaries[k].mean;
            all.summaries[k].maximum = std::max(all.summaries[k].maximum, pair.found.summaries[k].maximum);
        }
    }
    for (auto& summary : all.summaries)
        summary.mean /= static_cast<double>(all.counts.compared);
    all.rmse = std::sqrt(all.rmse / static_cast<double>(all.counts.compared));
    return all;
}

std::string mosaic_text(const std::vector<PairOfScenes>& pairs, const std::vector<std::string>& names,
                        const compare::Findings& all) {
    std::vector<std::array<std::string, 2>> rows;
    size_t width = 3;
    char text[64];
    const auto row = [&](const std::string& name, const compare::Findings& f) {
        std::snprintf(text, sizeof text, " %10lld", static_cast<long long>(f.counts.compared));
        std::string numbers = text;
        for (const auto& summary : f.summaries)
            for (const double v : {summary.mean, summary.maximum}) {
                std::snprintf(text, sizeof text, " %12.6g", v);
                numbers += text;
            }
        width = std::max(width, name.size());
        rows.push_back({name, numbers});
    };
    for (const auto& pair : pairs)
        row(names[pair.first] + " - " + names[pair.second], pair.found);
    row("all", all);
    std::string out = "overlap" + std::string(width > 7 ? width - 7 : 0, ' ') + "     pixels";
    for (const Metric m : all.spectral) {
        std::snprintf(text, sizeof text, " %12s      maximum", compare::metric_name(m));
        out += text;
    }
    out += "\n";
    for (const auto& [name, numbers] : rows)
        out += name + std::string(width - name.size(), ' ') + numbers + "\n";
    return out;
}

raster::OutputSpec mosaic_spec(const std::vector<Metric>& metrics, const MosaicGrid& grid,
                               const raster::RasterSource& scene) {
    raster::OutputSpec spec = map_of({grid.all.w, grid.all.h, 0}, metrics);
    spec.bands.push_back({"pairs", {}});
    spec.shape.bands = static_cast<int>(spec.bands.size());
    spec.srs = scene.facts().srs_wkt();
    const auto origin = applied(grid.place, static_cast<double>(grid.all.x), static_cast<double>(grid.all.y));
    spec.geotransform = {origin[0], grid.place[1], 0, origin[1], 0, grid.place[5]};
    return spec;
}

/// Returns the pairs of scenes whose extents overlap.
std::vector<PairOfScenes> pairs_of(const MosaicGrid& grid) {
    std::vector<PairOfScenes> pairs;
    for (size_t i = 0; i < grid.extents.size(); ++i)
        for (size_t k = i + 1; k < grid.extents.size(); ++k)
            if (const Rect window = intersect(grid.extents[i], grid.extents[k]); !window.empty())
                pairs.push_back({i, k, window, {}});
    return pairs;
}

[[noreturn]] void refuse_lonely(const std::vector<std::shared_ptr<raster::RasterSource>>& scenes) {
    throw Error("-mosaic: no pixel is valid in two of the " + counted(scenes.size(), "scene"),
                "Check that the scenes overlap and that nodata values are right (-srcnodata), and leave out "
                "bad bands (-b).");
}

} // namespace

void compare_mosaic(tool::Run& run, Settings s) {
    if (s.json) run.only_print();
    const auto text_output = run.text_output("-o", s.text_file, s.overwrite);
    raster::check_text_output(text_output);
    const auto source = run.open_source();
    std::vector<std::string> names{s.other};
    for (const auto& name : tools::listed_names(run, "-with", s.with))
        names.push_back(name);
    const tools::ManyScenes many(run, names, source);
    names.insert(names.begin(), source->path());
    std::vector<std::shared_ptr<raster::RasterSource>> scenes;
    for (size_t k = 0; k < many.count(); ++k)
        scenes.push_back(many.scene(k, *source));
    const MosaicGrid grid = grid_of_all(scenes);
    if (s.metrics.empty())
        s.metrics = source->shape().bands > 1 ? std::vector<Metric>{Metric::nrmse, Metric::sad}
                                              : std::vector<Metric>{Metric::rmse, Metric::maxabs};
    complete_metrics(s, source->shape().bands);
    check_bands(s.metrics, source->shape().bands);
    const compare::Measurement measurement(s.metrics);
    auto pairs = pairs_of(grid);
    if (pairs.empty()) refuse_lonely(scenes);
    std::optional<MosaicMap> map;
    raster::OutputSpec spec;
    if (!s.map.empty()) {
        spec = mosaic_spec(measurement.local(), grid, *source);
        raster::check_output(map_output(run, s), spec);
        map.emplace(run, grid, names, measurement.local().size());
    }
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    const auto placed = [&](size_t scene, const Rect& window) {
        return std::make_shared<PlacedSource>(
            scenes[scene], inverse(place_of(*scenes[scene]), scenes[scene]->path()), grid.place, window);
    };
    const auto both_of = [&](const PairOfScenes& pair) {
        return stream::StackedSource({placed(pair.first, pair.window), placed(pair.second, pair.window)});
    };
    const auto pass_of = [&](const std::string& name, double share) {
        auto pass = run.pass(name, share / static_cast<double>(pairs.size()));
        if (map) tool::leave_room(pass, map->bytes());
        return pass;
    };
    tool::end_of_plan(run, [&] {
        for (const auto& pair : pairs) {
            run.print(names[pair.first] + " - " + names[pair.second] + ":");
            measurement.show(both_of(pair), map.has_value(),
                             [&](const std::string& name, const auto& operation) {
                                 tool::print_plan(run, both_of(pair), operation, pass_of(name, 1));
                             });
        }
    });
    std::vector<PairOfScenes> found;
    for (auto& pair : pairs) {
        const auto both = both_of(pair);
        std::optional<MosaicMap::PairSink> sink;
        if (map) sink.emplace(*map, pair.window);
        std::function<stream::CubeSink*()> open_map;
        if (sink) open_map = [&sink]() -> stream::CubeSink* { return &*sink; };
        pair.found =
            measurement.run(both, open_map,
                            [&](const std::string& name, double share, stream::Operation& operation,
                                const std::vector<stream::CubeSink*>& sinks) {
                                run.add_pass(stream::run_pass(both, operation, sinks, pass_of(name, share)));
                            });
        if (pair.found.counts.compared > 0) found.push_back(pair);
    }
    if (found.empty()) refuse_lonely(scenes);
    if (map) {
        const auto sink = raster::create_sink(map_output(run, s), spec, nullptr);
        run.reserve_cache(sink->cache_bytes());
        const MosaicMap::Planes planes(*map);
        stream::CopyOperation copy(planes.shape().bands, false);
        run.add_pass(stream::run_pass(planes, copy, {sink.get()}, run.pass("map", 0)));
        sink->commit();
    }
    const auto all = of_all_pairs(found);
    Json list = Json::array();
    for (const auto& pair : found)
        list.push_back({{"a", names[pair.first]},
                        {"b", names[pair.second]},
                        {"pixels", pair.found.counts.compared},
                        {"metrics", pair_json(pair.found)}});
    const Json result{
        {"scenes", names}, {"pairs", list}, {"pixels", all.counts.compared}, {"metrics", pair_json(all)}};
    give_result(run, s, text_output, result, mosaic_text(found, names, all));
    for (const auto& pair : found)
        apply_limits(s, pair.found);
}

void check_mosaic(const tool::Call& call, const Settings& s) {
    if (!s.mosaic) {
        if (!s.with.empty())
            throw UsageError(tool::option_requires("-with", "-mosaic"), "Also give -mosaic.");
        return;
    }
    for (const char* const name :
         {"band", "other-b", "any-wavelengths", "srcwin", "min-ssim", "max-unmatched"})
        if (call.given(name))
            throw UsageError(
                tool::cannot_be_used_with(
                    "-mosaic", "-" + std::string(name) +
                                   ": scenes are compared where they overlap, in the bands of src"),
                "Leave one of them out.");
    for (const Metric m : s.metrics)
        if (!compare::is_spectral(m))
            throw UsageError(
                tool::cannot_be_used_with("-mosaic", std::string("-metric ") + compare::metric_name(m)),
                "For mosaics, use nrmse, maxsde, sad, rmse or maxabs.");
}

} // namespace hsi::compare_tool
