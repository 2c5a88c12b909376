// SPDX-License-Identifier: MIT
// gdal_hsi_atdca: finds targets in a scene and writes them as points. The search reads the scene once if it
// fits into memory. -t auto (covariance), -map and -scores need further passes.
#include "atdca/atdca.h"
#include "core/error.h"
#include "links/links.h"
#include "raster/labels.h"
#include "raster/library_output.h"
#include "raster/output_set.h"
#include "raster/spectral_library.h"
#include "raster/vector_sink.h"
#include "shared/references.h"
#include "shared/scene_and_library.h"
#include "shared/target_search.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/model_values.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace atdca_tool {

using tool::Content;
using tools::AtdcaComputing;

struct Settings : tools::TargetCount {
    raster::VectorOptions targets;
    std::string count = "auto", method = "osp", score = "abs", score_kind = "abundance";
    std::string original, spectra, map, scores;
    tools::KnownSpectra reference;
    std::vector<std::string> creation_options;
    double max_angle = 180;
    std::vector<std::string> with;
};

// Outputs for all pixels: -map and -scores
// ----------------------------------------------------------------------------------------------------------

/// The rasters of the classification: a label map, and the scores of each target.
class TargetRasters {
  public:
    /// A map whose name ends in .vrt stores no pixels, but refers to `like`, the cube that is classified.
    TargetRasters(const tool::Run& run, const Settings& s, const stream::CubeShape& shape, int targets,
                  const raster::RasterSource& like) {
        const auto options = [&](const std::string& role, const std::string& path) {
            raster::OutputOptions o;
            o.role = role;
            o.run = run.files();
            o.cancel = &run.cancel();
            o.path = path;
            o.creation_options = s.creation_options;
            o.overwrite = s.targets.overwrite;
            o.history = run.options().destination.history;
            return o;
        };
        if (!s.map.empty()) {
            raster::OutputSpec spec;
            spec.shape = {shape.samples, shape.lines, 1};
            spec.type = targets <= 255 ? "Byte" : "UInt16";
            spec.bands = {{"Nearest target", {}}};
            spec.nodata = 0;
            // NaN marks missing pixels and pixels that are too far from all targets. 0 would be a class.
            spec.keep_nan = true;
            spec.categories = {"Unclassified"};
            spec.colours = {{0, 0, 0, 0}};
            for (int k = 0; k < targets; ++k) {
                spec.categories.push_back("Target " + std::to_string(k + 1));
                spec.colours.push_back(raster::default_colour(k + 1));
            }
            m_virtual = raster::is_virtual(options("-map", s.map));
            if (m_virtual && run.options().mask.outputs)
                throw UsageError(
                    tool::cannot_be_used_with("-mask-output",
                                              std::string("-map ") + s.map +
                                                  ": it is computed from the scene, which has no mask"),
                    "Write another format, or leave out -mask-output.");
            if (m_virtual) {
                m_map = {options("-map", s.map), spec};
                raster::check_virtual(m_map.first, spec, like);
            } else {
                m_outputs.plan(options("-map", s.map), spec);
            }
        }
        if (!s.scores.empty()) {
            raster::OutputSpec spec;
            spec.shape = {shape.samples, shape.lines, targets};
            spec.holes = true;
            for (int k = 0; k < targets; ++k)
                spec.bands.push_back({"Target " + std::to_string(k + 1) + " " + s.score_kind,
                                      {{"unit", s.score_kind == "angle" ? "degree" : "1"}}});
            m_outputs.plan(options("-scores", s.scores), std::move(spec));
        }
        m_outputs.check(like);
    }

    /// The outputs with stored pixels: the map, then the scores.
    raster::OutputSet& outputs() { return m_outputs; }
    bool virtual_map() const { return m_virtual; }

    void write_virtual_map(const std::vector<std::vector<float>>& spectra, double max_angle,
                           const raster::RasterSource& like) const {
        if (raster::is_computed(m_map.first))
            return raster::write_virtual(m_map.first, m_map.second, like,
                                         links::nearest_target(spectra, max_angle));
        std::string text;
        char one[32];
        for (const auto& x : spectra) {
            if (!text.empty()) text += "; ";
            for (size_t b = 0; b < x.size(); ++b) {
                std::snprintf(one, sizeof one, "%.9g", static_cast<double>(x[b]));
                text += (b ? " " : "") + std::string(one);
            }
        }
        raster::VirtualBand band;
        band.function = "hsi_sad";
        std::snprintf(one, sizeof one, "%.17g", max_angle);
        band.arguments = {{"spectra", text}, {"output", "class"}, {"max_angle", one}};
        raster::write_virtual(m_map.first, m_map.second, like, {band});
    }

