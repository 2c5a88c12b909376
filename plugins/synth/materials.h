// SPDX-License-Identifier: MIT
// Reflectance spectra of common surface materials, made from a smooth continuum and absorption features. They
// are plausible, not measured: positions and widths of the features follow general knowledge of each
// material.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::synth {

/// Number of materials in the library.
int material_count();

/// Name of material k ("Grassland", "Water" ...), 0 <= k < material_count().
const char* material_name(int k);

/// Plants have the trait of a scene that has one.
bool is_plant(int k);

/// The share of light that each per cent of nitrogen takes in a band of the given width, both in nm: the
/// absorptions of proteins near 1510, 2060, 2180 and 2300 nm (P. J. Curran, Remote Sensing of Environment
/// 30(3), 1989). A multiple of 2^-16.
double nitrogen_absorption(double wavelength, double width);

/// A colour for maps: red, green, blue, alpha.
std::array<uint8_t, 4> material_colour(int k);

/// Reflectance (0..1) of material k averaged over a band of the given width, both in nm. `seed` varies
/// brightness, slope and depth of the features by a few percent. The value is a multiple of 2^-16, so that
/// the last bits of a mathematical library do not matter.
double material_reflectance(int k, double wavelength, double width, uint64_t seed);

} // namespace hsi::synth
