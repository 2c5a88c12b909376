// SPDX-License-Identifier: MIT
// gdal_hsi_normalise: removes the effects of terrain, view and sun from reflectance, with a model of one
// scene or of a campaign. There is one pass for the terrain, one for the BRDF, and one that corrects the
// scene.
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "gdal_hsi_normalise/geometry.h"
#include "gdal_hsi_normalise/models.h"
#include "gdal_hsi_normalise/settings.h"
#include "normalise/normalise.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"
#include "raster/scene_document.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "raster/text_input.h"
#include "raster/text_output.h"
#include "shared/many_scenes.h"
#include "shared/spectral_bands.h"
#include "stream/pixel_mask.h"
#include "stream/stacked_source.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/mask.h"
#include "tool/memory_plan.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace normalise_tool {
namespace {

using normalise::Bin;
using normalise::Brdf;
using normalise::Geometric;
using normalise::Model;
using normalise::PixelCounts;
using normalise::SceneRecord;
using normalise::Terrain;
using normalise::Topography;
using normalise::Volume;
using tool::Content;

// Scenes
// ----------------------------------------------------------------------------------------------------------

/// A scene and the angles of its pixels. cube() returns both as one cube.
struct Opened {
    std::shared_ptr<raster::RasterSource> scene;
    Geometry geometry;
    std::shared_ptr<const stream::PixelMask> mask; ///< pixels that are used for fits; null: all

