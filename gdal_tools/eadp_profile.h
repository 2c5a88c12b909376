// SPDX-License-Identifier: MIT
// What gdal_hsi_eadp says and writes of a profile: its bands with their names and times, and the schedule of
// the diffusion; and the run that makes it.
#pragma once

#include "eadp/profile.h"
#include "raster/sink/raster_sink.h"
#include "tool/run.h"

#include <string>
#include <vector>

namespace hsi::tools {

struct EadpSettings {
    eadp::Options eadp;
    int components = 7;
    bool components_given = false, no_pca = false;
    int copies = 8;
    double step = 65;
    std::string times;
    double contrast = 0;
};

/// "65", "0.5": a number in metadata and messages.
std::string eadp_number(double x);

std::vector<double> parse_times(const std::string& text);

/// The profile's raster; `facts` are null before they are known.
raster::OutputSpec profile_spec(const stream::CubeShape& scene, const EadpSettings& settings,
                                const std::vector<std::string>& component_names,
                                const eadp::ProfileFacts* facts);

/// Steps and sweeps into the report, and with -dry-run to the user.
void print_schedule(tool::Run& run, const EadpSettings& settings, int components);

/// Scene to profile, or with -dry-run its plan: covariance and projection, unless the bands themselves are
/// profiled; ranges, histograms and diffusion of the component planes.
void run_profile(tool::Run& run, const EadpSettings& settings);

} // namespace hsi::tools
