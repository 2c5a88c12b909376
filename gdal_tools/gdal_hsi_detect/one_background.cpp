// SPDX-License-Identifier: MIT
// Detects with mf, cem, ace or rx and one background for all pixels, or with sam or sid, which use no
// background.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/error.h"
#include "detect/groups/groups.h"
#include "detect/pixel/pixel.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "pca/pca.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "shared/components.h"
#include "shared/scene_statistics.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect_tool {
namespace {

using PixelComputing = tool::Computing<detect::PixelBackend>;

/// Returns the work of the scores. `targets`: number of targets; 0 for rx. The work includes the statistics
/// of the background if the method needs them, because the CPU computes them in any case.
tool::Work work_of(const Settings& s, Method method, const stream::CubeShape& scene, size_t targets,
                   int threads) {
    const auto bytes = static_cast<double>(scene.float_bytes()), pixels = static_cast<double>(scene.pixels());
    const double b = scene.bands, scores = targets > 0 ? static_cast<double>(targets) : 1;
    const double passes = s.ranks() ? 3 : 1; // number of passes that compute scores
    tool::Work work;
    work.cpu_reads = work.device_reads = passes * bytes;
    work.writes = pixels * (4 * scores + (s.map.path.empty() ? 0 : 1));
    const double values = passes * pixels * b;
    work.add(detect::cost::score, values * scores);
    if (method == Method::sid) work.add(detect::cost::logarithms, values);
    if (method == Method::ace || method == Method::rx) work.add(detect::cost::matrix, values * b);
    if (detect::has_background(method)) {
        const double background = detect::cost::background.core * pixels * b * b;
        work.cpu_reads += bytes;
        work.device_reads += bytes;
        work.core_seconds += background;
        work.device_seconds += background / threads;
    }
    return work;
}

/// Starts the backend. For a VRT or an .hsi this is the CPU backend, because no scores are computed now.
/// Reports the device that computes scores.
PixelComputing start_computing(tool::Run& run, const Settings& s, Method method,
                               const stream::CubeShape& scene, size_t targets) {
    const auto& options = run.options();
    std::vector<CudaDevice> devices;
    if (!raster::is_virtual(options.destination))
        devices =
            tool::choose_devices(run, "detect_pixel", work_of(s, method, scene, targets, options.threads));
    return PixelComputing(run, "detect_pixel", std::move(devices), detect::simd_target(),
                          [] { return std::make_unique<detect::PixelBackend>(); });
}

/// Returns advice for a background with too few pixels: options that were not given and that help with this
/// number of pixels.
std::string advice_for_few_pixels(const Settings& s, const OneBackground& how, const detect::Detector& d) {
    std::string advice = "use ";
    if (how.shrinkage.conditioning.components != detect::Conditioning::best_components &&
        !detect::are_alike(d.background_pixels, detect::Conditioning::fewest_components(d.method)))
        advice += "-nc auto, ";
    // With -shrinkage, the distribution of scores that -false-alarms needs is unknown. With two pixels, no
    // shrinkage can be found.
    if (!how.shrinkage.best && !(s.map.false_alarms && !s.ranks()) && d.background_pixels > 2)
        advice += "-shrinkage auto, ";
    return advice + (advice.back() == ' ' && advice.size() > 4 ? "or " : "") + "a larger background";
}

/// Warns that the scores of ace are all 1 or -1. ace compares directions, and one dimension has only two
/// directions.
void warn_of_one_dimension(tool::Run& run, const detect::Detector& d) {
    run.warn("ace in one " + std::string(d.components > 0 ? "component" : "band") +
             " is always 1 or -1, so its scores only show the side of the mean. Use " +
             (d.components > 0 && d.used.size() > 1 ? "at least two components (-nc), or -method mf or rx"
                                                    : "more bands, or -method mf or rx"));
}

/// Warns that the background has too few pixels for its bands (detect::is_few()).
void warn_of_few_pixels(tool::Run& run, const Settings& s, const OneBackground& how,
                        const detect::Detector& d) {
    const std::string advice = advice_for_few_pixels(s, how, d);
    const bool few = detect::is_few(d.background_pixels, d.free_dimensions);
    auto& report = run.report()["background"];
    report["few_pixels"] = few;
    if (d.shrinkage > 0) report["free_dimensions"] = d.free_dimensions;
    if (d.method == Method::ace && d.dimensions() == 1) warn_of_one_dimension(run, d);
    if (!few) return;
    std::string sizes = "the background has " + counted(d.background_pixels, "pixel") + " for " +
                        counted(d.dimensions(), d.components > 0 ? "component" : "band");
    if (d.shrinkage > 0)
        sizes += ", and after a shrinkage of " + number(d.shrinkage) + " " +
                 counted(std::llround(d.free_dimensions), "direction") + " keep their own variance";
    if (detect::are_alike(d.background_pixels, d.free_dimensions))
        return run.warn(
            sizes +
            (d.method == Method::rx
                 ? ": scores have no meaning, since all background pixels are equally far from their mean; "
                 : ": scores have no meaning, since with so few pixels every pixel differs from all "
                   "others; ") +
            advice);
    constexpr double little = 0.2;
    const double kept = detect::kept_contrast(d.background_pixels, d.free_dimensions);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.*f %%", kept < 0.1 ? 1 : 0, 100 * kept);
    run.warn(sizes + ", fewer than two per dimension: scores " +
             (kept < little ? "mean little, and keep" : "keep only") + " about " + percent +
             " of their contrast, and less in the background's own pixels; " + advice);
}

/// Reports omitted bands and changes to the diagonal of the matrix, to the user and in the report.
void report_background(tool::Run& run, const Settings& s, const OneBackground& how, const detect::Detector& d,
                       const raster::RasterSource& scene) {
    std::vector<int> constant;
    for (const int b : d.constant)
        constant.push_back(scene.bands()[static_cast<size_t>(b)]);
    if (!constant.empty())
        run.note("Left out, since constant over the background: band " + tool::list_text(constant));
    run.report()["background"] = {
        {"pixels", d.background_pixels},        {"bands", d.used.size()},
        {"constant_bands", constant},           {"least_eigenvalue", d.least_eigenvalue},
        {"mean_eigenvalue", d.mean_eigenvalue}, {"regularised", d.ridge > 0},
        {"added_to_diagonal", d.ridge}};
    auto& report = run.report()["background"];
    report["shrinkage"] = d.shrinkage;
    if (how.shrinkage.best)
        run.note("Shrinkage: " + number(d.shrinkage) +
                 " of the mean eigenvalue's identity in the background's matrix");
    if (how.shrinkage.ledoit_wolf)
        run.note("Shrinkage: " + number(d.shrinkage) + " of its own diagonal in the background's matrix");
    report["components"] = d.dimensions();
    if (how.shrinkage.conditioning.components == detect::Conditioning::best_components)
        run.note(d.components > 0 ? "Scores are made from the first " + counted(d.components, "component") +
                                        " of " + counted(d.used.size(), "band")
                                  : "Scores are made from all " + counted(d.used.size(), "band") +
                                        ", since the background has enough pixels");
    if (d.ridge > 0)
        run.warn((d.background_pixels <= static_cast<int64_t>(d.used.size())
                      ? std::string("the background does not span the bands")
                      : std::string("some bands are linear combinations of others in the background")) +
                 ": 1e-6 of the mean diagonal was added to the diagonal of the " +
                 (d.method == Method::cem ? "correlation" : "covariance") + " matrix");
    warn_of_few_pixels(run, s, how, d);
}

/// Makes the detector. Makes an additional pass if the shrinkage is to be found.
detect::Detector detector_of(tool::Run& run, const OneBackground& how, const tool::Scene& scene,
                             const stream::SceneStatistics& moments, const detect::Targets& targets,
                             const detect::PixelMask* mask) {
    auto conditioning = how.shrinkage.conditioning;
    const auto scan = [&](auto& operation) {
        return tool::run_pass(run, *scene.counted(), operation, {},
                              without_mask(mask, run.pass("shrinkage", 0.0)));
    };
    if (how.shrinkage.best) {
        detect::ShrinkageScan shrinkage(how.method, moments, mask);
        if (scan(shrinkage)) conditioning.shrinkage = shrinkage.result();
    }
    if (how.shrinkage.ledoit_wolf && moments.valid_pixels > 1) {
        std::vector<std::unique_ptr<detect::BandShrinkage>> parts;
        parts.push_back(std::make_unique<detect::BandShrinkage>(how.method, moments));
        detect::GroupShrinkageScan shrinkage(moments.bands, parts, nullptr, mask);
        if (scan(shrinkage)) conditioning.shrinkage = shrinkage.share(0);
    }
    return detect::make_detector(how.method, targets, moments, conditioning);
}

/// Applies -exclude-share: makes the detector again without the pixels that are most similar to a target.
void exclude_greatest(tool::Run& run, const OneBackground& how, const tool::Scene& scene,
                      PixelComputing& computing, const detect::Targets& targets,
                      const detect::PixelMask* mask, detect::Detector& detector) {
    if (how.exclusion.share == 0) return;
    const auto shape = scene.shape();
    std::vector<int64_t> excluded;
    for (int round = 0; round < how.exclusion.iterations; ++round) {
        detect::BestScores best({shape.samples, shape.lines, detector.scores()});
        const auto pass = [&](stream::PassOptions options) {
            tool::leave_room(options, best.bytes());
            return without_mask(mask, std::move(options));
        };
        const auto operation = computing->make_detection(detector, {});
        if (!tool::run_pass(run, scene.cube(), *operation, {&best}, pass(computing.pass("exclusion", 0.0))))
            return;
        const auto kept =
            best.without_greatest(how.exclusion.share, nullptr, counted_pixels(run, mask), excluded);
        detect::BackgroundScan scan(shape, kept.get());
        run.add_pass(stream::run_pass(*scene.counted(), scan, {}, pass(run.pass("background", 0.0))));
        detector = detector_of(run, how, scene, scan.result().moments, targets, kept.get());
    }
    run.report()["excluded_pixels"] = excluded.front();
    run.note(counted(excluded.front(), "pixel") +
             " with the greatest scores were excluded from the background");
}

/// Computes the background of a scene on the devices that compute the scores. The result has the same bits as
/// on the CPU. A background of selected pixels (-background) is not supported.
class BackgroundComputing {
  public:
    BackgroundComputing(tool::Run& run, PixelComputing& computing, const detect::PixelMask* mask,
                        const tools::GivenStatistics* given)
        : m_run(run) {
        constexpr auto what = stream::Statistics::double_covariance;
        if (given == nullptr && mask == nullptr && computing.on_devices() && cuda_module_present("pca")) {
            m_computing.emplace(run, "pca", computing.devices(), pca::simd_target(), pca::make_cpu_backend,
                                false);
            if (!(*m_computing)->has_scan(what)) m_computing.reset();
        }
        const std::string text = tool::describe_devices(
            run, m_computing ? computing.devices() : std::vector<CudaDevice>(), detect::simd_target());
        run.report()["background_device"] = text;
        if (computing.on_devices()) run.note("Background: " + text);
    }
    explicit operator bool() const { return m_computing.has_value(); }
    std::unique_ptr<stream::StatisticsScan> make_scan(const stream::CubeShape& shape) {
        return tools::make_scan(m_run, *m_computing, shape, stream::Statistics::double_covariance, true);
    }
    stream::PassOptions pass(double share) { return m_computing->pass("background", share); }

