// SPDX-License-Identifier: MIT
#include "compare_findings.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace hsi::tools {
namespace {

double mean(const std::vector<double>& v) {
    double sum = 0;
    for (double x : v)
        sum += x;
    return sum / static_cast<double>(v.size());
}

Json json_number(double v) {
    if (std::isnan(v)) return nullptr;
    if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
    return v;
}

} // namespace

std::string metric_text(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

Json to_json(const compare::Findings& f, const ComparedScene& a, const ComparedScene& b) {
    Json metrics = Json::object();
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto& s = f.summaries[k];
        metrics[compare::metric_name(f.spectral[k])] = {{"mean", json_number(s.mean)},
                                                        {"maximum", json_number(s.maximum)},
                                                        {"line", s.line},
                                                        {"sample", s.sample}};
    }
    const auto by_band = [&](const std::vector<double>& v) {
        Json list = Json::array();
        for (double x : v)
            list.push_back(json_number(x));
        return Json{{"mean", json_number(mean(v))}, {"bands", list}};
    };
    if (f.has_ssim) metrics["ssim"] = by_band(f.ssim);
    if (f.has_sr) {
        metrics["sr"] = by_band(f.sr);
        metrics["sr"]["zones_a"] = f.zones.first;
        metrics["sr"]["zones_b"] = f.zones.second;
    }
    const auto shape = a.cube->shape();
    return {{"a", a.file->path()},
            {"b", b.file->path()},
            {"size", {shape.samples, shape.lines, shape.bands}},
            {"bands_a", a.bands},
            {"bands_b", b.bands},
            {"pixels",
             {{"compared", f.counts.compared},
              {"valid_only_in_a", f.counts.only_first},
              {"valid_only_in_b", f.counts.only_second},
              {"valid_in_neither", f.counts.neither}}},
            {"metrics", metrics}};
}

void print_text(tool::Run& run, const compare::Findings& f, const ComparedScene& a, const ComparedScene& b) {
    char line[160];
    run.print("Pixels compared: " + std::to_string(f.counts.compared) + ", valid only in " + a.file->path() +
              ": " + std::to_string(f.counts.only_first) + ", only in " + b.file->path() + ": " +
              std::to_string(f.counts.only_second) + ", in neither: " + std::to_string(f.counts.neither));
    if (!f.spectral.empty()) {
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %s", "metric", "mean", "maximum",
                      "at line, sample");
        run.print(line);
    }
    for (size_t k = 0; k < f.spectral.size(); ++k) {
        const auto& s = f.summaries[k];
        std::snprintf(line, sizeof line, "%-8s %18s %18s   %lld, %lld", compare::metric_name(f.spectral[k]),
                      metric_text(s.mean).c_str(), metric_text(s.maximum).c_str(),
                      static_cast<long long>(s.line), static_cast<long long>(s.sample));
        run.print(line);
    }
    if (!f.has_ssim && !f.has_sr) return;
    std::string head = "  band a   band b";
    if (f.has_ssim) head += "               ssim";
    if (f.has_sr) head += "                 sr      zones a      zones b";
    run.print(head);
    const auto row = [&](const std::string& first, const std::string& second, double ssim, double sr,
                         size_t band) {
        std::snprintf(line, sizeof line, "%8s %8s", first.c_str(), second.c_str());
        std::string text = line;
        if (f.has_ssim) {
            std::snprintf(line, sizeof line, " %18s", metric_text(ssim).c_str());
            text += line;
        }
        if (f.has_sr) {
            std::snprintf(line, sizeof line, " %18s", metric_text(sr).c_str());
            text += line;
            if (band < f.sr.size()) {
                std::snprintf(line, sizeof line, " %12lld %12lld",
                              static_cast<long long>(f.zones.first[band]),
                              static_cast<long long>(f.zones.second[band]));
                text += line;
            }
        }
        run.print(text);
    };
    for (size_t k = 0; k < a.bands.size(); ++k)
        row(std::to_string(a.bands[k]), std::to_string(b.bands[k]), f.has_ssim ? f.ssim[k] : 0,
            f.has_sr ? f.sr[k] : 0, k);
    row("mean", "", f.has_ssim ? mean(f.ssim) : 0, f.has_sr ? mean(f.sr) : 0, SIZE_MAX);
}

} // namespace hsi::tools
