// SPDX-License-Identifier: MIT
// gdal_hsi_pca: transforms a scene to principal components. Two passes: mean and covariance of the valid
// pixels, then the projection. With a saved model it takes one pass, forward or inverse.
#include "core/error.h"
#include "pca/pca.h"
#include "raster/raster_sink.h"
#include "raster/text_input.h"
#include "shared/components.h"
#include "shared/scene_statistics.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace pca_tool {

struct Settings : tools::ProjectionSettings {
    bool scale = false, whiten = false;
    std::string statistics;
};

raster::OutputSpec component_spec(const stream::CubeShape& scene, int components, bool holes,
                                  const pca::Model* model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, components};
    spec.holes = holes;
    for (int k = 0; k < components; ++k) {
        raster::BandSpec band{"PC" + std::to_string(k + 1), {}};
        if (model) {
            char text[32];
            std::snprintf(text, sizeof text, "%.17g", model->eigenvalues[static_cast<size_t>(k)]);
            band.metadata["explained_variance"] = text;
            std::snprintf(text, sizeof text, "%.9g", model->explained(k));
            band.metadata["explained_variance_ratio"] = text;
        }
        spec.bands.push_back(band);
    }
    if (model) {
        spec.metadata["HSI_PCA_SCALE"] = model->scale.empty() ? "NO" : "YES";
        spec.metadata["HSI_PCA_WHITEN"] = model->whiten ? "YES" : "NO";
    }
    return spec;
}

void run_fit(tool::Run& run, const Settings& settings, tools::PcaComputing& computing,
             std::shared_ptr<raster::RasterSource> source) {
    std::optional<tools::GivenStatistics> given;
    if (!settings.statistics.empty()) {
        given = tools::read_statistics(run, settings.statistics, source);
        source = given->source;
        tools::check_values(run, *given);
    }
    tool::Scene scene(run, source, "PCA");
    int nc = tools::component_count(settings.components, settings.components_given, scene.shape().bands);
    tools::check_output(run, component_spec(scene.shape(), nc, true, nullptr), *source);
    const auto model_output =
        run.text_output("-model", settings.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    if (raster::is_virtual(run.options().destination)) scene.read_once();
    const auto statistics =
        given ? given->moments
              : tools::scan_scene(scene, computing, stream::Statistics::covariance, "covariance", 0.5);
    const int bands = scene.shape().bands;
    nc = tools::component_count(settings.components, settings.components_given, bands);
    const auto model =
        tools::fit_scene(scene, statistics, {nc, settings.scale, settings.whiten}, given ? &*given : nullptr);
    std::vector<int> all(static_cast<size_t>(bands));
    std::iota(all.begin(), all.end(), 0);
    tools::project_scene(scene, computing, pca::projection(model, nc, all, bands),
                         component_spec(scene.shape(), nc, given || statistics.invalid_pixels > 0, &model));
    if (!settings.model_file.empty()) raster::write_text_output(model_output, pca::to_json(model));
    tools::print_components(run, model);
}

void run_pca(tool::Run& run, const Settings& settings) {
    pca::Model model;
    if (!settings.apply_file.empty())
        model =
            pca::from_json(raster::read_input(settings.apply_file, largest_file::model), settings.apply_file);
    const auto source = run.open_source();
    const int made = settings.inverse ? model.band_count() : settings.components;
    const auto work = tools::projection_work(source->shape(), made,
                                             settings.apply_file.empty() && settings.statistics.empty());
    tools::PcaComputing computing(run, "pca", tool::choose_devices(run, "pca", work), pca::simd_target(),
                                  pca::make_cpu_backend);
    if (settings.apply_file.empty())
        run_fit(run, settings, computing, source);
    else if (settings.inverse)
        tools::invert_model(run, settings, computing, source, model, "PC");
    else
        tools::apply_model(
            run, settings, computing, source, model,
            [&](const stream::CubeShape& shape, int nc) { return component_spec(shape, nc, true, &model); });
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the statistics", true);
    args.add_destination();
    args.computes_dst();
    args.add_compute();
    tools::add_component_count_option(args, s);
    args.flag("scale", s.scale,
              "Divide every band by its standard deviation first: eigenvectors of the correlation matrix");
    args.flag("whiten", s.whiten, "Divide every component by its standard deviation");
    tools::add_model_options(args, s);
    tools::add_statistics_option(args, s.statistics);
    args.exclusive("statistics", "apply");
    args.check([&s](const tool::CommonOptions&) {
        if (!s.apply_file.empty() && (s.scale || s.whiten))
            throw UsageError(tool::cannot_be_used_with(std::string(s.scale ? "-scale" : "-whiten"), "-apply"),
                             "The model states whether bands are scaled and components whitened.");
    });
    args.body([&s](tool::Run& run) { run_pca(run, s); });
}

} // namespace pca_tool
} // namespace

namespace tools {

extern constinit const tool::Definition pca{
    "pca",
    "Principal components (PCA)",
    "Principal components (PCA): projects every spectrum onto the directions of greatest "
    "variance of the scene's valid pixels. The model can be saved, applied to other scenes, "
    "and used to convert components back to spectra.",
    {{"gdal_hsi_pca scene.img pcs.tif", "Seven components"},
     {"gdal_hsi_pca -nc 3 -of VRT scene.img pcs.vrt", "Components that are computed when they are displayed"},
     {"gdal_hsi_pca -nc 10 -model pca.json june.img june_pcs.tif", "Keep the model"},
     {"gdal_hsi_pca -apply pca.json july.img july_pcs.tif", "Use it on another date"},
     {"gdal_hsi_pca -statistics lines.stat line2.img line2_pcs.tif",
      "By the statistics of all lines (gdal_hsi_statistics), in one pass"},
     {"gdal_hsi_pca -apply pca.json -inverse june_pcs.tif june_smooth.img -of ENVI",
      "Spectra without the noise of the last components"}},
    "",
    pca_tool::declare};

} // namespace tools
} // namespace hsi
