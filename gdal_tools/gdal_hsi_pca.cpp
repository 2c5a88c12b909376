// SPDX-License-Identifier: MIT
// gdal_hsi_pca: principal components, scene to scene. Two passes: mean and covariance of the valid pixels,
// then the projection; one pass with a saved model, forward or back.
#include "catalogue.h"
#include "core/error.h"
#include "pca_outputs.h"
#include "pca_stage.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {

using tool::Content;

struct Settings {
    int components = 7;
    bool components_given = false;
    bool scale = false, whiten = false, inverse = false, any_wavelengths = false, any_scale = false;
    std::string model_file, apply_file;
};

/// One pass: the transform, tile by tile, into dst.
void run_transform(tool::Run& run, tools::PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share) {
    if (raster::RasterSink::is_virtual(run.options().destination))
        return tools::write_virtual_transform(run, like, transform, spec);
    const auto operation = computing->make_transform(std::move(transform));
    const auto pass = computing.pass(name, share);
    if (run.options().dry_run) return tool::print_plan(run, cube, *operation, pass);
    const auto sink = raster::RasterSink::create(run.options().destination, spec, &like);
    run.add_pass(stream::run_pass(cube, *operation, {sink.get()}, pass));
    sink->commit();
}

void run_apply(tool::Run& run, const Settings& settings, tools::PcaComputing& computing,
               std::shared_ptr<raster::RasterSource> source, pca::Model model) {
    const int nc = settings.components_given ? settings.components : model.components;
    if (nc < 1 || nc > model.components)
        throw UsageError("-nc: " + std::to_string(nc) + " components are not in the model " +
                             settings.apply_file,
                         "Use a number from 1 to " + std::to_string(model.components) + ".");
    const auto [scene, matched] =
        tool::match_source(run, source, settings.apply_file, model, settings.any_wavelengths);
    source = scene;
    const auto spec = tools::component_spec(source->shape(), nc, true, &model);
    tools::check_output(run, spec, *source);
    const auto values = tool::value_scale(*source, matched);
    pca::rescale(model, tool::compare_scales(run, settings.apply_file, model, values, settings.any_scale),
                 values);
    const tool::RangeCheck check(*source, model, matched);
    run_transform(run, computing, check.source(), *source,
                  pca::projection(model, nc, matched, source->shape().bands), spec, "projection", 1.0);
    check.tell(run);
}

void run_inverse(tool::Run& run, const Settings& settings, tools::PcaComputing& computing,
                 std::shared_ptr<raster::RasterSource> source, const pca::Model& model) {
    const int nc = settings.components_given ? settings.components : source->shape().bands;
    const int most = std::min(model.components, source->shape().bands);
    if (nc < 1 || nc > most)
        throw UsageError("-nc: " + std::to_string(nc) + " components cannot be turned back: " +
                             source->path() + " has " + std::to_string(source->shape().bands) +
                             " bands, the model " + std::to_string(model.components) + " components",
                         "Use a number from 1 to " + std::to_string(most) + ".");
    std::vector<int> first(static_cast<size_t>(nc));
    std::iota(first.begin(), first.end(), 0);
    source = tool::only_bands(source, first);
    const auto spec = tools::band_spec(source->shape(), model);
    tools::check_output(run, spec, *source);
    run_transform(run, computing, *source, *source, pca::reconstruction(model, nc), spec, "reconstruction",
                  1.0);
}

