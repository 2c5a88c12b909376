// SPDX-License-Identifier: MIT
// Loads the code that needs GDAL's classes. The layout of these classes changes in each minor version, so
// there is one module per version. gdal_HSI.so, which serves all versions, loads the modules that were built
// for the current GDAL: hsi_driver.3.N.so, the driver with which GDAL opens virtual scenes (.hsi), and
// hsi_commands.3.N.so, the tools as commands of GDAL's own command line, "gdal hsi spp ...".
#pragma once

namespace hsi::plugin {

/// In hsi_driver.3.N.so: registers the driver HSI unless it is registered already. Called by every
/// GDALAllRegister().
inline constexpr const char* register_driver_symbol = "hsi_register_driver";

/// In hsi_commands.3.N.so: declares the commands to GDAL. Called once.
inline constexpr const char* declare_commands_symbol = "hsi_declare_commands";

/// In gdal_HSI.so: loads the modules next to it, once, and calls their functions. Does nothing without
/// modules for this GDAL.
void load_modules();

} // namespace hsi::plugin
