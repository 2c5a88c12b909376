// SPDX-License-Identifier: MIT
#include "compare_settings.h"

#include "core/counted.h"
#include "core/error.h"

#include <algorithm>
#include <utility>

namespace hsi::tools {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    for (size_t begin = 0;;) {
        const size_t end = text.find(at, begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

/// "3" or "5-8" to 1-based numbers.
std::vector<int> band_range(const std::string& text, const std::string& whole) {
    const auto refuse = [&] {
        throw UsageError("-band: '" + whole + "' is not a list of band pairs",
                         "Write -band 1:4, -band 1-10:21-30 or -band 1:2,1:3.");
    };
    std::vector<int> ends;
    for (const auto& part : split(text, '-')) {
        if (part.empty() || part.size() > 6 || part.find_first_not_of("0123456789") != std::string::npos)
            refuse();
        ends.push_back(std::stoi(part));
    }
    if (ends.size() > 2 || ends.front() < 1 || ends.back() < ends.front()) refuse();
    std::vector<int> bands;
    for (int b = ends.front(); b <= ends.back(); ++b)
        bands.push_back(b);
    return bands;
}

} // namespace

void parse_pairs(CompareSettings& s) {
    for (const auto& text : s.pair_texts)
        for (const auto& pair : split(text, ',')) {
            const auto sides = split(pair, ':');
            if (sides.size() > 2) band_range("", text);
            const auto first = band_range(sides[0], text), second = band_range(sides.back(), text);
            if (first.size() != second.size())
                throw UsageError("-band: '" + pair + "' pairs " + counted(first.size(), "band") + " with " +
                                 std::to_string(second.size()));
            s.first_bands.insert(s.first_bands.end(), first.begin(), first.end());
            s.second_bands.insert(s.second_bands.end(), second.begin(), second.end());
        }
}

void parse_metrics(CompareSettings& s) {
    for (const auto& text : s.metric_texts)
        for (const auto& name : split(text, ',')) {
            const Metric m = compare::parse_metric(name);
            if (std::find(s.metrics.begin(), s.metrics.end(), m) == s.metrics.end()) s.metrics.push_back(m);
        }
}

void complete_metrics(CompareSettings& s, int bands) {
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

raster::OutputOptions map_output(const tool::Run& run, const CompareSettings& s) {
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

void declare_thresholds(tool::Call& call, CompareSettings& s) {
    const auto limit = [&](const std::string& name, auto& value, const std::string& text) -> tool::Argument& {
        return call.option(name, value, text).defaults_to("").under("Thresholds");
    };
    for (size_t k = 0; k < spectral_metrics.size(); ++k) {
        const std::string name = compare::metric_name(spectral_metrics[k]);
        limit("max-" + name, s.limits[k].maximum,
              "Fail when the maximum of " + name + " over the pixels is greater")
            .from(0);
        limit("mean-" + name, s.limits[k].mean,
              "Fail when the mean of " + name + " over the pixels is greater")
            .from(0);
    }
    limit("min-ssim", s.min_ssim, "Fail when ssim of a band is less").between(-1, 1);
    limit("max-unmatched", s.max_unmatched,
          "Fail when more pixels than this are valid in only one of the two")
        .from(0);
}

void apply_limits(const CompareSettings& s, const compare::Findings& f) {
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
                    " valid in only one of the two, more than -max-unmatched " +
                    std::to_string(s.max_unmatched));
}

} // namespace hsi::tools