    stream::PassOptions pass(tool::Run& run, const std::string& name, double share) const {
        auto made = run.pass(name, share);
        tool::leave_room(made, geometry.held);
        return made;
    }
    std::shared_ptr<const stream::CubeSource> cube(std::shared_ptr<const stream::CubeSource> pixels) const {
        if (!geometry.planes) return pixels;
        return std::make_shared<stream::StackedSource>(
            std::vector<std::shared_ptr<const stream::CubeSource>>{std::move(pixels), geometry.planes});
    }
    std::shared_ptr<const stream::CubeSource> fitted(std::shared_ptr<const stream::CubeSource> pixels) const {
        return cube(mask ? std::make_shared<stream::MaskedSource>(std::move(pixels), mask)
                         : std::move(pixels));
    }
};

std::vector<view::Angle> needed_angles(const normalise::Method& method) {
    std::vector<view::Angle> list;
    for (int k = 0; k < view::angle_count; ++k)
        if (method.needs(static_cast<view::Angle>(k))) list.push_back(static_cast<view::Angle>(k));
    return list;
}

/// Returns the index of the band that is nearest to a wavelength. \throws Error if no band is within 20 nm.
int band_near(const raster::RasterSource& scene, double nm) {
    const auto& all = scene.facts().bands.wavelengths_nm;
    std::optional<size_t> best;
    constexpr double farthest = 20;
    for (size_t b = 0; b < all.size(); ++b)
        if (std::fabs(all[b] - nm) <= farthest &&
            (!best || std::fabs(all[b] - nm) < std::fabs(all[*best] - nm)))
            best = b;
    if (!best)
        throw Error("'" + scene.path() + "' has no band within 20 nm of " + tool::number_text(nm) +
                        " nm, which NDVI needs",
                    "Use a scene with wavelengths that include 660 and 850 nm.");
    return static_cast<int>(*best);
}

normalise::SceneTask task_of(const Opened& opened) {
    const auto& facts = opened.scene->facts().bands;
    normalise::SceneTask task;
    task.shape = opened.scene->shape();
    task.planes = opened.geometry.planes ? opened.geometry.planes->shape().bands : 0;
    task.angles = opened.geometry.inputs;
    task.scale = facts.values.scale;
    task.offset = facts.values.offset;
    constexpr double near_infrared = 850, red = 660, edge = 720;
    task.near_infrared = band_near(*opened.scene, near_infrared);
    task.red = band_near(*opened.scene, red);
    for (const double nm : facts.wavelengths_nm)
        task.below_720.push_back(nm < edge);
    return task;
}

void report_pixels(tool::Run& run, const std::string& name, const PixelCounts& counts) {
    if (counts.without_angles == 0) return;
    run.warn(name + ": " + counted(counts.without_angles, "valid pixel has", "valid pixels have") +
             " unknown angles, or a zenith or slope of 90 degrees or more, and become nodata");
}

/// Warns if the angles seem to have another convention or unit than their file states.
void check_angles(tool::Run& run, const std::string& name, const normalise::FitScan& scan) {
    const auto& slopes = scan.slopes();
    int64_t all = 0, below = 0;
    for (const int64_t n : slopes)
        all += n;
    if (all == 0) return;
    size_t median = 0;
    while (2 * (below += slopes[median]) < all)
        ++median;
    constexpr size_t steep = 45;
    if (median > steep)
        run.warn(
            name + ": the median slope is " + std::to_string(median) +
            " degrees. Check the file of angles: some files have 90 minus the slope, and the aspect plus 90");
    if (scan.counts().low_suns == 0)
        run.warn(name + ": no solar zenith is above " + tool::number_text(normalise::radians_limit) +
                 " degrees. If the angles are in radians, state the unit in the file (rad)");
}

/// Terrain coefficients and sums of one scene.
struct Fit {
    SceneRecord record;
    PixelCounts counts;
    bool passes = false; ///< true if the method has coefficients to fit
};

void refuse_without_angles(const std::string& name, const PixelCounts& counts) {
    if (counts.valid == 0 || counts.without_angles < counts.valid) return;
    throw Error(name + ": all " + counted(counts.valid, "valid pixel has", "valid pixels have") +
                    " unknown angles, or a zenith or slope of 90 degrees or more",
                "Use the angles of this scene (-geometry, -angle), and a DEM that covers it (-dem).");
}

Terrain fit_terrain(tool::Run& run, const std::string& name, const Opened& opened,
                    const normalise::Method& method, const std::shared_ptr<stream::CubeSource>& pixels,
                    double share, PixelCounts& counts) {
    const auto scan = normalise::make_terrain_scan(task_of(opened), method);
    const auto cube = opened.fitted(pixels);
    if (!tool::run_pass(run, *cube, *scan, {}, opened.pass(run, "topography", share))) return {};
    tool::seal(*pixels);
    counts = scan->counts();
    if (counts.valid == 0) return {};
    refuse_without_angles(name, counts);
    check_angles(run, name, *scan);
    const auto sums = scan->terrain();
    auto terrain = normalise::fit_terrain(sums);
    if (!terrain.slope.empty()) return terrain;
    run.warn(name + ": terrain is not corrected: " +
             (sums.pixels < normalise::least_terrain_pixels
                  ? counted(sums.pixels, "pixel") + " can be fitted, but 100 are needed"
                  : "cos i has a standard deviation of " + tools::short_number(sums.deviation()) +
                        ", but 0.01 is needed") +
             " (slopes of " + tool::number_text(method.min_slope) + " degrees or more, NDVI in range)");
    return terrain;
}

Fit fit_scene(tool::Run& run, const Opened& opened, const normalise::Method& method,
              const std::shared_ptr<stream::CubeSource>& pixels, double share) {
    Fit fit;
    fit.record.name = hsi::name_of(opened.scene->path());
    fit.record.grid = opened.geometry.grid;
    const bool both = method.fits_topography() && method.brdf != Brdf::none;
    fit.passes = method.fits_topography() || method.brdf != Brdf::none;
    if (method.fits_topography()) {
        fit.record.terrain =
            fit_terrain(run, fit.record.name, opened, method, pixels, both ? 0.4 * share : share, fit.counts);
        fit.record.pixels = fit.record.terrain.pixels;
        if (fit.counts.valid == 0 && !run.options().dry_run) return fit;
    }
    fit.record.sums.count.resize(static_cast<size_t>(method.cells()));
    fit.record.sums.sums.resize(fit.record.sums.count.size());
    if (method.brdf == Brdf::none) return fit;
    const auto scan = normalise::make_brdf_scan(task_of(opened), method, fit.record.terrain);
    const auto cube = opened.fitted(pixels);
    if (!tool::run_pass(run, *cube, *scan, {}, opened.pass(run, "brdf", both ? 0.6 * share : share)))
        return fit;
    tool::seal(*pixels);
    fit.counts = scan->counts();
    refuse_without_angles(fit.record.name, fit.counts);
    if (fit.counts.valid > 0 && !both) check_angles(run, fit.record.name, *scan);
    fit.record.sums = scan->cells();
    fit.record.pixels = fit.record.sums.pixels();
    return fit;
}

// The model
// ----------------------------------------------------------------------------------------------------------

/// The models that exist before the first scene is read: the model of -append, joined with the models of
/// -merge.
struct Before {
    std::optional<Model> model;
    std::string name; ///< file name of the first model

