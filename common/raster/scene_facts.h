// SPDX-License-Identifier: MIT
// The facts about a scene except its pixels, in structures that can be copied.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The meaning of the bands' stored values. A scaled value is stored value * scale + offset, in `unit`.
struct BandValues {
    /// One value per band; empty if the file states no scales and offsets, or only scale 1 and offset 0.
    std::vector<double> scale, offset;
    std::string unit; ///< empty: unknown, or different between bands
    /// Returns true if scaled values are the stored values, or the stored values times a factor that is the
    /// same for all bands. Spectral angles, mixtures and whitened scores are then the same for scaled and
    /// stored values.
    bool one_factor() const;
};

/// The way in which pixels are read.
enum class Access {
    raw,      ///< from known offsets, without GDAL
    chunks,   ///< a product's chunks, without the HDF5 library
    computed, ///< a virtual scene (.hsi)
    gdal,     ///< through RasterIO, or GeoTIFF's blocks
};
const char* access_name(Access access); ///< "raw", "chunks", "computed" or "gdal"

/// The bands of the file that a scene contains, with facts about each band. Lists have one entry per band of
/// the scene, except `bad` and `marked`.
struct BandFacts {
    std::vector<int> numbers; ///< band numbers in the file, 1-based
    int in_file = 0;          ///< number of bands in the file
    std::vector<int> bad;     ///< bands of the file that are left out because the bad-band list marks them
    std::vector<int> marked;  ///< `bad`, and bands of the scene that the list marks (-bbl ignore, -b)
    /// The numbers by which models, libraries and other scenes identify bands without wavelengths. If the
    /// file states the band numbers in the scene from which it was made (`known_told`), these are the
    /// numbers; otherwise `known_as` equals `numbers`.
    std::vector<int> known_as;
    bool known_told = false;
    std::vector<std::string> names;              ///< descriptions; "Band N" if absent
    std::vector<double> wavelengths_nm, fwhm_nm; ///< NaN if unknown; empty if all are unknown
    /// Scale, offset and unit of the bands as GDAL returns them. If no band has a scale, the fields of the
    /// ENVI header are used: reflectance scale factor, or data reflectance gain and offset values. If bands
    /// have no unit, data units is used.
    BandValues values;
    std::optional<double> nodata; ///< nodata value of the first band, or of -srcnodata
};

/// A spatial reference system. Its texts are created at their first use.
class SpatialReference {
  public:
    virtual ~SpatialReference() = default;
    virtual std::string wkt() const = 0;
    virtual std::string name() const = 0; ///< "WGS 84 / UTM zone 33N"
    /// Returns the EPSG code, even if the file defines the SRS without stating the code; 0 if no code is
    /// found.
    virtual int epsg() const = 0;
};

struct SceneFacts {
    std::string path;
    std::string driver;  ///< GDAL's driver, such as "ENVI" or "GTiff"; "array" for an array in memory
    std::string product; ///< the product, recognised by the file's content: "EMIT L2A"; empty: not a product
    std::string type;    ///< type that represents the values of all bands: "Float32", "Int16" ...
    /// True if single precision represents every value of the bands' types: Float32, and integers of 8 and 16
    /// bits.
    bool exact_in_float = true;
    Access access = Access::raw;
    std::string compression; ///< "DEFLATE", "ZSTD", "LZW", "LZF" ...; empty: none, or unknown
    bool remote = false;     ///< the file is remote, and readers fetch the bytes that they need
    BandFacts bands;
    bool scaled = false, masked = false;         ///< true: made by RasterSource::scaled(), by with_mask()
    std::shared_ptr<const SpatialReference> srs; ///< null without an SRS
    std::optional<std::array<double, 6>> geotransform; ///< geotransform of the window
    /// Notes for the user about the file. Examples are a list of the ENVI header that is ignored because its
    /// length is not the number of bands, and a range of -exclude-range without a band.
    std::vector<std::string> notes;

    std::string srs_wkt() const { return srs ? srs->wkt() : std::string(); }
    std::string srs_name() const { return srs ? srs->name() : std::string(); }
    /// Copies the geotransform; returns false if there is none.
    bool copy_geotransform(double (&to)[6]) const {
        if (geotransform) std::copy(geotransform->begin(), geotransform->end(), to);
        return geotransform.has_value();
    }
};

} // namespace hsi::raster
