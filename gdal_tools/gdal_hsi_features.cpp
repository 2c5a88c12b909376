// SPDX-License-Identifier: MIT
// gdal_hsi_features: removes the continuum of spectra, or measures their absorption features, in one pass.
#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "features/features.h"
#include "links/links.h"
#include "math/continuum.h"
#include "raster/library_output.h"
#include "raster/output_set.h"
#include "raster/text_output.h"
#include "shared/number_lists.h"
#include "shared/spectral_bands.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace features_tool {

struct Settings {
    std::vector<std::string> range_texts;
    std::vector<raster::BandChoice> ranges;
    features::Output output = features::Output::features;
};

// Ranges and their bands
// ----------------------------------------------------------------------------------------------------------

/// Holds the ranges, and the scene reduced to their bands.
struct Plan {
    std::vector<std::string> names;
    std::vector<double> from, to; ///< nm
    std::vector<features::Range> ranges;
    std::vector<size_t> bands; ///< indices in the scene that the plan was made for, ascending
};

std::string name_of_all(const std::vector<double>& nm, const std::vector<size_t>& rising) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6g-%.6gnm", nm[rising.front()], nm[rising.back()]);
    return text;
}

void add_range(Plan& plan, const raster::RasterSource& scene, const std::string& text, double from,
               double to) {
    const auto nm = scene.facts().bands.wavelengths_nm;
    features::Range range;
    range.bands = math::rising_bands(nm, from, to);
    const size_t count = range.bands.size();
    if (count < 3)
        throw Error((text.empty() ? "" : "-range " + text + ": ") + scene.path() + " has " +
                        counted(count, "good band") + (text.empty() ? " with a wavelength" : " there") +
                        ", but a continuum needs 3",
                    tools::reach_text({nm, {}}, "Its bands are") + ".");
    for (const size_t b : range.bands)
        range.x.push_back(nm[b]);
    plan.names.push_back(text.empty() ? name_of_all(nm, range.bands) : text);
    plan.from.push_back(nm[range.bands.front()]);
    plan.to.push_back(nm[range.bands.back()]);
    plan.ranges.push_back(std::move(range));
}

/// Rejects ranges that share a band, because -output removed writes each band once.
void refuse_shared(const Plan& plan, const raster::RasterSource& scene) {
    std::vector<int> owner(static_cast<size_t>(scene.shape().bands), -1);
    for (size_t k = 0; k < plan.ranges.size(); ++k)
        for (const size_t b : plan.ranges[k].bands) {
            if (owner[b] >= 0)
                throw UsageError("-range " + plan.names[static_cast<size_t>(owner[b])] + " and -range " +
                                     plan.names[k] + " share band " + std::to_string(scene.bands()[b]) +
                                     ", but -output removed writes each band once",
                                 "Use ranges that do not overlap, or one run per range.");
            owner[b] = static_cast<int>(k);
        }
}

Plan plan_of(const Settings& s, const raster::RasterSource& scene) {
    Plan plan;
    if (scene.facts().bands.wavelengths_nm.empty())
        throw Error(scene.path() + " has no wavelengths, which a continuum needs",
                    tools::advice_on_wavelengths());
    for (const auto& range : s.ranges)
        add_range(plan, scene, range.text, range.from_nm, range.to_nm);
    if (s.ranges.empty()) add_range(plan, scene, "", -1e300, 1e300);
    if (s.output == features::Output::removed) refuse_shared(plan, scene);
    for (const auto& range : plan.ranges)
        plan.bands.insert(plan.bands.end(), range.bands.begin(), range.bands.end());
    std::sort(plan.bands.begin(), plan.bands.end());
    plan.bands.erase(std::unique(plan.bands.begin(), plan.bands.end()), plan.bands.end());
    return plan;
}

/// Returns the scene with only the bands of the ranges, and changes the band indices of the plan to match.
std::shared_ptr<raster::RasterSource> cut_to(Plan& plan, const std::shared_ptr<raster::RasterSource>& scene) {
    for (auto& range : plan.ranges)
        for (size_t& b : range.bands)
            b = static_cast<size_t>(std::lower_bound(plan.bands.begin(), plan.bands.end(), b) -
                                    plan.bands.begin());
    return tool::only_bands(scene, {plan.bands.begin(), plan.bands.end()});
}