    void add(const Settings& s, const std::string& path) {
        auto one = read_model(path);
        refuse_other_options(s, one, path);
        if (!model) {
            model.emplace(std::move(one));
            name = path;
        } else {
            model->add(one, path, s.given);
        }
    }
    bool given(const Settings& s, const char* option) const {
        return std::find(s.given.begin(), s.given.end(), option) != s.given.end();
    }
    /// Copies the settings of the existing model to the settings of the run.
    void settle(Settings& s) const {
        if (!model) return;
        s.method = model->method;
        if (!given(s, "bins")) {
            s.binning.bins = model->binning.bins;
            s.binning.edges = model->binning.edges;
        }
        for (const int edge : s.binning.edges)
            if (edge < s.method.ndvi_min || edge > s.method.ndvi_max)
                throw Error("-bins: the edge " + tool::number_text(edge / 100.0) +
                                " is outside the range of NDVI of '" + name + "' (" +
                                tool::number_text(s.method.ndvi_min / 100.0) + " to " +
                                tool::number_text(s.method.ndvi_max / 100.0) + ")",
                            "Use edges in this range.");
        if (!given(s, "min-pixels")) s.binning.min_pixels = model->binning.min_pixels;
        if (!given(s, "solar-zenith")) s.binning.solar_zenith = model->binning.solar_zenith;
    }
};

Before read_before(tool::Run& run, const Settings& s) {
    Before before;
    if (s.append && ::access(s.model.c_str(), F_OK) == 0) before.add(s, s.model);
    for (const auto& path : s.merged) {
        run.files()->reads("-merge", path, {});
        before.add(s, path);
    }
    if (!s.has_source && !before.model)
        throw Error("'" + s.model + "' does not exist, so no scene can be added to it",
                    "Give src, or -merge.");
    return before;
}

Model empty_model(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    Model model;
    tool::describe_bands(scene, model);
    model.created_by = tool::origin_of(run).created_by;
    model.method = s.method;
    model.binning = s.binning;
    return model;
}

/// Gives the model the size that fitting would give it, since -dry-run reads no pixels.
void assume(Model& model) {
    Bin bin;
    bin.from = model.method.ndvi_min;
    bin.to = model.method.ndvi_max;
    bin.used = true;
    bin.volume.resize(model.bands.size());
    bin.geometric = bin.isotropic = bin.rmse = bin.volume;
    model.bins = {bin};
}

/// Warns if the scenes of a model seem to have different scales. The brighter scenes would then dominate the
/// fit.
void warn_of_levels(tool::Run& run, const Model& model) {
    std::vector<std::pair<double, const SceneRecord*>> levels;
    for (const SceneRecord& scene : model.scenes)
        if (const auto level = scene.level()) levels.emplace_back(*level, &scene);
    const auto by_level = [](const auto& a, const auto& b) { return a.first < b.first; };
    const auto [lowest, highest] = std::minmax_element(levels.begin(), levels.end(), by_level);
    constexpr double most = 20;
    if (levels.empty() || highest->first <= most * lowest->first) return;
    constexpr double digits = 1e4;
    const auto rounded = [](double v) {
        const double unit = std::pow(10, std::floor(std::log10(v))) / digits;
        return tools::short_number(std::round(v / unit) * unit);
    };
    run.warn("the scenes of the model may have different scales: the median reflectance is " +
             rounded(lowest->first) + " in " + lowest->second->name + " and " + rounded(highest->first) +
             " in " + highest->second->name +
             ". Set their scale with gdal_edit.py -scale, and fit them again");
}

void report_model(tool::Run& run, const Model& model) {
    Json scenes = Json::array(), bins = Json::array();
    for (const auto& scene : model.scenes)
        scenes.push_back(
            {{"name", scene.name}, {"pixels", scene.pixels}, {"topography", !scene.terrain.slope.empty()}});
    size_t used = 0;
    for (const auto& bin : model.bins) {
        bins.push_back(
            {{"from", bin.from / 100.0}, {"to", bin.to / 100.0}, {"pixels", bin.pixels}, {"used", bin.used}});
        used += bin.used;
    }
    warn_of_levels(run, model);
    run.report()["model"] = {{"scenes", scenes}, {"bins", bins}, {"solar_zenith", model.solar_zenith}};
    if (model.method.brdf == Brdf::none) return;
    run.note("BRDF: " + counted(used, "bin") + " of NDVI used, common solar zenith " +
             tools::short_number(std::round(1e4 * model.solar_zenith) / 1e4) + " degrees");
    if (used < model.bins.size())
        run.warn(
            counted(model.bins.size() - used, "bin of NDVI is", "bins of NDVI are") +
            " not used: fewer than " + std::to_string(model.binning.min_pixels) +
            " pixels, or kernels that do not vary. The coefficients of neighbouring bins are used instead");
}

void write_model(tool::Run& run, const Settings& s, Model model, const std::vector<SceneRecord>& added) {
    const raster::TextOutput output{"-model", s.model, run.options().destination.overwrite || s.append,
                                    run.files()};
    if (!s.append) return raster::write_text_output(output, normalise::to_json(model));
    if (!run.ranks().root()) return;
    // Another run may have changed the file in the meantime, so the file is read again before it is replaced.
    auto state = std::make_shared<std::pair<Model, std::vector<SceneRecord>>>(std::move(model), added);
    auto then = raster::files_as_they_are(s.model);
    run.files()->add_to_file({s.model, [state, s, output, then] {
                                  auto now = raster::files_as_they_are(s.model);
                                  const bool same = std::equal(now.begin(), now.end(), then.begin(),
                                                               then.end(), [](const auto& a, const auto& b) {
                                                                   return a.path == b.path &&
                                                                          a.bytes == b.bytes &&
                                                                          a.modified == b.modified;
                                                               });
                                  if (!same && !now.empty()) {
                                      Before before;
                                      before.add(s, s.model);
                                      for (const auto& path : s.merged)
                                          before.add(s, path);
                                      for (const auto& scene : state->second)
                                          before.model->add(scene);
                                      for (const auto& path : s.removed)
                                          before.model->remove(read_model(path), path);
                                      before.model->binning = state->first.binning;
                                      before.model->fit();
                                      state->first = std::move(*before.model);
                                  }
                                  raster::write_text_output(output, normalise::to_json(state->first));
                              }});
}

// Correction
// ----------------------------------------------------------------------------------------------------------

raster::OutputSpec spec_of(const raster::RasterSource& scene, const Model& model) {
    raster::OutputSpec spec;
    spec.shape = scene.shape();
    spec.same_bands = true;
    spec.holes = true;
    spec.metadata = {{"HSI_NORMALISE_TOPOGRAPHY", name_of(model.method.topography)},
                     {"HSI_NORMALISE_BRDF", name_of(model.method.brdf)}};
    if (model.method.brdf != Brdf::none)
        spec.metadata["HSI_NORMALISE_SOLAR_ZENITH"] = tool::number_text(model.solar_zenith);
    return spec;
}

/// Rejects an invalid dst before the passes of the fits.
void check_destination(tool::Run& run, const raster::RasterSource& scene, const Model& model) {
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(scene, model));
    outputs.check(scene);
}

