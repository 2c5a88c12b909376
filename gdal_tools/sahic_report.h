// SPDX-License-Identifier: MIT
// What gdal_hsi_sahic says of its stages, to the user and in the report.
#pragma once

#include "sahic/field.h"
#include "sahic/lorsal.h"
#include "sahic_stages.h"

#include <cstdint>

namespace hsi::tools {

/// seconds: what training took.
void tell_training(tool::Run& run, const sahic::LorsalOptions& options, const sahic::LorsalResult& result,
                   int64_t pixels, double seconds);

/// -dry-run.
void print_field_plan(tool::Run& run, const SahicSettings& s, const stream::CubeShape& shape,
                      const sahic::FieldPlan& plan);

/// What the map came to, for the user and for the report.
void tell_classes(tool::Run& run, SahicComputing& computing, const sahic::MlrModel& model,
                  const SahicResult& result, int64_t pixels);

} // namespace hsi::tools
