// SPDX-License-Identifier: MIT
// The functions of gdal_HSI.so that GDAL calls.
#pragma once

extern "C" {
/// Registers the pixel functions and the steps of VRTProcessedDataset (GDAL 3.9 and newer), and loads the
/// modules that were built for this GDAL: the driver HSI, and the commands ("gdal hsi ...", 3.11 and newer).
/// Starts no threads and no device.
__attribute__((visibility("default"))) void GDALRegister_HSI(void);
}