/// Makes the pass that writes dst. Returns false if no pixel is valid.
bool correct(tool::Run& run, const Opened& opened, const Model& model, const Terrain& terrain,
             const std::shared_ptr<const stream::CubeSource>& pixels, double share) {
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(*opened.scene, model));
    outputs.check(*opened.scene);
    const auto operation =
        normalise::make_correction(task_of(opened), model.method, terrain, model.bins, model.solar_zenith,
                                   model.hytools ? &*model.hytools : nullptr);
    const auto cube = opened.cube(pixels);
    tool::write(run, *cube, *operation, outputs, opened.scene.get(),
                [&] { return opened.pass(run, "correction", share); });
    const auto& counts = operation->counts();
    if (counts.valid == 0) return false;
    refuse_without_angles(hsi::name_of(opened.scene->path()), counts);
    tool::report_invalid(run, counts.valid, counts.invalid);
    report_pixels(run, hsi::name_of(opened.scene->path()), counts);
    run.report()["corrected"] = {{"topography", counts.terrain},
                                 {"brdf", counts.brdf},
                                 {"without_angles", counts.without_angles},
                                 {"values_without_model", counts.without_model}};
    run.note("Corrected: terrain of " + counted(counts.terrain, "pixel") + ", BRDF of " +
             counted(counts.brdf, "pixel") + " of " + std::to_string(counts.valid));
    if (counts.without_model > 0)
        run.warn(counted(counts.without_model, "value keeps its", "values keep their") +
                 " BRDF, since the model is not above 0 there");
    outputs.commit();
    return true;
}

