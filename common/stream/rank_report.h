// SPDX-License-Identifier: MIT
// The report of a pass that ranks have shared.
#pragma once

#include "parallel/ranks.h"
#include "stream/pipeline.h"

namespace hsi::stream {

/// All ranks together: this rank's report of its part of a pass becomes that of the whole, with what each
/// rank did. waited: seconds for tiles, summed over lanes.
void add_up(parallel::Ranks& ranks, PassReport& report, double waited);

} // namespace hsi::stream
