// SPDX-License-Identifier: MIT
// What GDAL finds in gdal_HSI.so.
#pragma once

extern "C" {
/// Registers the pixel functions and, where GDAL knows VRTProcessedDataset (3.9 and newer), its steps; loads
/// the commands ("gdal hsi ...") where they were built for this GDAL (3.11 and newer). Starts nothing.
__attribute__((visibility("default"))) void GDALRegister_HSI(void);
}
