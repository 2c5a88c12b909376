// SPDX-License-Identifier: MIT
// Finds scenes in the form in which agencies deliver them. Such a scene is an HDF5 or netCDF-4 file whose
// arrays contain the cube and its metadata, or a GeoTIFF with an XML file. Products are recognised by their
// content, never by their names. product.cpp lists the readers, which are in product_hdf5.cpp,
// product_ocean.cpp and product_xml.cpp. docs/products.md describes the result for each product.
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

/// An array that contains bands of the scene. The array has three axes, or `view` gives it three axes.
struct CubePart {
    std::string array; ///< full name of the array in the file
    /// Argument of GDAL's GetView() if the array itself does not have three axes; otherwise empty.
    std::string view;
    GDALDataType type = GDT_Unknown;
    /// The type as which GDAL must read the samples, if the attribute _Unsigned states that their bits mean
    /// values of `type` instead; otherwise GDT_Unknown.
    GDALDataType stored = GDT_Unknown;
    std::optional<NodataValue> nodata;
    InvalidSamples invalid; ///< missing values in addition to `nodata`
    int line_axis = 0, sample_axis = 1, band_axis = 2;
    std::array<int64_t, 3> chunk{}; ///< chunk size along each axis; all 0: the array is not chunked
    uint64_t chunk_bytes() const;   ///< bytes of an uncompressed chunk
    /// Return the number of lines or samples of a chunk. An array without chunks is treated as if its chunks
    /// had 1 line and `whole` samples.
    int64_t chunk_lines() const { return std::max<int64_t>(1, chunk[static_cast<size_t>(line_axis)]); }
    int64_t chunk_samples(int64_t whole) const;
};

struct ProductBand {
    int part = 0;      ///< index in Product::parts
    int64_t index = 0; ///< index along the band axis of the part
    /// The numbers as texts, with the digits of the file, in Product::wavelength_units; empty if unknown.
    std::string wavelength, fwhm;
    std::optional<bool> good; ///< whether the product marks the band as good
    std::optional<double> scale, offset;
    std::string description;
};

/// The arrays of a geographic lookup table (GLT) inside a product (raster/lookup_table.h).
struct LookupArrays {
    std::string sample, line; ///< full names of the arrays
    int64_t samples = 0, lines = 0;
    std::array<double, 6> geotransform{};
    std::shared_ptr<const OGRSpatialReference> srs;
};

/// The facts that the files of a product state. Most products state only some of these facts; the other
/// members keep their default values.
struct Product {
    std::string name;               ///< for example "EMIT L2A reflectance"
    std::string driver = "HDF5";    ///< for arrays: GDAL's driver that reads them, or "MATLAB"
    std::string path;               ///< path of the file with the pixels
    std::vector<std::string> files; ///< paths of all files that are read, including `path`
    std::vector<CubePart> parts;    ///< the arrays of the cube; empty: GDAL reads `path` as a raster
    std::string stack; ///< if `parts` is empty: text of a VRT that GDAL reads instead of `path`; may be empty
    int64_t samples = 0, lines = 0; ///< set if `parts` is not empty
    std::vector<ProductBand> bands; ///< in the order of the scene
    std::string wavelength_units = "Nanometers";
    std::string unit; ///< unit of the values
    /// Attributes of the file as metadata items, in the form of GDAL's drivers: "NC_GLOBAL#title=..."
    std::vector<std::string> attributes;
    std::string time_start, time_end;  ///< acquisition time as the file states it; empty: unknown
    std::optional<NodataValue> nodata; ///< nodata value if `parts` is empty
    /// True if the first line (or first sample) of the array is the last line (or last sample) of the scene.
    bool lines_rise = false, samples_fall = false;
    bool of_agency = true; ///< false: an array that no product reader recognises
    std::optional<std::array<double, 6>> geotransform;
    std::shared_ptr<const OGRSpatialReference> srs; ///< SRS of the geotransform or of longitude and latitude
    /// Names of the arrays of longitude and latitude, which have the size of the scene; empty if the product
    /// has no such arrays.
    std::string longitude, latitude;
    std::optional<LookupArrays> lookup;
    std::vector<std::string> class_names; ///< names of labels by class value; empty: no name
    std::vector<std::string> notes;       ///< notes about impossible values in the file

    /// Returns the part that contains a band of the scene, counted from 0. `parts` must not be empty.
    const CubePart& part_of(size_t band) const { return parts[static_cast<size_t>(bands[band].part)]; }
};

/// The scene that a name given by the user denotes.
struct SceneFile {
    std::string path;                       ///< path to open
    std::shared_ptr<const Product> product; ///< null: the scene is an ordinary raster
    std::string header;                     ///< path of the ENVI header to use; empty: GDAL's choice
    std::vector<std::string> notes;         ///< notes for the user, in addition to Product::notes
};

/// Finds the file to open: the data file for an ENVI header, the image for the XML file of a product,
/// otherwise the path itself. Throws Error for a product with a missing part, and for a header without a data
/// file.
SceneFile find_scene(const std::string& path);

/// Returns whether a path denotes an HDF5, netCDF or Zarr file, or an array in such a file. Raw files with an
/// ENVI header are excluded, even if they begin like one of these formats.
bool may_hold_arrays(const std::string& path);

/// Returns the array that a path denotes, for labels, a mask or a lookup table. Among several arrays, the
/// function selects the array with the requested size (0: any). Null if there is no such array, or if GDAL's
/// raster driver should read the file.
std::shared_ptr<const Product> find_plane(const std::string& path, int64_t lines, int64_t samples);
/// Returns the spectra that a path denotes: a table with two axes, a list along the wavelengths, or several
/// lists (one product per list). Among several tables, the function selects the table with `bands` bands (0:
/// any). A scene is returned only if there are no spectra.
std::vector<Product> find_spectra(const std::string& path, int64_t bands);
/// Opens a product made of arrays as a dataset with all bands. Missing pixels have the nodata value. Throws
/// Error.
DatasetHandle open_array_raster(std::shared_ptr<const Product> product);

/// Returns the paths of the files from which the product at `path` is read; empty if `path` is not a product,
/// or if the product is damaged.
std::vector<std::string> product_files(const std::string& path);

/// Returns the metadata of a scene that is made of arrays.
SceneMetadata scene_of(const Product& product);
/// Adds the metadata of a product to `scene`, the metadata of its image as GDAL has read it. Throws Error if
/// they have different numbers of bands.
void complete_scene(const Product& product, SceneMetadata& scene);

/// Returns longitude and latitude in degrees of the given pixels (line, sample) of the file; NaN where the
/// arrays have no valid position.
std::vector<std::pair<double, double>> locations_of(const Product& product,
                                                    const std::vector<std::pair<int64_t, int64_t>>& pixels);

} // namespace hsi::raster
