// SPDX-License-Identifier: MIT
// gdal_hsi_mnf: minimum noise fraction transform of a scene. The first pass computes the covariances of the
// valid pixels and of the differences between neighbours. The second pass projects the pixels. With a saved
// model, the forward or inverse transform takes one pass.
#include "core/counted.h"
#include "core/error.h"
#include "mnf/mnf.h"
#include "pca/pca.h"
#include "raster/raster_sink.h"
#include "raster/text_input.h"
#include "shared/components.h"
#include "shared/scene_statistics.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace mnf_tool {

struct Settings : tools::ProjectionSettings {
    std::string statistics;
};

raster::OutputSpec component_spec(const stream::CubeShape& scene, int components, bool holes,
                                  const mnf::Model* model) {
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines, components};
    spec.holes = holes;
    for (int k = 0; k < components; ++k) {
        raster::BandSpec band{"MNF" + std::to_string(k + 1), {}};
        if (model) {
            char text[32];
            std::snprintf(text, sizeof text, "%.17g", model->snr(k));
            band.metadata["snr"] = text;
        }
        spec.bands.push_back(band);
    }
    if (model) spec.metadata["HSI_MNF_REGULARISED"] = model->regularised ? "YES" : "NO";
    return spec;
}

/// Prints the signal-to-noise ratios below the complete progress bar.
void print_ratios(tool::Run& run, const mnf::Model& model, int components) {
    for (int k = 0; k < components; ++k) {
        char text[128];
        std::snprintf(text, sizeof text, "MNF%d: eigenvalue %.8g, snr %.8g", k + 1,
                      model.eigenvalues[static_cast<size_t>(k)], model.snr(k));
        run.note(text);
    }
}

/// Returns the number of components. Without -nc: 7, or the number of bands with noise (`kept`) if it is
/// smaller.
int components_of(const Settings& s, int bands, int kept) {
    if (!s.components_given) return std::min(s.components, kept);
    if (s.components > kept)
        throw UsageError("-nc: " + counted(s.components, "component") + " cannot be made from " +
                             counted(kept, "band") + " with noise (of " + std::to_string(bands) + ")",
                         "Use a number from 1 to " + std::to_string(kept) + ".");
    return s.components;
}

void run_fit(tool::Run& run, const Settings& settings, tools::PcaComputing& computing,
             std::shared_ptr<raster::RasterSource> source) {
    std::optional<tools::GivenStatistics> given;
    if (!settings.statistics.empty()) {
        given = tools::read_statistics(run, settings.statistics, source);
        source = given->source;
        tools::check_values(run, *given);
    }
    tool::Scene scene(run, source, "MNF");
    const int most =
        tools::component_count(settings.components, settings.components_given, scene.shape().bands);
    tools::check_output(run, component_spec(scene.shape(), most, true, nullptr), *source);
    const auto model_output =
        run.text_output("-model", settings.model_file, run.options().destination.overwrite);
    raster::check_text_output(model_output);
    if (raster::is_virtual(run.options().destination)) scene.read_once();
    const auto moments =
        given ? given->moments
              : tools::scan_scene(scene, computing, stream::Statistics::differences, "covariances", 0.5);
    std::vector<int> kept;
    const auto model = tools::fit_noise_scene(scene, moments, given ? given->minimum : scene.minimum(),
                                              given ? given->maximum : scene.maximum(), kept);
    const int nc = components_of(settings, scene.shape().bands, model.components);
    for (int k = 0; k < model.components; ++k)
        run.report()["snr"].push_back(model.snr(k));
    tools::project_scene(scene, computing, mnf::projection(model, nc, kept, scene.shape().bands),
                         component_spec(scene.shape(), nc, given || moments.invalid_pixels > 0, &model));
    if (!settings.model_file.empty()) raster::write_text_output(model_output, mnf::to_json(model));
    print_ratios(run, model, nc);
}

void run_mnf(tool::Run& run, const Settings& settings) {
    mnf::Model model;
    if (!settings.apply_file.empty())
        model =
            mnf::from_json(raster::read_input(settings.apply_file, largest_file::model), settings.apply_file);
    const auto source = run.open_source();
    const int made = settings.inverse ? model.band_count() : settings.components;
    const auto work = tools::projection_work(source->shape(), made,
                                             settings.apply_file.empty() && settings.statistics.empty(),
                                             mnf::cost::noise_and_signal);
    tools::PcaComputing computing(run, "pca", tool::choose_devices(run, "pca", work), pca::simd_target(),
                                  pca::make_cpu_backend);
    if (settings.apply_file.empty())
        run_fit(run, settings, computing, source);
    else if (settings.inverse)
        tools::invert_model(run, settings, computing, source, model, "MNF");
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
    tools::add_model_options(args, s);
    tools::add_statistics_option(args, s.statistics);
    args.exclusive("statistics", "apply");
    args.body([&s](tool::Run& run) { run_mnf(run, s); });
}

} // namespace mnf_tool
} // namespace

namespace tools {

extern constinit const tool::Definition mnf{
    "mnf",
    "Minimum noise fraction (MNF)",
    "Minimum noise fraction (MNF): components in the order of their signal-to-noise ratio, "
    "each with a noise variance of 1. The noise is estimated from the differences of "
    "neighbours along the lines. The model can be saved, applied to other scenes, and used to"
    " convert components back to spectra without the noise of the other components.",
    {{"gdal_hsi_mnf scene.img mnf.tif", "Seven components"},
     {"gdal_hsi_mnf -nc 15 -model mnf.json scene.img mnf.tif", "Keep the model"},
     {"gdal_hsi_mnf -apply mnf.json -inverse mnf.tif smooth.img -of ENVI",
      "The scene without the noise of the other components"},
     {"gdal_hsi_mnf -apply mnf.json july.img july_mnf.tif", "Use it on another date"},
     {"gdal_hsi_mnf -statistics lines.stat line2.img line2_mnf.tif",
      "By the statistics of all lines (gdal_hsi_statistics), in one pass"},
     {"gdal_hsi_mnf -nc 3 -of VRT scene.img mnf.vrt",
      "Components that are computed when they are displayed"}},
    "",
    mnf_tool::declare};

} // namespace tools
} // namespace hsi
