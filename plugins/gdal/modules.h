// SPDX-License-Identifier: MIT
// Loads the code that needs GDAL's classes. The layout of these classes changes in each minor version, so
// there is one module per version. gdal_HSI.so works with all versions. It loads the modules that were built
// for the current GDAL. hsi_driver.3.N.so has the driver with which GDAL opens virtual scenes (.hsi).
// hsi_commands.3.N.so has the tools as commands of GDAL's own command line, "gdal hsi spp ...".
#pragma once

namespace hsi::plugin {

/// The name of the function in hsi_driver.3.N.so that registers the driver HSI, unless it is registered
/// already. It is called in every GDALAllRegister().
inline constexpr const char* register_driver_symbol = "hsi_register_driver";

/// The name of the function in hsi_commands.3.N.so that declares the commands to GDAL. It is called once.
inline constexpr const char* declare_commands_symbol = "hsi_declare_commands";

/// Loads the modules in the folder of gdal_HSI.so and calls the functions above. Each module is loaded once.
/// Does nothing if there are no modules for this GDAL version.
void load_modules();

} // namespace hsi::plugin
