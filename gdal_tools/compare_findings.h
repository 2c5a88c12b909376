// SPDX-License-Identifier: MIT
// What gdal_hsi_compare has found out, for people and for programs.
#pragma once

#include "compare/compare.h"
#include "compared_scenes.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace hsi::tools {

using compare::Metric;

/// Everything that was found out.
struct CompareFindings {
    std::vector<Metric> spectral;
    std::vector<compare::Summary> summaries;
    compare::PixelCounts counts;
    bool has_ssim = false, has_sr = false;
    std::vector<double> ssim, sr;
    compare::Zones zones;
    double mean(const std::vector<double>& v) const {
        double sum = 0;
        for (double x : v)
            sum += x;
        return sum / static_cast<double>(v.size());
    }
};

/// "%.9g"
std::string metric_text(double value);

nlohmann::json to_json(const CompareFindings& f, const ComparedScene& a, const ComparedScene& b);

void print_text(tool::Run& run, const CompareFindings& f, const ComparedScene& a, const ComparedScene& b);

} // namespace hsi::tools
