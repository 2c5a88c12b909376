// SPDX-License-Identifier: MIT
// What gdal_hsi_compare is asked for: metrics, pairs of bands, thresholds, the map.
#pragma once

#include "compare_findings.h"
#include "raster/sink/raster_sink.h"
#include "tool/definition.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hsi::tools {

inline constexpr std::array<Metric, 5> spectral_metrics{Metric::nrmse, Metric::maxsde, Metric::sad,
                                                        Metric::rmse, Metric::maxabs};

struct Limits {
    double mean = -1, maximum = -1; ///< negative: none
};

struct CompareSettings {
    std::string other, map, map_format;
    std::vector<std::string> map_creation;
    bool overwrite = false, json = false;
    bool any_wavelengths = false; ///< bands in their order, whatever the wavelengths
    std::vector<std::string> metric_texts, pair_texts;
    std::vector<Metric> metrics;                ///< empty: those that suit the number of bands
    std::vector<int> first_bands, second_bands; ///< of -band
    std::array<Limits, 5> limits;               ///< of spectral_metrics
    double min_ssim = -2;
    int64_t max_unmatched = -1;
};

void parse_pairs(CompareSettings& s);

/// -metric, each once.
void parse_metrics(CompareSettings& s);

/// Those that suit the number of bands where none were asked for, and those that thresholds need.
void complete_metrics(CompareSettings& s, int bands);

raster::OutputOptions map_output(const tool::Run& run, const CompareSettings& s);

/// A band a metric.
raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics);

void declare_thresholds(tool::Call& call, CompareSettings& s);

/// The first threshold that is exceeded ends the run with exit code 1.
void apply_limits(const CompareSettings& s, const compare::Findings& f);

} // namespace hsi::tools
