// SPDX-License-Identifier: MIT
// The Markov random field of gdal_hsi_sahic and gdal_hsi_regularize: its options, its plan, and its report.
#pragma once

#include "sahic/lorsal.h"
#include "sahic/mrf_scene.h"
#include "stream/plane_store.h"
#include "tool/definition.h"
#include "tool/devices.h"

#include <memory>
#include <string>

namespace hsi::tools {

struct MrfSettings {
    sahic::MrfOptions mrf;
    bool periodic = false; ///< -boundary periodic
};

using SahicComputing = tool::Computing<sahic::Backend>;

/// Adds -lambda, -mu, -iterations, -tv and -boundary. The caller sets the limits of -lambda.
tool::Argument& add_mrf_options(tool::Builder& args, MrfSettings& s);

/// Returns the input for the plan of the Markov random field.
sahic::MrfRequest mrf_request_of(const tool::Run& run, SahicComputing& computing, const MrfSettings& s,
                                 const stream::CubeShape& shape, int classes);

/// Returns the text of the plan for -dry-run, and adds the plan to the report.
std::string describe_mrf_plan(tool::Run& run, const sahic::MrfPlan& plan);

/// Creates one plane per class and one for the weights, in memory or in a file next to dst.
std::unique_ptr<stream::PlaneStore> make_mrf_planes(const tool::Run& run, SahicComputing& computing,
                                                    const sahic::MrfPlan& plan,
                                                    const stream::CubeShape& shape, int classes);

/// Reports the result of the Markov random field.
void report_mrf(tool::Run& run, const MrfSettings& s, const sahic::MrfPlan& plan,
                const sahic::MrfResiduals& sums);

} // namespace hsi::tools