// Outputs
// ----------------------------------------------------------------------------------------------------------

struct Measure {
    const char *name, *unit;
};
constexpr Measure all_measures[features::measures] = {
    {"depth", ""}, {"position", "nm"}, {"width", "nm"}, {"area", "nm"}, {"asymmetry", ""}};

raster::OutputSpec spec_of(const Settings& s, const raster::RasterSource& scene, const Plan& plan) {
    raster::OutputSpec spec;
    const auto shape = scene.shape();
    spec.shape = {shape.samples, shape.lines, shape.bands};
    spec.holes = true;
    if (s.output == features::Output::removed) {
        spec.spectral = true;
        for (int b = 0; b < shape.bands; ++b) {
            raster::BandSpec band;
            band.like_band = b;
            spec.bands.push_back(std::move(band));
        }
        return spec;
    }
    for (const auto& name : plan.names)
        for (const Measure& measure : all_measures) {
            raster::BandSpec band;
            band.description = name + " " + measure.name;
            band.unit = measure.unit;
            spec.bands.push_back(std::move(band));
        }
    spec.shape.bands = static_cast<int>(spec.bands.size());
    return spec;
}

std::vector<raster::VirtualBand> continuum_bands(const Settings& s, const raster::RasterSource& scene,
                                                 const Plan& plan, int count) {
    std::vector<double> ends;
    for (size_t k = 0; k < plan.ranges.size(); ++k)
        ends.insert(ends.end(), {plan.from[k], plan.to[k]});
    std::vector<raster::VirtualBand> bands;
    for (int b = 0; b < count; ++b) {
        raster::VirtualBand one;
        one.function = "hsi_continuum";
        const bool removed = s.output == features::Output::removed;
        one.arguments = {{"wavelengths", tools::number_list(scene.facts().bands.wavelengths_nm)},
                         {"ranges", tools::number_rows(ends, 2)},
                         {"output", removed ? "removed" : all_measures[b % features::measures].name},
                         {"band", std::to_string(removed ? b + 1 : b / features::measures + 1)}};
        bands.push_back(std::move(one));
    }
    return bands;
}

void write_virtual(tool::Run& run, const Settings& s, const raster::RasterSource& scene, const Plan& plan) {
    const auto& dst = run.options().destination;
    const auto spec = spec_of(s, scene, plan);
    tool::write_virtual(
        run, dst, spec, scene,
        [&] { return links::feature_bands(scene.shape().bands, plan.ranges, s.output); },
        [&] { return continuum_bands(s, scene, plan, spec.shape.bands); });
}

// The run
// ----------------------------------------------------------------------------------------------------------

/// Returns the scene. If its bands have offsets or different scale factors, returns its scaled values,
/// because offsets and factors change the shape of a spectrum.
std::shared_ptr<raster::RasterSource> meant_values(tool::Run& run,
                                                   std::shared_ptr<raster::RasterSource> source) {
    const bool apply = !source->facts().bands.values.one_factor();
    run.report()["scale_applied"] = apply;
    if (!apply) return source;
    run.note("Values: the bands have different scales or offsets, which are applied first");
    return source->scaled();
}

void report_ranges(tool::Run& run, const Plan& plan) {
    Json ranges = Json::array();
    for (size_t k = 0; k < plan.ranges.size(); ++k)
        ranges.push_back({{"range", plan.names[k]},
                          {"from_nm", plan.from[k]},
                          {"to_nm", plan.to[k]},
                          {"bands", plan.ranges[k].bands.size()}});
    run.report()["ranges"] = ranges;
}

using FeatureComputing = tool::Computing<features::Backend>;

tool::Work work_of(const Settings& s, const Plan& plan, const raster::RasterSource& scene) {
    const auto pixels = static_cast<double>(scene.shape().pixels());
    double values = 0;
    for (const auto& range : plan.ranges)
        values += static_cast<double>(range.x.size());
    tool::Work work;
    work.cpu_reads = work.device_reads = 4 * pixels * static_cast<double>(plan.bands.size());
    work.writes = 4 * pixels *
                  (s.output == features::Output::removed
                       ? static_cast<double>(plan.bands.size())
                       : static_cast<double>(features::measures * plan.ranges.size()));
    work.add(features::cost::continuum, pixels * values);
    return work;
}

