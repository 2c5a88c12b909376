// SPDX-License-Identifier: MIT
// Facts about a scene in addition to its pixels, as a value.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The meaning of the bands' stored values: number * scale + offset, in `unit`.
struct BandValues {
    std::vector<double> scale, offset; ///< by band; empty if the file states none, or only 1 and 0
    std::string unit;                  ///< empty: unknown, or not the same for all bands
    /// True when stored values and scaled values differ by one factor for all bands, or not at all: then
    /// their angles, mixtures and whitened scores are equal.
    bool one_factor() const;
};

/// How pixels are read.
enum class Access {
    raw,      ///< from known offsets, past GDAL
    chunks,   ///< a product's chunks, past HDF5's library
    computed, ///< the scene computes (.hsi)
    gdal,     ///< through RasterIO, or GeoTIFF's blocks
};
const char* access_name(Access access); ///< "raw", "chunks", "computed" or "gdal"

/// The bands of its file that a scene has, with facts about each; lists have one entry per band of the scene.
struct BandFacts {
    std::vector<int> numbers; ///< in the file, 1-based
    int in_file = 0;          ///< all bands
    std::vector<int> bad;     ///< of the file, left out because the bad-band list marks them
    std::vector<int> marked;  ///< `bad`, and bands of the scene that the list marks (-bbl ignore, -b)
    /// The numbers by which models, libraries and other scenes know the bands without wavelengths: in the
    /// scene that the file was made from, if it states them (`known_told`), else `numbers`.
    std::vector<int> known_as;
    bool known_told = false;
    std::vector<std::string> names;              ///< descriptions; "Band N" without one
    std::vector<double> wavelengths_nm, fwhm_nm; ///< NaN where unknown; empty when no band has one
    /// GDAL's scale, offset and unit of the bands; without a scale, the ENVI header's reflectance scale
    /// factor or data reflectance gain and offset values, and its data units.
    BandValues values;
    std::optional<double> nodata; ///< of the first band, or -srcnodata
};

/// A spatial reference system. Its texts are made when they are first used.
class SpatialReference {
  public:
    virtual ~SpatialReference() = default;
    virtual std::string wkt() const = 0;
    virtual std::string name() const = 0; ///< "WGS 84 / UTM zone 33N"
    /// The code, also if the file does not state it but defines that SRS; 0: none.
    virtual int epsg() const = 0;
};

struct SceneFacts {
    std::string path;
    std::string driver;  ///< "ENVI", "GTiff" ...; "array"
    std::string product; ///< the product, recognised by the file's content: "EMIT L2A"; empty: none
    std::string type;    ///< that holds the values of all bands: "Float32", "Int16" ...
    /// Single precision holds every value of the bands' types: Float32, and integers of 8 and 16 bits.
    bool exact_in_float = true;
    Access access = Access::raw;
    std::string compression; ///< "DEFLATE", "ZSTD", "LZW", "LZF" ...; empty: none, or unknown
    bool remote = false;     ///< the file is remote, and readers fetch the bytes that they need
    BandFacts bands;
    bool scaled = false, masked = false;               ///< made by scaled(), by with_mask()
    std::shared_ptr<const SpatialReference> srs;       ///< null without an SRS
    std::optional<std::array<double, 6>> geotransform; ///< of the window
    /// Notes for the user about the file: lists of its ENVI header that are ignored because their length is
    /// not the count of bands, a range of -exclude-range without a band.
    std::vector<std::string> notes;

    std::string srs_wkt() const { return srs ? srs->wkt() : std::string(); }
    std::string srs_name() const { return srs ? srs->name() : std::string(); }
    /// Copies the geotransform; returns false without one.
    bool copy_geotransform(double (&to)[6]) const {
        if (geotransform) std::copy(geotransform->begin(), geotransform->end(), to);
        return geotransform.has_value();
    }
};

} // namespace hsi::raster
