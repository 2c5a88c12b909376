// SPDX-License-Identifier: MIT
// The search for targets of gdal_hsi_atdca and of gdal_hsi_endmembers -method atdca: number, device and
// results. Also writes pixels that other methods have found, as points and as spectra.
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

/// The number of targets: given by the user, or the virtual dimensionality of the scene.
struct TargetCount {
    int number = 0;                ///< value of -t; 0: auto
    std::string vd_method = "hfc"; ///< method for -t auto
    double false_alarm = 1e-3;
};

/// Prints the plan for -dry-run.
void print_search_plan(tool::Run& run, const stream::CubeSource& source, const atdca::Options& options);

/// Returns the targets of the scene. Bands without values are removed from the scene if they make all pixels
/// invalid. With -t auto, sets options.targets. share: part of the progress bar. \throws Error if the virtual
/// dimensionality is 0, or if no pixel is valid.
atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const TargetCount& count,
                              tool::Scene& scene, atdca::Options& options, double share);

/// Reports how many pixels the search has examined.
void report_search_cost(tool::Run& run, const atdca::Detection& found, int wanted, bool held_by_system);

/// Warns if the virtual dimensionality is more than half of the number of bands.
void warn_of_many_signals(tool::Run& run, int number, int bands, const std::string& advice);

/// Warns if the test of the virtual dimensionality cannot give a useful result. `method`: hfc or nwhfc. With
/// few pixels, the test finds no signal, or its result depends on the number of pixels. The test counts
/// directions with a significant mean, so it finds none if all bands have a mean of about 0.
void warn_of_vain_test(tool::Run& run, const std::string& method, double false_alarm,
                       const stream::SceneStatistics& scene);

// If src was searched together with other scenes (`scenes`), the lines of targets count over all scenes
// (ManyScenes::place_of()). Reports state the scene and the line in the scene.

/// Prints and reports the list of targets.
void report_targets(tool::Run& run, const std::vector<atdca::Target>& targets,
                    const ManyScenes* scenes = nullptr);

/// Opens the cube of -original, from which `source` was made. Applies the mask of the run if `source` is
/// masked. Returns null if `path` is empty. \throws Error if the size or the position differs.
std::shared_ptr<raster::RasterSource> open_original(tool::Run& run, const std::string& path,
                                                    const raster::RasterSource& source);

/// Returns the spectra of the targets in another cube of the same size.
std::vector<std::vector<float>> spectra_of_targets(std::shared_ptr<raster::RasterSource>& cube,
                                                   tool::Run& run, const std::vector<atdca::Target>& targets,
                                                   const ManyScenes* scenes = nullptr);

/// Returns the spectra of the targets as a library. Names state rank and position. `cube`: cube from which
/// the spectra were read; the library gets its wavelengths. Values are scaled if the bands have different
/// scales (BandScales).
raster::SpectralLibrary library_of_targets(const std::vector<std::vector<float>>& spectra,
                                           const std::vector<atdca::Target>& targets,
                                           const raster::RasterSource& cube, const char* what = "Target",
                                           const ManyScenes* scenes = nullptr);

/// Adds the options -of, -dsco and -lco for dst, a vector layer of points.
void add_vector_options(tool::Builder& args, raster::VectorOptions& options);

/// Writes one point per target, with the fields rank, line, sample, score, longitude and latitude. Warns if
/// the points have no position, or if their position is not that of the scene.
void write_targets(tool::Run& run, const raster::VectorOptions& output,
                   const std::vector<atdca::Target>& targets, const raster::RasterSource& source,
                   const ManyScenes* scenes = nullptr);

} // namespace hsi::tools
