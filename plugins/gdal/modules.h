// SPDX-License-Identifier: MIT
// What needs GDAL's classes, and who loads it. These are laid out anew in each minor version, so there is a
// module for each, and gdal_HSI.so, which serves all versions, loads those that were built for the GDAL at
// hand: hsi_driver.3.N.so, by which GDAL opens scenes that compute (.hsi), and hsi_commands.3.N.so, the tools
// as commands of GDAL's own command line, "gdal hsi spp ...".
#pragma once

namespace hsi::plugin {

/// Of hsi_driver.3.N.so: registers the driver HSI, where there is none yet. Called with every
/// GDALAllRegister().
inline constexpr const char* register_driver_symbol = "hsi_register_driver";

/// Of hsi_commands.3.N.so: declares the commands to GDAL. Called once.
inline constexpr const char* declare_commands_symbol = "hsi_declare_commands";

/// Of gdal_HSI.so: loads the modules that lie beside it, once, and calls their functions; does nothing where
/// there are none for this GDAL.
void load_modules();

} // namespace hsi::plugin
