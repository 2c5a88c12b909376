// SPDX-License-Identifier: MIT
// Scenes as agencies deliver them: an HDF5 or netCDF-4 file whose arrays contain the cube and its metadata,
// or a GeoTIFF with an XML file. Products are recognised by content, never by name. A table with one row per
// product (product.cpp) selects the reader (product_hdf5.cpp, product_xml.cpp). docs/products.md describes
// the result for each product.
#pragma once

#include "raster/gdal/dataset_handle.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/sample_convert.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

/// An array that contains bands of the scene and has three axes, itself or through `view`.
struct CubePart {
    std::string array; ///< full name in the file
    std::string view;  ///< argument of GDAL's GetView() if the array itself does not have three axes; else
                       ///< empty
    GDALDataType type = GDT_Unknown;
    /// The type in which GDAL reads the samples, if their bits have another meaning (_Unsigned); else
    /// GDT_Unknown.
    GDALDataType stored = GDT_Unknown;
    std::optional<NodataValue> nodata;
    InvalidSamples invalid; ///< further missing values
    int line_axis = 0, sample_axis = 1, band_axis = 2;
    std::array<int64_t, 3> chunk{}; ///< along the array's axes; all 0: stored in one piece
    uint64_t chunk_bytes() const;   ///< decoded
    /// Return the samples or lines of a chunk; 1 line and `whole` samples for an array in one piece.
    int64_t chunk_lines() const { return std::max<int64_t>(1, chunk[static_cast<size_t>(line_axis)]); }
    int64_t chunk_samples(int64_t whole) const;
};

struct ProductBand {
    int part = 0;                 ///< index in Product::parts
    int64_t index = 0;            ///< along that part's band axis
    std::string wavelength, fwhm; ///< the file's digits, in Product::wavelength_units; empty: unknown
    std::optional<bool> good;     ///< the product's flag for the band
    std::optional<double> scale, offset;
    std::string description;
};

/// A geographic lookup table inside a product (raster/lookup_table.h).
struct LookupArrays {
    std::string sample, line; ///< full names
    int64_t samples = 0, lines = 0;
    std::array<double, 6> geotransform{};
    std::shared_ptr<const OGRSpatialReference> srs;
};

/// The facts that files of products state. A product states only some of them.
struct Product {
    std::string name;               ///< "EMIT L2A reflectance"
    std::string driver = "HDF5";    ///< for a scene in arrays: GDAL's driver that reads them, or "MATLAB"
    std::string path;               ///< the file with the pixels
    std::vector<std::string> files; ///< all files that are read, including `path`
    std::vector<CubePart> parts;    ///< empty: GDAL reads `path` unchanged
    std::string stack;              ///< without parts: the text of a VRT that GDAL reads instead of `path`
    int64_t samples = 0, lines = 0; ///< with parts
    std::vector<ProductBand> bands; ///< in the order of the scene
    std::string wavelength_units = "Nanometers";
    std::string unit;                    ///< of the values
    std::vector<std::string> attributes; ///< of the file: "NC_GLOBAL#title=...", as GDAL's drivers return
                                         ///< them
    std::string time_start, time_end;    ///< of the acquisition, as the file states them; empty: unknown
    std::optional<NodataValue> nodata;   ///< without parts
    /// The array's first line is the scene's last line; likewise, its first sample is the scene's last
    /// sample.
    bool lines_rise = false, samples_fall = false;
    bool of_agency = true; ///< false: an array of an unknown product
    std::optional<std::array<double, 6>> geotransform;
    std::shared_ptr<const OGRSpatialReference> srs; ///< of the geotransform, or of the locations
    std::string longitude, latitude;                ///< arrays of the size of the scene; empty without them
    std::optional<LookupArrays> lookup;
    std::vector<std::string> class_names; ///< of labels, by their values; empty for a value without a name
    std::vector<std::string> notes;       ///< impossible values in the file

    /// Returns the part with a band of the scene (from 0 on), for products with parts.
    const CubePart& part_of(size_t band) const { return parts[static_cast<size_t>(bands[band].part)]; }
};

/// The scene that a user's name leads to.
struct SceneFile {
    std::string path;                       ///< the path to open
    std::shared_ptr<const Product> product; ///< null: an ordinary raster
    std::string header;                     ///< the ENVI header in use; empty: the one that GDAL finds
    std::vector<std::string> notes;         ///< notes for the user, in addition to the product's own
};

/// Returns the data file for an ENVI header, and the image for the XML file of a product; else the path
/// itself. Names that are not files (NETCDF:"a.nc":v) are not products. Throws Error for a product that lacks
/// a part, and for a header without a data file.
SceneFile find_scene(const std::string& path);

/// Returns whether a path leads to a file of HDF5, netCDF or Zarr, or to an array in such a file. A raw file
/// that only begins like one does not count.
bool may_hold_arrays(const std::string& path);

/// Returns the array of labels, of a mask or of a lookup table that a path leads to; among several, the one
/// with the requested size (0: any). Null if it leads to no array, or if GDAL's raster driver should read it.
std::shared_ptr<const Product> find_plane(const std::string& path, int64_t lines, int64_t samples);
/// Returns the spectra that a path leads to: a table with two axes, a list along the wavelengths, or several
/// lists, one product per list. Among several tables, takes the one with `bands` (0: any). Takes a scene if
/// there is nothing else.
std::vector<Product> find_spectra(const std::string& path, int64_t bands);
/// Opens a product in arrays as a dataset with all bands; missing pixels have the nodata value. Throws
/// Error.
DatasetHandle open_array_raster(std::shared_ptr<const Product> product);

/// Returns the files that a product at `path` is read from; empty if it is not a product, or is damaged.
std::vector<std::string> product_files(const std::string& path);

/// Returns the metadata of a scene of arrays.
SceneMetadata scene_of(const Product& product);
/// Adds the metadata of an XML file to the scene of an image that GDAL has read.
void complete_scene(const Product& product, SceneMetadata& scene);

/// Returns longitudes and latitudes (degrees) of pixels (line, sample) of the file; NaN if the arrays contain
/// none.
std::vector<std::pair<double, double>> locations_of(const Product& product,
                                                    const std::vector<std::pair<int64_t, int64_t>>& pixels);

} // namespace hsi::raster
