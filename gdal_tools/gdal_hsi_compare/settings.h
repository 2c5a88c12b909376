// SPDX-License-Identifier: MIT
// The settings of gdal_hsi_compare, from its options.
#pragma once

#include "compare/measurement.h"
#include "raster/raster_source.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::compare_tool {

using compare::Metric;

constexpr std::array<Metric, 5> spectral_metrics{Metric::nrmse, Metric::maxsde, Metric::sad, Metric::rmse,
                                                 Metric::maxabs};

struct Limits {
    double mean = -1, maximum = -1; ///< negative: no limit
};

struct Settings {
    std::string other, map, map_format, text_file;
    std::vector<std::string> map_creation;
    bool overwrite = false, json = false;
    bool mosaic = false;
    std::vector<std::string> with; ///< additional scenes of -mosaic
    bool any_wavelengths = false;  ///< true to match bands by their order, without comparing wavelengths
    std::vector<std::string> metric_texts, pair_texts;
    std::vector<Metric> metrics; ///< empty: the default metrics for the number of bands
    /// Band numbers of -band in the first and in the second scene, pair by pair.
    std::vector<int> first_bands, second_bands;
    std::vector<std::string> other_texts;
    std::vector<raster::BandChoice> other_bands; ///< bands of -other-b
    std::array<Limits, 5> limits;                ///< limits of spectral_metrics, in the same order
    double min_ssim = -2;
    int64_t max_unmatched = -1;
};

} // namespace hsi::compare_tool
