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

/// A number for a message, as short as it can be read back.
std::string number(double v);

/// The seconds of the kernels into the report; nothing on the CPU.
void report_kernels(tool::Run& run, const detect::Backend& backend);

/// A pass whose memory is less by the mask, which stays there.
stream::PassOptions without_mask(const detect::PixelMask* mask, stream::PassOptions pass);

/// The pixels that count in statistics: those of -background, and of the run's mask.
const detect::PixelMask* counted_pixels(const tool::Run& run, const detect::PixelMask* mask);

/// Where the scores of a run come from: a pass's operation, and the options of such a pass.
struct Scoring {
    using Make = std::function<std::unique_ptr<detect::Detection>(const detect::Decision&)>;
    const stream::CubeSource& cube;
    Make make;
    std::function<stream::PassOptions(const std::string& name, double share)> pass;
    Make make_last = make; ///< of the pass that writes
};

/// The scores, one band per name (none: RX), then the map if requested. \throws Error for outputs that cannot
/// be written.
raster::OutputSet plan_outputs(const tool::Run& run, const Settings& s, const raster::RasterSource& source,
                               std::vector<std::string> names, const detect::Decision& decision = {});

/// dst as a VRT or an .hsi: it contains the detector, and a score is computed when it is read. Returns true
/// if that is requested: it is then written. \throws UsageError for settings that it cannot hold.
bool write_virtual_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                          std::vector<std::string> names, const detect::Detector& detector,
                          const detect::Targets& targets);

/// The last passes: two for the threshold if it is one of the scores, and one that writes. share: of all
/// passes, of the run's work. mask: the background's; detector: of one background. Returns false when no
/// pixel has a score.
bool make_scores(tool::Run& run, const Settings& s, const raster::RasterSource& scene, const Scoring& scoring,
                 raster::OutputSet outputs, const std::vector<std::string>& names, double share,
                 const detect::PixelMask* mask, const detect::Detector* detector = nullptr);

} // namespace hsi::detect_tool
