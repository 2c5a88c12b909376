// SPDX-License-Identifier: MIT
// Spatial reference systems that mean "unknown".
#pragma once

#include <cpl_string.h>
#include <ogr_spatialref.h>

#include <algorithm>
#include <initializer_list>

namespace hsi::raster {

/// Returns true for an SRS that only stands for an unknown SRS, in formats that require an SRS: GeoPackage's
/// undefined geographic and Cartesian SRS, ENVI's map info "Arbitrary", and a local system without a name.
inline bool stands_for_none(const OGRSpatialReference& srs) {
    const char* const name = srs.GetName();
    if (name == nullptr) return srs.IsLocal() != 0;
    const auto is_any = [&](std::initializer_list<const char*> beginnings) {
        return std::any_of(beginnings.begin(), beginnings.end(),
                           [&](const char* beginning) { return STARTS_WITH_CI(name, beginning); });
    };
    return is_any({"Undefined geographic SRS", "Undefined Cartesian SRS"}) ||
           (srs.IsLocal() != 0 &&
            (*name == '\0' || is_any({"Arbitrary", "unnamed", "unknown", "undefined"})));
}

} // namespace hsi::raster
