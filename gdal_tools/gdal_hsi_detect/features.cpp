// SPDX-License-Identifier: MIT
// sff: fits absorption features.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "detect/fit/fit.h"
#include "features/features.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "math/continuum.h"
#include "raster/raster_source.h"
#include "shared/spectral_bands.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect_tool {
namespace {

/// A row of -features.
struct FeatureLine {
    std::string name;
    double from = 0, to = 0;
    std::optional<double> weight; ///< empty: the weight is the area of the feature
    double least_fit = 0, least_depth = 0;
};

/// Reads the rows of -features. \throws Error with the file name and the row.
std::vector<FeatureLine> read_features(tool::Run& run, const std::string& path) {
    std::vector<FeatureLine> lines;
    if (path.empty()) return lines;
    const auto table =
        raster::read_spectrum_table(path, {"name", "from_nm", "to_nm"}, {"weight", "fit_min", "depth_min"});
    if (!table.further.empty())
        run.warn("-features " + path + ": these columns are ignored: " + joined(table.further, ", "));
    for (size_t r = 0; r < table.rows.size(); ++r) {
        const auto& cells = table.rows[r];
        const std::string where = "-features " + path + ", feature " + std::to_string(r + 1) + ": ";
        const auto value = [&](size_t column, const char* name) -> std::optional<double> {
            if (cells[column].empty()) return {};
            const double v = raster::table_number(cells[column]);
            if (!std::isfinite(v)) throw Error(where + name + " '" + cells[column] + "' is not a number");
            if (v < 0) throw Error(where + name + " " + cells[column] + " is below 0");
            return v;
        };
        const auto least = [&](size_t column, const char* name) {
            const double v = value(column, name).value_or(0);
            if (v > 1)
                throw Error(where + name + " " + cells[column] + " is above 1, the greatest possible value",
                            "Fits and depths are fractions: write 0.8 for 80 %.");
            return v;
        };
        if (cells[0].empty())
            throw Error(where + "it has no name", "Give the name of a spectrum of -target.");
        const auto from = value(1, "from_nm"), to = value(2, "to_nm");
        if (!from || !to || !(*from < *to))
            throw Error(where + "from_nm and to_nm are not two wavelengths in ascending order");
        lines.push_back(
            {cells[0], *from, *to, value(3, "weight"), least(4, "fit_min"), least(5, "depth_min")});
    }
    return lines;
}

/// The input of the operation for the bands of a scene, and the bands that are used.
struct FeaturePlan {
    detect::FitTask task;
    std::vector<int> bands; ///< indices in the scene, ascending
};

/// Adds a target with the given features.
void add_features(FeaturePlan& plan, const raster::RasterSource& scene, const std::vector<FeatureLine>& lines,
                  const std::vector<double>& spectrum, detect::FitTarget target) {
    const auto nm = scene.facts().bands.wavelengths_nm;
    double sum = 0;
    for (const auto& line : lines) {
        detect::FitRange range{math::rising_bands(nm, line.from, line.to), {}};
        std::vector<double> values;
        for (const size_t b : range.bands) {
            range.x.push_back(nm[b]);
            values.push_back(spectrum[b]);
        }
        auto feature = detect::feature_to_fit(range, values,
                                              "target '" + target.name + "', " + number(line.from) + "-" +
                                                  number(line.to) + " nm");
        if (line.weight) feature.weight = *line.weight;
        feature.least_fit = line.least_fit;
        feature.least_depth = line.least_depth;
        sum += feature.weight;
        auto& ranges = plan.task.ranges;
        const auto same = std::find_if(ranges.begin(), ranges.end(),
                                       [&](const detect::FitRange& one) { return one.bands == range.bands; });
        feature.range = static_cast<size_t>(same - ranges.begin());
        if (same == ranges.end()) ranges.push_back(std::move(range));
        target.features.push_back(std::move(feature));
    }
    if (!(sum > 0))
        throw Error("target '" + target.name + "': the weights of its features are all 0",
                    "Give a feature a weight, or leave the cells empty to use areas as weights.");
    plan.task.targets.push_back(std::move(target));
}

FeaturePlan plan_features(const Features& how, const raster::RasterSource& scene,
                          const std::vector<FeatureLine>& lines, const detect::Targets& targets) {
    if (scene.facts().bands.wavelengths_nm.empty())
        throw Error(scene.path() + " has no wavelengths, which features need",
                    tools::advice_on_wavelengths());
    std::vector<FeatureLine> common;
    for (const auto& range : how.ranges)
        common.push_back({"", range.from_nm, range.to_nm, {}, 0, 0});
    FeaturePlan plan;
    for (size_t k = 0; k < targets.names.size(); ++k) {
        std::vector<FeatureLine> own;
        std::copy_if(lines.begin(), lines.end(), std::back_inserter(own),
                     [&](const FeatureLine& line) { return equal_names(line.name, targets.names[k]); });
        if (own.empty()) own = common;
        if (own.empty())
            throw Error("target '" + targets.names[k] + "' has no features" +
                            (how.path.empty() ? "" : " in " + how.path),
                        "Give -range FROM-TOnm for all targets without own features, or -features FILE.csv; "
                        "-spectrum chooses targets of a library.");
        add_features(plan, scene, own, targets.spectra[k], {targets.names[k], {}});
    }
    for (const auto& range : plan.task.ranges)
        plan.bands.insert(plan.bands.end(), range.bands.begin(), range.bands.end());
    std::sort(plan.bands.begin(), plan.bands.end());
    plan.bands.erase(std::unique(plan.bands.begin(), plan.bands.end()), plan.bands.end());
    // From here on, band indices refer to plan.bands.
    for (auto& range : plan.task.ranges)
        for (size_t& b : range.bands)
            b = static_cast<size_t>(
                std::lower_bound(plan.bands.begin(), plan.bands.end(), static_cast<int>(b)) -
                plan.bands.begin());
    plan.task.inputs = static_cast<int>(plan.bands.size());
    plan.task.score = how.score;
    return plan;
}

void report_features(tool::Run& run, const detect::FitTask& task) {
    size_t features = 0;
    Json ranges = Json::array();
    for (const auto& target : task.targets)
        features += target.features.size();
    for (const auto& range : task.ranges)
        ranges.push_back(
            {{"from_nm", range.x.front()}, {"to_nm", range.x.back()}, {"bands", range.x.size()}});
    run.report()["detection"]["features"] = features;
    run.report()["detection"]["ranges"] = ranges;
    run.note(counted(features, "feature") + " of " + counted(task.targets.size(), "target") + " in " +
             counted(task.ranges.size(), "range"));
}

/// Estimates the work. Assumes that each target has a feature in each range.
tool::Work work_of_features(const Settings& s, const Features& how, const raster::RasterSource& scene,
                            size_t targets) {
    const auto nm = scene.facts().bands.wavelengths_nm;
    double bands = 0;
    for (const auto& range : how.ranges)
        bands += static_cast<double>(math::rising_bands(nm, range.from_nm, range.to_nm).size());
    if (bands == 0) bands = scene.shape().bands;
    const double values = static_cast<double>(scene.shape().pixels()) * bands, passes = s.ranks() ? 3 : 1,
                 scores = static_cast<double>(targets);
    tool::Work work;
    work.cpu_reads = work.device_reads = passes * 4 * values;
    work.writes = static_cast<double>(scene.shape().pixels()) * 4 * scores * (how.depth.empty() ? 1 : 2);
    work.add(features::cost::continuum, passes * values);
    work.add(features::cost::fit, passes * values * scores);
    return work;
}

} // namespace