/// Writes -angles in a separate pass.
void write_angles(tool::Run& run, const Settings& s, const Opened& opened) {
    if (s.angles_file.empty() || run.options().dry_run) return;
    std::vector<view::Angle> wanted;
    for (int k = 0; k < view::angle_count; ++k)
        if (opened.geometry.inputs[static_cast<size_t>(k)].known())
            wanted.push_back(static_cast<view::Angle>(k));
    raster::OutputSpec spec;
    spec.shape = opened.scene->shape();
    spec.shape.bands = static_cast<int>(wanted.size());
    spec.holes = true;
    for (const auto angle : wanted) {
        raster::BandSpec band;
        band.description = view::angle_names[angle];
        band.unit = "degrees";
        spec.bands.push_back(std::move(band));
    }
    raster::OutputSet outputs;
    outputs.plan(run.side_output("-angles", s.angles_file), spec);
    const auto operation = normalise::make_angles(opened.geometry.inputs, wanted);
    const std::shared_ptr<const stream::CubeSource> cube =
        opened.geometry.planes ? opened.geometry.planes
                               : std::static_pointer_cast<const stream::CubeSource>(opened.scene);
    tool::write(run, *cube, *operation, outputs, opened.scene.get(),
                [&] { return opened.pass(run, "angles", 0); });
    outputs.commit();
}

/// Rejects a scene that is already in the model, before the scene is read.
void refuse_included(const Model& model, const Opened& src, const std::vector<Opened>& others) {
    Model names; // names and grids of the model's scenes, without the sums, which are large
    for (const SceneRecord& scene : model.scenes)
        names.scenes.push_back({scene.name, 0, {}, {}, scene.grid});
    const auto add = [&](const Opened& one) {
        names.add({hsi::name_of(one.scene->path()), 0, {}, {}, one.geometry.grid});
    };
    add(src);
    for (const Opened& other : others)
        add(other);
}

/// Returns true, for -append -if-needed, if src is in the model and the model is newer than src and its
/// angles.
bool is_included(tool::Run& run, const Settings& s, const Opened& src, const Before& before) {
    if (!s.append || !run.options().if_needed || !before.model || !s.with.empty() || !s.merged.empty() ||
        !s.removed.empty())
        return false;
    const SceneRecord* const known = before.model->find(hsi::name_of(src.scene->path()));
    if (known == nullptr || !known->grid.same(src.geometry.grid)) return false;
    std::error_code error;
    const auto made = std::filesystem::last_write_time(s.model, error);
    for (const std::string& path : {src.scene->path(), s.geometry})
        for (const std::string& file :
             path.empty() ? std::vector<std::string>() : raster::files_read_with(path))
            if (const auto time = std::filesystem::last_write_time(file, error); !error && time > made)
                return false;
    run.note("Nothing to do: '" + s.model + "' includes " + known->name);
    return true;
}

