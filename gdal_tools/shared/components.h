// SPDX-License-Identifier: MIT
// A scene and its components, by PCA or MNF: statistics and model, the projection into dst or into planes,
// and the use of a saved model, forward and back.
#pragma once

#include "core/counted.h"
#include "core/error.h"
#include "mnf/mnf.h"
#include "model/classes.h"
#include "pca/pca.h"
#include "raster/raster_sink.h"
#include "shared/scene_statistics.h"
#include "stream/plane_store.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

using PcaComputing = tool::Computing<pca::Backend>;

/// Statistics, which cost so much a pixel and pair of bands, and projection, or the projection alone.
tool::Work projection_work(const stream::CubeShape& scene, int components, bool scan,
                           const Cost& statistics = pca::cost::covariance);

/// -nc as given, or 7 and no more than there are; throws UsageError naming the range.
int component_count(int asked, bool given, int bands);

/// A pass's device memory without what the backend keeps there.
stream::PassOptions without_held_memory(PcaComputing& computing, stream::PassOptions pass);

/// The scan of the backend; a device keeps the values for the projection if it can and the scene is not
/// already `on_device`.
std::unique_ptr<stream::StatisticsScan> make_scan(const tool::Run& run, PcaComputing& computing,
                                                  const stream::CubeShape& scene, stream::Statistics what,
                                                  bool on_device = false);

/// For tool::Scene::watch_values(): extremes of a scene on a device are found there. `computing` must outlive
/// it.
stream::RangeWatch::FindExtremes find_extremes_with(const tool::Scene& scene, PcaComputing& computing);

/// One pass `name` over the scene; it also finds the extremes of its bands.
stream::SceneStatistics scan_scene(tool::Scene& scene, PcaComputing& computing, stream::Statistics what,
                                   const char* name, double share);

/// The model of a scanned scene, or of `given` statistics with their source and extremes; explained variance
/// goes to the report.
pca::Model fit_scene(const tool::Scene& scene, const stream::SceneStatistics& statistics,
                     const pca::FitOptions& options, const GivenStatistics* given = nullptr);

/// MNF of a scanned scene (with differences), with notes for the user; `kept` are the model's bands among the
/// scene's. minimum, maximum: of the scene's bands, or empty if unknown.
mnf::Model fit_noise_scene(const tool::Scene& scene, const stream::SceneStatistics& moments,
                           const std::vector<float>& minimum, const std::vector<float>& maximum,
                           std::vector<int>& kept);

/// The explained variance for people, once the progress bar is complete.
void print_components(tool::Run& run, const pca::Model& model);

// Into dst: gdal_hsi_pca and gdal_hsi_mnf
// ----------------------------------------------------------------------------------------------------------

struct ProjectionSettings {
    int components = 7;
    bool components_given = false;
    bool inverse = false, any_wavelengths = false, any_scale = false;
    std::string model_file, apply_file;
};

/// -nc
void add_component_count_option(tool::Builder& args, ProjectionSettings& s);

/// -model, -apply, -inverse, -any-wavelengths, -any-scale, and the checks of these and of -nc.
void add_model_options(tool::Builder& args, ProjectionSettings& s);

/// Checks before any work.
void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like);

/// One pass: the transform, tile by tile, into dst; or dst as a VRT that does it.
void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share);

/// The same of a scene that a scan of the backend has read, from where it is now; half of the run.
void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec);

/// Checks that bands may be the components `name` 1, 2 .. ("MNF"): they have no wavelengths, and a name like
/// a component's is the one for that place. Throws Error naming the band.
void check_component_bands(const raster::RasterSource& source, const std::string& name);

/// The model's bands, made of components again.
raster::OutputSpec model_band_spec(const stream::CubeShape& scene, const model::ModelBands& model);

/// -apply of a model that has `components`, and for which rescale(), projection() and reconstruction() are
/// found; make_spec(shape, nc) describes dst.
template <class Model, class MakeSpec>
void apply_model(tool::Run& run, const ProjectionSettings& settings, PcaComputing& computing,
                 std::shared_ptr<raster::RasterSource> source, Model model, MakeSpec make_spec) {
    const int nc = settings.components_given ? settings.components : model.components;
    if (nc < 1 || nc > model.components)
        throw UsageError("-nc: " + counted(nc, "component is", "components are") + " not in the model " +
                             settings.apply_file,
                         "Use a number from 1 to " + std::to_string(model.components) + ".");
    const auto [scene, matched] =
        tool::match_source(run, source, settings.apply_file, model, settings.any_wavelengths);
    source = scene;
    const raster::OutputSpec spec = make_spec(source->shape(), nc);
    check_output(run, spec, *source);
    const auto values = tool::value_scale(*source, matched);
    rescale(model, tool::compare_scales(run, settings.apply_file, model, values, settings.any_scale), values);
    const tool::RangeCheck check(*source, model, matched);
    run_transform(run, computing, check.source(), *source,
                  projection(model, nc, matched, source->shape().bands), spec, "projection", 1.0);
    check.tell(run);
}

/// -apply -inverse; `name` is the components' name.
template <class Model>
void invert_model(tool::Run& run, const ProjectionSettings& settings, PcaComputing& computing,
                  std::shared_ptr<raster::RasterSource> source, const Model& model, const char* name) {
    const int nc = settings.components_given ? settings.components : source->shape().bands;
    const int most = std::min(model.components, source->shape().bands);
    if (nc < 1 || nc > most)
        throw UsageError("-nc: " + counted(nc, "component") + " cannot be turned back: " + source->path() +
                             " has " + counted(source->shape().bands, "band") + ", the model " +
                             counted(model.components, "component"),
                         "Use a number from 1 to " + std::to_string(most) + ".");
    std::vector<int> first(static_cast<size_t>(nc));
    std::iota(first.begin(), first.end(), 0);
    source = tool::only_bands(source, first);
    check_component_bands(*source, name);
    const auto spec = model_band_spec(source->shape(), model);
    check_output(run, spec, *source);
    run_transform(run, computing, *source, *source, reconstruction(model, nc), spec, "reconstruction", 1.0);
}

// Into planes: gdal_hsi_eadp and gdal_hsi_profile
// ----------------------------------------------------------------------------------------------------------

struct ComponentRequest {
    int components = 7;
    bool given = false;                          ///< -nc was, and is not cut down to the number of bands
    uint64_t most = 0;                           ///< planes of more bytes go into a temporary file
    std::string folder;                          ///< for this file
    double share = 0.3;                          ///< of the progress
    const GivenStatistics* statistics = nullptr; ///< instead of those of the scene; null: these
};

struct ComponentPlanes {
    std::unique_ptr<stream::PlaneStore> planes; ///< NaN where a pixel is invalid
    pca::Model model;
    int components() const { return planes->shape().bands; }
    uint64_t held_bytes() const { return planes->in_memory() ? planes->shape().float_bytes() : 0; }
};

/// Covariance and projection. Bands without values are left out of the scene; its copy in memory is released.
ComponentPlanes project_into_planes(tool::Scene& scene, PcaComputing& computing,
                                    const ComponentRequest& request);

/// "PC1", "PC2" ...
std::vector<std::string> component_names(int components);

} // namespace hsi::tools
