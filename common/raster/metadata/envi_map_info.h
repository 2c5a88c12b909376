// SPDX-License-Identifier: MIT
// The position and the SRS that an ENVI header states in "map info" and "projection info", in the spellings
// of people and programs. GDAL's driver supports one spelling, and assumes north, WGS 84 and 0 otherwise.
#pragma once

#include "raster/metadata/envi_header.h"

#include <string>
#include <vector>

namespace hsi::raster {

struct EnviMapInfo {
    std::vector<std::string> entries;    ///< of "map info" as GDAL's driver reads it; empty: no position
    std::vector<std::string> projection; ///< entries of "projection info", in the same form
    std::string coordinate_system;  ///< WKT of an SRS that the driver cannot read from `entries`; else empty
    std::vector<std::string> notes; ///< entries that cannot be read, and the assumptions for them
};

EnviMapInfo envi_map_info(const EnviHeader& header);

} // namespace hsi::raster