/// Makes the pass. Returns false if no pixel is valid.
bool measure(tool::Run& run, const Settings& s, FeatureComputing& computing,
             const std::shared_ptr<raster::RasterSource>& all, double share) {
    auto plan = plan_of(s, *all);
    const auto scene = cut_to(plan, all);
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(s, *scene, plan));
    outputs.check(*scene);
    const auto operation = computing->make_features(scene->shape().bands, plan.ranges, s.output);
    report_ranges(run, plan);
    tool::write(run, *scene, *operation, outputs, scene.get(),
                [&] { return computing.pass("features", share); });
    if (operation->valid() == 0) return false;
    tool::report_invalid(run, operation->valid(), operation->invalid());
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    const int64_t open = operation->without_continuum();
    run.report()["without_continuum"] = open;
    if (open > 0)
        run.warn(counted(open, "pixel") + worded(open, " has", " have") +
                 " no continuum in a range, since the first or last value there is not above 0: the result "
                 "is nodata" +
                 (s.output == features::Output::removed ? "" : " in that range"));
    outputs.commit();
    return true;
}

// A library
// ----------------------------------------------------------------------------------------------------------

/// One spectrum in one range, divided by its continuum: the bands where the spectrum has a value, their
/// wavelengths x (nm), and the ratios. Empty if fewer than 3 bands have a value, or if there is no continuum.
struct RemovedRange {
    std::vector<size_t> bands;
    std::vector<double> x, ratio;
};

RemovedRange removed_range(const raster::SpectralLibrary& library, size_t spectrum, double from, double to) {
    RemovedRange out;
    for (const size_t b : math::rising_bands(library.wavelengths_nm, from, to))
        if (const double v = library.spectra[spectrum][b]; std::isfinite(v)) {
            out.bands.push_back(b);
            out.x.push_back(library.wavelengths_nm[b]);
            out.ratio.push_back(v);
        }
    if (out.x.size() < 3 || !math::Continuum(out.x).remove(out.ratio.data(), out.ratio.data())) return {};
    return out;
}

/// Writes the spectra divided by their continua as a library, or a table of features with one row per
/// spectrum and range.
void run_library(tool::Run& run, const Settings& s, raster::SpectralLibrary library) {
    const auto& o = run.options();
    const bool removed = s.output == features::Output::removed;
    const auto output = run.text_output("dst", o.destination.path, o.destination.overwrite);
    if (removed)
        raster::check_library_output(output);
    else
        raster::check_text_output(output);
    if (library.wavelengths_nm.empty())
        throw Error(o.source.path + " has no wavelengths, which a continuum needs",
                    tools::advice_on_wavelengths());
    auto ranges = s.ranges;
    if (ranges.empty()) ranges.push_back({0, 0, -1e300, 1e300, false, "all", "-range"});
    std::string table = "name,range,depth,position,width,area,asymmetry\n";
    std::vector<std::string> without;
    auto values = library.spectra;
    for (size_t k = 0; k < values.size(); ++k) {
        std::fill(values[k].begin(), values[k].end(), std::nan(""));
        for (const auto& range : ranges) {
            const auto found = removed_range(library, k, range.from_nm, range.to_nm);
            if (found.x.empty()) without.push_back(library.names[k] + " (" + range.text + ")");
            for (size_t b = 0; b < found.bands.size(); ++b)
                values[k][found.bands[b]] = found.ratio[b];
            table += csv_cell(library.names[k]) + "," + csv_cell(range.text);
            const auto f = found.x.empty() ? features::Feature{std::nan(""), std::nan(""), std::nan(""),
                                                               std::nan(""), std::nan("")}
                                           : features::feature_of(found.x, found.ratio.data());
            for (const double v : {f.depth, f.position, f.width, f.area, f.asymmetry})
                table += "," + tools::number_cell(v);
            table += "\n";
        }
    }
    if (without.size() == values.size() * ranges.size())
        throw Error("no spectrum of " + o.source.path + " has a continuum in " +
                        (s.ranges.empty() ? "its bands" : "a range") +
                        ", which needs 3 bands with values above 0",
                    tools::reach_text({library.wavelengths_nm, {}}, "Its bands are") + ".");
    tool::end_of_plan(run, [&] {
        run.print(counted(values.size(), "spectrum", "spectra") + " of " + counted(library.bands(), "band") +
                  "; nothing is written");
    });
    if (!without.empty()) run.warn("spectra without a continuum: " + joined(without, ", "));
    if (!removed) return raster::write_text_output(output, table);
    library.spectra = std::move(values);
    if (const auto told = raster::write_spectral_library(output, library, o.destination.history);
        !told.empty())
        run.warn(told);
}

