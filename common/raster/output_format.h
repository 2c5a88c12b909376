// SPDX-License-Identifier: MIT
// Which driver writes an output, how, and whether it can hold it.
#pragma once

#include "raster/raster_sink.h"
#include "raster/scene_metadata.h"
#include "raster/source_impl.h"

#include <cpl_string.h>
#include <gdal_priv.h>

#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The path that means standard output.
inline constexpr const char* standard_output = "/vsistdout/";

/// True when the driver has this name.
bool is(GDALDriver* driver, const char* name);

/// True for a driver that takes pixels block by block; others copy a dataset that is complete.
bool takes_blocks(GDALDriver* driver);

/// What makes the file of an output, and how.
struct Target {
    GDALDriver* driver = nullptr;
    GDALDataType type = GDT_Unknown;
    CPLStringList options; ///< creation options with defaults
    /// The driver takes only whole rasters, or holds the output only when it gets it as one: a GTiff is made
    /// first.
    bool copies = false;
};

/// The driver that -of names, or that the extension means: .dat, .raw, .bsq, .bil, .bip and .envi are ENVI's
/// habit, whatever else claims them. Throws UsageError when there is none that writes rasters into files.
GDALDriver* choose_driver(const OutputOptions& options);
/// -co as GDAL takes it, nothing added.
CPLStringList creation_options(const OutputOptions& options);
/// What a GTiff gets when the user says nothing.
void add_geotiff_defaults(CPLStringList& list, const stream::CubeShape& shape, GDALDataType type);
/// The value of -dstnodata in the output's type; none when it does not fit.
std::optional<NodataValue> fitting(double value, GDALDataType type);

/// Driver, type and creation options of an output, as far as they can be judged without making a file: throws
/// UsageError for what the driver says that it does not take. is_virtual: the caller writes a VRT whose
/// pixels other rasters hold.
Target choose_target(const OutputOptions& options, const OutputSpec& spec, bool is_virtual);
/// Writes a small raster of the same kind with known values, reads it back and compares: so many bands, of
/// such a type, with these options, and with the georeference of `scene` (null: one in metres that most
/// drivers take). Sets target.copies. Throws UsageError when what comes back is not what was written. Values
/// may differ where the format or a creation option that the user gave is made to lose some.
void try_target(Target& target, const OutputOptions& options, const OutputSpec& spec,
                const SceneMetadata* scene);
/// Tells the driver that copies `stage` what it would not find out by itself. To be called when the stage has
/// all its metadata.
void prepare_stage(const Target& target, GDALDataset& stage);

/// The bands of a raster that has been written, as readers find them: those of the dataset or, where the
/// format makes an array of each band, those of its subdatasets.
class WrittenRaster {
  public:
    explicit WrittenRaster(const std::string& path);
    /// Empty when the raster has this shape and bands that hold the type's values; else what is wrong.
    std::string fault(const stream::CubeShape& shape, GDALDataType type) const;
    GDALRasterBand* band(int index) const; ///< from 0, after fault() found none

  private:
    std::vector<DatasetHandle> m_parts; ///< one, or one a band
    std::string m_reason;               ///< GDAL's, when it does not open
};

} // namespace hsi::raster
