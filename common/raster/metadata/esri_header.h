// SPDX-License-Identifier: MIT
// The text header of an ESRI raster (GDAL's driver EHdr): "KEY value" lines. The driver reads 50 of them, and
// does not support gaps between rows or bands.
#pragma once

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

struct EsriFacts {
    std::vector<std::string> wavelengths; ///< the numbers after WAVELENGTHS, as cameras write them
    std::string wavelength_units;         ///< WAVELENGTH_UNITS; empty: unknown
    std::vector<std::string> notes; ///< without the file's name: assumptions for keys that are missing or
                                    ///< contradict the size
};

/// Returns the facts in the header that the driver does not read; empty for datasets of other drivers.
/// \throws Error that names the key, if the driver reads other samples than the header describes.
EsriFacts read_esri_header(GDALDataset& dataset);

} // namespace hsi::raster