  private:
    tool::Run& m_run;
    std::optional<tools::PcaComputing> m_computing;
};

} // namespace

void detect_by_background(tool::Run& run, const Settings& s, const OneBackground& how,
                          const std::shared_ptr<raster::RasterSource>& source, DetectTargets& targets,
                          const detect::PixelMask* mask, const tools::GivenStatistics* given) {
    auto computing = start_computing(run, s, how.method, source->shape(), targets.names().size());
    tool::Scene scene(run, source, "detection");
    if (how.shrinkage.conditioning.components > scene.shape().bands)
        throw UsageError("-nc " + std::to_string(how.shrinkage.conditioning.components) + ": the scene has " +
                         counted(scene.shape().bands, "band"));
    auto outputs = plan_outputs(run, s, *scene.raster(), targets.names());
    const auto make_scan = [&] { return std::make_unique<detect::BackgroundScan>(scene.shape(), mask); };
    BackgroundComputing there(run, computing, mask, given);
    scene.set_fate(nullptr);
    if (raster::is_virtual(run.options().destination) && how.exclusion.share == 0) scene.read_once();
    const auto pass = [&](bool again) {
        return without_mask(mask, run.pass("background", again ? 0.0 : 0.5));
    };
    const auto moments = given   ? tools::moments_at(*given, *scene.raster())
                         : there ? scene.scan([&] { return there.make_scan(scene.shape()); },
                                              [&](bool again) { return there.pass(again ? 0.0 : 0.5); })
                                 : scene.scan(make_scan, pass).moments;
    const auto spectra = targets.at(*scene.raster());
    if (!spectra) throw targets.missing();
    auto detector = detector_of(run, how, scene, moments, *spectra, mask);
    exclude_greatest(run, how, scene, computing, *spectra, mask, detector);
    report_background(run, s, how, detector, *scene.raster());
    targets.warn_of_mistakes(run, s, *source, &computing.backend());
    if (write_virtual_scores(run, s, *scene.raster(), targets.names(), detector, *spectra)) return;
    const Scoring scoring{scene.cube(),
                          [&](const detect::Decision& d) { return computing->make_detection(detector, d); },
                          [&](const std::string& name, double share) {
                              return without_mask(mask, computing.pass(name, share));
                          }};
    if (!make_scores(run, s, *scene.raster(), scoring, std::move(outputs), targets.names(), 0.5, mask,
                     &detector))
        throw tool::no_valid_pixel(*scene.raster());
    report_kernels(run, computing.backend());
}