  private:
    raster::OutputSet m_outputs;
    bool m_virtual = false;
    std::pair<raster::OutputOptions, raster::OutputSpec> m_map; ///< options and description of a virtual map
};

/// Writes -map and -scores: compares each pixel of the cube with the targets' spectra, in one pass.
void classify_pixels(tool::Run& run, AtdcaComputing& computing, const Settings& s,
                     const stream::CubeShape& shape, const std::vector<std::vector<float>>& spectra,
                     const std::shared_ptr<raster::RasterSource>& cube) {
    TargetRasters rasters(run, s, shape, static_cast<int>(spectra.size()), *cube);
    atdca::ClassifyOptions classify;
    classify.map = !s.map.empty() && !rasters.virtual_map();
    classify.max_angle = s.max_angle;
    if (!s.scores.empty())
        classify.scores = s.score_kind == "angle" ? atdca::ClassifyOptions::Scores::angle
                                                  : atdca::ClassifyOptions::Scores::abundance;
    if (auto& outputs = rasters.outputs(); !outputs.empty()) {
        const auto operation = computing->make_classification(spectra, classify);
        outputs.create(cube.get());
        run.reserve_cache(outputs.cache_bytes());
        run.add_pass(stream::run_pass(*cube, *operation, outputs.sinks(), computing.pass("classify", 0.4)));
        outputs.commit();
    }
    if (rasters.virtual_map()) rasters.write_virtual_map(spectra, s.max_angle, *cube);
}

// The run
// ----------------------------------------------------------------------------------------------------------

tool::Work work_of(const stream::CubeShape& scene) {
    const auto bytes = static_cast<double>(scene.float_bytes());
    tool::Work work;
    work.cpu_reads = 3 * bytes;
    work.device_reads = bytes;
    work.add(atdca::cost::search, bytes);
    return work;
}

void run_atdca(tool::Run& run, Settings s) {
    s.targets.history = run.options().destination.history;
    s.targets.run = run.files();
    tool::Scene scene(run, "ATDCA");
    const auto& source = scene.raster();
    const auto many = tools::join_scenes(run, s.with, scene);
    const auto original = tools::open_original(run, s.original, *source);
    raster::check_vector_output(s.targets);
    const auto spectra_output = run.text_output("-spectra", s.spectra, s.targets.overwrite);
    if (!s.spectra.empty()) raster::check_library_output(spectra_output);
    const auto references =
        tools::read_references(run, s.reference, static_cast<size_t>(source->shape().bands));
    { // Outputs that cannot be written are refused before the search.
        const TargetRasters planned(run, s, source->shape(), s.number > 0 ? s.number : 255,
                                    original ? *original : *source);
    }
    AtdcaComputing computing(run, "atdca", tool::choose_devices(run, "atdca", work_of(source->shape()), 1),
                             atdca::simd_target(), atdca::make_cpu_backend);

    atdca::Options options;
    options.method = s.method == "osp" ? atdca::Method::osp : atdca::Method::gs;
    options.score = s.score == "abs" ? atdca::Score::absolute : atdca::Score::sign;
    options.targets = s.number;
    // If the file is in the page cache, reading it is as fast as reading a copy in memory. Making the copy
    // takes longer than the few scans of OSP. GS needs twice as many scans.
    options.keep_scene = options.method == atdca::Method::gs || many || !source->held_by_system();
    const bool further = !s.map.empty() || !s.scores.empty();
    tool::end_of_plan(run, [&] {
        options.targets = s.number > 0 ? s.number : std::min(source->shape().bands, 50);
        tools::print_search_plan(run, *scene.counted(), options);
    });

    const double share = further ? 0.6 : 1.0; // part of the progress bar for the search and its preparation
    const auto found = tools::find_targets(run, computing, s, scene, options, share);

    const auto& targets = found.targets;
    auto cube = original ? original : source;
    std::vector<std::vector<float>> spectra;
    if (original)
        spectra = tools::spectra_of_targets(cube, run, targets);
    else
        for (const auto& t : targets)
            spectra.push_back(t.spectrum);
    auto library = tools::library_of_targets(spectra, targets, *cube, "Target", many.get());

    if (further) classify_pixels(run, computing, s, source->shape(), spectra, cube);
    tools::write_targets(run, s.targets, targets, *source, many.get());

    tools::report_search_cost(run, found, options.targets, !options.keep_scene);
    tools::report_targets(run, targets, many.get());
    tools::compare_with_references(run, s.reference, references, library, *cube, "Target");
    if (s.spectra.empty()) return;
    tools::BandScales(*cube).note(run);
    raster::write_spectral_library(spectra_output, library, s.targets.history);
}

