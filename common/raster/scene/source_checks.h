// SPDX-License-Identifier: MIT
// Checks an opened scene, because the file's own description can differ from what GDAL reads.
#pragma once

#include "raster/scene/source_impl.h"

namespace hsi::raster {

/// Checks the fields of the scene's ENVI header, if it has one. Required fields must exist, because GDAL
/// assumes Byte without "data type" and BSQ without "interleave", so a truncated header would give wrong
/// values. A missing "byte order" means 0, with a note, as in ENVI, because many programs omit this field. A
/// "data ignore value" that is not a number is ignored, with a note. \throws Error that names a missing or
/// invalid field.
void check_envi_header(SourceState& s);

/// Checks the lists and scales of the ENVI header for the selected bands. Notes report invalid entries.
/// Invalid wavelengths and FWHM, also negative ones, are unknown. If one gain or offset is invalid, the gains
/// and offsets of all bands are ignored. In all formats, notes report implausible wavelengths and FWHM
/// (doubtful_wavelengths(), doubtful_widths()).
void check_band_lists(SourceState& s);

/// Checks the ENVI files that a VRT shows, because GDAL reads them without the code of this project. \throws
/// Error that names a source from which GDAL would read other pixels.
void check_sources_of_vrt(const SourceState& s, GDALDataset& dataset);

/// Checks that the values are real numbers of a supported type, and sets s.type to a type that can represent
/// all of them. `dataset` is null if the scene is not read through GDAL's bands. \throws Error that names the
/// band.
void check_types(SourceState& s, GDALDataset* dataset);

/// Returns whether RasterIO() returns the samples at the positions that s.raw() states. (The FITS driver, for
/// example, flips the lines, but states the positions in the order of the file.) Some samples of the first
/// and last lines, bands and columns are read in both ways and compared bit by bit. Drivers that are known to
/// read in the order of the file pass if these samples agree. For other drivers, samples at mirrored
/// positions must also differ, because otherwise a reversed order would not be detected. Files on servers and
/// files with large blocks are not compared; only known drivers pass. \throws Error if the file of a known
/// driver ends before the last sample.
bool lies_as_told(const SourceState& s, GDALDataset& dataset);
/// Adds a note if the product with the scene's longitudes and latitudes is missing. A scene that was made
/// from a product does not contain these arrays, but refers to those of the product.
void note_lost_locations(SourceState& s);

} // namespace hsi::raster
