// SPDX-License-Identifier: MIT
// Interprets an array of netCDF, HDF5 or Zarr as a scene or as labels, by its attributes (CF conventions,
// NetCDF Users Guide), its coordinates and the names of its axes. These functions are shared by all formats
// and by all uses of arrays.
#pragma once

#include "raster/products/array_file.h"
#include "raster/products/product.h"

#include <gdal_priv.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::raster {

using Array = std::shared_ptr<GDALMDArray>;

/// The axes of an array that are lines, samples and bands.
struct ArrayLayout {
    CubePart part; ///< the data type of the part is not set
    int64_t lines = 0, samples = 0, bands = 0;
    /// The axes as the array declares them; null if the array has no such axis.
    std::shared_ptr<GDALDimension> line_axis, sample_axis, band_axis;
    std::string axes;    ///< names of the axes for messages, such as "wavelength, y, x"
    std::string refusal; ///< reason why the array is not a scene; empty: it is a scene
    std::string advice;
    /// A warning for the user that several axes could be the bands; empty if the band axis is certain.
    std::string doubt;
};

/// Determines which axes are lines, samples and bands. The attributes of coordinates decide first, then the
/// names of axes, then `lists`, the lengths of lists of wavelengths in the file. If none of these decides,
/// the first of three axes is the bands. If an array has more than three axes, axes of length 1 are left out.
/// An unnamed last axis of length 1 is the axis of a single band (line, sample, 1). If `plane` is true, the
/// array must have one band, and any axis of length 1 can be this axis. If one of two axes is the bands, the
/// other one is the samples. A single axis must be the bands; otherwise the array cannot be used. Returns
/// nullopt for arrays without axes or with other data than numbers, and if bands and columns cannot be
/// distinguished. ArrayLayout::refusal is set for an array with too many axes.
std::optional<ArrayLayout> layout_of(const ArrayFile& file, const Array& array,
                                     const std::vector<int64_t>& lists, bool plane = false);

/// Returns the array with the coordinates along an axis; null if there is none. This is the array that the
/// format assigns to the axis, or else the array with the name of the axis in the group of `array` or in the
/// nearest group above. For an axis without a name, an array of the same length is used.
Array coordinate_of(const ArrayFile& file, const Array& array, const GDALDimension& axis);
/// Returns the array `name` in the group of `array` or in the nearest group above that has it; null if no
/// group has it.
Array array_near(const ArrayFile& file, const Array& array, const std::string& name);
/// Returns the unit of an array, as the format or an attribute states it.
std::string unit_of(const Array& array);
/// Returns the numbers of a list with scale_factor and add_offset applied; empty if the list has no numbers.
Numbers unpacked_list(const ArrayFile& file, const Array& list);

/// Sets product.geotransform, srs, lines_rise and samples_fall. The first line of the scene has the largest
/// coordinate, and the first sample has the smallest. Coordinates have priority over an attribute
/// GeoTransform.
void take_grid(Product& product, const ArrayFile& file, const Array& array, const ArrayLayout& layout);

/// Sets the data type, the nodata value and the invalid samples of `part`. They follow from the attributes
/// _FillValue, missing_value, valid_min, valid_max, valid_range and _Unsigned, or else from the fill value of
/// the format.
void take_values(Product& product, const ArrayFile& file, const Array& array, CubePart& part);

/// Returns scale and offset, which attributes or the format state; nullopt for each that is not stated. A
/// scaled value is sample * scale + offset.
std::pair<std::optional<double>, std::optional<double>> scale_of(const Array& array);

/// Returns whether a unit in lower case means degrees east (`letter` e) or degrees north (`letter` n), in a
/// spelling of the CF conventions: "degrees_east", "degree_e", "degreese".
bool is_degrees(const std::string& unit, char letter);

/// Returns whether `unit` is a unit of wavelengths that does not also measure lengths on the ground, as
/// metres do.
bool is_unit_of_wavelengths(const std::string& unit);

} // namespace hsi::raster
