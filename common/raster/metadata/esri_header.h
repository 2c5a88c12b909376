// SPDX-License-Identifier: MIT
// Reads the parts of an ESRI header ("KEY value" lines) that GDAL's driver EHdr does not read. The driver
// reads only 50 lines, and does not support gaps between rows or bands.
#pragma once

#include <gdal_priv.h>

#include <string>
#include <vector>

namespace hsi::raster {

struct EsriFacts {
    std::vector<std::string> wavelengths; ///< numbers after the key WAVELENGTHS, which cameras write
    std::string wavelength_units;         ///< value of WAVELENGTH_UNITS; empty: unknown
    /// Notes about missing keys, about keys that contradict the file size, and about the assumptions that
    /// replace them. The notes do not contain the file name.
    std::vector<std::string> notes;
};

/// Returns the facts in the header that the driver does not read; empty for datasets of other drivers.
/// \throws Error that names the key, if the driver would read other samples than the header describes.
EsriFacts read_esri_header(GDALDataset& dataset);

} // namespace hsi::raster