void detect_alone(tool::Run& run, const Settings& s, const Alone& how,
                  std::shared_ptr<raster::RasterSource> source, DetectTargets& targets,
                  const detect::PixelMask* mask) {
    auto computing = start_computing(run, s, how.method, source->shape(), targets.names().size());
    if (raster::is_virtual(run.options().destination)) tool::leave_out_unseen_bands(run, source);
    bool found = false; // true if each target has a spectrum
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        const auto spectra = targets.at(*source);
        found = spectra.has_value();
        if (!found) return false;
        if (!again) targets.warn_of_mistakes(run, s, *source);
        const auto detector = detect::make_detector(how.method, *spectra);
        const Scoring scoring{
            *source, [&](const detect::Decision& d) { return computing->make_detection(detector, d); },
            [&](const std::string& name, double share) {
                return without_mask(mask, computing.pass(name, share));
            }};
        return write_virtual_scores(run, s, *source, targets.names(), detector, *spectra) ||
               make_scores(run, s, *source, scoring, std::move(outputs), targets.names(), again ? 0 : 1,
                           mask);
    });
    if (any) return report_kernels(run, computing.backend());
    if (!found) throw targets.missing();
    if (how.method == Method::sid)
        throw Error(source->path() + ": no pixel is valid and has a positive value",
                    "Check the nodata value (-srcnodata), or use another method.");
    throw tool::no_valid_pixel(*source);
}

} // namespace hsi::detect_tool
