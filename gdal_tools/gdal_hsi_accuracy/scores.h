// SPDX-License-Identifier: MIT
// gdal_hsi_accuracy -scores: assesses scores of a detector; writes ROC and precision curves (CSV, picture).
#pragma once

#include "raster/labels.h"
#include "tool/run.h"

#include <cstdint>
#include <string>

namespace hsi::accuracy_tool {

enum class Better { automatic, larger, smaller };

struct ScoreOptions {
    std::string path; ///< path of the scores, one band per target
    raster::LabelOptions truth, mask;
    Better better = Better::automatic;
    int64_t guard = 0; ///< width of the zone around targets that is not background, in pixels
    bool json = false, overwrite = false;
    std::string csv, curves, roc, recall;
};

/// Assesses the scores in two passes over them.
void assess_scores(tool::Run& run, const ScoreOptions& s);

} // namespace hsi::accuracy_tool