void run_features(tool::Run& run, const Settings& s) {
    auto source = tools::open_scene_or_library(run);
    if (source.library) return run_library(run, s, std::move(*source.library));
    auto scene = std::move(source.scene);
    tool::check_spectrum(*scene, "a continuum");
    scene = meant_values(run, std::move(scene));
    for (const auto& range : s.ranges)
        tools::note_cut_range(run, "-range " + range.text, scene->facts().bands.wavelengths_nm, range.from_nm,
                              range.to_nm);
    if (raster::is_virtual(run.options().destination)) {
        auto plan = plan_of(s, *scene);
        scene = cut_to(plan, scene);
        if (tool::leave_out_unseen_bands(run, scene)) {
            plan = plan_of(s, *scene);
            scene = cut_to(plan, scene);
        }
        report_ranges(run, plan);
        return write_virtual(run, s, *scene, plan);
    }
    FeatureComputing computing(run, "features",
                               tool::choose_devices(run, "features", work_of(s, plan_of(s, *scene), *scene)),
                               nullptr, features::make_cpu_backend);
    const bool any = tool::attempt(run, {tool::banded(scene)}, [&](bool again) {
        return measure(run, s, computing, scene, again ? 0 : 1);
    });
    if (!any) throw tool::no_valid_pixel(*scene);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("The result: a raster; for a library .csv (one row per spectrum and range), or a "
                         "library (-output removed)");
    args.computes_dst();
    args.add_mask("the result", true);
    args.add_compute();
    args.option("range", s.range_texts, "Range of wavelengths, ends included: 2100-2300nm, 2.1-2.3um")
        .shown_as("RANGE")
        .defaults_to("all good bands");
    args.choice("output", s.output, "Content of dst",
                {{"features", features::Output::features,
                  "depth, position, width, area and asymmetry of the feature of every range"},
                 {"removed", features::Output::removed, "the spectra divided by their continuum"}});
    args.check([&s](const tool::CommonOptions& o) {
        tool::check_mask_use(o.mask, false, "gdal_hsi_features");
        s.ranges = tool::parse_ranges(s.range_texts, "-range");
    });
    args.body([&s](tool::Run& run) { run_features(run, s); });
}

} // namespace features_tool
} // namespace

namespace tools {

extern constinit const tool::Definition features{
    "features",
    "Continuum removal and absorption features",
    "Absorption features: divides every spectrum by its continuum, the upper convex hull, in "
    "one or several ranges of wavelengths, and measures depth, position, width, area and "
    "asymmetry of the feature, or writes the continuum-removed spectra; for a scene or a spectral library.",
    {{"gdal_hsi_features -range 2100-2300nm scene.img clay.tif", "The feature of clays at 2.2 um"},
     {"gdal_hsi_features -range 550-770nm -range 2.1-2.3um scene.img f.tif", "Two features, ten bands"},
     {"gdal_hsi_features -output removed scene.img removed.tif",
      "Continuum-removed spectra over all good bands"},
     {"gdal_hsi_features -range 2.1-2.3um -of VRT scene.img clay.vrt", "Computed when it is displayed"},
     {"gdal_hsi_features -range 2.1-2.3um library.sli clay.csv", "The features of a library's spectra"}},
    "",
    features_tool::declare};

} // namespace tools
} // namespace hsi
