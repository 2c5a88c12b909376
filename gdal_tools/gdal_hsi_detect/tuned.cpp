// SPDX-License-Identifier: MIT
// mtmf: detects in components whose noise has unit variance.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/error.h"
#include "detect/tuned/tuned.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "mnf/mnf.h"
#include "pca/pca.h"
#include "raster/raster_source.h"
#include "raster/text_input.h"
#include "shared/components.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect_tool {
namespace {

using TunedComputing = tool::Computing<detect::TunedBackend>;

/// Returns the number of components that the scores use. \throws UsageError if -nc exceeds the number of
/// components.
int tuned_components_of(const Mixtures& how, const std::vector<double>& eigenvalues) {
    const auto all = static_cast<int>(eigenvalues.size());
    if (how.components > all)
        throw UsageError("-nc " + std::to_string(how.components) + ": MNF has " + counted(all, "component"),
                         "Use a number from 1 to " + std::to_string(all) + ".");
    if (how.components > 0) return how.components;
    constexpr double least = 2; // eigenvalue at which signal and noise have equal variances
    const auto strong = static_cast<int>(
        std::count_if(eigenvalues.begin(), eigenvalues.end(), [](double l) { return l >= least; }));
    return std::min(all, std::max(2, strong));
}

/// Makes the input of the operation. matched[b]: band of the scene for band b of the model.
detect::TunedTask tuned_task(tool::Run& run, const Mixtures& how, const mnf::Model& model,
                             const std::vector<int>& matched, int bands, detect::Targets targets) {
    const int components = tuned_components_of(how, model.eigenvalues);
    detect::TunedTask task;
    task.bands = bands;
    task.used = matched;
    task.mean = model.mean;
    task.loadings.assign(model.loading(0),
                         model.loading(0) + static_cast<size_t>(components) * model.mean.size());
    task.eigenvalues.assign(model.eigenvalues.begin(), model.eigenvalues.begin() + components);
    task.targets = std::move(targets);
    task.most_infeasible = how.most_infeasible;
    auto& report = run.report()["detection"];
    report["components"] = components;
    report["snr"] = Json::array();
    for (int k = 0; k < components; ++k)
        report["snr"].push_back(model.snr(k));
    run.note("Scores are made from " + counted(components, "component") + " of " +
             std::to_string(model.components) + ", of snr " + number(model.snr(0)) + " to " +
             number(model.snr(components - 1)));
    return task;
}

/// Makes the pass that writes, over `cube`, a source with the values of `scene`.
void write_tuned_scores(tool::Run& run, const Settings& s, TunedComputing& computing,
                        const raster::RasterSource& scene, const stream::CubeSource& cube,
                        const detect::TunedTask& task, const std::vector<std::string>& names, double share) {
    const Scoring scoring{cube,
                          [&](const detect::Decision& d) { return computing->make_tuned_filter(task, d); },
                          [&](const std::string& name, double part) { return computing.pass(name, part); }};
    if (!make_scores(run, s, scene, scoring, plan_outputs(run, s, scene, names), names, share, nullptr))
        throw tool::no_valid_pixel(scene);
    report_kernels(run, computing.backend());
}

/// Detects in one pass, with the components of -mnf-model.
void detect_by_model(tool::Run& run, const Settings& s, const Mixtures& how, TunedComputing& computing,
                     const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets) {
    auto model = mnf::from_json(raster::read_input(how.model, largest_file::model), how.model);
    const auto [scene, matched] = tool::match_source(run, source, how.model, model, how.any_wavelengths);
    const auto values = tool::value_scale(*scene, matched);
    mnf::rescale(model, tool::compare_scales(run, how.model, model, values, s.target.any_scale), values);
    plan_outputs(run, s, *scene, targets.names());
    auto spectra = targets.at(*scene);
    if (!spectra) throw targets.missing();
    targets.warn_of_mistakes(run, s, *scene);
    const auto task = tuned_task(run, how, model, matched, scene->shape().bands, std::move(*spectra));
    const tool::RangeCheck check(*scene, model, matched);
    write_tuned_scores(run, s, computing, *scene, check.source(), task, targets.names(), 1);
    check.tell(run);
}

} // namespace

void detect_among_components(tool::Run& run, const Settings& s, const Mixtures& how,
                             const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets) {
    const bool scans = how.model.empty();
    const int components = how.components > 0 ? how.components : std::min(source->shape().bands, 20);
    auto work = tools::projection_work(source->shape(), components, scans, mnf::cost::noise_and_signal);
    work.writes =
        static_cast<double>(source->shape().pixels()) * 8 * static_cast<double>(targets.names().size());
    if (scans)
        // The scene is read twice, because the filter cannot use the copy of the scene that the statistics
        // kept on the device.
        work.device_reads *= 2;
    const auto devices = tool::choose_devices(run, "detect_tuned", work);
    TunedComputing filter(run, "detect_tuned", devices, detect::simd_target(),
                          [] { return std::make_unique<detect::TunedBackend>(); });
    if (!scans) return detect_by_model(run, s, how, filter, source, targets);
    tools::PcaComputing computing(run, "pca", devices, pca::simd_target(), pca::make_cpu_backend, false);
    tool::Scene scene(run, source, "detection");
    if (how.components > scene.shape().bands)
        throw UsageError("-nc " + std::to_string(how.components) + ": the scene has " +
                         counted(scene.shape().bands, "band"));
    plan_outputs(run, s, *scene.raster(), targets.names());
    // The scene is not kept on the device, because the filter reads the scene itself.
    const auto scan = [&] {
        return tools::make_scan(run, computing, scene.shape(), stream::Statistics::differences, true);
    };
    const auto pass = [&](bool again) { return computing.pass("covariances", again ? 0.0 : 0.5); };
    const auto moments = scene.scan(scan, pass);
    auto spectra = targets.at(*scene.raster());
    if (!spectra) throw targets.missing();
    std::vector<int> kept;
    const auto model = tools::fit_noise_scene(scene, moments, {}, {}, kept);
    targets.warn_of_mistakes(run, s, *scene.raster());
    const auto task = tuned_task(run, how, model, kept, scene.shape().bands, std::move(*spectra));
    write_tuned_scores(run, s, filter, *scene.raster(), scene.cube(), task, targets.names(), 0.5);
}

} // namespace hsi::detect_tool
