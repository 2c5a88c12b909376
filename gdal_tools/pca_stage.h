// SPDX-License-Identifier: MIT
// PCA as a stage of a tool: where to compute it, and the passes that lead to a model.
#pragma once

#include "cli/devices.h"
#include "cli/model_values.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "pca/pca.h"
#include "stream/resident_source.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

/// The CPU, or devices through the CUDA module.
class PcaBackend {
  public:
    /// devices: those that the tool has chosen; empty for the CPU. Falls back to the CPU, with a warning,
    /// when the module cannot be loaded and a GPU was not asked for by name.
    PcaBackend(cli::Run& run, std::vector<CudaDevice> devices)
        : m_devices(run, std::move(devices), "pca", pca::cuda_symbol, "PCA runs on the CPU"),
          m_cuda(m_devices.cuda()) {}
    bool on_cuda() const { return m_cuda != nullptr; }
    std::unique_ptr<stream::CovarianceScan> covariance(int bands) const {
        return m_cuda ? m_cuda->make_covariance(m_devices.list(), bands)
                      : std::make_unique<stream::CovarianceScan>(bands);
    }
    std::unique_ptr<stream::Operation> transform(pca::Transform t) const {
        return m_cuda ? m_cuda->make_transform(m_devices.list(), std::move(t))
                      : pca::make_transform(std::move(t));
    }
    /// Device bytes for all lanes; 0 on the CPU.
    uint64_t device_memory(const cli::CommonOptions& options) const { return m_devices.memory(options); }

  private:
    cli::Devices<pca::CudaBackend> m_devices;
    pca::CudaBackend* m_cuda;
};

/// A scene whose statistics are known: bands without values are left out, and a compressed file that fits is
/// in memory.
struct ScannedScene {
    std::shared_ptr<raster::RasterSource> raster;
    std::shared_ptr<const stream::CubeSource> cube; ///< what to read from: raster, or its copy in memory
    uint64_t resident_bytes = 0;                    ///< of -memory, taken by that copy
    stream::SceneCovariance statistics;
    std::vector<float> minimum, maximum; ///< of pixels on a grid, a band each (stream::RangeWatch)
};

/// One pass, or two when bands turn out to be without a value.
inline ScannedScene scan_scene(cli::Run& run, std::shared_ptr<raster::RasterSource> raster,
                               const PcaBackend& backend, double share) {
    ScannedScene scene;
    for (bool again = false;; again = true) {
        scene.raster = raster;
        scene.cube = raster;
        std::shared_ptr<stream::ResidentSource> resident;
        auto options = run.pass("covariance", again ? 0.0 : share);
        const uint64_t bytes = raster->shape().float_bytes();
        if (!raster->raw_access() &&
            bytes <= options.memory / 2) { // decoding twice costs more than keeping it
            resident = std::make_shared<stream::ResidentSource>(raster);
            scene.cube = resident;
            scene.resident_bytes = bytes;
            options.memory -= bytes;
        }
        options.device_memory = backend.device_memory(run.options());
        const auto scan = backend.covariance(raster->shape().bands);
        const stream::RangeWatch watch(*scene.cube);
        run.add_pass(stream::run_pass(watch, *scan, {}, options));
        if (resident) resident->seal();
        scene.minimum = watch.minimum();
        scene.maximum = watch.maximum();
        scene.statistics = scan->result();
        if (scene.statistics.valid_pixels > 0 ||
            !run.leave_out_empty_bands(raster, scene.statistics.empty_bands()))
            break;
    }
    if (scene.statistics.valid_pixels == 0) throw cli::no_valid_pixel(*raster);
    run.report()["valid_pixels"] = scene.statistics.valid_pixels;
    run.report()["invalid_pixels"] = scene.statistics.invalid_pixels;
    if (scene.statistics.invalid_pixels > 0)
        run.note(std::to_string(scene.statistics.invalid_pixels) + " of " +
                 std::to_string(raster->shape().pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and stay without a value");
    return scene;
}

/// The model of a scanned scene; explained variance goes to the report.
inline pca::Model fit_scene(cli::Run& run, const ScannedScene& scene, const pca::FitOptions& options) {
    auto model = pca::fit(scene.statistics, options);
    model.source = scene.raster->path();
    cli::describe_bands(*scene.raster, model);
    model.minimum.assign(scene.minimum.begin(), scene.minimum.end());
    model.maximum.assign(scene.maximum.begin(), scene.maximum.end());
    for (int k = 0; k < model.components; ++k) {
        run.report()["explained_variance"].push_back(model.eigenvalues[static_cast<size_t>(k)]);
        run.report()["explained_variance_ratio"].push_back(model.explained(k));
    }
    if (model.rank() < model.components)
        run.warn("the scene has only " + std::to_string(model.rank()) +
                 " components with variance; what comes after them is rounding" +
                 (model.whiten ? ", whitened to zero" : ""));
    return model;
}

/// The explained variance for people, once the progress bar is complete.
inline void print_components(cli::Run& run, const pca::Model& model) {
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

/// -dry-run: one pass of the plan, printed and reported.
inline void print_plan(cli::Run& run, const std::string& name, const stream::CubeSource& source,
                       const stream::Operation& operation, const TilePlan& plan) {
    const uint64_t bytes = stream::plan_bytes(source, operation, plan);
    run.print("Pass " + name + ": " + plan.describe() + ", " + format_byte_size(bytes) + " of buffers");
    run.report()["plan"][name] = {{"tiles", plan.size()},
                                  {"tile_samples", plan.max_core_samples()},
                                  {"tile_lines", plan.max_core_lines()},
                                  {"halo", plan.halo()},
                                  {"lanes", plan.lanes()},
                                  {"buffer_bytes", bytes}};
}

/// Refuses what PCA cannot be made from.
inline void check_spectrum(const raster::RasterSource& source, const char* what) {
    if (source.shape().bands >= 2) return;
    throw UsageError("-b: " + std::to_string(source.shape().bands) + " band of " + source.path() +
                         " is no spectrum: " + what + " needs at least 2 bands",
                     "Give more bands with -b, or keep bad ones with -bbl ignore.");
}

/// -nc as given, or 7 and no more than there are; throws UsageError naming the range.
inline int component_count(int asked, bool given, int bands) {
    if (!given) return std::min(asked, bands);
    if (asked < 1 || asked > bands)
        throw UsageError("-nc: " + std::to_string(asked) + " components cannot be made from " +
                             std::to_string(bands) + (bands == 1 ? " band" : " bands"),
                         "Use a number from 1 to " + std::to_string(bands) + ".");
    return asked;
}

} // namespace hsi::tools
