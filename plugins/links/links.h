// SPDX-License-Identifier: MIT
// The operations that can be links of a chain (stream/computed_source.h), to links and back: for tools that
// work tile by tile once their models are complete. Numbers are restored to the last bit, so a link computes
// the tool's result.
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

/// The operation of a link of those below, on the CPU, with its maker on devices. \throws Error for any
/// other.
stream::LinkWork make_link(const stream::Link& link, const stream::CubeShape& scene);
/// From now on stream::make_operation() makes these.
inline void register_links() { stream::link_maker = make_link; }

/// y' of spp::make_displacement().
stream::Link displacement(int window, const std::vector<double>& centroid);
/// pca::make_transform()
stream::Link transform(const pca::Transform& transform);
/// The abundances of unmix::make_unmixing(), or the error.
stream::Link unmixing(const unmix::Endmembers& endmembers, unmix::Method method, bool rmse);
/// The scores of detect::make_detection().
stream::Link detection(const detect::Detector& detector);
/// The classes of svm::make_classification().
stream::Link svm_classes(const svm::Model& model);
/// The classes of sahic::make_spectral_pass().
stream::Link mlr_classes(const sahic::MlrModel& model);
/// The map of atdca::make_classification().
stream::Link nearest_target(const std::vector<std::vector<float>>& spectra, double max_angle);
/// resample::make_resampling()
stream::Link resampling(int inputs, const std::vector<math::ResampledBand>& bands);
/// regression::make_estimation()
stream::Link estimates(int inputs, const std::vector<regression::Applied>& models);
/// features::make_features()
stream::Link feature_bands(int inputs, const std::vector<features::Range>& ranges, features::Output output);
/// The map of one group (of plan.groups) by identify::make_identification(). rules: the text of its file.
stream::Link identification(const std::string& rules, const identify::Plan& plan, size_t group);
/// indices::make_indices(), with everything in Bands except `widths` and `numbers`.
stream::Link index_bands(int inputs, const std::vector<std::string>& expressions,
                         const indices::Bands& bands);
/// destripe::make_correction()
stream::Link striped_columns(int inputs, const destripe::Columns& columns);
/// smooth::make_transform(), of a method that is not a sum.
stream::Link transformed_spectra(int inputs, const smooth::Transform& transform);

} // namespace hsi::links
