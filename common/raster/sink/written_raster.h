// SPDX-License-Identifier: MIT
// A raster that has been written, opened again.
#pragma once

#include "raster/metadata/scene_metadata.h"
#include "raster/source/source_impl.h"
#include "stream/cube_source.h"

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// The bands of a raster that has been written, as readers find them: those of the dataset or, where the
/// format makes an array of each band, those of its subdatasets.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Empty when the raster has this shape and bands that hold the type's values; else what is wrong.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    /// True when a TIFF has blocks that lie nowhere in the file; after fault() found none.
    bool lacks_blocks() const;
    /// True when every band has this nodata value; after fault() found none.
    bool keeps(const NodataValue& nodata) const;
    /// What the file does not keep of where `scene` lies, for a message: "the SRS", for one; empty when it
    /// keeps all. Another form of the same place, as some formats have it, is that place. After fault() found
    /// none.
    std::string lost_place(const SceneMetadata& scene) const;
    GDALRasterBand* band(int index) const; ///< from 0, after fault() found none

  private:
    std::vector<DatasetHandle> m_parts; ///< one, or one a band
    std::string m_reason;               ///< GDAL's, when it does not open
};

} // namespace hsi::raster
