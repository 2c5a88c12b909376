// SPDX-License-Identifier: MIT
// Checks labels of planetary data (PDS3), because GDAL's drivers PDS and ISIS2 read only a part of such a
// label.
#pragma once

#include <gdal_priv.h>

namespace hsi::raster {

/// Compares the layout of the samples that a PDS3 label (of an image or a qube) states with the layout that
/// GDAL uses. GDAL (3.6) ignores suffix items within the core, the order SAMPLE_INTERLEAVED of images, the
/// byte order of qubes, and integer types of four bytes. Source: Planetary Data System Standards Reference
/// 3.8, appendices A.20 and A.23. \throws Error that names the field if the layouts differ, or if the pointer
/// to the data file is not in quotes. Datasets of other drivers are not checked.
void check_planetary_label(GDALDataset& dataset);

} // namespace hsi::raster
