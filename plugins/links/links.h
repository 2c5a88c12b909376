// SPDX-License-Identifier: MIT
// Converts operations to steps of virtual scenes (stream/computed_source.h) and back, for tools that compute
// tile by tile once their models are complete. Numbers are restored exactly, so the pixels of a step are
// bitwise equal to the tool's result.
#pragma once

#include "atdca/atdca.h"
#include "destripe/destripe.h"
#include "detect/pixel/pixel.h"
#include "features/features.h"
#include "indices/indices.h"
#include "pca/pca.h"
#include "regression/regression.h"
#include "resample/resample.h"
#include "sahic/sahic.h"
#include "smooth/smooth.h"
#include "spp/spp.h"
#include "stream/computed_source.h"
#include "svm/svm.h"
#include "unmix/unmix.h"

#include <string>
#include <vector>

namespace hsi::identify {
struct Plan;
}

namespace hsi::links {

/// Returns the operation of a step on the CPU, and a function that creates it on devices.
/// \throws Error for a step that none of the functions below returns.
stream::LinkWork make_link(const stream::Link& link, const stream::CubeShape& scene);
/// Registers make_link() as the function with which stream::make_operation() creates these operations.
inline void register_links() { stream::link_maker = make_link; }

/// Returns the step for y' of spp::make_displacement().
stream::Link displacement(int window, const std::vector<double>& centroid);
/// Returns the step for pca::make_transform().
stream::Link transform(const pca::Transform& transform);
/// Returns the step for the abundances or the error of unmix::make_unmixing(); `rmse` selects the error.
stream::Link unmixing(const unmix::Endmembers& endmembers, unmix::Method method, bool rmse);
/// Returns the step for the scores of detect::make_detection().
stream::Link detection(const detect::Detector& detector);
/// Returns the step for the classes of svm::make_classification().
stream::Link svm_classes(const svm::Model& model);
/// Returns the step for the classes of sahic::make_spectral_pass().
stream::Link mlr_classes(const sahic::MlrModel& model);
/// Returns the step for the map of atdca::make_classification().
stream::Link nearest_target(const std::vector<std::vector<float>>& spectra, double max_angle);
/// Returns the step for resample::make_resampling().
stream::Link resampling(int inputs, const std::vector<math::ResampledBand>& bands);
/// Returns the step for regression::make_estimation().
stream::Link estimates(int inputs, const std::vector<regression::Applied>& models);
/// Returns the step for features::make_features().
stream::Link feature_bands(int inputs, const std::vector<features::Range>& ranges, features::Output output);
/// Returns the step for the map of one group (an index of plan.groups) of identify::make_identification().
/// `rules` is the text of the rule file.
stream::Link identification(const std::string& rules, const identify::Plan& plan, size_t group);
/// Returns the step for indices::make_indices(). It has all lists of `bands` except widths and numbers.
stream::Link index_bands(int inputs, const std::vector<std::string>& expressions,
                         const indices::Bands& bands);
/// Returns the step for destripe::make_correction().
stream::Link striped_columns(int inputs, const destripe::Columns& columns);
/// Returns the step for smooth::make_transform(). It is for methods whose output bands are not weighted sums
/// of input bands; the others are a resampling().
stream::Link transformed_spectra(int inputs, const smooth::Transform& transform);

} // namespace hsi::links
