// SPDX-License-Identifier: MIT
// gdal_hsi_endmembers: the pixels that span a scene, as points. Two passes: the scene's moments, then the
// components that the search decides on, which are kept where memory allows.
#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "endmembers/endmembers.h"
#include "pca/pca.h"
#include "raster/sink/library_output.h"
#include "raster/sink/vector_sink.h"
#include "shared/scene_and_library.h"
#include "shared/target_search.h"
#include "stream/moment_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace endmembers_tool {

using tool::Content;

struct Settings {
    raster::VectorOptions members;
    std::string method = "nfindr", spectra;
    int count = 0;
    uint64_t seed = 1;
};

endmembers::Options search_options(const Settings& s) {
    return {s.method == "nfindr" ? endmembers::Method::nfindr : endmembers::Method::vca, s.count, s.seed};
}

/// ATDCA by orthogonal subspace projection, as gdal_hsi_atdca does it.
std::vector<atdca::Target> find_by_atdca(tool::Run& run, const Settings& s, tool::Scene& scene) {
    tools::AtdcaComputing computing(run, "atdca", {}, atdca::simd_target(), atdca::make_cpu_backend);
    tools::TargetCount count;
    count.number = s.count;
    atdca::Options options;
    options.targets = s.count;
    options.keep_scene = !scene.raster()->held_by_system();
    if (run.options().dry_run) {
        tools::print_search_plan(run, *scene.raster(), options);
        return {};
    }
    auto found = tools::find_targets(run, computing, count, scene, options, 1.0);
    endmembers::check_count(search_options(s), scene.shape().bands, found.valid_pixels);
    tools::report_search_cost(run, found, options.targets, !options.keep_scene);
    return std::move(found.targets);
}

void report_search(tool::Run& run, const Settings& s, const endmembers::Extraction& found) {
    for (const auto& warning : found.warnings)
        run.warn(warning);
    char text[160];
    if (s.method == "nfindr") {
        std::snprintf(text, sizeof text, "N-FINDR: %s, %s replaced", counted(found.sweeps, "sweep").c_str(),
                      counted(found.replacements, "vertex", "vertices").c_str());
        run.report()["search"] = {{"sweeps", found.sweeps}, {"replacements", found.replacements}};
    } else {
        std::snprintf(text, sizeof text, "VCA: signal-to-noise ratio %.2f dB, %s", found.snr,
                      found.projective ? "projective projection" : "projection on the affine hull");
        run.report()["search"] = {{"projective", found.projective}};
        if (std::isfinite(found.snr)) run.report()["search"]["snr"] = found.snr;
    }
    run.note(text);
    run.report()["search"]["in_memory"] = found.in_memory;
    run.report()["search"]["looks"] = found.looks;
}

/// N-FINDR and VCA.
std::vector<atdca::Target> find_by_projection(tool::Run& run, const Settings& s, tool::Scene& scene) {
    tool::tell_devices(run, {}, pca::simd_target());
    const auto options = search_options(s);
    scene.set_fate("and cannot be endmembers");
    const auto scan = [&] { return std::make_unique<stream::MomentScan>(scene.shape(), false); };
    if (run.options().dry_run) {
        tool::print_plan(run, scene.cube(), *scan(), run.pass("moments", 0.5));
        tool::print_plan(run, scene.cube(), *endmembers::plan_operation(scene.shape(), options),
                         run.pass("components", 0.5));
        return {};
    }
    const auto moments = scene.scan("moments", 0.5, scan);
    const auto found = endmembers::extract(*scene.counted(), moments, options, [&](const std::string& name) {
        return run.pass(name, name == "components" ? 0.5 : 0.0);
    });
    for (const auto& pass : found.passes)
        run.add_pass(pass);
    report_search(run, s, found);
    std::vector<atdca::Target> targets;
    for (const auto& m : found.members)
        targets.push_back({m.line, m.sample, m.score, {}});
    return targets;
}

void run_endmembers(tool::Run& run, Settings s) {
    s.members.history = run.options().destination.history;
    s.members.run = run.files();
    tool::Scene scene(run, "the search for endmembers");
    endmembers::check_count(search_options(s), scene.shape().bands, -1);
    raster::check_vector_output(s.members);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.members.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    const auto targets =
        s.method == "atdca" ? find_by_atdca(run, s, scene) : find_by_projection(run, s, scene);
    if (run.options().dry_run) return;
    if (!s.spectra.empty()) {
        auto cube = scene.raster();
        const auto spectra = tools::spectra_of_targets(cube, run, targets);
        tools::BandScales(*cube).note(run);
        raster::write_spectral_library(spectra_output,
                                       tools::library_of_targets(spectra, targets, *cube, "Endmember"),
                                       s.members.history);
    }
    tools::write_targets(run, s.members, targets, *scene.raster());
    tools::report_targets(run, targets);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_mask("the search");
    call.add_compute(false);
    call.output_argument("dst", s.members.path, Content::vector,
                         "The endmembers, a vector layer of points; it appears when it is complete");
    auto& count =
        call.option("t", s.count, "Number of endmembers, at most as many as bands (nfindr: and one)")
            .also("targets")
            .from(2)
            .shown_as("N");
    count.required = true;
    count.default_value.clear();
    call.choice<std::string>(
        "method", s.method, "How they are found",
        {{"nfindr", "nfindr", "the pixels whose simplex has the greatest volume"},
         {"vca", "vca", "vertex component analysis: the outermost pixels in random directions"},
         {"atdca", "atdca", "gdal_hsi_atdca -method osp: what the others leave of the spectrum"}});
    call.option("seed", s.seed, "With -method vca: seed of the random directions");
    call.output("spectra", s.spectra, Content::spectra,
                "Also write the endmembers' spectra to FILE: .sli (ENVI library) or .csv (a line a band)");
    tools::add_vector_options(call, s.members);
    call.overwrite(s.members.overwrite, "Replace outputs that are there; without this that is an error");
    call.check([&s, &call](const tool::CommonOptions&) {
        if (s.method != "vca" && call.given("seed"))
            throw UsageError("-seed: -method " + s.method + " takes no random numbers",
                             "Leave it out, or use -method vca.");
    });
    call.body([&s](tool::Run& run) { run_endmembers(run, s); });
}

} // namespace endmembers_tool
} // namespace

namespace tools {

extern const tool::Definition endmembers{
    "endmembers",
    "Endmembers (N-FINDR, VCA, ATDCA)",
    "Endmembers: finds the pixels of a scene that span the others, by the greatest simplex (nfindr), by "
    "vertex "
    "component analysis (vca) or by orthogonal subspace projection (atdca), and writes them as points.",
    {{"gdal_hsi_endmembers -t 12 scene.img members.gpkg", "Twelve endmembers"},
     {"gdal_hsi_endmembers -t 12 -spectra members.sli scene.img members.gpkg && gdal_hsi_unmix scene.img "
      "members.sli abundances.tif",
      "Their spectra, and how much of each is in every pixel"},
     {"gdal_hsi_endmembers -t 12 -method vca -seed 7 scene.img members.geojson", "Another method"}},
    "",
    endmembers_tool::declare};

} // namespace tools
} // namespace hsi
