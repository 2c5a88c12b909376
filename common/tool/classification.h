// SPDX-License-Identifier: MIT
// Shared code of tools that classify with a model or read labels: selection of the model's bands in a scene,
// the rasters of a class map with its probabilities, and the options for labels.
#pragma once

#include "model/classes.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "tool/definition.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tool {

/// Returns a class as messages show it: "3" or "3 corn".
std::string class_text(int value, const std::string& name);

/// Adds -layer, -all-touched, -inside-only, -min-cover (with its summary) and -pixel-coordinates, which
/// select the pixels of vector labels.
void add_label_pixels(Builder& args, raster::LabelOptions& labels, const char* min_cover);
/// Throws UsageError if one of these options was given. The message is the option, followed by `why`.
void refuse_label_pixels(const Call& call, const std::string& why, const std::string& advice);

/// Adds the options that read labels. For vector labels: -field, -name-field, -layer, -all-touched,
/// -inside-only, -min-cover, -pixel-coordinates. For any labels: -zero, which states the meaning of 0, and
/// -leave-out, which lists classes whose pixels become unlabelled.
void add_label_options(Builder& args, raster::LabelOptions& labels);
/// Throws UsageError if one of these options was given. Call this function if no labels were given. `advice`:
/// how to give labels.
void refuse_label_options(const Call& call, const std::string& advice);

/// Prints the notes of labels as warnings, and how their coordinates are read as a note.
void report_notes(Run& run, const raster::LabelSource& labels);

/// Returns the source with only the model's bands, in the model's order, as match_source() finds them. Throws
/// Error that names the model's `file` if they do not match.
std::shared_ptr<raster::RasterSource> matching_source(Run& run, const std::string& file,
                                                      const model::ModelBands& model, bool any_wavelengths);

/// Returns the classes of a file of class probabilities, one per band. Names come from its band names
/// ("P(corn)" or "corn"), and class numbers from the metadata of plan_classification(); bands without a
/// number get 1, 2 ... A single band has two classes: its own and "other". Throws Error if there are more
/// bands than class numbers.
std::vector<raster::LabelClass> probability_classes(const raster::RasterSource& source);

/// Returns the outputs of a classification in this order: the class map (dst) with names and colours, the
/// probabilities with one band per class, and the confidence. The last two are included only if their paths
/// are given. All of them get `metadata`. Makes all checks that can fail, so that the run fails before the
/// work. Throws Error or UsageError, also if -ot cannot represent a class number.
raster::OutputSet plan_classification(const Run& run, const raster::RasterSource& source,
                                      const std::vector<raster::LabelClass>& classes,
                                      const std::string& probabilities, const std::string& confidence,
                                      const std::map<std::string, std::string>& metadata);

} // namespace hsi::tool
