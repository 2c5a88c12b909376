// SPDX-License-Identifier: MIT
// Checks an opened scene, because the file's own description can differ from what GDAL reads.
#pragma once

#include "raster/scene/source_impl.h"

namespace hsi::raster {

/// Checks the required fields of an ENVI header. Without "data type", GDAL assumes Byte, and without
/// "interleave" BSQ, so a truncated header would give wrong values. A missing "byte order" means 0, with a
/// note, as in ENVI, because many programs omit this field. A "data ignore value" that is not a number is
/// ignored, with a note. \throws Error that names the field.
void check_envi_header(SourceState& s);

/// Checks the header's lists for the selected bands. Invalid wavelengths and FWHM (also negative ones) become
/// unknown, with a note. In all formats, a note is added about implausible FWHM (doubtful_widths()). If one
/// gain or offset is invalid, the gains and offsets of all bands are ignored, with a note.
void check_band_lists(SourceState& s);

/// Checks the ENVI sources of a VRT, which GDAL reads itself. \throws Error that names a source from which
/// GDAL would read other pixels.
void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset);

/// Checks that the values are real numbers of a supported type, and sets s.type to a type that can represent
/// all of them. `dataset` is null if the scene is not read through GDAL's bands. \throws Error that names the
/// band.
void check_types(SourceState& s, GDALDataset* dataset);

/// Returns whether s.raw() has the same sample positions as RasterIO(). Some samples of the first and last
/// lines, bands and samples are read in both ways and compared bit by bit. (The FITS driver flips the lines
/// but reports the order of the file.) Equal samples do not prove the order. If all compared samples are
/// equal, the driver must be one that is known to read in the order of the file. \throws Error if the file of
/// such a driver ends before the last sample.
bool lies_as_told(const SourceState& s, GDALDataset& dataset);
/// Adds a note if the product with the scene's longitudes and latitudes is missing. Outputs refer to the
/// arrays of their product, which give the positions of points.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
