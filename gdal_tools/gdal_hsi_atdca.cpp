// SPDX-License-Identifier: MIT
// gdal_hsi_atdca: finds targets in a scene and writes them as points. The search reads the scene once when it
// fits into memory; further passes only for -t auto (covariance), -map and -scores.
#include "atdca/atdca.h"
#include "atdca_outputs.h"
#include "atdca_report.h"
#include "atdca_search.h"
#include "core/error.h"
#include "fitted_library.h"
#include "raster/sink/library_output.h"
#include "scaled_spectra.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace atdca_tool {

using tool::Content;
using Settings = tools::AtdcaSettings;

/// Most of the search is looking at the scene a few times; the targets hardly count.
tool::Work work_of(const stream::CubeShape& scene) {
    const auto bytes = static_cast<double>(scene.float_bytes());
    tool::Work work;
    work.cpu_reads = 3 * bytes;
    work.device_reads = bytes;
    work.core_seconds = 1.5e-9 * bytes;
    work.device_seconds = 5e-12 * bytes;
    return work;
}

void run_atdca(tool::Run& run, Settings s) {
    s.targets.history = run.options().destination.history;
    s.targets.run = run.files();
    tool::Scene scene(run, "ATDCA");
    const auto& source = scene.raster();
    const auto original = tools::open_original(run, s.original, *source);
    raster::check_vector_output(s.targets);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.targets.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    raster::SpectralLibrary references;
    if (!s.reference.empty())
        references = tools::chosen_library(run, "-reference", s.reference, s.reference_spectra,
                                           static_cast<size_t>(source->shape().bands));
    tools::TargetRasters(run, s, source->shape(), s.number > 0 ? s.number : 255,
                         original ? *original : *source);
    tools::AtdcaComputing computing(run, "atdca",
                                    tool::choose_devices(run, "atdca", work_of(source->shape()), 1),
                                    atdca::simd_target(), atdca::make_cpu_backend);

    atdca::Options options;
    options.method = s.method == "osp" ? atdca::Method::osp : atdca::Method::gs;
    options.score = s.score == "abs" ? atdca::Score::absolute : atdca::Score::sign;
    options.targets = s.number;
    // What the system holds is as near as a copy of it, and making the copy takes longer than the few looks
    // of OSP; GS takes twice as many.
    options.keep_scene = options.method == atdca::Method::gs || !source->held_by_system();
    const bool further = !s.map.empty() || !s.scores.empty();
    if (run.options().dry_run) {
        options.targets = s.number > 0 ? s.number : std::min(source->shape().bands, 50);
        return tools::print_search(run, *source, options);
    }

    const double share = further ? 0.6 : 1.0; // of the progress, for the search and what it needs
    const auto found = tools::find_targets(run, computing, s, scene, options, share);

    const auto& targets = found.targets;
    auto cube = original ? original : source;
    std::vector<std::vector<float>> spectra;
    if (original)
        spectra = tools::spectra_at(cube, run, targets);
    else
        for (const auto& t : targets)
            spectra.push_back(t.spectrum);
    const auto library = tools::library_of(spectra, targets, *cube);

    if (further) tools::classify_pixels(run, computing, s, source->shape(), spectra, cube);
    if (!s.spectra.empty()) {
        tools::BandScales(*cube).tell(run);
        raster::write_spectral_library(spectra_output, library, s.targets.history);
    }
    raster::write_points(s.targets, tools::layer_of(run, targets, *source, s.targets.path));

    tools::tell_cost(run, found, options.targets, !options.keep_scene);
    tools::tell_targets(run, targets);
    if (!s.reference.empty()) tools::compare_with_references(run, references, library, s);
}

/// Options of an output, or of a way to the number of targets, that is not taken.
void check_company(const tool::Call& call, const Settings& s) {
    const auto needs = [&](bool there, const char* name, const std::string& other) {
        if (call.given(name) && !there)
            throw UsageError("-" + std::string(name) + " means nothing without " + other,
                             "Leave it out, or give " + other + ", too.");
    };
    needs(!s.reference.empty(), "spectrum", "-reference FILE");
    needs(!s.map.empty(), "max-angle", "-map FILE");
    needs(!s.scores.empty(), "score-kind", "-scores FILE");
    for (const char* name : {"co", "mask-output"})
        needs(!s.map.empty() || !s.scores.empty(), name, "-map FILE or -scores FILE");
    for (const char* name : {"vd-method", "pf"})
        needs(s.count == "auto", name, "-t auto");
}

