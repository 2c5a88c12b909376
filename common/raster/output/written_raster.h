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

/// Returns true when the corners of a file are within a tenth of a pixel of the wanted ones. An SRS may come
/// back under other names and with another false easting; without one the numbers are compared. `srs` null:
/// only the numbers are.
bool same_place(const double (&wanted)[6], const double (&found)[6], int64_t samples, int64_t lines,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs);

/// The bands of a written raster, as readers find them: the dataset's or, if the format makes an array of
/// each band, the subdatasets'.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Empty when the raster has this shape and bands that hold the type's values; else the fault.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    /// True when a TIFF has blocks without a place in the file; call it after fault() found none.
    bool lacks_blocks() const;
    /// The nodata value of the first band, a number; call it after fault() found none.
    std::optional<NodataValue> number_for_nodata() const;
    /// True when every band has this nodata value; call it after fault() found none.
    bool keeps(const NodataValue& nodata) const;
    /// The part of the position of `scene` that the file does not keep, for a message: "the SRS", for
    /// example; empty when it keeps all. Another form of the same position, as some formats have it, is
    /// equal. Call it after fault() found none.
    std::string lost_place(const SceneMetadata& scene) const;
    /// The facts that are missing in the file, as tools read it, compared with `wanted`, which was read from
    /// a dataset that keeps everything: "the wavelengths", for example. Position and nodata are not included:
    /// lost_place(), keeps(). Call it after fault() found none.
    std::vector<std::string> lost(const SceneMetadata& wanted) const;
    /// The text of GDAL's side file (.aux.xml), which may be empty, with the losses of lost() added. A driver
    /// that reads this file need not write into it when it gets metadata for an existing file: netCDF's does
    /// not.
    std::string with_lost(const SceneMetadata& wanted, const std::string& side_file) const;
    GDALRasterBand* band(int index) const; ///< from 0, after fault() found none

  private:
    SceneMetadata found() const;
    std::vector<DatasetHandle> m_parts; ///< one, or one a band
    std::string m_reason;               ///< GDAL's, when it does not open
};

/// Writes the rest that GDAL holds of the dataset, and closes it. From GDAL 3.13 on, a file's last kilobytes
/// wait in GDAL's buffer, and closing does not report when the disk does not take them; reading a pixel
/// writes them before, with an answer. `pixels` false: do not check the dataset's pixels. \return false:
/// something did not get to the disk; GDAL's reason, if any, is in the GdalErrors of this thread.
bool close_written(DatasetHandle dataset, bool pixels = true);

} // namespace hsi::raster
