// SPDX-License-Identifier: MIT
#include "atdca_search.h"

#include "core/byte_size.h"
#include "core/error.h"
#include "parallel/ranks.h"
#include "stream/band_statistics.h"
#include "stream/covariance_scan.h"
#include "vd/vd.h"

#include <string>

namespace hsi::tools {
namespace {

atdca::Detection detect(tool::Run& run, AtdcaComputing& computing, const stream::CubeSource& source,
                        const atdca::Options& options, const stream::PassOptions& pass) {
    // Where one rank's device has no room, all of them search on the CPU, together.
    if (!parallel::ranks().any("the scene does not fit into device memory",
                               !computing->fits(run.options().device_memory, source.shape(), options)))
        return computing->detect(source, options, pass);
    // Reading sets the pace when the scene is streamed, and the CPU keeps up with it.
    run.note("The scene does not fit into device memory: searching on the CPU");
    run.report()["device"] = tool::describe_devices(run, {}, atdca::simd_target());
    return atdca::detect(source, options, pass);
}

/// How many targets: virtual dimensionality.
int dimensionality(tool::Run& run, const AtdcaSettings& s, const tool::Scene& whole, double share) {
    stream::CovarianceScan scan(whole.shape().bands);
    run.add_pass(stream::run_pass(*whole.counted(), scan, {}, run.pass("covariance", share)));
    const auto scene = scan.result();
    if (scene.valid_pixels == 0) return 1; // the search says what is wrong, or leaves empty bands out
    const auto method = s.vd_method == "hfc" ? vd::Method::hfc : vd::Method::nwhfc;
    const int number = vd::estimate(scene, method, s.false_alarm).number;
    run.note("Virtual dimensionality (" + s.vd_method + "): " + std::to_string(number));
    run.report()["virtual_dimensionality"] = number;
    if (number < 1)
        throw Error(whole.raster()->path() +
                        ": virtual dimensionality found no signal, so -t auto has no number of targets",
                    "Give -t a number, or a larger -pf.");
    return number;
}

} // namespace

void print_search(tool::Run& run, const raster::RasterSource& source, const atdca::Options& options) {
    const auto plan = atdca::plan_detection(source, options, run.pass("search", 1));
    run.print("Search on the CPU: scene " +
              (plan.in_memory ? "kept in memory (" + format_byte_size(plan.scene_bytes) + ")"
                              : std::string("streamed")) +
              ", " + plan.tiles.describe() + ", " + format_byte_size(plan.buffer_bytes) +
              " of buffers, at most " + format_byte_size(plan.pool_bytes) + " of candidates");
    run.report()["plan"]["search"] = {{"in_memory", plan.in_memory},
                                      {"scene_bytes", plan.scene_bytes},
                                      {"candidate_bytes", plan.pool_bytes},
                                      {"tiles", plan.tiles.size()},
                                      {"tile_samples", plan.tiles.max_core_samples()},
                                      {"tile_lines", plan.tiles.max_core_lines()},
                                      {"lanes", plan.tiles.lanes()},
                                      {"buffer_bytes", plan.buffer_bytes}};
}

atdca::Detection find_targets(tool::Run& run, AtdcaComputing& computing, const AtdcaSettings& s,
                              tool::Scene& scene, atdca::Options& options, double share) {
    const auto& source = scene.raster();
    // A node whose system does not hold the file decides for all.
    options.keep_scene = parallel::ranks().any("keep the scene", options.keep_scene);
    atdca::Detection found;
    for (bool first = true;; first = false) {
        options.targets = s.number > 0 ? s.number : dimensionality(run, s, scene, first ? share * 0.25 : 0.0);
        found = detect(run, computing, *scene.counted(), options,
                       run.pass("search", first ? share * (s.number > 0 ? 1.0 : 0.75) : 0.0));
        for (const auto& pass : found.passes)
            run.add_pass(pass);
        if (found.valid_pixels > 0 || !first) break;
        // Perhaps a band without a single value spoils every pixel.
        stream::BandStatisticsScan scan(source->shape().bands);
        run.add_pass(stream::run_pass(*scene.counted(), scan, {}, run.pass("statistics", 0.0)));
        if (!scene.leave_out(scan.result().empty_bands())) break;
    }
    if (found.valid_pixels == 0) throw tool::no_valid_pixel(*source, run.mask() != nullptr);
    scene.set_fate("and cannot be targets");
    scene.tell_counted(found.valid_pixels, found.invalid_pixels);
    if (!found.warning.empty()) run.warn(found.warning);
    return found;
}

} // namespace hsi::tools