/// Fits the model to src and the scenes of -with, and corrects src.
bool fit_and_correct(tool::Run& run, const Settings& s, Opened& src,
                     const std::vector<std::array<std::string, 2>>& with, const Before& before) {
    const auto needed = needed_angles(s.method);
    const bool corrects = !run.options().destination.path.empty();
    src.geometry =
        open_geometry(run, s.angles, *src.scene, s.geometry, run.options().source.window.has_value(), needed);
    if (is_included(run, s, src, before)) return true;
    Model model = before.model ? *before.model : empty_model(run, s, *src.scene);
    model.binning = s.binning;
    if (corrects) check_destination(run, *src.scene, model);
    std::vector<Opened> others;
    for (const auto& [name, angles] : with) {
        Opened other;
        other.scene = tools::open_beside(run, "-with", name, *src.scene);
        if (run.options().mask.given()) other.mask = tool::read_scene_mask(run, *other.scene, true);
        other.geometry =
            open_geometry(run, s.angles, *other.scene, angles == "-" ? "" : angles, false, needed);
        others.push_back(std::move(other));
    }
    refuse_included(model, src, others);
    src.geometry.read(run);
    write_angles(run, s, src);
    const double share = (corrects ? 0.6 : 1.0) / static_cast<double>(1 + others.size());
    const auto kept = run.keep_if_slow(src.scene);
    auto fit = fit_scene(run, src, s.method, kept, share);
    const bool dry = run.options().dry_run;
    if (fit.passes && fit.counts.valid == 0 && !dry) return false;
    const Terrain terrain = fit.record.terrain;
    int64_t without_angles = fit.counts.without_angles;
    std::vector<SceneRecord> added{fit.record};
    model.add(std::move(fit.record));
    for (Opened& opened : others) {
        Opened other = std::move(opened); // frees the angles of the scene at the end of each turn
        other.geometry.read(run);
        auto one = fit_scene(run, other, s.method, other.scene, share);
        report_pixels(run, hsi::name_of(other.scene->path()), one.counts);
        without_angles += one.counts.without_angles;
        added.push_back(one.record);
        model.add(std::move(one.record));
    }
    for (const auto& path : s.removed) {
        run.files()->reads("-remove", path, {});
        model.remove(read_model(path), path);
    }
    if (dry) {
        if (!corrects) tool::end_of_plan(run);
        assume(model);
    } else {
        model.fit(without_angles);
        report_model(run, model);
        if (!s.model.empty()) write_model(run, s, model, added);
    }
    if (corrects) return correct(run, src, model, terrain, kept, 0.4);
    report_pixels(run, hsi::name_of(src.scene->path()), fit.counts);
    return true;
}

/// Joins models without reading scenes.
void join_models(tool::Run& run, const Settings& s, Before& before) {
    tool::end_of_plan(run, [&] { run.print("no pixel is read"); });
    auto& model = *before.model;
    for (const auto& path : s.removed) {
        run.files()->reads("-remove", path, {});
        model.remove(read_model(path), path);
    }
    model.binning = s.binning;
    model.created_by = tool::origin_of(run).created_by;
    model.fit();
    report_model(run, model);
    write_model(run, s, model, {});
}

/// Corrects src with the given model (-apply).
bool apply_model(tool::Run& run, const Settings& s, Opened& src, const Model& model) {
    src.geometry = open_geometry(run, s.angles, *src.scene, s.geometry,
                                 run.options().source.window.has_value(), needed_angles(model.method));
    check_destination(run, *src.scene, model);
    const std::string name = hsi::name_of(src.scene->path());
    src.geometry.read(run);
    write_angles(run, s, src);
    const auto kept = run.keep_if_slow(src.scene);
    Terrain terrain;
    double share = 1;
    if (model.hytools) {
        terrain = model.hytools->terrain;
    } else if (const SceneRecord* known = model.find(name);
               known != nullptr && known->grid.same(src.geometry.grid)) {
        terrain = known->terrain;
    } else if (model.method.fits_topography()) {
        PixelCounts counts;
        share = 0.6;
        terrain = fit_terrain(run, name, src, model.method, kept, 1 - share, counts);
        if (counts.valid == 0 && !run.options().dry_run) return false;
        if (known == nullptr)
            run.note("The model does not include " + name +
                     ", so the terrain coefficients are fitted to the pixels of " + name);
        else
            run.warn("the model includes another scene with the name " + name +
                     ", but with another size or position: the terrain coefficients are fitted to the pixels "
                     "of this scene");
    }
    return correct(run, src, model, terrain, kept, share);
}

