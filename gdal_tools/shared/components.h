// SPDX-License-Identifier: MIT
// The components of a scene by PCA or MNF: statistics and model, the projection into dst or into planes, and
// the use of a saved model, forward and inverse.
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

/// Returns the work of statistics (with this cost per pixel and pair of bands) and projection, or of the
/// projection alone.
tool::Work projection_work(const stream::CubeShape& scene, int components, bool scan,
                           const Cost& statistics = pca::cost::covariance);

/// Returns -nc as given, or by default 7, at most the number of bands. Throws UsageError that names the
/// range.
int component_count(int asked, bool given, int bands);

/// Returns a pass whose device memory excludes the data that the backend keeps there.
stream::PassOptions without_held_memory(PcaComputing& computing, stream::PassOptions pass);

/// Returns the scan of the backend. A device keeps the values for the projection if it can and if the scene
/// is not already `on_device`.
std::unique_ptr<stream::StatisticsScan> make_scan(const tool::Run& run, PcaComputing& computing,
                                                  const stream::CubeShape& scene, stream::Statistics what,
                                                  bool on_device = false);

/// Returns a function for tool::Scene::watch_values() that finds the extremes of a scene on a device.
/// `computing` must outlive it.
stream::RangeWatch::FindExtremes find_extremes_with(const tool::Scene& scene, PcaComputing& computing);

/// Makes one pass `name` over the scene, which also finds the extremes of its bands.
stream::SceneStatistics scan_scene(tool::Scene& scene, PcaComputing& computing, stream::Statistics what,
                                   const char* name, double share);

/// Returns the model of a scanned scene, or of `given` statistics with their source and extremes. Adds the
/// explained variance to the report.
pca::Model fit_scene(const tool::Scene& scene, const stream::SceneStatistics& statistics,
                     const pca::FitOptions& options, const GivenStatistics* given = nullptr);

/// Returns the MNF of a scanned scene (with differences), and gives notes to the user. `kept` gets the
/// model's bands among the scene's. minimum, maximum: of the scene's bands, or empty if unknown.
mnf::Model fit_noise_scene(const tool::Scene& scene, const stream::SceneStatistics& moments,
                           const std::vector<float>& minimum, const std::vector<float>& maximum,
                           std::vector<int>& kept);

/// Prints the explained variance for users, once the progress bar is complete.
void print_components(tool::Run& run, const pca::Model& model);

// --- Into dst: gdal_hsi_pca and gdal_hsi_mnf
// ----------------------------------------------------------

struct ProjectionSettings {
    int components = 7;
    bool components_given = false;
    bool inverse = false, any_wavelengths = false, any_scale = false;
    std::string model_file, apply_file;
};

/// Adds -nc.
void add_component_count_option(tool::Builder& args, ProjectionSettings& s);

/// Adds -model, -apply, -inverse, -any-wavelengths, -any-scale, and the checks of these and of -nc.
void add_model_options(tool::Builder& args, ProjectionSettings& s);

/// Makes checks before the work begins.
void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like);

/// Writes the transform into dst tile by tile in one pass, or writes dst as a VRT that computes it.
void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share);

/// Does the same for a scene that a scan of the backend has read, from its current memory; half of the run.
void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec);

/// Checks that bands may be the components `name` 1, 2 .. ("MNF"): they have no wavelengths, and a name like
/// a component's must be the name for that index. Throws Error that names the band.
void check_component_bands(const raster::RasterSource& source, const std::string& name);

/// Returns the output with the model's bands, reconstructed from components.
raster::OutputSpec model_band_spec(const stream::CubeShape& scene, const model::ModelBands& model);

/// Does -apply with a model that has `components`, and for which rescale(), projection() and reconstruction()
/// exist; make_spec(shape, nc) describes dst.
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

/// Does -apply -inverse; `name` is the components' name.
template <class Model>
void invert_model(tool::Run& run, const ProjectionSettings& settings, PcaComputing& computing,
                  std::shared_ptr<raster::RasterSource> source, const Model& model, const char* name) {
    const int nc = settings.components_given ? settings.components : source->shape().bands;
    const int most = std::min(model.components, source->shape().bands);
    if (nc < 1 || nc > most)
        throw UsageError("-nc: " + counted(nc, "component") + " cannot be converted back: " + source->path() +
                             " has " + counted(source->shape().bands, "band") + ", the model has " +
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

// --- Into planes: gdal_hsi_eadp and gdal_hsi_profile
// --------------------------------------------------

struct ComponentRequest {
    int components = 7;
    bool given = false;                          ///< -nc was given, and is not reduced to the number of bands
    uint64_t most = 0;                           ///< larger planes are stored in a temporary file
    std::string folder;                          ///< for this file
    double share = 0.3;                          ///< of the progress
    const GivenStatistics* statistics = nullptr; ///< instead of the scene's statistics; null: those of the
                                                 ///< scene
};

struct ComponentPlanes {
    std::unique_ptr<stream::PlaneStore> planes; ///< NaN if a pixel is invalid
    pca::Model model;
    int components() const { return planes->shape().bands; }
    uint64_t held_bytes() const { return planes->in_memory() ? planes->shape().float_bytes() : 0; }
};

/// Computes covariance and projection. Bands without values are left out of the scene; its copy in memory is
/// released.
ComponentPlanes project_into_planes(tool::Scene& scene, PcaComputing& computing,
                                    const ComponentRequest& request);

/// Returns "PC1", "PC2" ...
std::vector<std::string> component_names(int components);

} // namespace hsi::tools
