// SPDX-License-Identifier: MIT
#include "detect_outputs.h"

#include "raster/labels.h"
#include "tool/scene.h"
#include "tool/words.h"

namespace hsi::tools {

raster::OutputSet detect_outputs(const tool::Run& run, const DetectSettings& s,
                                 const stream::CubeShape& scene, std::vector<std::string> names) {
    if (names.empty()) names = {"RX"};
    raster::OutputSet outputs;
    raster::OutputSpec scores;
    scores.shape = {scene.samples, scene.lines, static_cast<int>(names.size())};
    scores.holes = true;
    scores.metadata["HSI_DETECT_METHOD"] = detect::name_of(s.method);
    for (const auto& name : names)
        scores.bands.push_back({name, {}});
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
                      ? "the background has " + std::to_string(d.background_pixels) + " pixels for " +
                            std::to_string(d.used.size()) + " bands"
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
        run.warn(std::to_string(found.without_background()) +
                 " pixels have fewer than 2 pixels of background around them, and no score");
    if (found.without_variance() > 0)
        run.warn(
            std::to_string(found.without_variance()) +
            " pixels have a background whose pixels are all equal: 0 where they equal it, else no score");
}

} // namespace hsi::tools
