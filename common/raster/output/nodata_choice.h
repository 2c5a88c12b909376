// SPDX-License-Identifier: MIT
// Chooses the nodata value of an output. This code does not use GDAL, so outputs in memory follow the same
// rules as files.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <optional>
#include <vector>

namespace hsi::raster {

/// Returns the nodata value -dstnodata in the type of the output; nullopt if the type cannot represent it.
std::optional<NodataValue> fitting(double value, SampleType type);

/// The nodata values of a scene, which an output inherits.
struct SourceNodata {
    bool masked = false;             ///< the scene has a mask in addition to nodata values
    std::vector<NodataValue> values; ///< nodata values of the scene's bands, in band order
};

/// Returns the nodata value of an output; nullopt if no pixel can be missing. The first of these is used:
/// -dstnodata, the value in `spec`, the first value of the source that the type can represent, and a default
/// value of the type.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type);

} // namespace hsi::raster
