// SPDX-License-Identifier: MIT
// The search for targets, of gdal_hsi_atdca and of gdal_hsi_endmembers -method atdca: its count, its device,
// and its results; and pixels found by any method, as points and as spectra.
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

/// How many targets: a number, or the virtual dimensionality of the scene.
struct TargetCount {
    int number = 0;                ///< of -t; 0: auto
    std::string vd_method = "hfc"; ///< for auto
    double false_alarm = 1e-3;
};

/// -dry-run.
void print_search_plan(tool::Run& run, const stream::CubeSource& source, const atdca::Options& options);

/// The targets of the scene, which has at least one valid pixel; bands without values are left out of the
/// scene if they spoil every pixel. Sets options.targets with -t auto. share: of the progress. Throws Error
/// when the virtual dimensionality is 0, and when no pixel is valid.
atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const TargetCount& count,
                              tool::Scene& scene, atdca::Options& options, double share);

/// How much of the scene the search looked at.
void report_search_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system);

/// A virtual dimensionality of more than half of the bands, to the user.
void warn_of_many_signals(tool::Run& run, int number, int bands, const std::string& advice);

/// Warns of a scene of so few pixels that the test (`method`: hfc or nwhfc) can find no signal, or counts its
/// pixels, and of a scene whose bands have no mean, which the test depends on.
void warn_of_vain_test(tool::Run& run, const std::string& method, double false_alarm,
                       const stream::SceneStatistics& scene);

// If src was searched together with further `scenes`, targets are on the lines of all of them together
// (ManyScenes::place_of()); they are reported by scene and line.

/// The list of targets, for the user and for the report.
void report_targets(tool::Run& run, const std::vector<atdca::Target>& targets,
                    const ManyScenes* scenes = nullptr);

/// The targets' spectra in another cube of the same size.
std::vector<std::vector<float>> spectra_of_targets(std::shared_ptr<raster::RasterSource>& cube,
                                                   tool::Run& run, const std::vector<atdca::Target>& targets,
                                                   const ManyScenes* scenes = nullptr);

/// The targets' spectra as a library, named by rank and place, with the wavelengths of the cube that they
/// were read from; values are scaled if its bands have different scales (BandScales).
raster::SpectralLibrary library_of_targets(const std::vector<std::vector<float>>& spectra,
                                           const std::vector<atdca::Target>& targets,
                                           const raster::RasterSource& cube, const char* what = "Target",
                                           const ManyScenes* scenes = nullptr);

/// -of, -dsco, -lco of a vector layer of points, dst.
void add_vector_options(tool::Builder& args, raster::VectorOptions& options);

/// Writes one point per target, with rank, line, sample, score, longitude and latitude. A warning says when
/// they are not at the scene's position, or have none.
void write_targets(tool::Run& run, const raster::VectorOptions& output,
                   const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                   const ManyScenes* scenes = nullptr);

} // namespace hsi::tools
