// SPDX-License-Identifier: MIT
// The search for targets, of gdal_hsi_atdca and of gdal_hsi_endmembers -method atdca: number, device, and
// results. Also writes pixels that any method has found, as points and as spectra.
#pragma once

#include "atdca/atdca.h"
#include "raster/raster_source.h"
#include "raster/spectral_library.h"
#include "raster/vector_sink.h"
#include "shared/many_scenes.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

using AtdcaComputing = tool::Computing<atdca::Backend>;

/// The number of targets: given, or the virtual dimensionality of the scene.
struct TargetCount {
    int number = 0;                ///< of -t; 0: auto
    std::string vd_method = "hfc"; ///< for auto
    double false_alarm = 1e-3;
};

/// Prints the plan for -dry-run.
void print_search_plan(tool::Run& run, const stream::CubeSource& source, const atdca::Options& options);

/// Returns the targets of the scene, which has at least one valid pixel; bands without values are left out of
/// the scene if they make every pixel invalid. Sets options.targets with -t auto. share: part of the
/// progress. Throws Error if the virtual dimensionality is 0, and if no pixel is valid.
atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const TargetCount& count,
                              tool::Scene& scene, atdca::Options& options, double share);

/// Reports how much of the scene the search has examined.
void report_search_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system);

/// Warns about a virtual dimensionality of more than half of the bands.
void warn_of_many_signals(tool::Run& run, int number, int bands, const std::string& advice);

/// Warns about a scene with so few pixels that the test (`method`: hfc or nwhfc) cannot find a signal, or
/// counts its pixels, and about a scene whose bands have a mean of 0, because the test depends on the mean.
void warn_of_vain_test(tool::Run& run, const std::string& method, double false_alarm,
                       const stream::SceneStatistics& scene);

// If src was searched together with further `scenes`, the lines of targets are those of all scenes together
// (ManyScenes::place_of()). They are reported by scene and line.

/// Prints and reports the list of targets.
void report_targets(tool::Run& run, const std::vector<atdca::Target>& targets,
                    const ManyScenes* scenes = nullptr);

/// Opens -original, the cube that `source` was made from, with the mask of the run if source has it; null if
/// `path` is empty. \throws Error if its size or place differs.
std::shared_ptr<raster::RasterSource> open_original(tool::Run& run, const std::string& path,
                                                    const raster::RasterSource& source);

/// Returns the targets' spectra in another cube of the same size.
std::vector<std::vector<float>> spectra_of_targets(std::shared_ptr<raster::RasterSource>& cube,
                                                   tool::Run& run, const std::vector<atdca::Target>& targets,
                                                   const ManyScenes* scenes = nullptr);

/// Returns the targets' spectra as a library, named by rank and position, with the wavelengths of the cube
/// that they were read from. Values are scaled if its bands have different scales (BandScales).
raster::SpectralLibrary library_of_targets(const std::vector<std::vector<float>>& spectra,
                                           const std::vector<atdca::Target>& targets,
                                           const raster::RasterSource& cube, const char* what = "Target",
                                           const ManyScenes* scenes = nullptr);

/// Adds -of, -dsco, -lco of a vector layer of points, dst.
void add_vector_options(tool::Builder& args, raster::VectorOptions& options);

/// Writes one point per target, with rank, line, sample, score, longitude and latitude. Warns if the points
/// are not at the scene's position, or have no position.
void write_targets(tool::Run& run, const raster::VectorOptions& output,
                   const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                   const ManyScenes* scenes = nullptr);

} // namespace hsi::tools
