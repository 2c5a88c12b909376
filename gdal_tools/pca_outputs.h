// SPDX-License-Identifier: MIT
// The rasters of gdal_hsi_pca, and of other tools that project: components, bands that are made of them
// again, and both as a VRT.
#pragma once

#include "pca/pca.h"
#include "raster/sink/raster_sink.h"
#include "tool/run.h"

namespace hsi::tools {

raster::OutputSpec component_spec(const stream::CubeShape& scene, int components, bool holes,
                                  const pca::Model* model);

/// The model's bands, made of components again.
raster::OutputSpec band_spec(const stream::CubeShape& scene, const model::ModelBands& model);

/// dst as a VRT: each band is a dot product of the source's bands that is computed when it is read.
void write_virtual_transform(tool::Run& run, const raster::RasterSource& like,
                             const pca::Transform& transform, const raster::OutputSpec& spec);

/// What can be refused before any work.
void check_output(const tool::Run& run, const raster::OutputSpec& spec, const raster::RasterSource& like);

} // namespace hsi::tools