void run_normalise(tool::Run& run, Settings s) {
    run.report()["device"] = tool::describe_devices(run, {}, nullptr);
    if (!s.model.empty())
        raster::check_text_output(
            {"-model", s.model, run.options().destination.overwrite || s.append, run.files()});
    Opened src;
    if (!s.applied.empty()) {
        src.scene = run.open_source();
        const Model model = read_applied(run, s.applied, src.scene);
        src.mask = run.masks_statistics() ? run.mask() : nullptr;
        if (!tool::attempt(run, {}, [&](bool) { return apply_model(run, s, src, model); }))
            throw tool::no_valid_pixel(*src.scene);
        return;
    }
    s.merged = tools::listed_names(run, "-merge", s.merged);
    s.removed = tools::listed_names(run, "-remove", s.removed);
    const auto with = tools::listed_pairs(run, "-with", s.with);
    Before before = read_before(run, s);
    before.settle(s);
    if (!s.has_source) return join_models(run, s, before);
    src.scene = run.open_source();
    tool::check_spectrum(*src.scene, "Normalisation");
    src.mask = run.masks_statistics() ? run.mask() : nullptr;
    if (before.model)
        src.scene = tool::match_scene(run, src.scene, src.scene->path(), before.name, *before.model);
    if (!tool::attempt(run, {tool::banded(src.scene)},
                       [&](bool) { return fit_and_correct(run, s, src, with, before); }))
        throw tool::no_valid_pixel(*src.scene);
}

