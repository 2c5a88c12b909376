// SPDX-License-Identifier: MIT
// What gdal_hsi_atdca writes, and of it gdal_hsi_endmembers: maps and scores of all pixels, spectra, points.
#pragma once

#include "atdca/atdca.h"
#include "raster/libraries/spectral_library.h"
#include "raster/sink/output_set.h"
#include "raster/sink/vector_sink.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {

struct AtdcaSettings {
    raster::VectorOptions targets;
    std::string count = "auto", method = "osp", score = "abs", vd_method = "hfc", score_kind = "abundance";
    std::string original, spectra, map, scores, reference;
    std::vector<std::string> reference_spectra; ///< of -reference; empty: all
    std::vector<std::string> creation_options;
    double false_alarm = 1e-3, max_angle = 180;
    int number = 0; ///< of -t; 0: auto
};

/// The rasters that classify: a label map, scores by target.
class TargetRasters {
  public:
    /// A map whose name ends in .vrt has no pixels: `like`, the cube that it classifies, is named in it.
    TargetRasters(const tool::Run& run, const AtdcaSettings& s, const stream::CubeShape& shape, int targets,
                  const raster::RasterSource& like);
    /// Those that hold pixels: the map, then the scores.
    raster::OutputSet& outputs() { return m_outputs; }
    bool virtual_map() const { return m_virtual; }
    void write_virtual_map(const std::vector<std::vector<float>>& spectra, double max_angle,
                           const raster::RasterSource& like) const;

  private:
    raster::OutputSet m_outputs;
    bool m_virtual = false;
    std::pair<raster::OutputOptions, raster::OutputSpec> m_map; ///< when it is virtual
};

/// The targets' spectra in another cube of the same size.
std::vector<std::vector<float>> spectra_at(std::shared_ptr<raster::RasterSource>& cube, tool::Run& run,
                                           const std::vector<atdca::Target>& targets);

using AtdcaComputing = tool::Computing<atdca::Backend>;

/// -map and -scores: every pixel of the cube beside the targets' spectra, in one pass.
void classify_pixels(tool::Run& run, AtdcaComputing& computing, const AtdcaSettings& s,
                     const stream::CubeShape& shape, const std::vector<std::vector<float>>& spectra,
                     const std::shared_ptr<raster::RasterSource>& cube);

/// -of, -dsco, -lco of a vector layer of points, dst.
void add_vector_options(tool::Call& call, raster::VectorOptions& options);

/// Their names say what they are, rank and place; wavelengths are those of the cube that they were read in,
/// and values what its numbers mean where its bands have scales of their own (scaled_spectra.h).
raster::SpectralLibrary library_of(const std::vector<std::vector<float>>& spectra,
                                   const std::vector<atdca::Target>& targets,
                                   const raster::RasterSource& cube, const char* what = "Target");

/// One point a target, with rank, line, sample, score, longitude and latitude.
raster::PointLayer layer_of(tool::Run& run, const std::vector<atdca::Target>& targets,
                            const raster::RasterSource& source, const std::string& path);

/// The cube that src was made from, of the same size; null when `path` is empty.
std::shared_ptr<raster::RasterSource> open_original(tool::Run& run, const std::string& path,
                                                    const raster::RasterSource& source);

} // namespace hsi::tools
