// SPDX-License-Identifier: MIT
#include "gdal_hsi_compare/findings.h"

#include "compare/measurement.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace hsi::compare_tool {

void complete_metrics(Settings& s, int bands) {
    if (s.metrics.empty()) {
        if (bands == 1)
            s.metrics = {Metric::rmse, Metric::maxabs};
        else
            s.metrics.assign(spectral_metrics.begin(), spectral_metrics.end());
    }
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const bool wanted =
            std::find(s.metrics.begin(), s.metrics.end(), spectral_metrics[k]) != s.metrics.end();
        if ((s.limits[k].mean >= 0 || s.limits[k].maximum >= 0) && !wanted)
            s.metrics.push_back(spectral_metrics[k]);
    }
    if (s.min_ssim >= -1 && std::find(s.metrics.begin(), s.metrics.end(), Metric::ssim) == s.metrics.end())
        s.metrics.push_back(Metric::ssim);
}

void check_bands(const std::vector<Metric>& metrics, int bands) {
    if (bands > 1) return;
    for (Metric m : metrics)
        if (m == Metric::nrmse || m == Metric::sad)
            throw UsageError(std::string("-metric ") + compare::metric_name(m) +
                                 ": one band is not a spectrum; at least 2 bands are needed",
                             "For single bands, use maxsde, rmse, maxabs, ssim or sr.");
}

std::string metric_text(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

Json json_number(double v) {
    if (std::isnan(v)) return nullptr;
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    return v;
}

void give_result(tool::Run& run, const Settings& s, const raster::TextOutput& output, const Json& result,
                 const std::string& text) {
    run.report()["result"] = result;
    auto given = s.json ? result.dump(1, ' ', false, Json::error_handler_t::replace) + "\n" : text;
    raster::write_text_output(output, given);
    given.pop_back(); // print() adds the line break
    run.print(given);
    run.keep_outputs();
}

void apply_limits(const Settings& s, const compare::Findings& f) {
    const auto exceeded = [](double value, double limit) { return limit >= 0 && !(value <= limit); };
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto at =
            static_cast<size_t>(std::find(spectral_metrics.begin(), spectral_metrics.end(), f.spectral[k]) -
                                spectral_metrics.begin());
        const std::string name = compare::metric_name(f.spectral[k]);
        if (exceeded(f.summaries[k].maximum, s.limits[at].maximum))
            throw Error("the maximum of " + name + " is " + metric_text(f.summaries[k].maximum) +
                        ", more than -max-" + name + " " + metric_text(s.limits[at].maximum));
        if (exceeded(f.summaries[k].mean, s.limits[at].mean))
            throw Error("the mean of " + name + " is " + metric_text(f.summaries[k].mean) +
                        ", more than -mean-" + name + " " + metric_text(s.limits[at].mean));
    }
    if (f.has_ssim && s.min_ssim >= -1)
        for (double v : f.ssim)
            if (!(v >= s.min_ssim))
                throw Error("ssim of a band is " + metric_text(v) + ", less than -min-ssim " +
                            metric_text(s.min_ssim));
    const int64_t unmatched = f.counts.only_first + f.counts.only_second;
    if (s.max_unmatched >= 0 && unmatched > s.max_unmatched)
        throw Error(counted(unmatched, "pixel is", "pixels are") +
                    " valid in only one of the two scenes, more than -max-unmatched " +
                    std::to_string(s.max_unmatched));
}

raster::OutputOptions map_output(const tool::Run& run, const Settings& s) {
    raster::OutputOptions options;
    options.path = s.map;
    options.role = "-map";
    options.run = run.files();
    options.cancel = &run.cancel();
    options.format = s.map_format;
    options.creation_options = s.map_creation;
    options.overwrite = s.overwrite;
    options.history = run.options().destination.history;
    return options;
}

raster::OutputSpec map_of(const stream::CubeShape& shape, const std::vector<Metric>& metrics) {
    raster::OutputSpec spec;
    spec.shape = {shape.samples, shape.lines, static_cast<int>(metrics.size())};
    spec.holes = true;
    for (Metric m : metrics) {
        raster::BandSpec band;
        band.description = compare::metric_name(m);
        if (m == Metric::sad) band.metadata["unit"] = "degree";
        spec.bands.push_back(std::move(band));
    }
    return spec;
}

} // namespace hsi::compare_tool
