// SPDX-License-Identifier: MIT
// The functions that GDAL looks up in gdal_HSI.so.
#pragma once

extern "C" {
/// Registers the pixel functions and, where GDAL knows VRTProcessedDataset (3.9 and newer), its steps; loads
/// the modules that were built for this GDAL: the driver HSI, and the commands ("gdal hsi ...", 3.11 and
/// newer). Starts nothing.
__attribute__((visibility("default"))) void GDALRegister_HSI(void);
}
