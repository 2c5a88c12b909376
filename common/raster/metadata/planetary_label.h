// SPDX-License-Identifier: MIT
// Labels of planetary data (PDS3), of which GDAL's drivers PDS and ISIS2 read only a part.
#pragma once

#include <gdal_priv.h>

namespace hsi::raster {

/// Compares the position of the samples of an image or a qube in a PDS3 label with the position that GDAL
/// uses. GDAL (3.6) ignores suffix items within the core, the order SAMPLE_INTERLEAVED of images, the byte
/// order of qubes and the integer types of four bytes. Source: Planetary Data System Standards Reference 3.8,
/// appendices A.20 and A.23. \throws Error that names the field, for a difference and for a pointer to the
/// data file without quotes. Does nothing for other drivers.
void check_planetary_label(GDALDataset& dataset);

} // namespace hsi::raster
