// SPDX-License-Identifier: MIT
// The closing of a written raster, and the raster opened again.
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

/// Returns true if the corners of a file are within a tenth of a pixel of the expected ones. An SRS may be
/// read back with other names and another false easting. If `srs` is null or the file has no SRS, only the
/// numbers are compared.
bool same_place(const double (&wanted)[6], const double (&found)[6], int64_t samples, int64_t lines,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs);

/// The bands of a written raster, as readers find them: the dataset's or, if the format makes an array of
/// each band, the subdatasets'.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Returns the fault; empty if the raster has this shape and bands that can store the type's values.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    /// Returns true if a TIFF has blocks without a position in the file. Call it after fault() found none.
    bool lacks_blocks() const;
    /// Returns the nodata value of the first band if it is a number. Call it after fault() found none.
    std::optional<NodataValue> number_for_nodata() const;
    /// Returns true if every band has this nodata value. Call it after fault() found none.
    bool keeps(const NodataValue& nodata) const;
    /// Returns the part of the position of `scene` that the file does not keep, for a message: "the SRS", for
    /// example; empty if it keeps all. Another form of the same position, as some formats have it, is equal.
    /// Call it after fault() found none.
    std::string lost_place(const SceneMetadata& scene) const;
    /// Returns the facts that are missing in the file, as tools read it, compared with `wanted`, which was
    /// read from a dataset that keeps everything: "the wavelengths", for example. Position and nodata are not
    /// included: see lost_place() and keeps(). Call it after fault() found none.
    std::vector<std::string> lost(const SceneMetadata& wanted) const;
    /// Returns the text of GDAL's side file (.aux.xml), which may be empty, with the losses of lost() added.
    /// Some drivers that read this file, such as netCDF's, do not write to it when they get metadata for an
    /// existing file.
    std::string with_lost(const SceneMetadata& wanted, const std::string& side_file) const;
    GDALRasterBand* band(int index) const; ///< from 0, after fault() found none

  private:
    SceneMetadata found() const;
    std::vector<DatasetHandle> m_parts; ///< one, or one per band
    std::string m_reason;               ///< GDAL's reason if it does not open
};

/// Writes the rest of the dataset that GDAL holds, and closes it. From GDAL 3.13 on, a file's last kilobytes
/// wait in GDAL's buffer, and closing does not report a write error. Reading a pixel writes them before, and
/// reports errors. `pixels` false: does not read a pixel. \return false if something was not written to the
/// disk; GDAL's reason, if any, is in the GdalErrors of this thread.
bool close_written(DatasetHandle dataset, bool pixels = true);

} // namespace hsi::raster
