// SPDX-License-Identifier: MIT
// The bands of a profile on their way from its making into dst.
#pragma once

#include "profile/profile.h"
#include "profile_settings.h"
#include "raster/sink/raster_sink.h"
#include "stream/plane_store.h"
#include "tool/run.h"

#include <memory>

namespace hsi::tools {

/// Makes the profile of `components` (profile::make_profile()) and writes it: each band when it is made where
/// the plan says so and the sink takes bands, else tile by tile when all are there. The passes are reported.
/// \throws Cancelled, and Error from reading and writing.
void write_profile(tool::Run& run, std::unique_ptr<stream::PlaneStore> components, bool whole,
                   const profile::Options& options, const ProfilePlan& plan, raster::RasterSink& sink);

} // namespace hsi::tools
