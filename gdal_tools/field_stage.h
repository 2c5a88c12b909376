// SPDX-License-Identifier: MIT
// What tools with the Markov random field share (gdal_hsi_sahic, gdal_hsi_regularize): its options, its plan,
// and what is told of it.
#pragma once

#include "core/host_memory.h"
#include "sahic/field.h"
#include "sahic/lorsal.h"
#include "tool/definition.h"
#include "tool/devices.h"

#include <cstdint>
#include <future>
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

/// What the random field came to.
void tell_field(tool::Run& run, const FieldSettings& s, const sahic::FieldPlan& plan,
                const sahic::MrfResiduals& sums);

/// -dry-run: "Random field: ..."; into the report, too.
std::string describe_field_plan(tool::Run& run, const sahic::FieldPlan& plan);

/// A plane a class and one for the weights, in memory or beside dst.
std::unique_ptr<stream::PlaneStore> field_planes(const tool::Run& run, SahicComputing& computing,
                                                 const sahic::FieldPlan& plan, const stream::CubeShape& shape,
                                                 int classes);

using PlanesToCome = std::future<std::unique_ptr<stream::PlaneStore>>;
/// field_planes() on a thread of its own, where a device copies from them and pinning takes its time. Empty
/// elsewhere, and where -memory does not hold them beside `others`, the bytes of what goes on meanwhile.
PlanesToCome begin_field_planes(const tool::Run& run, SahicComputing& computing, const sahic::FieldPlan& plan,
                                const stream::CubeShape& shape, int classes, uint64_t others);
/// The same of what the random field solves for, where it is a whole scene's and this process's alone.
std::future<HostBuffer<float>> begin_field_q(SahicComputing& computing, const sahic::FieldPlan& plan);

} // namespace hsi::tools
