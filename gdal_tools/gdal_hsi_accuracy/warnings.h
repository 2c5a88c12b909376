// SPDX-License-Identifier: MIT
// Warnings of gdal_hsi_accuracy about figures that show less than they seem to.
#pragma once

#include "accuracy/accuracy.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::accuracy_tool {

/// Warns if classes are matched by number although their names differ.
void warn_of_other_names(tool::Run& run, const accuracy::NamedPairs& pairs);

/// Warns of classes with few reference pixels. If there are several folds, the message names them.
void warn_of_few_pixels(tool::Run& run, const std::vector<accuracy::Result>& results);

/// Warns if there is only one class. Its agreement shows nothing: alarms of a detector outside of the labels
/// are not counted as errors.
void warn_of_one_class(tool::Run& run, const std::vector<accuracy::Result>& results);

/// Warns of map pixels with classes that are missing in all references. The cause may be labels of another
/// field or of another scene. Classes in -leave-out are expected to be missing.
void warn_of_unknown_classes(tool::Run& run, const std::vector<accuracy::Result>& results,
                             const std::vector<std::string>& left_out);

} // namespace hsi::accuracy_tool
