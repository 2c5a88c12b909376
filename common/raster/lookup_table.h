// SPDX-License-Identifier: MIT
// Geographic lookup tables (GLT): an orthorectified grid that states, for each of its pixels, which pixel of
// the swath to show. Agencies deliver such tables with scenes in sensor geometry. EMIT products contain the
// arrays glt_x and glt_y (NASA JPL, EMIT L2A user guide, D-107866): sample and line of the swath, counted
// from 1, or 0 if there is no pixel. AVIRIS tables are separate rasters of two bands with the same numbers,
// which are negative where a pixel fills a gap.
#pragma once

#include "core/rect.h"
#include "raster/raster_source.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

class OGRSpatialReference;

namespace hsi::raster {

/// The pixel of the swath for a pixel of the grid; `none` if the table names no pixel there.
struct SwathPixel {
    static constexpr int64_t none = -1;
    int64_t sample = none, line = none; ///< from 0
};

/// Reads parts of a table. Use one object per thread.
class LookupReader {
  public:
    virtual ~LookupReader() = default;
    /// Reads the swath pixels for a window of the grid. `out` gets window.area() entries, line by line.
    /// Throws Error if the file cannot be read, or if the table names a pixel outside of the swath.
    virtual void read(const Rect& window, std::vector<SwathPixel>& out) = 0;
};

class LookupTable {
  public:
    /// Opens a product with a table, or a raster of two bands of integers: sample and line. Throws Error that
    /// names the file if it is neither, or if its grid has no position.
    static std::shared_ptr<const LookupTable> open(const std::string& path);
    /// Returns true if open() would succeed.
    static bool is_in(const std::string& path);
    ~LookupTable();

    const std::string& path() const; ///< the path that was given to open()
    int64_t samples() const;         ///< size of the grid in pixels
    int64_t lines() const;
    /// Return the size of the swath in pixels; 0 if the table does not state it.
    int64_t swath_samples() const;
    int64_t swath_lines() const;
    std::unique_ptr<LookupReader> open_reader() const;

    /// Returns the geotransform in GDAL's order.
    const std::array<double, 6>& geotransform() const;
    const std::shared_ptr<const OGRSpatialReference>& srs() const; ///< null: unknown

    struct Impl; ///< defined and used only in common/raster

  private:
    explicit LookupTable(std::shared_ptr<const Impl> impl);
    std::shared_ptr<const Impl> m;
};

/// Returns the scene on the table's grid: each pixel has the values of the pixel of `swath` that the table
/// names. A pixel is NaN if the table names no pixel, or a pixel outside of `swath` (if -srcwin has cut the
/// scene). Bands and their metadata are from the swath, SRS and geotransform from the table. Pixels are read
/// from `pixels`: `swath` itself, or a copy of it in memory. Throws UsageError if the table states another
/// size of the swath, unless `swath` is a part that was cut from the swath.
std::shared_ptr<RasterSource> orthorectified(const std::shared_ptr<RasterSource>& swath,
                                             const std::shared_ptr<stream::CubeSource>& pixels,
                                             const std::shared_ptr<const LookupTable>& table);

} // namespace hsi::raster
