// SPDX-License-Identifier: MIT
// Reflectance spectra of common surface materials, made from a smooth continuum and absorption features. They
// are plausible, not measured. Positions and widths of the features follow general knowledge of each
// material.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::synth {

/// Returns the number of materials in the library.
int material_count();

/// Returns the name of material k ("Grassland", "Water" ...), 0 <= k < material_count().
const char* material_name(int k);

/// Returns true if the material is a plant. If a scene has a trait, only its plants show this trait.
bool is_plant(int k);

/// Returns the fraction of light that one per cent of nitrogen absorbs in a band of the given width (both in
/// nm). These are absorptions of proteins near 1510, 2060, 2180 and 2300 nm (P. J. Curran, Remote Sensing of
/// Environment 30(3), 1989). The result is a multiple of 2^-16.
double nitrogen_absorption(double wavelength, double width);

/// Returns a colour for maps: red, green, blue, alpha.
std::array<uint8_t, 4> material_colour(int k);

/// Returns the reflectance (0..1) of material k averaged over a band of the given width (both in nm). `seed`
/// varies brightness, slope and depth of the features by a few per cent. The result is a multiple of 2^-16,
/// so that it does not depend on the last bits of a mathematical library.
double material_reflectance(int k, double wavelength, double width, uint64_t seed);

} // namespace hsi::synth
