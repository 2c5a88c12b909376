// SPDX-License-Identifier: MIT
// Computes the components of a scene by PCA or MNF: statistics, model, projection into dst or into planes,
// and the use of a saved model, forward or inverse.
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

/// Returns the work of the projection; with `scan`, also the work of the statistics. `statistics`: cost of
/// the statistics per pixel and pair of bands.
tool::Work projection_work(const stream::CubeShape& scene, int components, bool scan,
                           const Cost& statistics = pca::cost::covariance);

/// Returns the value of -nc. By default this is 7, or the number of bands if there are fewer. \throws
/// UsageError with the allowed range.
int component_count(int asked, bool given, int bands);

/// Returns the options of a pass, with the device memory reduced by the data that the backend keeps on the
/// device.
stream::PassOptions without_held_memory(PcaComputing& computing, stream::PassOptions pass);

/// Returns the operation of the backend that scans the scene. A device keeps the values for the projection if
/// they fit, unless the scene is already in device memory (`on_device`).
std::unique_ptr<stream::StatisticsScan> make_scan(const tool::Run& run, PcaComputing& computing,
                                                  const stream::CubeShape& scene, stream::Statistics what,
                                                  bool on_device = false);

/// Returns a function for tool::Scene::watch_values() that finds the minimum and maximum of each band of a
/// scene on a device. `computing` must outlive the function.
stream::RangeWatch::FindExtremes find_extremes_with(const tool::Scene& scene, PcaComputing& computing);

/// Makes one pass over the scene, which also finds the minimum and maximum of each band. name: name of the
/// pass.
stream::SceneStatistics scan_scene(tool::Scene& scene, PcaComputing& computing, stream::Statistics what,
                                   const char* name, double share);

/// Returns the PCA model of the statistics of a scanned scene, or of `given` if it is not null. Adds the
/// explained variance to the report.
pca::Model fit_scene(const tool::Scene& scene, const stream::SceneStatistics& statistics,
                     const pca::FitOptions& options, const GivenStatistics* given = nullptr);

/// Returns the MNF model of a scanned scene; the moments must include differences. Prints notes for the user.
/// `kept` is set to the indices of the model's bands in the scene. minimum, maximum: per band of the scene;
/// empty if unknown.
mnf::Model fit_noise_scene(const tool::Scene& scene, const stream::SceneStatistics& moments,
                           const std::vector<float>& minimum, const std::vector<float>& maximum,
                           std::vector<int>& kept);

/// Prints the explained variance for the user, after the progress bar is complete.
void print_components(tool::Run& run, const pca::Model& model);

// --- Output in dst: gdal_hsi_pca and gdal_hsi_mnf
// ----------------------------------------------------------

struct ProjectionSettings {
    int components = 7;
    bool components_given = false;
    bool inverse = false, any_wavelengths = false, any_scale = false;
    std::string model_file, apply_file;
};

/// Adds -nc.
void add_component_count_option(tool::Builder& args, ProjectionSettings& s);

/// Adds -model, -apply, -inverse, -any-wavelengths and -any-scale. Also adds checks of these options and of
/// -nc.
void add_model_options(tool::Builder& args, ProjectionSettings& s);

/// Checks the output before the work begins.
void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like);

/// Writes the transform to dst tile by tile in one pass. If dst is a VRT or an .hsi, writes the definition of
/// the transform.
void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share);

/// Writes the transform of a scene after make_scan()'s operation has scanned it. Reads the scene from device
/// memory, from host memory or from its file, wherever the scan has left it. The pass takes half of the
/// progress bar.
void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec);

/// Checks that the bands of `source` can be the components `name` 1, 2, ... (such as MNF1, MNF2). Bands with
/// wavelengths cannot. A band whose name is the name of a component must have the number of its position.
/// \throws Error with the name of the band.
void check_component_bands(const raster::RasterSource& source, const std::string& name);

/// Describes an output with the bands of the model, reconstructed from components.
raster::OutputSpec model_band_spec(const stream::CubeShape& scene, const model::ModelBands& model);

/// Applies a saved model (-apply). Model must have a member `components` and overloads of rescale(),
/// projection() and reconstruction(). make_spec(shape, nc) describes dst.
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

/// Applies a saved model inversely (-apply -inverse). `name`: name of the components, such as "PC".
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

// --- Output in planes: gdal_hsi_eadp and gdal_hsi_profile
// --------------------------------------------------

struct ComponentRequest {
    int components = 7;
    bool given = false; ///< true if -nc was given; it is then not reduced to the number of bands
    uint64_t most = 0;  ///< bytes; larger planes are stored in a temporary file
    std::string folder; ///< folder of the temporary file
    double share = 0.3; ///< part of the progress bar
    /// Statistics of -statistics; null: the statistics of the scene.
    const GivenStatistics* statistics = nullptr;
};

struct ComponentPlanes {
    std::unique_ptr<stream::PlaneStore> planes; ///< NaN for invalid pixels
    pca::Model model;
    int components() const { return planes->shape().bands; }
    uint64_t held_bytes() const { return planes->in_memory() ? planes->shape().float_bytes() : 0; }
};

/// Computes the statistics of the scene and the planes of its components. Bands without values are omitted.
/// Afterwards, the copy of the scene in memory is released.
ComponentPlanes project_into_planes(tool::Scene& scene, PcaComputing& computing,
                                    const ComponentRequest& request);

/// Returns the names "PC1", "PC2", ...
std::vector<std::string> component_names(int components);

} // namespace hsi::tools
