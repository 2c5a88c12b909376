// SPDX-License-Identifier: MIT
// From computed floats to stored samples.
#pragma once

#include <gdal.h>

#include <cstddef>
#include <cstdint>

#include "raster/scene_metadata.h"

namespace hsi::raster {

/// How values become samples of the output's type. NaN becomes nodata, where there is a nodata value; in
/// integer types without one GDAL's 0. A float that is nodata by chance moves to the next one towards zero
/// (0: to the smallest normal number), so that a pixel with a value never turns into a hole.
class StoreRule {
  public:
    StoreRule() = default;
    StoreRule(GDALDataType type, const std::optional<NodataValue>& nodata);

    GDALDataType type() const { return m_type; }
    size_t sample_bytes() const { return m_bytes; }
    bool floats() const { return m_type == GDT_Float32; }

    /// For Float32 outputs: in place.
    void finish(float* values, size_t count) const;
    /// For all others: rounds and clamps as gdal_translate does.
    void store(const float* values, size_t count, void* samples) const;

  private:
    GDALDataType m_type = GDT_Float32;
    size_t m_bytes = 4;
    bool m_replace = false;                   ///< NaN becomes m_value
    alignas(8) unsigned char m_value[8] = {}; ///< nodata in the output's type
    double m_real = 0;                        ///< nodata as a number
};

} // namespace hsi::raster
