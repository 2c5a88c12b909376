// SPDX-License-Identifier: MIT
// The Markov random field of gdal_hsi_sahic and gdal_hsi_regularize: its options, its plan, and what is
// reported of it.
#pragma once

#include "sahic/field.h"
#include "sahic/lorsal.h"
#include "stream/plane_store.h"
#include "tool/definition.h"
#include "tool/resources.h"

#include <memory>
#include <string>

namespace hsi::tools {

struct FieldSettings {
    sahic::MrfOptions mrf;
    bool periodic = false; ///< -boundary
};

using SahicComputing = tool::Computing<sahic::Backend>;

/// -lambda (which the caller limits), -mu, -iterations, -tv, -boundary.
tool::Argument& add_field_options(tool::Call& call, FieldSettings& s);

/// What the way through the random field depends on.
sahic::FieldRequest field_of(const tool::Run& run, SahicComputing& computing, const FieldSettings& s,
                             const stream::CubeShape& shape, int classes);

/// -dry-run: "Random field: ..."; into the report, too.
std::string describe_field_plan(tool::Run& run, const sahic::FieldPlan& plan);

/// A plane a class and one for the weights, in memory or beside dst.
std::unique_ptr<stream::PlaneStore> make_field_planes(const tool::Run& run, SahicComputing& computing,
                                                      const sahic::FieldPlan& plan,
                                                      const stream::CubeShape& shape, int classes);

/// What the random field came to.
void report_field(tool::Run& run, const FieldSettings& s, const sahic::FieldPlan& plan,
                  const sahic::MrfResiduals& sums);

} // namespace hsi::tools
