// SPDX-License-Identifier: MIT
// From computed floats to stored samples.
#pragma once

#include "core/cube_view.h"
#include "raster/gdal/nodata_value.h"

#include <gdal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hsi::raster {

/// How values become samples of the output's type. NaN becomes nodata, where there is a nodata value; in
/// integer types without one GDAL's 0. A value that is nodata by chance moves to the next one towards zero
/// (0: to 1, of floats to the smallest normal number), so that a pixel with a value never turns into a hole.
/// A step of 1 may be much: of integers they are counted, by all copies of the rule together.
class StoreRule {
  public:
    StoreRule() = default;
    StoreRule(GDALDataType type, const std::optional<NodataValue>& nodata);

    GDALDataType type() const { return m_type; }
    size_t sample_bytes() const { return m_bytes; }
    /// True when tiles hold the samples themselves, but for nodata: finish() is all that is to be done.
    bool floats() const { return m_type == GDT_Float32 && m_parts == 1; }

    /// From now on tiles hold samples of `from` as parts of their bits (sample_convert.h), NaN where there is
    /// no value: store_parts() takes them. Values that the output's type does not hold are rounded and
    /// clamped as gdal_translate does it.
    void take_parts(GDALDataType from);
    /// Bands of a tile for one of the output.
    int parts() const { return m_parts; }
    /// `step`: floats from one part of a value to the next.
    void store_parts(const float* values, ptrdiff_t step, size_t count, void* samples) const;

    /// For Float32 outputs: in place.
    void finish(float* values, size_t count) const;
    /// For all others: rounds and clamps as gdal_translate does.
    void store(const float* values, size_t count, void* samples) const;

    /// `count` samples of one band of the output, from column x of a line of tiles' values on; these may be
    /// changed.
    void store_line(const CubeView<float>& src, int band, int64_t line, int64_t x, size_t count,
                    void* samples) const;
    /// What store_pixels() works in, for one caller at a time.
    struct Scratch {
        std::vector<const float*> rows;
        std::vector<float> floats;
        std::vector<double> stored; ///< wide enough for every type, and aligned
    };
    /// The same of all bands, pixel after pixel.
    void store_pixels(const CubeView<float>& src, int64_t line, int64_t x, size_t pixels, void* samples,
                      Scratch& scratch) const;

    /// Values that were moved to another integer so far, and that integer.
    int64_t moved() const { return m_moved ? m_moved->load() : 0; }
    double beside() const { return m_beside_real; }

  private:
    template <class Bits>
    void replace(const float* values, size_t count, unsigned char* samples) const;
    /// Nodata in the place of NaN, and what is nodata by chance moved.
    template <class Real>
    void finish_reals(const float* values, size_t count, Real* samples) const;
    void finish_stored(const float* values, size_t count, void* samples) const;

    GDALDataType m_type = GDT_Float32, m_from = GDT_Unknown;
    int m_parts = 1;
    size_t m_bytes = 4;
    bool m_replace = false;                    ///< NaN becomes m_value
    alignas(8) unsigned char m_value[8] = {};  ///< nodata in the output's type
    double m_real = 0;                         ///< nodata as a number
    alignas(8) unsigned char m_beside[8] = {}; ///< of integers: the next one towards zero
    double m_beside_real = 0;
    std::shared_ptr<std::atomic<int64_t>> m_moved; ///< of integers with nodata
};

} // namespace hsi::raster
