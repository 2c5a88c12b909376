// SPDX-License-Identifier: MIT
// The two scenes of gdal_hsi_compare: opened, band by band beside one another, without bands that hold no
// value.
#pragma once

#include "raster/source/raster_source.h"
#include "stream/stacked_source.h"
#include "tool/run.h"

#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

struct ComparedScene {
    std::shared_ptr<raster::RasterSource> file;
    std::shared_ptr<const stream::CubeSource> cube;
    std::vector<int> bands; ///< file bands behind the cube's
    std::vector<int> picks; ///< bands of `file` (0-based) behind the cube's; empty: all
};

/// wanted: 1-based bands of -band, some perhaps twice; empty: all that the source has.
ComparedScene open_one(raster::OpenOptions options, const std::vector<int>& wanted);

/// Parts of every value when the two are read together: 1, or stream::value_parts where a type of one of them
/// holds values that single precision does not.
int value_parts(const ComparedScene& a, const ComparedScene& b);
/// Both cubes as one, in that many parts.
stream::StackedSource side_by_side(const ComparedScene& a, const ComparedScene& b);

/// For scenes without a common valid pixel: leaves bands without a single value in either out of both, as
/// Run::leave_out_empty_bands() does for one scene. False when there is none, or no other.
bool leave_out_empty_bands(tool::Run& run, ComparedScene& a, ComparedScene& b);

/// Where both know the wavelengths of all their bands: keeps those that lie at common wavelengths
/// (model::common_bands()), the second's in the order of the first's, and tells which others there were.
/// \throws Error when there is no such band.
void match_by_wavelength(tool::Run& run, ComparedScene& a, ComparedScene& b);

void check_alike(tool::Run& run, const ComparedScene& a, const ComparedScene& b);

} // namespace hsi::tools
