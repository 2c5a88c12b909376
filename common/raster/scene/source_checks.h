// SPDX-License-Identifier: MIT
// Checks of a scene that has just been opened: a file's own description sometimes differs from GDAL's
// reading.
#pragma once

#include "raster/scene/source_impl.h"

namespace hsi::raster {

/// GDAL takes a missing data type for Byte and a missing interleave for BSQ: a truncated header would give
/// wrong numbers. A missing byte order is 0, with a note, as in ENVI; many programs omit it. A "data ignore
/// value" that is not a number is ignored, with a note. \throws Error naming the field.
void check_envi_header(SourceState& s);

/// Checks entries of the header's lists for kept bands. Invalid wavelengths and widths become unknown, with a
/// note (negative ones, too, and for all formats doubtful_widths()); gains and offsets are ignored for all
/// bands if one is invalid, with a note.
void check_band_lists(SourceState& s);

/// GDAL reads the sources of a VRT in its own way. \throws Error naming an ENVI source from which it would
/// take other pixels.
void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset);

/// Values must be real numbers of a type that readers take; s.type becomes one that holds them all.
/// `dataset` is null where the scene is not read by GDAL's bands. \throws Error naming the band.
void check_types(SourceState& s, GDALDataset* dataset);

/// Whether s.raw() is right about the places that RasterIO takes its samples from: some of the first and last
/// lines, bands and samples are read both ways and compared bit by bit. The FITS driver flips its lines and
/// reports the file's order. Samples that are all equal prove no order: then a driver must be known to read
/// in the file's order. \throws Error when the file of such a driver ends before its last sample.
bool lies_as_told(const SourceState& s, GDALDataset& dataset);
/// Outputs name their product's arrays of longitude and latitude, and points are placed by these.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
