// SPDX-License-Identifier: MIT
// gdal_hsi_eadp: extended anisotropic diffusion profile, scene to profile: covariance, projection on
// components, range and histogram of their gradients, diffusion.
#include "core/error.h"
#include "eadp_profile.h"
#include "tool/definition.h"

#include <string>

namespace hsi {
namespace {
namespace eadp_tool {

using Settings = tools::EadpSettings;

/// What options mean together, and the process times.
void check_settings(const tool::Call& call, Settings& s) {
    if (s.eadp.scheme == eadp::Scheme::exact && call.given("cycles"))
        throw UsageError("-cycles does not go with -scheme exact", "Use -tolerance.");
    if (s.eadp.scheme == eadp::Scheme::fed && call.given("tolerance"))
        throw UsageError("-tolerance goes with -scheme exact", "Use -cycles, or -scheme exact.");
    s.components_given = call.given("nc");
    s.eadp.zero_is_invalid = s.no_pca;
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
    call.add_mask("the statistics, of components and of their gradients", true);
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
    call.check([&s, &call](const tool::CommonOptions& options) {
        tool::check_mask_use(options.mask, !(s.no_pca && call.given("k")), "-no-pca and -k");
        check_settings(call, s);
    });
    call.body([&s](tool::Run& run) { tools::run_profile(run, s); });
}

} // namespace eadp_tool
} // namespace

namespace tools {

extern const tool::Definition eadp{
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
    eadp_tool::declare};

} // namespace tools
} // namespace hsi
