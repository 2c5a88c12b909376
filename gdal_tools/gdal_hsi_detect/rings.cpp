// SPDX-License-Identifier: MIT
// Detects with rx and a ring around each pixel as background.
#include "gdal_hsi_detect/approaches.h"

#include "core/counted.h"
#include "core/error.h"
#include "detect/local/local.h"
#include "gdal_hsi_detect/scores.h"
#include "gdal_hsi_detect/settings.h"
#include "gdal_hsi_detect/targets.h"
#include "raster/raster_sink.h"
#include "raster/raster_source.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi::detect_tool {
namespace {

tool::Work work_of_rings(const Settings& s, const stream::CubeShape& scene, const detect::Ring& ring) {
    const auto pixels = static_cast<double>(scene.pixels());
    const double passes = s.ranks() ? 3 : 1; // number of passes that compute scores
    tool::Work work;
    work.cpu_reads = work.device_reads = passes * static_cast<double>(scene.float_bytes());
    work.writes = pixels * (4 + (s.map.path.empty() ? 0 : 1));
    work.add(detect::cost::local, passes * pixels * detect::local_cost(scene.bands, ring),
             passes * pixels * detect::local_products(scene.bands, ring));
    return work;
}

/// Warns if rings do not contain more pixels than there are bands.
void warn_of_small_rings(tool::Run& run, const stream::CubeShape& scene, const detect::Ring& ring) {
    const int inner = ring.inner, outer = ring.outer;
    int64_t pixels = std::min(int64_t{outer} * outer - int64_t{inner} * inner, scene.pixels() - 1);
    if (ring.mask != nullptr) pixels = std::min(pixels, ring.mask->count());
    run.report()["background"] = {{"ring_pixels", pixels},
                                  {"few_pixels", pixels <= scene.bands},
                                  {"added_share_of_mean_variance", ring.ridge_share}};
    if (ring.ridge_share > 0)
        run.note("Local RX: " + number(ring.ridge_share) +
                 " of the mean variance is added to the diagonal of each covariance matrix; use -shrinkage 0 "
                 "to add nothing");
    else if (pixels <= scene.bands)
        throw UsageError("-shrinkage 0 with -window " + std::to_string(inner) + " " + std::to_string(outer) +
                             ": rings of " + counted(pixels, "pixel") + " do not span " +
                             counted(scene.bands, "band"),
                         "Use a larger OUTER, fewer bands (-b, gdal_hsi_pca), or leave -shrinkage out.");
    if (pixels <= scene.bands)
        run.warn("-window " + std::to_string(inner) + " " + std::to_string(outer) + " has rings of at most " +
                 counted(pixels, "pixel") + " for " + counted(scene.bands, "band") +
                 ": scores depend mainly on the term added to the diagonal, and show the distance from the "
                 "mean rather than the difference from the surroundings; use a larger OUTER, or fewer bands "
                 "(-b, gdal_hsi_pca, gdal_hsi_mnf)");
}

} // namespace

void detect_in_rings(tool::Run& run, const Settings& s, const Rings& how,
                     std::shared_ptr<raster::RasterSource> source, const DetectTargets& targets,
                     const detect::PixelMask* mask) {
    const detect::Ring ring{how.inner, how.outer, mask, how.ridge_share};
    std::vector<CudaDevice> devices;
    if (!raster::is_virtual(run.options().destination)) // virtual outputs are rejected later
        devices = tool::choose_devices(run, "detect_local", work_of_rings(s, source->shape(), ring));
    tool::Computing<detect::LocalBackend> computing(run, "detect_local", std::move(devices),
                                                    detect::simd_target(),
                                                    [] { return std::make_unique<detect::LocalBackend>(); });
    const bool any = tool::attempt(run, {tool::banded(source)}, [&](bool again) {
        auto outputs = plan_outputs(run, s, *source, targets.names());
        const Scoring scoring{*source,
                              [&](const detect::Decision& d) {
                                  return computing->make_local_detection(source->shape().bands, ring, d);
                              },
                              [&](const std::string& name, double share) {
                                  return without_mask(mask, computing.pass(name, share));
                              }};
        warn_of_small_rings(run, source->shape(), ring);
        return make_scores(run, s, *source, scoring, std::move(outputs), targets.names(), again ? 0 : 1,
                           mask);
    });
    if (!any) throw tool::no_valid_pixel(*source);
    report_kernels(run, computing.backend());
}

} // namespace hsi::detect_tool
