// SPDX-License-Identifier: MIT
// Checks a scene that has just been opened, because a file's own description sometimes differs from GDAL's
// reading.
#pragma once

#include "raster/scene/source_impl.h"

namespace hsi::raster {

/// Checks required fields. GDAL assumes Byte for a missing data type and BSQ for a missing interleave, so a
/// truncated header would give wrong numbers. A missing byte order is 0, with a note, as in ENVI, because
/// many programs omit it. A "data ignore value" that is not a number is ignored, with a note. \throws Error
/// that names the field.
void check_envi_header(SourceState& s);

/// Checks entries of the header's lists for the selected bands. Invalid wavelengths and widths become
/// unknown, with a note (also negative ones, and for all formats doubtful_widths()). Gains and offsets are
/// ignored for all bands if one of them is invalid, with a note.
void check_band_lists(SourceState& s);

/// Checks the sources of a VRT, which GDAL reads in its own way. \throws Error that names an ENVI source from
/// which GDAL would read other pixels.
void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset);

/// Checks that values are real numbers of a supported type, and sets s.type to a type that represents them
/// all. `dataset` is null if the scene is not read through GDAL's bands. \throws Error that names the band.
void check_types(SourceState& s, GDALDataset* dataset);

/// Returns whether the sample positions in s.raw() equal those of RasterIO: some of the first and last lines,
/// bands and samples are read both ways and compared bit by bit. (The FITS driver flips its lines but reports
/// the file's order.) Samples that are all equal prove no order; the driver must then be known to read in the
/// file's order. \throws Error if the file of such a driver ends before its last sample.
bool lies_as_told(const SourceState& s, GDALDataset& dataset);
/// Adds a note if a scene has lost its locations: outputs name their product's arrays of longitude and
/// latitude, which give the positions of points.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
