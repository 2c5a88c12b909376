// SPDX-License-Identifier: MIT
// The stages of gdal_hsi_sahic: scan and training, class probabilities, the random field.
#pragma once

#include "field_stage.h"
#include "raster/labels/labels.h"
#include "raster/sink/output_set.h"
#include "sahic/scene_scan.h"
#include "tool/scene.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

struct SahicSettings : FieldSettings {
    raster::LabelOptions labels;
    sahic::LorsalOptions lorsal;
    std::string model_file, apply, probabilities, confidence;
    bool no_spatial = false, any_wavelengths = false, any_scale = false;
    bool no_labels() const { return !apply.empty() && labels.path == "none"; }
};

/// What training has to know of the scene.
std::shared_ptr<const sahic::SceneScan> scan(tool::Scene& scene, const raster::LabelledPixels& labels,
                                             bool border);

/// The model of the labelled pixels; what came out goes into the report.
sahic::MlrModel train(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                      const raster::RasterSource& scene, const sahic::SceneScan& found,
                      const raster::LabelledPixels& labels);

/// First line and sample of the scene, which a wrapping border needs: those that training's scan has seen, or
/// read again where it saw those in a mask alone.
void take_border(const tool::Scene& scene, const sahic::SceneScan& found, sahic::SpectralOptions& spectral);

/// First line and sample of the scene, which a wrapping border needs, without training's scan.
void read_border(tool::Run& run, const raster::RasterSource& scene, sahic::SpectralOptions& spectral);

/// What the map came to.
struct SahicResult {
    std::vector<int64_t> by_class;
    int64_t invalid = 0;
};

/// Class probabilities alone, straight into the outputs.
SahicResult classify_spectra(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                             const std::shared_ptr<const sahic::MlrModel>& model,
                             const stream::CubeSource& cube, const raster::OutputSet& outputs);

/// begin_field_planes() for the time of train().
PlanesToCome begin_planes(const tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                          const sahic::FieldPlan& plan, const stream::CubeShape& shape, size_t classes,
                          const raster::LabelledPixels& labels);

/// Class probabilities and weights into planes, which the random field smooths; `to_come` may be empty.
/// release() is called when the cube has been read.
SahicResult classify_with_field(tool::Run& run, SahicComputing& computing, const SahicSettings& s,
                                const std::shared_ptr<const sahic::MlrModel>& model,
                                const stream::CubeSource& cube, sahic::SpectralOptions spectral,
                                const sahic::FieldRequest& field, const sahic::FieldPlan& plan,
                                PlanesToCome to_come, const raster::LabelledPixels& labels,
                                const raster::OutputSet& outputs, const std::function<void()>& release);

/// The map as a VRT, the model in it: a class is computed when a pixel is read, from its spectrum alone.
void write_virtual_map(tool::Run& run, const SahicSettings& s, const raster::RasterSource& scene,
                       const sahic::MlrModel* model);

} // namespace hsi::tools
