// SPDX-License-Identifier: MIT
// The readers of individual products, which product.cpp lists.
#pragma once

#include "raster/products/array_file.h"
#include "raster/products/product.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The use of an array, which decides between several candidates. For a scene, cubes are preferred. For
/// labels, masks and lookup tables (`plane`), arrays with two axes are preferred. For a library, tables and
/// lists of spectra are preferred.
struct WantedArray {
    enum class Use { scene, plane, library } use = Use::scene;
    int64_t lines = 0, samples = 0; ///< size of the wanted plane; 0: any
    int64_t bands = 0;              ///< number of bands of the scene that uses the library; 0: any
};

/// Each function returns nullopt for files of other products, and throws Error for a damaged file of its
/// product.
std::optional<Product> read_emit(const ArrayFile& file);
std::optional<Product> read_prisma(const ArrayFile& file);
std::optional<Product> read_neon(const ArrayFile& file);
std::optional<Product> read_aviris(const ArrayFile& file);
std::optional<Product> read_tanager(const ArrayFile& file);
std::optional<Product> read_pace(const ArrayFile& file);
std::optional<Product> read_hico(const ArrayFile& file);
/// Reads an array of a file that is not a product of an agency (array_facts.h): the array `name`, or the only
/// candidate. Returns nullopt if there is no such array, or if GDAL's raster driver should read the file.
/// Throws Error for an array with too many axes or with several times.
std::optional<Product> read_array(const ArrayFile& file, const std::string& name, const WantedArray& wanted);
/// Reads arrays that have only the axis of wavelengths, as in a library: one product per array. If their
/// lengths differ, only arrays with `wanted.bands` elements are read.
std::vector<Product> read_spectra(const ArrayFile& file, const WantedArray& wanted);

/// Tries all readers above; nullopt if the file has no suitable array. `path` is the path of a file or the
/// name of an array (NETCDF:"a.nc":cube). Throws Error as the readers do, and if values are missing
/// (check_hdf5_sources()).
std::optional<Product> product_in_arrays(const std::string& path);

/// Reads the XML file `xml` of an EnMAP or DESIS product. `image` is the path of its image; if this path is
/// empty, the function searches for the image.
std::optional<Product> read_metadata_xml(const std::string& xml, const std::string& image);
/// Searches for the XML file that describes the GeoTIFF `image`, which has `bands` bands. Returns its
/// product; nullopt if there is no such file.
std::optional<Product> find_metadata_xml(const std::string& image, int bands);

/// Returns a product with the path and the driver of `file`, but without parts and bands.
Product begin_product(const ArrayFile& file, std::string name);
/// Returns the number in an attribute; nullopt if the attribute does not exist. If the attribute is a text
/// that is not a number, adds a note and returns nullopt.
template <class Holder>
std::optional<double> number_told(Product& product, const std::shared_ptr<Holder>& holder,
                                  const std::string& name) {
    const Numbers found = attribute_numbers(holder, name);
    if (!found.no_numbers.empty())
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + name + " is '" +
                                found.no_numbers + "', which is not a number; it is ignored");
    return found.size() == 1 ? std::optional(found.values[0]) : std::nullopt;
}
/// Adds the bands of the part that was added last, in their order. Throws Error if the lists have different
/// lengths.
void add_bands(Product& product, const Numbers& wavelengths, const Numbers& fwhm, const Numbers& good);
/// Calls check_product(), then sorts the bands by wavelength. Bands without a wavelength are last.
void sort_bands(Product& product);
/// Sets the arrays of longitude and latitude (WGS 84) if both exist. Throws Error if they do not have the
/// size of the scene.
void take_locations(Product& product, const ArrayFile& file, const std::string& longitude,
                    const std::string& latitude);

/// Returns the geotransform of a grid from the coordinates of the centres of its columns (`x`) and lines
/// (`y`), which are assumed to be evenly spaced. nullopt if a list has fewer than two coordinates.
std::optional<std::array<double, 6>> grid_of_centres(const Numbers& x, const Numbers& y);

/// Adds an array with three axes as a part, with its missing values (take_values()). The band axis must have
/// the length `bands`. Among several such axes, it is the axis whose name denotes bands, or else the axis
/// `usual`. Lines come before samples unless the names of the axes state otherwise. Throws Error if the array
/// does not exist or has no such axis, and if it has other numbers of lines and samples than earlier parts.
void add_part(Product& product, const ArrayFile& file, const std::string& array, size_t bands, int usual);
/// Throws Error with the product and the text `what`, for a product that lacks data or is damaged.
[[noreturn]] void refuse_product(const Product& product, const std::string& what);
/// Removes impossible values from the product, and adds notes about them. These are wavelengths and FWHM that
/// are not positive numbers, wavelengths that are all equal, scales of 0, and a grid without extent. If the
/// unit is nanometres, which is the default, and the wavelengths are too small for nanometres, they are read
/// as micrometres.
void check_product(Product& product);
/// Returns the SRS of an EPSG code. Adds a note if the code does not exist.
std::shared_ptr<const OGRSpatialReference> srs_of_code(Product& product, double code);
/// Returns the SRS of a definition, as text for GDAL; null if GDAL does not know it.
std::shared_ptr<const OGRSpatialReference> srs_from(const std::string& definition);

} // namespace hsi::raster