void declare_fit(tool::Builder& args, Settings& s) {
    args.choice<Topography>(
        "topography", s.method.topography, "How terrain is corrected",
        {{"none", Topography::none},
         {"cosine", Topography::cosine, "cosine of the solar zenith over cos i"},
         {"c", Topography::c, "cosine with C, fitted to each band"},
         {"scs", Topography::scs, "sun-canopy-sensor"},
         {"scs+c", Topography::scs_c, "sun-canopy-sensor with C, fitted to each band"},
         {"minnaert", Topography::minnaert,
          "cosine times a factor G that limits it where the sun is low (Richter)"},
         {"minnaert-g", Topography::minnaert_g,
          "the factor G of minnaert alone, for scenes that were already corrected with cosine"}});
    args.choice<Brdf>("brdf", s.method.brdf, "How BRDF is corrected",
                      {{"none", Brdf::none},
                       {"universal", Brdf::universal, "one set of coefficients for all pixels"},
                       {"flex", Brdf::flex, "coefficients by bins of NDVI"}});
    args.choice<Volume>("volume", s.method.volume, "The kernel of volume scattering",
                        {{"ross-thick", Volume::ross_thick}, {"ross-thin", Volume::ross_thin}});
    args.choice<Geometric>("geometric", s.method.geometric, "The kernel of geometric scattering",
                           {{"li-sparse", Geometric::li_sparse},
                            {"li-sparse-r", Geometric::li_sparse_r},
                            {"li-dense", Geometric::li_dense},
                            {"li-dense-r", Geometric::li_dense_r}});
    constexpr double least_crown = 0.1, most_crown = 10;
    auto& b_r = args.option("b-r", s.b_r, "Shape of crowns: vertical over horizontal radius");
    b_r.between(least_crown, most_crown).defaults_to("2.5 for li-dense and li-dense-r, else 1");
    args.option("h-b", s.method.h_b, "Shape of crowns: height over vertical radius")
        .between(least_crown, most_crown);
    args.option("ndvi", s.ndvi,
                "Fit and correct pixels with NDVI in this range, in hundredths (first value excluded)")
        .between(-1, 1)
        .shown_as("MIN MAX")
        .defaults_to("0.05 1");
    args.option("bins", s.bins_text,
                "With -brdf flex: number of NDVI bins with equal counts (1 to 95), or the edges of the bins")
        .shown_as("N|E0,E1,..");
    args.option("min-pixels", s.binning.min_pixels, "Leave out bins with fewer pixels").from(10);
    args.option("min-slope", s.method.min_slope, "Minimum slope of the pixels in the topographic fit")
        .between(0, 45)
        .in_unit("degrees");
    args.option("min-cos-i", s.method.min_cos_i,
                "Minimum cosine of the angle between sun and terrain for the topographic correction")
        .between(0.01, 1);
    args.option("solar-zenith", s.zenith_text,
                "Normalise BRDF to this solar zenith, 0 to 80 degrees; mean: of all fitted pixels")
        .shown_as("mean|V");
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source().required = false; // -merge works without src
    args.add_mask("the fits", true);
    // -model works without dst
    args.add_destination("The corrected scene; it appears when it is complete").required = false;
    args.input("geometry", s.geometry, Content::raster,
               "Angles of the pixels: an OBS file of AVIRIS, AVIRIS-3 or EMIT, a NEON or PRISMA product, the "
               "XML of EnMAP")
        .defaults_to("src");
    args.option("angle", s.angle_texts,
                "One angle (solar_zenith, solar_azimuth, sensor_zenith, sensor_azimuth, slope, aspect): "
                "degrees or raster")
        .shown_as("NAME=V|FILE");
    args.input("dem", s.angles.dem, Content::raster,
               "Slope and aspect from this DEM; heights are in metres unless the file states feet");
    args.option("time", s.time,
                "Compute the sun's position at this time (UTC, 2022-08-28T10:19:16Z), or for the first "
                "and last line")
        .shown_as("T[/T2]");
    args.output("angles", s.angles_file, Content::raster, "Also write the used angles, one band per angle");
    declare_fit(args, s);
    args.output("model", s.model, Content::model, "Write the model to FILE (JSON)");
    args.flag("append", s.append, "Add to the scenes in the file of -model, if it exists");
    tools::add_pairs_option(args, s.with, "Also fit this scene and its file of angles (-: the scene itself)",
                            "SCENE GEOMETRY");
    for (auto* const argument :
         {&args.option("apply", s.applied,
                       "Correct with the model FILE, or HyTools' coefficients (one file for topography, one "
                       "for BRDF)"),
          &args.option("merge", s.merged, "Also add the scenes of the model FILE; @FILE: a list of models"),
          &args.option("remove", s.removed,
                       "Remove the scenes of the model FILE; @FILE: a list of models")}) {
        argument->role = tool::Role::input;
        argument->content = Content::model;
        argument->value_name = "FILE";
    }
    args.add_compute(false);
    args.check([&s](const tool::Call& call) { settle(s, call); });
    args.body([&s](tool::Run& run) { run_normalise(run, s); });
}

} // namespace
} // namespace normalise_tool

namespace tools {

extern constinit const tool::Definition normalise{
    "normalise",
    "Topographic and BRDF normalisation",
    "Removes the effects of terrain, viewing angle and sun from surface reflectance, in one scene or a "
    "campaign of flight lines: topographic correction, and BRDF correction by kernels whose coefficients "
    "depend on NDVI.",
    {{"gdal_hsi_normalise -geometry line1_obs line1.img line1_flat.img", "One flight line"},
     {"gdal_hsi_normalise -geometry line1_obs -with line2.img line2_obs -model lines.json line1.img",
      "A model of two flight lines"},
     {"gdal_hsi_normalise -apply lines.json -geometry line2_obs line2.img line2_flat.img",
      "Correct one of them with this model"},
     {"gdal_hsi_normalise -geometry line3_obs -append -model lines.json line3.img", "A third line added"}},
    "",
    normalise_tool::declare};

} // namespace tools
} // namespace hsi
