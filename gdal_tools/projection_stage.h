// SPDX-License-Identifier: MIT
// What tools that turn spectra into components share (gdal_hsi_pca, gdal_hsi_mnf): their options, the pass
// that projects, and the use of a saved model, forward and back.
#pragma once

#include "core/counted.h"
#include "core/error.h"
#include "pca_outputs.h"
#include "pca_stage.h"
#include "tool/definition.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

struct ProjectionSettings {
    int components = 7;
    bool components_given = false;
    bool inverse = false, any_wavelengths = false, any_scale = false;
    std::string model_file, apply_file;
};

void add_component_count(tool::Call& call, ProjectionSettings& s); ///< -nc
/// -model, -apply, -inverse, -any-wavelengths, -any-scale, and the checks of these and of -nc.
void add_model_options(tool::Call& call, ProjectionSettings& s);

/// One pass: the transform, tile by tile, into dst; or dst as a VRT that does it.
void run_transform(tool::Run& run, PcaComputing& computing, const stream::CubeSource& cube,
                   const raster::RasterSource& like, pca::Transform transform, const raster::OutputSpec& spec,
                   const char* name, double share);

/// The same of a scene that a scan of the backend has read, from where it is now; half of the run.
void project_scene(const tool::Scene& scene, PcaComputing& computing, pca::Transform transform,
                   const raster::OutputSpec& spec);

/// -dry-run's scan, and what the backend keeps on the device.
void plan_scan(tool::Run& run, PcaComputing& computing, const raster::RasterSource& source,
               const stream::Operation& scan, const stream::PassOptions& pass);
/// -dry-run's projection, of any numbers.
void plan_projection(tool::Run& run, PcaComputing& computing, const raster::RasterSource& source,
                     int components);

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

/// That bands may be the components `name` 1, 2 .. ("MNF"): none has a wavelength, and where a name begins
/// like that of a component, it is the one that belongs there. Throws Error naming the band.
void check_components(const raster::RasterSource& source, const std::string& name);

/// -apply -inverse; `name` is that of the components.
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
    check_components(*source, name);
    const auto spec = band_spec(source->shape(), model);
    check_output(run, spec, *source);
    run_transform(run, computing, *source, *source, reconstruction(model, nc), spec, "reconstruction", 1.0);
}

} // namespace hsi::tools
