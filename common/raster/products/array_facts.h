// SPDX-License-Identifier: MIT
// The meaning of an array of netCDF, HDF5 or Zarr as a scene or as labels, from its attributes (CF
// conventions, NetCDF Users Guide), its coordinates and the names of its axes. All formats, names and roles
// use these functions.
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

/// The axes of lines, samples and bands in an array.
struct ArrayLayout {
    CubePart part; ///< without its type
    int64_t lines = 0, samples = 0, bands = 0;
    /// The axes in the array itself; null without such an axis.
    std::shared_ptr<GDALDimension> line_axis, sample_axis, band_axis;
    std::string axes;    ///< "wavelength, y, x"
    std::string refusal; ///< why the array is not a scene; empty: it is a scene
    std::string advice;
    std::string doubt; ///< a warning: several axes could be the bands; empty: only one
};

/// Identifies the axes by attributes and names of coordinates, then by names of axes, then by `lists`:
/// lengths of lists of wavelengths in the file. By default, bands are the first of three axes. Axes of length
/// 1 are left out if the array has more than three. An unnamed last axis of length 1 is the axis of the only
/// band (line, sample, 1); for a `plane`, which always has one band, any axis of length 1 is. If one of two
/// axes has bands, the other has the samples; the only axis of an array has bands or nothing. Returns nullopt
/// for arrays without axes or numbers, and if bands cannot be distinguished from columns.
std::optional<ArrayLayout> layout_of(const ArrayFile& file, const Array& array,
                                     const std::vector<int64_t>& lists, bool plane = false);

/// Returns the list of the coordinates of an axis: the list that the format names, else the list with the
/// name of the axis in the array's group or in the groups above. Null if absent.
Array coordinate_of(const ArrayFile& file, const Array& array, const GDALDimension& axis);
/// Returns the array `name` in the group of `array`, or in the nearest group above. Null if absent.
Array array_near(const ArrayFile& file, const Array& array, const std::string& name);
/// Returns its unit, from the format or an attribute.
std::string unit_of(const Array& array);
/// Returns the numbers of a list with scale_factor and add_offset applied; empty without a list.
Numbers unpacked_list(const ArrayFile& file, const Array& list);

/// Sets product.geotransform, srs, lines_rise and samples_fall. The scene's first line is the one with the
/// greatest coordinate, and its first sample the one with the smallest. Coordinates have priority over an
/// attribute GeoTransform.
void take_grid(Product& product, const ArrayFile& file, const Array& array, const ArrayLayout& layout);

/// Sets the type of `part`, its nodata and its invalid samples from _FillValue, missing_value, valid_min,
/// valid_max, valid_range and _Unsigned, else from the fill value of the format.
void take_values(Product& product, const ArrayFile& file, const Array& array, CubePart& part);

/// Returns scale and offset (value = sample * scale + offset) from attributes or from the format; nullopt if
/// not stated.
std::pair<std::optional<double>, std::optional<double>> scale_of(const Array& array);

/// Returns whether a unit in lower case is degrees to the east (`letter` e) or north (n), in CF's spellings:
/// "degrees_east", "degree_e", "degreese".
bool is_degrees(const std::string& unit, char letter);

/// Returns whether `unit` is used only for wavelengths; metres, for example, are also used for other lengths.
bool is_unit_of_wavelengths(const std::string& unit);

} // namespace hsi::raster