void run_fit(tool::Run& run, const Settings& settings, tools::PcaComputing& computing,
             const std::shared_ptr<raster::RasterSource>& source) {
    tool::Scene scene(run, source, "PCA");
    int nc = tools::component_count(settings.components, settings.components_given, scene.shape().bands);
    tools::check_output(run, tools::component_spec(scene.shape(), nc, true, nullptr), *source);
    const auto model_output =
        run.text_output("-model", settings.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    if (run.options().dry_run) {
        tool::print_plan(run, *source, *computing->make_covariance(scene.shape(), computing.device_memory()),
                         tools::held_apart(computing, computing.pass("covariance", 0.5)));
        pca::Transform t;
        t.inputs = scene.shape().bands;
        t.outputs = nc;
        t.matrix.resize(static_cast<size_t>(t.inputs) * static_cast<size_t>(nc));
        t.offset.resize(static_cast<size_t>(nc));
        return run_transform(run, computing, *source, *source, std::move(t), {}, "projection", 0.5);
    }
    const auto statistics = tools::scan_scene(scene, computing, 0.5);
    const int bands = scene.shape().bands;
    nc = tools::component_count(settings.components, settings.components_given, bands);
    const auto model = tools::fit_scene(scene, statistics, {nc, settings.scale, settings.whiten});
    std::vector<int> all(static_cast<size_t>(bands));
    std::iota(all.begin(), all.end(), 0);
    auto transform = pca::projection(model, nc, all, bands);
    const auto spec = tools::component_spec(scene.shape(), nc, statistics.invalid_pixels > 0, &model);
    if (raster::RasterSink::is_virtual(run.options().destination)) {
        tools::write_virtual_transform(run, *scene.raster(), transform, spec);
    } else {
        const auto sink = raster::RasterSink::create(run.options().destination, spec, scene.raster().get());
        run.add_pass(tools::transform_scene(scene, computing, std::move(transform), *sink,
                                            computing.pass("projection", 0.5)));
        sink->commit();
    }
    raster::write_text_output(model_output, pca::to_json(model));
    tools::print_components(run, model);
}

void run_pca(tool::Run& run, const Settings& settings) {
    pca::Model model;
    if (!settings.apply_file.empty()) model = pca::load_model(settings.apply_file);
    const auto source = run.open_source();
    const int made = settings.inverse ? model.band_count() : settings.components;
    const auto work = tools::pca_work(source->shape(), made, settings.apply_file.empty());
    tools::PcaComputing computing(run, "pca", tool::choose_devices(run, "pca", work), pca::simd_target(),
                                  pca::make_cpu_backend);
    if (settings.apply_file.empty())
        run_fit(run, settings, computing, source);
    else if (settings.inverse)
        run_inverse(run, settings, computing, source, model);
    else
        run_apply(run, settings, computing, source, model);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_destination();
    call.add_compute();
    call.option("nc", s.components,
                "Number of components, 1 to the number of bands; with -apply at most as many as the model "
                "has, and all of them "
                "by default");
    call.flag("scale", s.scale,
              "Divide every band by its standard deviation first: eigenvectors of the correlation matrix");
    call.flag("whiten", s.whiten, "Divide every component by its standard deviation");
    call.output("model", s.model_file, Content::model, "Also save the model to FILE (JSON)");
    call.input(
        "apply", s.apply_file, Content::model,
        "Use the saved model FILE instead of the scene's own statistics; bands are matched by wavelength");
    call.flag("inverse", s.inverse,
              "With -apply: src holds components, dst gets the model's bands, made from -nc of them");
    tool::add_any_wavelengths(call, s.any_wavelengths, "With -apply: ");
    tool::add_any_scale(call, s.any_scale, "With -apply: ");
    call.check([&s, &call](const tool::CommonOptions&) {
        s.components_given = call.given("nc");
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is no number of components",
                             "Use a number from 1 to the number of bands.");
        if (s.inverse && s.apply_file.empty())
            throw UsageError("-inverse needs the model that the components were made with",
                             "Name it with -apply FILE.");
        for (const auto& [name, on] :
             {std::pair("-any-wavelengths", s.any_wavelengths), std::pair("-any-scale", s.any_scale)})
            if (on && (s.apply_file.empty() || s.inverse))
                throw UsageError(std::string(name) +
                                 " has a meaning with -apply only, and none with -inverse");
        if (!s.apply_file.empty() && (s.scale || s.whiten))
            throw UsageError(std::string(s.scale ? "-scale" : "-whiten") + " does not go with -apply",
                             "The model says whether bands are scaled and components whitened.");
        if (!s.apply_file.empty() && !s.model_file.empty())
            throw UsageError("-model does not go with -apply: no new model is made",
                             "Leave one of them out.");
    });
    call.body([&s](tool::Run& run) { run_pca(run, s); });
}

} // namespace

const tool::Definition tools::pca{
    "pca",
    "Principal components (PCA)",
    "Principal components (PCA): projects every spectrum on the directions of greatest variance of "
    "the scene's valid pixels, and can save these directions, apply them to other scenes and turn "
    "components back into spectra.",
    {{"gdal_hsi_pca scene.img pcs.tif", "Seven components"},
     {"gdal_hsi_pca -nc 3 -of VRT scene.img pcs.vrt", "Components that are computed when they are looked at"},
     {"gdal_hsi_pca -nc 10 -model pca.json june.img june_pcs.tif", "Keep the model"},
     {"gdal_hsi_pca -apply pca.json july.img july_pcs.tif", "Use it on another date"},
     {"gdal_hsi_pca -apply pca.json -inverse june_pcs.tif june_smooth.img -of ENVI",
      "Spectra without the noise of the last components"}},
    "",
    declare};

} // namespace hsi
