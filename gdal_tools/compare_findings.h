// SPDX-License-Identifier: MIT
// What gdal_hsi_compare has found out, for people and for programs.
#pragma once

#include "compare/measurement.h"
#include "compared_scenes.h"
#include "core/json.h"

#include <string>

namespace hsi::tools {

using compare::Metric;

/// "%.9g"
std::string metric_text(double value);

Json to_json(const compare::Findings& f, const ComparedScene& a, const ComparedScene& b);

void print_text(tool::Run& run, const compare::Findings& f, const ComparedScene& a, const ComparedScene& b);

} // namespace hsi::tools
