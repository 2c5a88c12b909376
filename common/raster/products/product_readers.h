// SPDX-License-Identifier: MIT
// The readers of single products, for the table in product.cpp.
#pragma once

#include "raster/products/array_file.h"
#include "raster/products/product.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hsi::raster {

/// The use of an array, which decides the choice among several. For a scene, cubes come first; for labels and
/// the like, arrays with two axes (planes); for a library, tables and lists of spectra.
struct WantedArray {
    enum class Use { scene, plane, library } use = Use::scene;
    int64_t lines = 0, samples = 0; ///< of a plane; 0: any
    int64_t bands = 0;              ///< of the scene that uses a library; 0: any
};

/// Each function returns nullopt for a file of another product, and throws Error for a damaged file of its
/// product.
std::optional<Product> read_emit(const ArrayFile& file);
std::optional<Product> read_prisma(const ArrayFile& file);
std::optional<Product> read_neon(const ArrayFile& file);
std::optional<Product> read_aviris(const ArrayFile& file);
std::optional<Product> read_tanager(const ArrayFile& file);
std::optional<Product> read_pace(const ArrayFile& file);
std::optional<Product> read_hico(const ArrayFile& file);
/// Reads an array without a product (array_facts.h): the one called `name`, or the only candidate. Returns
/// nullopt if there is none, or if GDAL's raster driver should read it. Throws Error for an array with
/// several times or too many axes.
std::optional<Product> read_array(const ArrayFile& file, const std::string& name, const WantedArray& wanted);
/// Reads arrays that have only the axis of wavelengths, as in a library: one product per array. Returns an
/// empty list if the file has none, or if their lengths differ.
std::vector<Product> read_spectra(const ArrayFile& file, const WantedArray& wanted);

/// Tries all of these; nullopt for a file without arrays, or with other arrays. `path`: the path of a file,
/// or the name of an array (NETCDF:"a.nc":cube). Throws Error as they do, and if values are missing
/// (check_hdf5_sources()).
std::optional<Product> product_in_arrays(const std::string& path);

/// Reads the XML file of EnMAP and DESIS. `image`: its image; if empty, the reader finds it.
std::optional<Product> read_metadata_xml(const std::string& xml, const std::string& image);
/// Returns the XML file that describes a GeoTIFF with this number of bands; nullopt if there is none.
std::optional<Product> find_metadata_xml(const std::string& image, int bands);

/// Returns a product without parts and bands.
Product begin_product(const ArrayFile& file, std::string name);
/// Returns the attribute's number; nullopt if it is absent, or, with a note, if it is a text that is not a
/// number.
template <class Holder>
std::optional<double> number_told(Product& product, const std::shared_ptr<Holder>& holder,
                                  const std::string& name) {
    const Numbers found = attribute_numbers(holder, name);
    if (!found.no_numbers.empty())
        product.notes.push_back("'" + product.path + "' (" + product.name + "): " + name + " is '" +
                                found.no_numbers + "', which is not a number; it is ignored");
    return found.size() == 1 ? std::optional(found.values[0]) : std::nullopt;
}
/// Adds the bands of the last part, in their order. Throws Error for lists of other lengths.
void add_bands(Product& product, const Numbers& wavelengths, const Numbers& fwhm, const Numbers& good);
/// Sorts bands by wavelength, after check_product(). Bands without a wavelength are last.
void sort_bands(Product& product);
/// Sets the arrays of positions on WGS 84, if both exist. Throws Error if their size differs from the
/// scene's.
void take_locations(Product& product, const ArrayFile& file, const std::string& longitude,
                    const std::string& latitude);

/// Returns the geotransform for evenly spaced centres of columns and lines.
std::optional<std::array<double, 6>> grid_of_centres(const Numbers& x, const Numbers& y);

/// Adds an array with three axes as a part, with the values that its attributes mark as invalid
/// (take_values()). The band axis is the axis with a name for bands, else the one as long as `bands`, and
/// axis `usual` if there are several. Lines come before samples unless their names state otherwise. Throws
/// Error that names the file, the array and its axes if there is no band axis.
void add_part(Product& product, const ArrayFile& file, const std::string& array, size_t bands, int usual);
/// Throws Error: the product lacks something.
[[noreturn]] void refuse_product(const Product& product, const std::string& what);
/// Makes impossible values unknown, with notes: wavelengths and widths that are not positive numbers,
/// wavelengths that are all the same, scales of 0, a grid without extent. Wavelengths that are too small for
/// nanometres, in a product without a unit, are micrometres.
void check_product(Product& product);
/// Returns the SRS of an EPSG code, and adds a note if the code does not exist.
std::shared_ptr<const OGRSpatialReference> srs_of_code(Product& product, double code);
std::shared_ptr<const OGRSpatialReference> srs_from(const std::string& definition); ///< null when unknown

} // namespace hsi::raster
