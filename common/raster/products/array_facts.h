// SPDX-License-Identifier: MIT
// The meaning of an array of netCDF, HDF5 or Zarr as a scene or as labels: by its attributes (CF conventions,
// NetCDF Users Guide), its coordinates and the names of its axes. All formats, names and roles take the facts
// from here.
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
    /// In the array itself; null without such an axis.
    std::shared_ptr<GDALDimension> line_axis, sample_axis, band_axis;
    std::string axes;    ///< "wavelength, y, x"
    std::string refusal; ///< why the array is not a scene; empty: it is one
    std::string advice;
    std::string doubt; ///< a warning: several axes could have the bands; empty: one
};

/// Identifies them by attributes and names of coordinates, by names of axes, then by `lists`: lengths of
/// lists of wavelengths in the file; by default bands are the first of three axes. Axes of length 1 are left
/// out where the array has more than three. An unnamed last axis of length 1 is the axis of the only band
/// (line, sample, 1); for a `plane`, which always has one band, any axis of length 1 is. If one of two axes
/// has bands, the other has the samples; the only axis of an array has bands or nothing. nullopt for arrays
/// without axes or numbers, and if nothing distinguishes bands from columns.
std::optional<ArrayLayout> layout_of(const ArrayFile& file, const Array& array,
                                     const std::vector<int64_t>& lists, bool plane = false);

/// The list of the coordinates of an axis: the one that the format names, else the one with its name in the
/// array's group or in the groups above. Null if absent.
Array coordinate_of(const ArrayFile& file, const Array& array, const GDALDimension& axis);
/// The array `name` in the group of `array`, or in the nearest group above. Null if absent.
Array array_near(const ArrayFile& file, const Array& array, const std::string& name);
/// Its unit, from the format or an attribute.
std::string unit_of(const Array& array);
/// Numbers of a list with scale_factor and add_offset applied; empty without a list.
Numbers unpacked_list(const ArrayFile& file, const Array& list);

/// Sets product.geotransform, srs, lines_rise and samples_fall. The scene's first line is the one with the
/// greatest coordinate, its first sample the one with the least. Coordinates count before an attribute
/// GeoTransform.
void take_grid(Product& product, const ArrayFile& file, const Array& array, const ArrayLayout& layout);

/// Sets the type of `part`, its nodata and its invalid samples by _FillValue, missing_value, valid_min,
/// valid_max, valid_range and _Unsigned, else by the fill value of the format.
void take_values(Product& product, const ArrayFile& file, const Array& array, CubePart& part);

/// Value = sample * scale + offset, by attributes or by the format; nullopt if not stated.
std::pair<std::optional<double>, std::optional<double>> scale_of(const Array& array);

/// Whether a unit in small letters is degrees to the east (`letter` e) or north (n), in CF's spellings:
/// "degrees_east", "degree_e", "degreese".
bool is_degrees(const std::string& unit, char letter);

/// Whether `unit` is used for wavelengths only: metres are used for other lengths, too.
bool is_unit_of_wavelengths(const std::string& unit);

} // namespace hsi::raster
