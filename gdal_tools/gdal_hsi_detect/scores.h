// SPDX-License-Identifier: MIT
// The scores of gdal_hsi_detect for all methods: their outputs, the threshold of the map, the pass that
// writes them, and the notes about them.
#pragma once

#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::detect_tool {

/// Returns a number for a message, as the shortest text that restores it.
std::string number(double v);

/// Adds the seconds of the kernels to the report; does nothing on the CPU.
void report_kernels(tool::Run& run, const detect::Backend& backend);

/// Returns pass options whose memory is reduced by the mask, which stays in memory.
stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass);

/// Returns the pixels for statistics: those of -background that are in the run's mask.
const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask);

/// The source of the scores of a run: the operation of a pass, and the options of the pass.
struct Scoring {
    using Make = std::function<std::unique_ptr<detect::Detection>(const detect::Decision&)>;
    const stream::CubeSource& cube;
    Make make;
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    Make make_last = make; ///< for the pass that writes
};

/// Returns the outputs: scores, one band per name (no name: RX), then the map if requested. \throws Error for
/// outputs that cannot be written.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision = {});

/// Writes dst as a VRT or an .hsi, if requested. It contains the detector, and a score is computed when it is
/// read. Returns true if dst was written. \throws UsageError for settings that a VRT or an .hsi does not
/// support.
bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets);

/// Makes the last passes: two for the threshold if it is one of the scores, and one that writes. share:
/// fraction of the run's work for all these passes. mask: the background's; detector: of a single background.
/// Returns false if no pixel has a score.
bool make_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene, const Scoring& scoring,
                 raster::OutputSet outputs, const std::vector<std::string>& names, double share,
                 const detect::PixelMask* mask, const detect::Detector* detector = nullptr);

} // namespace hsi::detect_tool
