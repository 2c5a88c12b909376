// SPDX-License-Identifier: MIT
#include "detect_outputs.h"

#include "core/counted.h"
#include "core/error.h"
#include "number_lists.h"
#include "raster/labels/labels.h"
#include "tool/scene.h"
#include "tool/words.h"

namespace hsi::tools {

namespace {

raster::OutputSpec score_spec(const DetectSettings& s, const stream::CubeShape& scene,
                              const std::vector<std::string>& names) {
    raster::OutputSpec scores;
    scores.shape = {scene.samples, scene.lines, static_cast<int>(names.size())};
    scores.holes = true;
    scores.metadata["HSI_DETECT_METHOD"] = detect::name_of(s.method);
    for (const auto& name : names)
        scores.bands.push_back({name, {}});
    return scores;
}

/// What the pixel function needs to know.
raster::VirtualBand virtual_score(const detect::Detector& d, const detect::Targets& targets, size_t number) {
    raster::VirtualBand band;
    const size_t n = d.used.size();
    band.function = detect::has_background(d.method) ? "hsi_match" : "hsi_sam";
    band.arguments = {{"method", detect::name_of(d.method)}, {"band", std::to_string(number)}};
    if (!detect::has_background(d.method)) {
        std::vector<double> all;
        for (const auto& t : targets.spectra)
            all.insert(all.end(), t.begin(), t.end());
        band.arguments.emplace_back("targets", number_rows(all, n));
        return band;
    }
    std::vector<double> used;
    for (const int b : d.used)
        used.push_back(b + 1);
    if (static_cast<int>(n) < d.bands) band.arguments.emplace_back("used", number_list(used));
    band.arguments.emplace_back("mean", number_list(d.centre));
    band.arguments.emplace_back("weights", number_rows(d.rows, n));
    if (d.method != detect::Method::ace) return band;
    band.arguments.emplace_back("contrast", number_list(d.constants));
    band.arguments.emplace_back("deviation", number_list(d.deviation));
    std::vector<double> lower;
    for (size_t row = 0; row < n; ++row)
        lower.insert(lower.end(), d.factor.begin() + static_cast<ptrdiff_t>(row * n),
                     d.factor.begin() + static_cast<ptrdiff_t>(row * n + row + 1));
    band.arguments.emplace_back("factor", number_list(lower));
    return band;
}

} // namespace

raster::OutputSet detect_outputs(const tool::Run& run, const DetectSettings& s,
                                 const stream::CubeShape& scene, std::vector<std::string> names) {
    if (names.empty()) names = {"RX"};
    raster::OutputSet outputs;
    const auto scores = score_spec(s, scene, names);
    if (raster::RasterSink::is_virtual(run.options().destination)) {
        if (s.method == detect::Method::rx)
            throw UsageError(
                "-of VRT does not go with -method rx: a VRT would hold a number for every pair of bands",
                "Write another format.");
        if (!s.map.empty())
            throw UsageError("-of VRT does not go with -map", "Write another format, or leave the map out.");
        return outputs;
    }
    outputs.plan(run.options().destination, scores);
    if (!s.map.empty()) {
        auto options = run.side_output("-map", s.map);
        options.nodata.reset(); // that of the scores: in a map 0 is none
        raster::OutputSpec map;
        map.shape = {scene.samples, scene.lines, 1};
        map.metadata = scores.metadata;
        map.bands = {{s.method == detect::Method::rx ? "Anomaly" : "Best target", {}}};
        std::vector<raster::LabelClass> classes;
        for (const auto& name : names)
            classes.push_back({static_cast<int>(classes.size()) + 1, name});
        raster::describe_class_map(classes, options, map);
        map.keep_nan = true; // 0 is no target: a pixel without a value, or one within no threshold
        outputs.plan(options, map);
    }
    outputs.check();
    return outputs;
}

bool write_virtual_scores(tool::Run& run, const DetectSettings& s, const raster::RasterSource& scene,
                          const std::vector<std::string>& names, const detect::Detector& detector,
                          const detect::Targets& targets) {
    const auto& dst = run.options().destination;
    if (!raster::RasterSink::is_virtual(dst)) return false;
    const auto spec = score_spec(s, scene.shape(), names);
    raster::RasterSink::check_virtual(dst, spec, scene);
    std::vector<raster::VirtualBand> bands;
    for (size_t k = 1; k <= names.size(); ++k)
        bands.push_back(virtual_score(detector, targets, k));
    raster::RasterSink::write_virtual(dst, spec, scene, bands);
    return true;
}

void tell_background(tool::Run& run, const detect::Detector& d, const raster::RasterSource& scene) {
    std::vector<int> constant;
    for (const int b : d.constant)
        constant.push_back(scene.bands()[static_cast<size_t>(b)]);
    if (!constant.empty())
        run.note("Constant over the background, and left out: band " + tool::list_text(constant));
    run.report()["background"] = {
        {"pixels", d.background_pixels},        {"bands", d.used.size()},
        {"constant_bands", constant},           {"least_eigenvalue", d.least_eigenvalue},
        {"mean_eigenvalue", d.mean_eigenvalue}, {"regularised", d.ridge > 0},
        {"added_to_diagonal", d.ridge}};
    if (d.ridge > 0)
        run.warn((d.background_pixels <= static_cast<int64_t>(d.used.size())
                      ? "the background has " + counted(d.background_pixels, "pixel") + " for " +
                            counted(d.used.size(), "band")
                      : std::string("bands depend linearly on one another over the background")) +
                 ": 1e-6 of its mean was added to the diagonal of the " +
                 (d.method == detect::Method::cem ? "correlation" : "covariance") + " matrix");
}

void tell_counts(tool::Run& run, const detect::Detection& found, const DetectSettings& s) {
    tool::tell_invalid(run, found.valid(), found.invalid());
    if (!s.local()) return;
    run.report()["pixels_without_background"] = found.without_background();
    run.report()["pixels_without_variance"] = found.without_variance();
    if (found.without_background() > 0)
        run.warn(counted(found.without_background(), "pixel has", "pixels have") +
                 " fewer than 2 pixels of background around them, and no score");
    if (found.without_variance() > 0)
        run.warn(counted(found.without_variance(), "pixel has", "pixels have") +
                 " a background whose pixels are all equal: 0 where they equal it, else no score");
}

} // namespace hsi::tools