void detect_by_features(tool::Run& run, const Settings& s, const Features& how,
                        std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                        const detect::PixelMask* mask) {
    tool::Computing<detect::FitBackend> computing(
        run, "detect_fit",
        tool::choose_devices(run, "detect_fit", work_of_features(s, how, *source, targets.names().size())),
        detect::simd_target(), [] { return std::make_unique<detect::FitBackend>(); });
    const auto lines = read_features(run, how.path);
    for (const auto& line : lines)
        if (std::none_of(targets.names().begin(), targets.names().end(),
                         [&](const std::string& name) { return equal_names(name, line.name); }))
            run.warn("-features " + how.path + ": no target is called '" + line.name + "'");
        else
            tools::note_cut_range(run,
                                  "-features " + how.path + ": '" + line.name + "', " + number(line.from) +
                                      "-" + number(line.to) + " nm,",
                                  source->facts().bands.wavelengths_nm, line.from, line.to);
    for (const auto& range : how.ranges)
        tools::note_cut_range(run, "-range " + range.text, source->facts().bands.wavelengths_nm,
                              range.from_nm, range.to_nm);
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        const auto plan = plan_features(how, *source, lines, *targets.at(*source));
        const auto scene = tool::only_bands(source, plan.bands);
        auto outputs = plan_outputs(run, s, *scene, targets.names());
        report_features(run, plan.task);
        const auto make = [&](bool depths) {
            return [&, depths](const detect::Decision& d) {
                auto task = plan.task;
                task.depths = depths;
                return computing->make_feature_fit(std::move(task), d);
            };
        };
        const Scoring scoring{*scene, make(false),
                              [&](const std::string& name, double share) {
                                  return without_mask(mask, computing.pass(name, share));
                              },
                              make(!how.depth.empty())};
        if (!again) targets.warn_of_mistakes(run, s, *scene);
        return make_scores(run, s, *scene, scoring, std::move(outputs), targets.names(), again ? 0 : 1, mask);
    });
    if (!any) throw tool::no_valid_pixel(*source);
    report_kernels(run, computing.backend());
}

} // namespace hsi::detect_tool
