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
    std::vector<double> values;    ///< one value per band; NaN: a gap in the curve
    std::vector<double> deviation; ///< standard deviation per band; empty: unknown
    size_t group = 0; ///< index of the group; spectra of a group have one colour and one entry in the legend
};

struct SpectraPlot {
    std::string value_label;
    /// One wavelength per band; NaN: the band is not shown; empty: bands are shown by number.
    std::vector<double> wavelengths_nm;
    std::vector<int> numbers; ///< band numbers; a missing number is a gap in the curve; empty: unknown
    std::vector<DrawnSpectrum> spectra;
    std::vector<std::string> groups;        ///< names of the groups
    std::vector<raster::BandChoice> ranges; ///< ranges in which continuum and feature are drawn
    std::string title;                      ///< text above the plot; may be empty
};

inline constexpr tools::Plot::Frame spectra_frame{1000, 600, 100, 900, 40, 520};

/// Returns the plot. \throws Error if no band has a position on the x axis, or if no spectrum has a value.
tools::Plot plot_of(const SpectraPlot& plot);

} // namespace hsi::spectra_tool
