// SPDX-License-Identifier: MIT
// Shared code of tools that classify with a model: the scene's bands for the model, and the rasters of a
// class map with its probabilities; and the options of tools that read labels.
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

/// "3" or "3 corn": a class in a message.
std::string class_text(int value, const std::string& name);

/// -layer, -all-touched, -inside-only, -min-cover (its summary) and -pixel-coordinates: which pixels of
/// vector labels count.
void add_label_pixels(Builder& args, raster::LabelOptions& labels, const char* min_cover);
/// Throws UsageError when one of these was given: "-layer " and `why`.
void refuse_label_pixels(const Call& call, const std::string& why, const std::string& advice);

/// -field, -name-field, -layer, -all-touched, -inside-only, -min-cover, -pixel-coordinates: the reading of
/// vector labels; -zero: the meaning of 0 in any labels; -leave-out: the classes whose pixels have no label.
void add_label_options(Builder& args, raster::LabelOptions& labels);
/// Throws UsageError when a call has one of these options without labels (`advice`: how to give them).
void refuse_label_options(const Call& call, const std::string& advice);

/// The source, with the model's bands alone and in the model's order, as match_source() finds them. Throws
/// Error, naming the model's `file`, when they do not fit.
std::shared_ptr<raster::RasterSource> matching_source(Run& run, const std::string& file,
                                                      const model::ModelBands& model, bool any_wavelengths);

/// The classes of a file of class probabilities, one per band, from its band names ("P(corn)" or "corn") and
/// the numbers that plan_classification() writes next to them; 1, 2 .. for bands without a number. A single
/// band has two classes: its own and "other". Throws Error when there are more bands than class numbers.
std::vector<raster::LabelClass> probability_classes(const raster::RasterSource& source);

/// The rasters of a classification, in this order: the class map (dst), with names and colours; then, if
/// paths are given, one band of probabilities per class, and the confidence. `metadata` goes to all of them.
/// All checks that can fail are made here: throws Error or UsageError, also for a class number that -ot does
/// not hold.
raster::OutputSet plan_classification(const Run& run, const raster::RasterSource& source,
                                      const std::vector<raster::LabelClass>& classes,
                                      const std::string& probabilities, const std::string& confidence,
                                      const std::map<std::string, std::string>& metadata);

} // namespace hsi::tool