void check_settings(Settings& s) {
    if (s.count != "auto") {
        char* end = nullptr;
        const long value = std::strtol(s.count.c_str(), &end, 10);
        if (end == s.count.c_str() || *end != '\0' || value < 1 || value > 65535)
            throw UsageError("-t: '" + s.count + "' is not a number of targets", "Use 1 to 65535, or auto.");
        s.number = static_cast<int>(value);
    }
    if (s.method == "osp" && s.score == "signed")
        throw UsageError("-score signed: the scores of -method osp have no sign", "Use it with -method gs.");
    if (!(s.false_alarm > 0 && s.false_alarm < 1))
        throw UsageError("-pf: " + std::to_string(s.false_alarm) + " is no false-alarm probability",
                         "Use a number between 0 and 1, for example 1e-3.");
    if (!(s.max_angle >= 0 && s.max_angle <= 180))
        throw UsageError("-max-angle: " + std::to_string(s.max_angle) + " is no angle between spectra",
                         "Use 0 to 180 degrees.");
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.add_source();
    call.add_mask("the search", true);
    call.add_compute();
    call.output_argument("dst", s.targets.path, Content::vector,
                         "The targets, a vector layer of points; it appears when it is complete");
    call.option("t", s.count, "Number of targets; auto: the virtual dimensionality that gdal_hsi_vd tells")
        .also("targets")
        .shown_as("N|auto");
    call.choice<std::string>("method", s.method, "What is greatest at the next target",
                             {{"osp", "osp", "||P x||^2, what the targets so far leave of the spectrum"},
                              {"gs", "gs", "|p.x|, by Gram-Schmidt"}});
    call.choice<std::string>("score", s.score, "With -method gs: what is compared",
                             {{"abs", "abs", "the absolute value of p.x"},
                              {"signed", "signed", "p.x itself, as the paper prints Algorithm 2"}});
    call.choice<std::string>(
        "vd-method", s.vd_method, "Test of -t auto",
        {{"hfc", "hfc", "Harsanyi, Farrand and Chang"}, {"nwhfc", "nwhfc", "noise-whitened"}});
    call.option("pf", s.false_alarm, "False-alarm probability of -t auto, between 0 and 1").shown_as("P");
    call.input(
        "original", s.original, Content::raster,
        "Read the targets' spectra in the cube FILE, of which src is a preprocessed copy of the same size; "
        "-map and -scores classify that cube");
    call.output("spectra", s.spectra, Content::spectra,
                "Also write the targets' spectra to FILE: .sli (ENVI library) or .csv (a line a band)");
    call.output(
        "map", s.map, Content::raster,
        "Also write the nearest target of every pixel, by spectral angle, to FILE: 1 to the number of "
        "targets, 0 unclassified; a .vrt computes them when it is read");
    call.option("max-angle", s.max_angle,
                "With -map: pixels farther than this from every target stay unclassified")
        .in_unit("degrees")
        .shown_as("DEGREES");
    call.output("scores", s.scores, Content::raster, "Also write detection scores, a band a target, to FILE");
    call.choice<std::string>(
        "score-kind", s.score_kind, "What -scores are",
        {{"abundance", "abundance", "least-squares abundance, 1 at the target and 0 at the others"},
         {"angle", "angle", "spectral angle in degrees"}});
    call.input("reference", s.reference, Content::spectra,
               "Print the spectral angle of the best target to every spectrum of the library FILE (.sli, "
               ".csv, USGS ...)");
    tools::add_spectrum_option(call, s.reference_spectra, "the library of -reference");
    tools::add_vector_options(call, s.targets);
    call.option("co", s.creation_options, "Creation option of the rasters of -map and -scores")
        .shown_as("NAME=VALUE")
        .under("Output");
    call.overwrite(s.targets.overwrite, "Replace outputs that are there; without this that is an error");
    call.check([&s, &call](const tool::CommonOptions&) {
        check_settings(s);
        check_company(call, s);
    });
    call.body([&s](tool::Run& run) { run_atdca(run, s); });
}

} // namespace atdca_tool
} // namespace

namespace tools {

extern const tool::Definition atdca{
    "atdca",
    "Automatic target detection and classification (ATDCA)",
    "Automatic target detection and classification (ATDCA): finds the pixels whose spectra differ "
    "most from one another, by orthogonal subspace projection (osp) or Gram-Schmidt (gs), and writes "
    "them as points.",
    {{"gdal_hsi_atdca -t 30 scene.img targets.gpkg", "Thirty targets"},
     {"gdal_hsi_spp scene.img y.tif && gdal_hsi_atdca -t 19 -original scene.img y.tif targets.geojson",
      "Locate targets in the preprocessed scene, read their spectra in the original one"},
     {"gdal_hsi_atdca -spectra targets.sli -map nearest.tif -max-angle 5 scene.img targets.gpkg",
      "A library, and a map with a threshold"},
     {"gdal_hsi_atdca -q -reference minerals.sli scene.img targets.gpkg",
      "How near the targets come to known spectra"}},
    "",
    atdca_tool::declare};

} // namespace tools
} // namespace hsi
