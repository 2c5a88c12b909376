// SPDX-License-Identifier: MIT
// The scores of gdal_hsi_detect, for all methods: the outputs, the threshold of the map, the pass that writes
// the scores, and notes.
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

/// Returns a number as text for a message: the shortest text that restores the number.
std::string number(double v);

/// Adds the seconds spent in GPU kernels to the report. Does nothing on the CPU.
void report_kernels(tool::Run& run, const detect::Backend& backend);

/// Returns the options of a pass, with the memory of the mask subtracted.
stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass);

/// Returns the pixels that statistics use; null: all valid pixels. These are the pixels in `mask` (the result
/// of read_background()). Without it, they are the pixels in the mask of the run, provided that this mask
/// applies only to statistics.
const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask);

/// Describes how scores are computed: how to make the operation of a pass, and the options of the pass.
struct Scoring {
    using Make = std::function<std::unique_ptr<detect::Detection>(const detect::Decision&)>;
    const stream::CubeSource& cube;
    Make make;
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    Make make_last = make; ///< makes the operation of the pass that writes
};

/// Plans the outputs: the scores, with one band per name (a single band without names, for RX), then the map
/// if requested. \throws Error if an output cannot be written.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision = {});

/// Writes dst as a VRT or an .hsi if dst has such a format. The file contains the detector, and a score is
/// computed when it is read. Returns true if dst was written. \throws UsageError for settings that are not
/// possible in a VRT or an .hsi.
bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets);

/// Makes the last passes over the scene. If the threshold is the score of a certain rank (Settings::ranks()),
/// two passes first find it. The last pass writes the outputs. share: part of the progress bar for all these
/// passes. mask: pixels of the background. detector: the detector if there is a single background; else null.
/// Returns false if no pixel has a score.
bool make_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene, const Scoring& scoring,
                 raster::OutputSet outputs, const std::vector<std::string>& names, double share,
                 const detect::PixelMask* mask, const detect::Detector* detector = nullptr);

} // namespace hsi::detect_tool
