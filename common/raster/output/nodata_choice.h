// SPDX-License-Identifier: MIT
// Chooses the nodata value of an output. This code does not use GDAL, so outputs in memory follow the same
// rules as files.
#pragma once

#include "raster/codec/nodata_value.h"
#include "raster/raster_sink.h"

#include <optional>
#include <vector>

namespace hsi::raster {

/// Returns `value`, the number given with -dstnodata, as a nodata value; nullopt if the type of the output
/// cannot represent it.
std::optional<NodataValue> fitting(double value, SampleType type);

/// The nodata values of a scene, which an output inherits.
struct SourceNodata {
    bool masked = false;             ///< the scene has a mask in addition to nodata values
    std::vector<NodataValue> values; ///< nodata values of the scene's bands, in band order
};

/// Returns the nodata value of an output. The first value that exists is used: -dstnodata, the value in
/// `spec`, the first value of the source that the type can represent, a default value of the type. nullopt if
/// -dstnodata and `spec` state no value and no pixel can be missing, or if the type cannot represent the
/// value that they state.
std::optional<NodataValue> choose_nodata(const OutputOptions& options, const OutputSpec& spec,
                                         const SourceNodata& source, SampleType type);

} // namespace hsi::raster
