// SPDX-License-Identifier: MIT
// The tools as commands of GDAL's own command line, "gdal hsi spp ...": what a module hsi_commands.3.N.so
// offers, and who loads it. GDAL's classes for commands are laid out anew in each minor version, so there is
// a module for each, and gdal_HSI.so, which serves them all, loads the one that was built for the GDAL at
// hand.
#pragma once

namespace hsi::plugin {

/// Of a module: declares the commands to GDAL. Called once.
inline constexpr const char* declare_commands_symbol = "hsi_declare_commands";

/// Of gdal_HSI.so: loads the module that lies beside it, once; does nothing where there is none for this
/// GDAL.
void load_commands();

} // namespace hsi::plugin
