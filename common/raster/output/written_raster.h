// SPDX-License-Identifier: MIT
// The end of a raster that was written, and the raster opened again.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/scene/source_impl.h"
#include "stream/cube_source.h"

#include <gdal_priv.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hsi::raster {

/// Returns true when the corners of a file lie within a tenth of a pixel of where they should. An SRS may
/// come back under other names and with another false easting; without one the numbers count. `srs` null:
/// only they do.
bool same_place(const double (&wanted)[6], const double (&found)[6], int64_t samples, int64_t lines,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs);

/// The bands of a raster that has been written, as readers find them: those of the dataset or, where the
/// format makes an array of each band, those of its subdatasets.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Empty when the raster has this shape and bands that hold the type's values; else what is wrong.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    /// True when a TIFF has blocks that lie nowhere in the file; after fault() found none.
    bool lacks_blocks() const;
    /// What the first band has for no data, a number; after fault() found none.
    std::optional<NodataValue> number_for_nodata() const;
    /// True when every band has this nodata value; after fault() found none.
    bool keeps(const NodataValue& nodata) const;
    /// What the file does not keep of where `scene` lies, for a message: "the SRS", for one; empty when it
    /// keeps all. Another form of the same place, as some formats have it, is that place. After fault() found
    /// none.
    std::string lost_place(const SceneMetadata& scene) const;
    /// What the file, read as tools read it, does not tell of all that `wanted`, read from a dataset that
    /// keeps all of it, tells: "the wavelengths", for one. Place and nodata are not among it: lost_place(),
    /// keeps(). After fault() found none.
    std::vector<std::string> lost(const SceneMetadata& wanted) const;
    /// The text of GDAL's side file (.aux.xml), which may be empty, with what lost() found. Drivers that read
    /// it need not write into it what is told them of a file that is there: netCDF's does not.
    std::string with_lost(const SceneMetadata& wanted, const std::string& side_file) const;
    GDALRasterBand* band(int index) const; ///< from 0, after fault() found none

  private:
    SceneMetadata found() const;
    std::vector<DatasetHandle> m_parts; ///< one, or one a band
    std::string m_reason;               ///< GDAL's, when it does not open
};

/// Writes what GDAL still holds of the dataset, and closes it. From GDAL 3.13 on a file's last kilobytes wait
/// in a buffer of GDAL's own, and closing does not tell when the disk does not take them; reading a pixel
/// writes them before, with an answer. `pixels` false: the dataset's pixels are not its own business. \return
/// false: something did not get to the disk; what GDAL says of it, if anything, is in the GdalErrors of this
/// thread.
bool close_written(DatasetHandle dataset, bool pixels = true);

} // namespace hsi::raster
