// SPDX-License-Identifier: MIT
// What is known of a scene beside its pixels, as a value.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// What the numbers of the bands mean: number * scale + offset, in `unit`.
struct BandValues {
    std::vector<double> scale, offset; ///< one a band; empty when the file says nothing, or 1 and 0 alone
    std::string unit;                  ///< empty: unknown, or not the same for all bands
    /// True when one factor that all bands share, or nothing, leads from numbers to what they mean: such
    /// numbers have the same angles, mixtures and whitened scores.
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

/// Which bands of its file a scene has, and what is known of each; lists are one a band of the scene.
struct BandFacts {
    std::vector<int> numbers; ///< in the file, 1-based
    int in_file = 0;          ///< all that there are
    std::vector<int> bad;     ///< of the file, left out because the bad-band list marks them
    std::vector<int> marked;  ///< `bad`, and bands of the scene that the list marks (-bbl ignore, -b)
    /// How models, libraries and other scenes know the bands where there are no wavelengths: by their numbers
    /// in the scene that the file was made from, where it tells them (`known_told`), else by `numbers`.
    std::vector<int> known_as;
    bool known_told = false;
    std::vector<std::string> names;              ///< descriptions; "Band N" where there is none
    std::vector<double> wavelengths_nm, fwhm_nm; ///< NaN where unknown; empty when no band has one
    /// GDAL's scale, offset and unit of the bands; where there is no scale, the ENVI header's reflectance
    /// scale factor or data reflectance gain and offset values, and its data units.
    BandValues values;
    std::optional<double> nodata; ///< of the first band, or -srcnodata
};

/// A spatial reference system. Its texts are made when they are asked for.
class SpatialReference {
  public:
    virtual ~SpatialReference() = default;
    virtual std::string wkt() const = 0;
    virtual std::string name() const = 0; ///< "WGS 84 / UTM zone 33N"
    /// The code, also where the file does not say it but defines that one; 0: none.
    virtual int epsg() const = 0;
};

struct SceneFacts {
    std::string path;
    std::string driver;  ///< "ENVI", "GTiff" ...; "array"
    std::string product; ///< that the file was recognised as by its content: "EMIT L2A"; empty: none
    std::string type;    ///< that holds the values of all bands: "Float32", "Int16" ...
    /// Single precision holds every value of the bands' types: Float32, and integers of 8 and 16 bits.
    bool exact_in_float = true;
    Access access = Access::raw;
    std::string compression; ///< "DEFLATE", "ZSTD", "LZW", "LZF" ...; empty: none, or unknown
    bool remote = false;     ///< a server holds the file, and readers fetch what they need by themselves
    BandFacts bands;
    bool scaled = false, masked = false;               ///< made by scaled(), by with_mask()
    std::shared_ptr<const SpatialReference> srs;       ///< null: the scene has none
    std::optional<std::array<double, 6>> geotransform; ///< of the window
    /// What a user should know of the file: lists of its ENVI header that are left out because their length
    /// is not the number of bands, a range of -exclude-range without a band.
    std::vector<std::string> notes;

    std::string srs_wkt() const { return srs ? srs->wkt() : std::string(); }
    std::string srs_name() const { return srs ? srs->name() : std::string(); }
    /// Copies the geotransform; returns false when there is none.
    bool copy_geotransform(double (&to)[6]) const {
        if (geotransform) std::copy(geotransform->begin(), geotransform->end(), to);
        return geotransform.has_value();
    }
};

} // namespace hsi::raster
