// SPDX-License-Identifier: MIT
// Plots spectra over the wavelengths, with their standard deviations, continua and absorption features.
#pragma once

#include "raster/band_choice.h"
#include "shared/plot.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hsi::spectra_tool {

struct DrawnSpectrum {
    std::string name;
    std::vector<double> values;    ///< one per band; NaN: a gap
    std::vector<double> deviation; ///< likewise; empty: unknown
    size_t group = 0;              ///< spectra of one group have one colour and one entry in the legend
};

struct SpectraPlot {
    std::string value_label;
    std::vector<double> wavelengths_nm; ///< one per band; NaN: the band is not shown; empty: bands by number
    std::vector<int> numbers;           ///< of the bands; a missing band is a gap; empty: unknown
    std::vector<DrawnSpectrum> spectra;
    std::vector<std::string> groups;        ///< their names
    std::vector<raster::BandChoice> ranges; ///< ranges in which continuum and feature are drawn
};

inline constexpr tools::Plot::Frame spectra_frame{1000, 600, 100, 900, 40, 520};

/// \throws Error if no band has a position, or if no spectrum has a value.
tools::Plot plot_of(const SpectraPlot& plot);

} // namespace hsi::spectra_tool
