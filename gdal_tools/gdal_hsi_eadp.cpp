// SPDX-License-Identifier: MIT
// gdal_hsi_eadp: extended anisotropic diffusion profile, scene to profile: covariance, projection on
// components, range and histogram of their gradients, diffusion.
#include "catalogue.h"
#include "core/byte_size.h"
#include "eadp/profile.h"
#include "eadp_profile.h"
#include "pca_stage.h"
#include "raster/raster_sink.h"
#include "stream/plane_store.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace hsi {
namespace {

using tool::Content;
using Settings = tools::EadpSettings;

void run_eadp(tool::Run& run, Settings settings) {
    tool::Scene scene(run, settings.no_pca ? "" : "PCA");
    const auto source = scene.raster();
    int components = settings.no_pca ? source->shape().bands
                                     : tools::component_count(settings.components, settings.components_given,
                                                              source->shape().bands);
    settings.eadp.zero_is_invalid = settings.no_pca;
    raster::RasterSink::check(
        run.options().destination,
        tools::profile_spec(source->shape(), settings,
                            settings.no_pca ? source->band_names() : tools::pc_names(components), nullptr));
    const uint64_t work = std::max(source->shape().float_bytes(),
                                   static_cast<uint64_t>(source->shape().pixels()) * 4 *
                                       static_cast<uint64_t>(eadp::profile_bands(settings.eadp, components)));
    const auto devices = tool::choose_devices(run, "eadp", work, 1);
    tool::Computing<eadp::Backend> computing(run, "eadp", devices, eadp::simd_target(),
                                             eadp::make_cpu_backend);
    // PCA runs where the diffusion does.
    tools::PcaComputing pca_computing(run, "pca", settings.no_pca ? std::vector<CudaDevice>() : devices,
                                      pca::simd_target(), pca::make_cpu_backend, false);
    tools::print_schedule(run, settings, components);

    const double pca_share = settings.no_pca ? 0.0 : 0.3;
    eadp::ProfileRun profile;
    profile.threads = run.options().threads;
    profile.pass = [&](const std::string& name, double share) {
        auto options = run.pass(name, share * (1 - pca_share));
        options.device_memory = computing.device_memory();
        return options;
    };
    profile.finished = [&](const stream::PassReport& report) { run.add_pass(report); };
    profile.warn = [&](const std::string& text) { run.warn(text); };
    profile.folder = stream::folder_beside(run.options().destination.path);
    const uint64_t memory = run.buffer_memory();

    // Component planes stay in memory when they take no more than half of it.
    const auto fits = [&](const stream::CubeShape& planes, uint64_t limit) {
        return planes.float_bytes() <= limit / 2;
    };
    const auto planes_of = [&](const stream::CubeSource& cube) {
        return stream::CubeShape{cube.shape().samples, cube.shape().lines, components};
    };

    if (run.options().dry_run) {
        profile.memory = memory;
        if (!settings.no_pca) {
            tool::print_plan(run, *source, *pca_computing->make_covariance(source->shape().bands),
                             pca_computing.pass("covariance", 0.2));
            const bool in_memory = fits(planes_of(*source), memory);
            run.print("Component planes: " + format_byte_size(planes_of(*source).float_bytes()) +
                      (in_memory ? " in memory" : " in a temporary file in " + profile.folder));
            if (in_memory) profile.memory -= planes_of(*source).float_bytes();
        }
        const auto plan = eadp::plan_profile(planes_of(*source), settings.eadp, computing.backend(), profile);
        run.print("Pass diffusion: " + plan.plan.describe() + ", " + std::to_string(plan.team) +
                  (plan.team == 1 ? " thread" : " threads") + " a tile, " + format_byte_size(plan.bytes) +
                  " of buffers");
        run.report()["plan"]["diffusion"] = {{"tiles", plan.plan.size()},
                                             {"tile_samples", plan.plan.max_core_samples()},
                                             {"tile_lines", plan.plan.max_core_lines()},
                                             {"halo", plan.plan.halo()},
                                             {"lanes", plan.plan.lanes()},
                                             {"threads_per_tile", plan.team},
                                             {"buffer_bytes", plan.bytes}};
        return;
    }

    std::shared_ptr<raster::RasterSource> like = source;
    std::vector<std::string> names;
    std::unique_ptr<raster::RasterSink> sink;
    const auto open_sink = [&](const eadp::ProfileFacts& facts) -> stream::CubeSink& {
        sink = raster::RasterSink::create(run.options().destination,
                                          tools::profile_spec(like->shape(), settings, names, &facts),
                                          like.get());
        return *sink;
    };
    eadp::ProfileFacts facts;
    std::optional<pca::Model> fitted;
    if (settings.no_pca) {
        names = source->band_names();
        profile.memory = memory;
        facts = eadp::make_profile(*source, settings.eadp, computing.backend(), open_sink, profile);
        if (std::none_of(facts.components.begin(), facts.components.end(),
                         [](const auto& f) { return f.range.valid > 0; }))
            throw Error(source->path() +
                            ": no pixel is valid (in every one a selected band is nodata, masked or NaN, or "
                            "all bands are zero)",
                        "Check the nodata value (-srcnodata) and leave out bad bands (-b).");
    } else {
        const auto statistics = tools::scan_scene(scene, pca_computing, 0.5 * pca_share);
        like = scene.raster();
        const int bands = like->shape().bands;
        components = tools::component_count(settings.components, settings.components_given, bands);
        names = tools::pc_names(components);
        const auto model = tools::fit_scene(scene, statistics, {components, false, false});
        fitted = model;
        const auto shape = planes_of(*like);
        const bool in_memory = fits(shape, memory);
        auto planes = in_memory ? std::make_unique<stream::PlaneStore>(shape)
                                : std::make_unique<stream::PlaneStore>(shape, profile.folder);
        run.report()["component_planes"] = in_memory ? "memory" : "temporary file";
        const uint64_t held = in_memory ? shape.float_bytes() : 0;
        std::vector<int> all(static_cast<size_t>(bands)), every(static_cast<size_t>(components));
        std::iota(all.begin(), all.end(), 0);
        std::iota(every.begin(), every.end(), 0);
        {
            const auto operation =
                pca_computing->make_transform(pca::projection(model, components, all, bands));
            auto pass = pca_computing.pass("projection", 0.5 * pca_share);
            pass.memory -= std::min(pass.memory, held);
            const auto to = planes->sink(every);
            run.add_pass(stream::run_pass(scene.cube(), *operation, {to.get()}, pass));
        }
        scene.release(); // a copy of the scene in memory is needed no more
        profile.memory = memory - held;
        const auto from = planes->source(every);
        facts = eadp::make_profile(*from, settings.eadp, computing.backend(), open_sink, profile);
    }
    auto& list = run.report()["contrast"];
    for (const auto& f : facts.components)
        list.push_back(
            {{"component", f.component + 1}, {"copy", f.copy}, {"k", f.k}, {"steepest", f.range.steepest}});
    sink->commit();
    if (fitted) tools::print_components(run, *fitted);
}

/// What options mean together, and the process times.
void check_settings(const tool::Call& call, Settings& s) {
    if (s.eadp.scheme == eadp::Scheme::exact && call.given("cycles"))
        throw UsageError("-cycles does not go with -scheme exact", "Use -tolerance.");
    if (s.eadp.scheme == eadp::Scheme::fed && call.given("tolerance"))
        throw UsageError("-tolerance goes with -scheme exact", "Use -cycles, or -scheme exact.");
    s.components_given = call.given("nc");
    if (s.components < 1)
        throw UsageError("-nc: " + std::to_string(s.components) + " is no number of components",
                         "Use a number from 1 to the number of bands.");
    if (call.given("times")) {
        s.eadp.times = tools::parse_times(s.times);
    } else {
        if (s.copies < 1 || s.copies > 1000)
            throw UsageError("-c: " + std::to_string(s.copies) + " is no number of copies",
                             "Use a number from 1 to 1000.");
        if (!(s.step > 0))
            throw UsageError("-ts: " + tools::eadp_number(s.step) + " is no process time",
                             "Use a positive number.");
        s.eadp.times.clear();
        for (int c = 1; c <= s.copies; ++c)
            s.eadp.times.push_back(s.step * c);
    }
    if (call.given("k")) s.eadp.contrast = s.contrast;
    eadp::check(s.eadp);
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_destination();
    call.add_compute();
    call.option("nc", s.components, "Number of principal components, 1 to the number of bands");
    call.flag("no-pca", s.no_pca, "Diffuse the bands themselves instead of components");
    call.option("c", s.copies, "Number of diffused copies of every component").also("copies");
    call.option("ts", s.step, "Copy c of a component is diffused for the time c times this")
        .in_unit("squared pixels");
    call.option("times", s.times, "The times themselves, in squared pixels: T1,T2,...").shown_as("LIST");
    call.option("sigma", s.eadp.sigma, "Standard deviation of the Gaussian before the gradient; 0: none")
        .in_unit("pixels");
    call.choice("g", s.eadp.diffusivity, "Diffusivity",
                {{"g1", eadp::Diffusivity::g1, "exponential"},
                 {"g2", eadp::Diffusivity::g2, "rational"},
                 {"g3", eadp::Diffusivity::g3, "Weickert"}})
        .also("diffusivity");
    call.option("percentile", s.eadp.percentile,
                "Share of the gradients that is below the contrast k, above 0 and at most 1");
    call.option("k", s.contrast, "Contrast k itself, of all components, in their unit per pixel")
        .defaults_to("")
        .also("contrast");
    call.option("cycles", s.eadp.cycles,
                "With -scheme fed: cycles for one time, 1 to 1000; more are more accurate");
    call.choice(
        "evolution", s.eadp.evolution, "What a copy is diffused from",
        {{"independent", eadp::Evolution::independent, "every copy from the component"},
         {"cascade", eadp::Evolution::cascade, "copy c from copy c-1, for time T_c, with its own gradients"},
         {"incremental", eadp::Evolution::incremental,
          "copy c from copy c-1, for the time between them; times must rise"}});
    call.choice("scheme", s.eadp.scheme, "How the diffusion is solved",
                {{"fed", eadp::Scheme::fed, "fast explicit diffusion"},
                 {"exact", eadp::Scheme::exact, "the exact solution for gradients frozen at the start"}});
    call.option("tolerance", s.eadp.tolerance,
                "With -scheme exact: error allowed, 1e-12 to 0.1, as a share of the component's range");
    call.choice(
        "precision", s.eadp.precision, "Arithmetic of the diffusion; all before it is in double precision",
        {{"single", eadp::Precision::single_precision}, {"double", eadp::Precision::double_precision}});
    call.exclusive("nc", "no-pca");
    call.exclusive("c", "times");
    call.exclusive("ts", "times");
    call.exclusive("percentile", "k");
    call.check([&s, &call](const tool::CommonOptions&) { check_settings(call, s); });
    call.body([&s](tool::Run& run) { run_eadp(run, s); });
}

} // namespace

const tool::Definition tools::eadp{
    "eadp",
    "Extended anisotropic diffusion profile (EADP)",
    "Extended anisotropic diffusion profile (EADP): principal components and, of each, copies "
    "smoothed for rising times by diffusion that stops at edges. The bands of the profile are "
    "features for classification.",
    {{"gdal_hsi_eadp scene.img profile.tif", "7 components, 8 copies of each: 63 bands"},
     {"gdal_hsi_eadp -nc 4 -c 5 -ts 20 -memory 1GB flightline.dat profile.dat -of ENVI",
      "Fewer and shorter, in bounded memory, as ENVI"},
     {"gdal_hsi_eadp -no-pca -b 30,20,10 -times 10,100 -scheme exact scene.img smooth.tif",
      "Smooth three bands themselves, exactly"}},
    "",
    declare};

} // namespace hsi
