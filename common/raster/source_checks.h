// SPDX-License-Identifier: MIT
// What a file says of itself is not always what GDAL makes of it: checks of a scene that has just been
// opened.
#pragma once

#include "raster/source_impl.h"

namespace hsi::raster {

/// GDAL takes a missing data type for Byte, a missing interleave for BSQ and a missing byte order for this
/// machine's: a header that was cut short would give numbers, and wrong ones.
/// A "data ignore value" that is no number is left out, with a note. \throws Error naming the field.
void check_envi_header(SourceState& s);

/// Values must be real numbers of a type that readers take; s.type becomes one that holds them all.
/// `dataset` is null where the scene is not read by GDAL's bands. \throws Error naming the band.
void check_types(SourceState& s, GDALDataset* dataset);

/// HDF5 gives fill values for a virtual dataset whose source is not there, without a word. \throws Error for
/// a dataset of HDF5 or netCDF that refers to values which are missing.
void check_values_are_there(GDALDataset& dataset);

/// Outputs name their product's arrays of longitude and latitude, and points are placed by these.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