// The options
// ----------------------------------------------------------------------------------------------------------

/// Refuses options of an output that is not written, and options of another way to end the search.
void check_dependent_options(const tool::Call& call, const Settings& s) {
    const auto needs = [&](bool there, const char* name, const std::string& other) {
        if (call.given(name) && !there)
            throw UsageError(tool::option_requires("-" + std::string(name), other),
                             "Leave it out, or also give " + other + ".");
    };
    for (const char* name : {"spectrum", "resample", "reference-names"})
        needs(!s.reference.path.empty(), name, "-reference FILE");
    needs(!s.spectra.empty(), "reference-names", "-spectra FILE");
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
        throw UsageError("-pf: " + std::to_string(s.false_alarm) + " is not a false-alarm probability",
                         "Use a number between 0 and 1, for example 1e-3.");
    if (!(s.max_angle >= 0 && s.max_angle <= 180))
        throw UsageError("-max-angle: " + std::to_string(s.max_angle) + " is not an angle between spectra",
                         "Use 0 to 180 degrees.");
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the search", true);
    args.add_compute();
    args.output_argument("dst", s.targets.path, Content::vector,
                         "The targets, a vector layer of points; it appears when it is complete");
    args.option("t", s.count,
                "Number of targets; auto: the virtual dimensionality that gdal_hsi_vd estimates")
        .also("targets")
        .shown_as("N|auto");
    args.choice<std::string>(
        "method", s.method, "Score that the next target maximises",
        {{"osp", "osp",
          "||P x||^2, the squared length of the part of x that is orthogonal to the targets so far"},
         {"gs", "gs", "|p.x|, by Gram-Schmidt"}});
    args.choice<std::string>("score", s.score, "With -method gs: the value that is compared",
                             {{"abs", "abs", "the absolute value of p.x"},
                              {"signed", "signed", "p.x itself, as Algorithm 2 is printed in the paper"}});
    args.choice<std::string>(
        "vd-method", s.vd_method, "Test of -t auto",
        {{"hfc", "hfc", "Harsanyi, Farrand and Chang"}, {"nwhfc", "nwhfc", "noise-whitened"}});
    args.option("pf", s.false_alarm, "False-alarm probability of -t auto, between 0 and 1").shown_as("P");
    tools::add_with_option(args, s.with);
    args.exclusive("with", "original");
    args.input("original", s.original, Content::raster,
               "Original scene of which src is a preprocessed copy; used for spectra, -map and -scores");
    args.output("spectra", s.spectra, Content::spectra,
                "Also write the targets' spectra to FILE: .sli (ENVI library) or .csv (one row per band)");
    args.output("map", s.map, Content::raster,
                "Also write the number of the nearest target of every pixel (0: unclassified) to FILE");
    args.option("max-angle", s.max_angle,
                "With -map: pixels farther than this from every target stay unclassified")
        .in_unit("degrees")
        .shown_as("DEGREES");
    args.output("scores", s.scores, Content::raster,
                "Also write detection scores, one band per target, to FILE");
    args.choice<std::string>(
        "score-kind", s.score_kind, "Content of -scores",
        {{"abundance", "abundance", "least-squares abundance, 1 at the target and 0 at the others"},
         {"angle", "angle", "spectral angle in degrees"}});
    tools::add_reference_options(args, s.reference, "target");
    tools::add_vector_options(args, s.targets);
    args.option("co", s.creation_options, "Creation option of the rasters of -map and -scores")
        .shown_as("NAME=VALUE")
        .under("Output");
    args.overwrite(s.targets.overwrite, "Replace existing outputs; otherwise an existing output is an error");
    args.check([&s](const tool::Call& call) {
        check_settings(s);
        check_dependent_options(call, s);
    });
    args.body([&s](tool::Run& run) { run_atdca(run, s); });
}

} // namespace atdca_tool
} // namespace

namespace tools {

extern constinit const tool::Definition atdca{
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
      "Angles between the targets and known spectra"}},
    "",
    atdca_tool::declare};

} // namespace tools
} // namespace hsi
