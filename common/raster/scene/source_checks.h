// SPDX-License-Identifier: MIT
// What a file says of itself is not always what GDAL makes of it: checks of a scene that has just been
// opened.
#pragma once

#include "raster/scene/source_impl.h"

namespace hsi::raster {

/// GDAL takes a missing data type for Byte and a missing interleave for BSQ: a header that was cut short
/// would give numbers, and wrong ones. A missing byte order is 0, with a note, as ENVI has it; many programs
/// write none. A "data ignore value" that is no number is left out, with a note. \throws Error naming the
/// field.
void check_envi_header(SourceState& s);

/// Entries of the header's lists that are no numbers, of kept bands: unknown wavelengths and widths are told
/// (negative ones, too, and of all formats doubtful_widths()), and gains and offsets are left out for all
/// bands where one is none, with a note.
void check_band_lists(SourceState& s);

/// GDAL reads the sources of a VRT in its own way. \throws Error naming an ENVI file among them of which it
/// would take other pixels.
void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset);

/// Values must be real numbers of a type that readers take; s.type becomes one that holds them all.
/// `dataset` is null where the scene is not read by GDAL's bands. \throws Error naming the band.
void check_types(SourceState& s, GDALDataset* dataset);

/// Whether s.raw() tells where RasterIO takes its samples from: some of the first and last lines, bands and
/// samples are read both ways and compared bit by bit. The FITS driver turns its lines around and tells the
/// file's order. Samples that are all equal prove no order: then a driver must be known to read in the file's
/// order. \throws Error when the file of such a driver ends before its last sample.
bool lies_as_told(const SourceState& s, GDALDataset& dataset);
/// Outputs name their product's arrays of longitude and latitude, and points are placed by these.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
