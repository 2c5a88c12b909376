// SPDX-License-Identifier: MIT
// gdal_hsi_endmembers: the pixels that span a scene, as points. Two passes: the scene's moments, then the
// components that the search decides on, which are kept where memory allows.
#include "atdca/atdca.h"
#include "core/counted.h"
#include "core/error.h"
#include "endmembers/endmembers.h"
#include "math/exact_sum.h"
#include "pca/pca.h"
#include "raster/sink/library_output.h"
#include "raster/sink/vector_sink.h"
#include "shared/scene_and_library.h"
#include "shared/target_search.h"
#include "stream/covariance_scan.h"
#include "stream/moment_scan.h"
#include "tool/definition.h"
#include "tool/resources.h"
#include "tool/scene.h"
#include "unmix/unmix.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <mutex>
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
    bool residual = false;
};

/// What a search finds: the endmembers, and with -residual those of a search for one less, where two are
/// left.
struct Found {
    std::vector<atdca::Target> members, fewer;
};

endmembers::Options search_options(const Settings& s) {
    return {s.method == "nfindr" ? endmembers::Method::nfindr : endmembers::Method::vca, s.count, s.seed};
}

/// ATDCA by orthogonal subspace projection, as gdal_hsi_atdca does it.
Found find_by_atdca(tool::Run& run, const Settings& s, tool::Scene& scene) {
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
    Found all{std::move(found.targets), {}};
    if (all.members.size() > 2) all.fewer.assign(all.members.begin(), all.members.end() - 1);
    return all;
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
Found find_by_projection(tool::Run& run, const Settings& s, tool::Scene& scene) {
    tool::report_devices(run, {}, pca::simd_target());
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
    const auto search = [&](const endmembers::Options& wanted, double share) {
        auto found = endmembers::extract(*scene.counted(), moments, wanted, [&](const std::string& name) {
            return run.pass(name, name == "components" ? share : 0.0);
        });
        for (const auto& pass : found.passes)
            run.add_pass(pass);
        return found;
    };
    const auto targets = [](const endmembers::Extraction& found) {
        std::vector<atdca::Target> list;
        for (const auto& m : found.members)
            list.push_back({m.line, m.sample, m.score, {}});
        return list;
    };
    const auto found = search(options, s.residual ? 0.2 : 0.5);
    report_search(run, s, found);
    Found all{targets(found), {}};
    if (s.residual && options.count > 2) {
        auto less = options;
        --less.count;
        all.fewer = targets(search(less, 0.1));
    }
    return all;
}

/// Adds up the squares of what is written into it, whatever the order; keeps nothing.
class SquareSum final : public stream::GatheringSink {
  public:
    explicit SquareSum(const stream::CubeShape& shape) : m_shape(shape) {}
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect&, const CubeView<float>& src) override {
        math::ExactSums sum(1);
        for (int64_t line = 0; line < src.lines; ++line)
            for (int64_t i = 0; i < src.samples; ++i) {
                const double v = src.row(0, line)[i], squared = v * v;
                if (!std::isnan(v)) sum.add(0, &squared, 1);
            }
        const std::lock_guard lock(m_mutex);
        m_sum.add(sum);
    }
    void gather(parallel::Group& ranks) override { stream::unite(ranks, "squares", m_sum); }
    double value() const { return m_sum.value(0); }

  private:
    const stream::CubeShape m_shape;
    std::mutex m_mutex;
    math::ExactSums m_sum{1};
};

/// Takes abundances that nobody wants.
class Discard final : public stream::GatheringSink {
  public:
    explicit Discard(const stream::CubeShape& shape) : m_shape(shape) {}
    stream::CubeShape shape() const override { return m_shape; }
    bool concurrent() const override { return true; }
    uint64_t stored_bytes_per_pixel() const override { return 0; }
    void write(const Rect&, const CubeView<float>&) override {}
    void gather(parallel::Group&) override {}

  private:
    const stream::CubeShape m_shape;
};

/// The root mean square, over pixels and bands, of what fully constrained unmixing leaves.
double residual_of(tool::Run& run, tool::Scene& scene, const std::vector<atdca::Target>& members) {
    const auto shape = scene.shape();
    unmix::Endmembers endmembers;
    auto cube = scene.raster();
    for (const auto& spectrum : tools::spectra_of_targets(cube, run, members)) {
        endmembers.names.push_back("endmember " + std::to_string(endmembers.names.size() + 1));
        endmembers.spectra.emplace_back(spectrum.begin(), spectrum.end());
    }
    const auto operation = unmix::make_unmixing(endmembers, {unmix::Method::fcls, true});
    Discard abundances({shape.samples, shape.lines, endmembers.count()});
    SquareSum errors({shape.samples, shape.lines, 1});
    run.add_pass(
        stream::run_pass(*scene.counted(), *operation, {&abundances, &errors}, run.pass("residual", 0.1)));
    return std::sqrt(errors.value() / static_cast<double>(operation->valid()));
}

/// -residual: how well the endmembers explain the scene, and a warning where one less did better.
void report_residual(tool::Run& run, const Settings& s, tool::Scene& scene, const Found& found) {
    const auto count = found.members.size();
    const double residual = residual_of(run, scene, found.members);
    run.report()["residual"] = {{"endmembers", count}, {"rmse", residual}};
    char text[200];
    if (found.fewer.empty()) {
        std::snprintf(text, sizeof text, "Residual of unmixing: %.6g with %zu endmembers", residual, count);
        return run.note(text);
    }
    const double before = residual_of(run, scene, found.fewer);
    run.report()["residual"]["rmse_of_one_less"] = before;
    std::snprintf(text, sizeof text, "Residual of unmixing: %.6g with %zu endmembers, %.6g with %zu",
                  residual, count, before, found.fewer.size());
    run.note(text);
    if (residual <= before) return;
    std::snprintf(text, sizeof text,
                  "the residual of unmixing grows from %.6g with %zu endmembers to %.6g with %zu: the larger "
                  "set explains the scene worse",
                  before, found.fewer.size(), residual, count);
    run.warn(std::string(text) + "; take fewer" +
             (s.method == "atdca" ? "" : ", or -method atdca, whose sets grow"));
}

void run_endmembers(tool::Run& run, Settings s) {
    s.members.history = run.options().destination.history;
    s.members.run = run.files();
    tool::Scene scene(run, "the search for endmembers");
    endmembers::check_count(search_options(s), scene.shape().bands, -1);
    raster::check_vector_output(s.members);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.members.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    const auto found = s.method == "atdca" ? find_by_atdca(run, s, scene) : find_by_projection(run, s, scene);
    if (run.options().dry_run) return;
    const auto& targets = found.members;
    if (s.residual) report_residual(run, s, scene, found);
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
    call.flag("residual", s.residual,
              "Also tell what unmixing with the endmembers leaves of the scene, and with one less: a warning "
              "says when that was less");
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
