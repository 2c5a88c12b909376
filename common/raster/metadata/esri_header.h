// SPDX-License-Identifier: MIT
// The text header of an ESRI raster (GDAL's driver EHdr): "KEY value" lines. The driver reads 50 of them, and
// no gaps between rows or bands.
#pragma once

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

/// The numbers between WAVELENGTHS and WAVELENGTHS_END, as cameras write them; empty: none.
std::vector<std::string> esri_wavelengths(GDALDataset& dataset);

/// Does nothing for datasets of other drivers. \throws Error naming the key, where the driver reads other
/// samples than the header describes.
void check_esri_header(GDALDataset& dataset);

/// What is assumed for keys that are missing, or contradict the file's size.
std::vector<std::string> esri_header_notes(GDALDataset& dataset);

} // namespace hsi::raster
