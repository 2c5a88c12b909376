// SPDX-License-Identifier: MIT
// PCA as a stage of a tool: the pass that leads to a model.
#pragma once

#include "core/counted.h"
#include "core/error.h"
#include "pca/pca.h"
#include "stream/empty_source.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

using PcaComputing = tool::Computing<pca::Backend>;

/// Seconds that the statistics of a pixel take for each square of its number of bands: of a core, of a
/// device.
struct ScanCost {
    double core, device;
};
inline constexpr ScanCost covariance_cost{2.3e-11, 8e-14};

/// Statistics and projection, or the projection alone.
inline tool::Work projection_work(const stream::CubeShape& scene, int components, bool scan,
                                  const ScanCost& cost) {
    const auto bytes = static_cast<double>(scene.float_bytes()), pixels = static_cast<double>(scene.pixels());
    const double products = scan ? pixels * scene.bands * scene.bands : 0,
                 projected = pixels * scene.bands * components;
    tool::Work work;
    work.cpu_reads = scan ? 2 * bytes : bytes;
    work.device_reads = bytes;
    work.writes = pixels * components * 4;
    work.core_seconds = cost.core * products + 1e-10 * projected;
    work.device_seconds = cost.device * products + 3e-13 * projected;
    return work;
}

inline tool::Work pca_work(const stream::CubeShape& scene, int components, bool scan) {
    return projection_work(scene, components, scan, covariance_cost);
}

/// A pass's device memory without what the backend keeps there.
inline stream::PassOptions held_apart(PcaComputing& computing, stream::PassOptions pass) {
    if (pass.device_memory > 0)
        pass.device_memory -= std::min(pass.device_memory / 2, computing->held_bytes());
    return pass;
}

/// Device memory in which a scan may keep what it reads for the projection: none where this takes other
/// pixels than the statistics.
inline uint64_t memory_to_keep(const tool::Run& run, PcaComputing& computing) {
    return run.masks_statistics() ? 0 : computing.device_memory();
}

/// One pass over the scene; the extremes of its bands are looked at, too.
inline stream::SceneCovariance scan_scene(tool::Scene& scene, PcaComputing& computing, double share) {
    scene.watch_values();
    return scene.scan(
        [&] { return computing->make_covariance(scene.shape(), memory_to_keep(scene.run(), computing)); },
        [&](bool again) { return held_apart(computing, computing.pass("covariance", again ? 0.0 : share)); });
}

/// One pass of a transform over the scene that a scan of the backend has read, from where it is now.
inline stream::PassReport transform_scene(const tool::Scene& scene, PcaComputing& computing,
                                          pca::Transform transform, stream::CubeSink& sink,
                                          const stream::PassOptions& pass) {
    const auto operation = computing->make_transform(std::move(transform));
    const auto options = held_apart(computing, pass);
    if (!computing->holds_scene()) return stream::run_pass(scene.cube(), *operation, {&sink}, options);
    const stream::EmptySource on_device(scene.shape());
    auto report = stream::run_pass(on_device, *operation, {&sink}, options);
    computing->release();
    return report;
}

/// The model of a scanned scene; explained variance goes to the report.
inline pca::Model fit_scene(const tool::Scene& scene, const stream::SceneCovariance& statistics,
                            const pca::FitOptions& options) {
    tool::Run& run = scene.run();
    auto model = pca::fit(statistics, options);
    model.origin = tool::origin_of(run);
    model.source = scene.raster()->path();
    tool::describe_bands(*scene.raster(), model);
    model.minimum.assign(scene.minimum().begin(), scene.minimum().end());
    model.maximum.assign(scene.maximum().begin(), scene.maximum().end());
    for (int k = 0; k < model.components; ++k) {
        run.report()["explained_variance"].push_back(model.eigenvalues[static_cast<size_t>(k)]);
        run.report()["explained_variance_ratio"].push_back(model.explained(k));
    }
    if (model.rank() < model.components)
        run.warn("the scene has only " + counted(model.rank(), "component") +
                 " with variance; what comes after them is rounding" +
                 (model.whiten ? ", whitened to zero" : ""));
    return model;
}

/// The explained variance for people, once the progress bar is complete.
inline void print_components(tool::Run& run, const pca::Model& model) {
    double sum = 0;
    for (int k = 0; k < model.components; ++k) {
        sum += model.explained(k);
        char text[128];
        std::snprintf(text, sizeof text,
                      "PC%d: variance %.8g, %.4f %% of the whole, %.4f %% with those before it", k + 1,
                      model.eigenvalues[static_cast<size_t>(k)], 100 * model.explained(k), 100 * sum);
        run.note(text);
    }
}

/// -nc as given, or 7 and no more than there are; throws UsageError naming the range.
inline int component_count(int asked, bool given, int bands) {
    if (!given) return std::min(asked, bands);
    if (asked < 1 || asked > bands)
        throw UsageError("-nc: " + counted(asked, "component") + " cannot be made from " +
                             counted(bands, "band"),
                         "Use a number from 1 to " + std::to_string(bands) + ".");
    return asked;
}

} // namespace hsi::tools
