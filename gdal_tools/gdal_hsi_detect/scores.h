// SPDX-License-Identifier: MIT
// The scores of gdal_hsi_detect, whatever makes them: the outputs that hold them, the threshold of the map,
// the pass that writes them, and what the user should know of them.
#pragma once

#include "detect/detect.h"
#include "gdal_hsi_detect/settings.h"
#include "raster/output_set.h"
#include "raster/raster_source.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hsi::detect_tool {

/// A number for a message, as short as it can be read back.
std::string number(double v);

/// The seconds of the kernels into the report; nothing on the CPU.
void report_kernels(tool::Run& run, DetectComputing& computing);

/// A pass whose memory is less by the mask, which stays there.
stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass);

/// The pixels that count in statistics: those of -background, and of the run's mask.
const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask);

/// Where the scores of a run come from: a pass's operation, and the options of such a pass.
struct Scoring {
    const stream::CubeSource& cube;
    std::function<std::unique_ptr<detect::Detection>(const detect::Decision&)> make;
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
};

/// What is a detection, as it is asked for. False when no pixel has a score.
bool decide(tool::Run& run, const Settings& s, const Scoring& scoring, size_t targets, double share,
            const detect::PixelMask* mask, const detect::Detector* detector, detect::Decision& decision);

/// The same as scores in double precision are compared with it: those that are stored as the threshold, too,
/// are within it.
detect::Decision as_stored(const Settings& s, detect::Decision decision);

/// The scores, a band a name (none: RX), then the map where it is asked for. \throws what is refused.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision = {});

/// dst as a VRT or an .hsi: the detector stands in it, and a score is computed when it is read. True when
/// that is asked for: it is written then. \throws UsageError for what it cannot hold.
bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets);

/// The last pass. False when no pixel is valid. mask: that of the background.
bool write_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                  const stream::CubeSource& cube, raster::OutputSet outputs, detect::Detection& detection,
                  const std::vector<std::string>& names, const detect::PixelMask* mask,
                  stream::PassOptions pass);

} // namespace hsi::detect_tool
