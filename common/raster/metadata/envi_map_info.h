// SPDX-License-Identifier: MIT
// Reads the position and the SRS from "map info" and "projection info" of an ENVI header, in the spellings
// that people and programs use. GDAL's driver supports only one spelling. For other spellings, the driver
// assumes the northern hemisphere, WGS 84 and the number 0.
#pragma once

#include "raster/metadata/envi_header.h"

#include <string>
#include <vector>

class OGRSpatialReference;

namespace hsi::raster {

struct EnviMapInfo {
    /// The entries of "map info" in the spelling of GDAL's driver; empty if the scene has no position.
    std::vector<std::string> entries;
    /// The entries of "projection info" in the spelling of GDAL's driver.
    std::vector<std::string> projection;
    /// WKT of the SRS if the driver cannot read the SRS from `entries`; otherwise empty.
    std::string coordinate_system;
    /// Notes about entries that cannot be read, and about the assumptions that replace them.
    std::vector<std::string> notes;
};

EnviMapInfo envi_map_info(const EnviHeader& header);

/// Returns the SRS as WKT for "coordinate system string"; empty if the WKT cannot be in a header. The options
/// are those of OGRSpatialReference::exportToWkt().
std::string envi_coordinate_system(const OGRSpatialReference& srs, const char* const* options = nullptr);

} // namespace hsi::raster
