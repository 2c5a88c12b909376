// SPDX-License-Identifier: MIT
// Closes a written raster, and opens it again to compare it with the expected raster.
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

/// Returns true if the corners of a file are within a tenth of a pixel of their expected positions. `wanted`
/// and `srs` describe the expected position, `found` and `found_srs` the position in the file. The two SRS
/// may have different names and different false eastings. If one of them is null, only the geotransforms are
/// compared.
bool same_place(const double (&wanted)[6], const double (&found)[6], int64_t samples, int64_t lines,
                const OGRSpatialReference* srs, const OGRSpatialReference* found_srs);

/// The bands of a written raster as readers find them. These are the bands of the dataset or, if the format
/// stores each band as an array, the bands of the subdatasets.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Returns the fault of the file, for a message; empty if the raster has this shape and its bands can
    /// store all values of the type.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    /// Returns true if a TIFF has blocks that were not written. Call it only if fault() is empty.
    bool lacks_blocks() const;
    /// Returns the nodata value of the first band if it is a number. Call it only if fault() is empty.
    std::optional<NodataValue> number_for_nodata() const;
    /// Returns true if every band has this nodata value. Call it only if fault() is empty.
    bool keeps(const NodataValue& nodata) const;
    /// Returns which part of the position of `scene` the file has lost, for a message, such as "the SRS";
    /// empty if the file has the position. Another form of the same position is accepted, because some
    /// formats change the form. Call it only if fault() is empty.
    std::string lost_place(const SceneMetadata& scene) const;
    /// Returns which facts of `wanted` are missing in the file, for a message, such as "the wavelengths".
    /// `wanted` was read from a dataset that stores all metadata. Position and nodata are not included; see
    /// lost_place() and keeps(). Call it only if fault() is empty.
    std::vector<std::string> lost(const SceneMetadata& wanted) const;
    /// Returns the text of GDAL's side file (.aux.xml), to which the facts that lost() reports were added.
    /// `side_file` is the existing text, which may be empty. This is needed because some drivers, such as
    /// netCDF, read side files but do not write metadata of an existing file to them.
    std::string with_lost(const SceneMetadata& wanted, const std::string& side_file) const;
    GDALRasterBand* band(int index) const; ///< `index` counts from 0; call it only if fault() is empty

  private:
    SceneMetadata found() const;
    std::vector<DatasetHandle> m_parts; ///< one dataset, or one per band
    std::string m_reason;               ///< GDAL's error if the file cannot be opened
};

/// Writes the remaining data of the dataset, and closes it. Returns false if something was not written to the
/// disk; GDAL's reason, if any, is in the GdalErrors of this thread. From GDAL 3.13 on, the last kilobytes of
/// a file are in a buffer of GDAL, and closing does not report a write error. Reading a pixel writes this
/// buffer and reports errors. If `pixels` is false, no pixel is read.
bool close_written(DatasetHandle dataset, bool pixels = true);

} // namespace hsi::raster
