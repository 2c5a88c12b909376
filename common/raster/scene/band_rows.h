// SPDX-License-Identifier: MIT
// Converts decoded blocks to rows of a tile.
#pragma once

#include "raster/gdal_type.h"
#include "raster/scene/source_impl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsi::raster {

/// Number of pixels that are converted at once. All bands of these pixels fit into the processor's cache.
inline constexpr int64_t pixels_at_once = 128;

/// A band that is read: its index in the file, and its index among the bands of the tile.
struct WantedBand {
    int64_t index = 0; ///< index of the band in the file
    int target = 0;    ///< index among the selected bands of the source
};

/// Sorts the bands by their index in the file.
inline void sort_bands_of(std::vector<WantedBand>& wanted) {
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const WantedBand& a, const WantedBand& b) { return a.index < b.index; });
}

/// Converts pixels with interleaved bands to one row per wanted band. Use one object per thread.
class BandRows {
  public:
    explicit BandRows(const SourceState& source) : m_source(source) {}

    /// Returns true if it is faster to convert all `bands` bands of a pixel than only the `wanted` ones.
    bool suits(GDALDataType type, int64_t wanted, int64_t bands) const {
        return m_source.parts.empty() && !m_source.more_invalid && exact_in_float(sample_type(type)) &&
               wanted * 4 >= bands;
    }

    /// Converts `pixels` pixels (at most pixels_at_once). Each pixel has `bands` samples; the first sample
    /// belongs to band `first` of the file. The wanted bands [low, high) must be sorted by their index in the
    /// file. The values of a wanted band are written to the address that row() returns for it; nodata becomes
    /// NaN.
    template <class Wanted, class Row>
    void turn(const char* samples, GDALDataType type, bool swapped, int64_t bands, size_t pixels,
              int64_t first, Wanted low, Wanted high, const Row& row) {
        const auto* floats = reinterpret_cast<const float*>(samples);
        const auto step = static_cast<size_t>(bands);
        if (type != GDT_Float32 || swapped) {
            m_floats.resize(step * static_cast<size_t>(pixels_at_once));
            to_floats(samples, GDALGetDataTypeSizeBytes(type), sample_type(type), swapped, NodataMatch{},
                      m_floats.data(), step * pixels);
            floats = m_floats.data();
        }
        while (low != high) {
            m_rows.clear();
            auto next = low;
            for (; next != high && next->index == low->index + (next - low); ++next)
                m_rows.push_back(row(*next));
            pixels_to_rows(floats + (low->index - first), step, m_rows.size(), pixels, m_rows.data());
            for (; low != next; ++low) {
                blank(row(*low), pixels, m_source.nodata[static_cast<size_t>(low->target)],
                      sample_type(type));
            }
        }
    }

  private:
    const SourceState& m_source;
    std::vector<float> m_floats;
    std::vector<float*> m_rows;
};

} // namespace hsi::raster
