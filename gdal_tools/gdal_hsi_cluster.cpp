// SPDX-License-Identifier: MIT
// gdal_hsi_cluster: k-means of a scene's spectra. The first pass finds the valid pixels and a sample for the
// start, and keeps the scene if there is enough memory. Otherwise each iteration is a pass.
#include "cluster/cluster.h"
#include "cluster/device_scene.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/json.h"
#include "raster/library_output.h"
#include "raster/spectral_library.h"
#include "shared/numbers_in_file.h"
#include "shared/scene_and_library.h"
#include "stream/empty_source.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace cluster_tool {

using tool::Content;

struct Settings {
    cluster::Options options;
    int count = 0; ///< number of clusters; 0: one cluster per spectrum of -start
    std::string start, centres;
    std::vector<std::string> start_spectra; ///< names of the spectra of -start that are used; empty: all
    double library_scale = 1;
    bool any_scale = false, json = false;
    tools::BandFit fit = tools::BandFit::automatic;
};

const char* name_of(cluster::Distance distance) {
    return distance == cluster::Distance::angle ? "angle" : "euclidean";
}

/// Returns the centres of -start, one per spectrum of the library.
cluster::Centres centres_of(const Settings& s, const tools::FittedSpectra& library) {
    cluster::Centres centres;
    centres.count = static_cast<int>(library.spectra.size());
    centres.bands = static_cast<int>(library.spectra.front().size());
    for (size_t k = 0; k < library.spectra.size(); ++k) {
        double squared = 0;
        for (const double v : library.spectra[k])
            squared += v * v;
        if (s.options.distance == cluster::Distance::angle && !(squared > 0))
            throw Error("-start " + s.start + ": the spectrum '" + library.names[k] +
                            "' is all zero, so it has no spectral angle",
                        "Leave it out with -spectrum.");
        const double length = s.options.distance == cluster::Distance::angle ? std::sqrt(squared) : 1;
        for (const double v : library.spectra[k])
            centres.values.push_back(v / length);
    }
    return centres;
}

/// Throws if -k differs from the number of spectra of -start, or if that number is out of range.
void check_start(const Settings& s, size_t spectra) {
    if (s.count > 0 && static_cast<size_t>(s.count) != spectra)
        throw UsageError("-k " + std::to_string(s.count) + " differs from -start " + s.start +
                             ", which has " + counted(spectra, "spectrum", "spectra"),
                         "Leave -k out, or choose spectra with -spectrum.");
    if (spectra < 2 || spectra > static_cast<size_t>(cluster::most_clusters))
        throw Error("-start " + s.start + " has " + counted(spectra, "spectrum", "spectra") +
                        ": 2 to 65535 clusters are possible",
                    "Use a library with one spectrum per cluster.");
}

std::string name_of_cluster(size_t k) { return "cluster " + std::to_string(k + 1); }

raster::OutputSet outputs_of(const tool::Run& run, const Settings& s, const raster::RasterSource& scene,
                             int count) {
    std::vector<raster::LabelClass> classes;
    for (int k = 0; k < count; ++k) {
        raster::LabelClass one;
        one.value = k + 1;
        one.name = name_of_cluster(static_cast<size_t>(k));
        classes.push_back(std::move(one));
    }
    std::map<std::string, std::string> items{{"HSI_CLUSTER_DISTANCE", name_of(s.options.distance)}};
    if (s.start.empty()) items["HSI_CLUSTER_SEED"] = std::to_string(s.options.seed);
    return tool::plan_classification(run, scene, classes, "", "", items);
}

/// Returns the spectra of the centres, in the units of the scene.
raster::SpectralLibrary library_of(const cluster::Result& found, const raster::RasterSource& scene) {
    auto library = tools::library_for(scene);
    const tools::BandScales scales(scene);
    for (int k = 0; k < found.centres.count; ++k) {
        const auto at = static_cast<size_t>(k);
        std::vector<double> spectrum(found.centres.of(k), found.centres.of(k) + found.centres.bands);
        if (!found.length.empty())
            for (double& v : spectrum)
                v *= found.length[at];
        scales.apply(spectrum);
        library.names.push_back(name_of_cluster(at));
        library.spectra.push_back(std::move(spectrum));
    }
    return library;
}

/// Reports the result to the user and in the report.
void report_clusters(tool::Run& run, const Settings& s, const cluster::Result& found, int64_t valid,
                     bool in_memory) {
    Json document{{"distance", name_of(s.options.distance)},
                  {"clusters", found.centres.count},
                  {"iterations", found.iterations},
                  {"converged", found.converged},
                  {"inertia", found.inertia},
                  {"pixels", valid},
                  {"counts", found.pixels}};
    if (s.start.empty()) document["seed"] = s.options.seed;
    run.report()["clusters"] = document;
    run.report()["clusters"]["in_memory"] = in_memory;
    run.report()["clusters"]["relocated"] = found.relocated;
    if (s.json) run.print(document.dump(1, ' ', false, Json::error_handler_t::replace));
    if (!found.converged)
        run.warn("pixels still moved after " + counted(found.iterations, "iteration") +
                 ": the clusters are not final; use more -iterations");
    const auto empty = std::count(found.pixels.begin(), found.pixels.end(), 0);
    if (empty > 0)
        run.warn(counted(empty, "cluster has", "clusters have") +
                 " no pixel: the scene has fewer different spectra than centres");
    char inertia[64];
    std::snprintf(inertia, sizeof inertia, "%.9g", found.inertia);
    run.note(counted(found.centres.count, "cluster") + " after " + counted(found.iterations, "iteration") +
             ", inertia " + inertia);
    const auto [least, most] = std::minmax_element(found.pixels.begin(), found.pixels.end());
    run.note("The smallest has " + counted(*least, "pixel") + ", the largest " + std::to_string(*most));
}

/// Writes the map. If the iterations of this process saw all pixels, the labels are in memory. Otherwise each
/// pixel is compared with the centres again.
void write_map(tool::Run& run, const Settings& s, const tool::Scene& scene,
               const cluster::Clustering& clustering, const cluster::Result& found) {
    auto outputs = outputs_of(run, s, *scene.raster(), found.centres.count);
    outputs.create(scene.raster().get());
    run.reserve_cache(outputs.cache_bytes());
    auto pass = run.pass("labels", 0.1);
    pass.output_layout = outputs.layout();
    if (run.masks_statistics() || run.ranks().several()) {
        const auto assignment = cluster::make_assignment(found.centres, s.options.distance);
        run.add_pass(stream::run_pass(*scene.raster(), *assignment, outputs.sinks(), pass));
    } else {
        const auto labels = clustering.labels();
        run.add_pass(stream::run_pass(stream::EmptySource(scene.shape()), *labels, outputs.sinks(), pass));
    }
    outputs.commit();
}

using ClusterComputing = tool::Computing<cluster::Backend>;

/// Returns device memory for the scene; null if clustering runs on the CPU.
std::unique_ptr<cluster::DeviceScene> place_on_device(tool::Run& run, const Settings& s,
                                                      ClusterComputing& computing,
                                                      const stream::CubeShape& shape, int clusters) {
    if (!computing.on_devices()) return nullptr;
    auto device = computing->make_scene(shape, s.options, clusters, run.options().device_memory);
    if (device) return device;
    run.note("The scene does not fit into device memory: clustering on the CPU");
    run.report()["device"] = tool::describe_devices(run, {}, cluster::simd_target());
    return nullptr;
}

/// Clusters the scene with its current bands. Returns false if no pixel is valid. start: initial centres;
/// empty without -start.
bool cluster_scene(tool::Run& run, const Settings& s, ClusterComputing& computing, const tool::Scene& scene,
                   cluster::Centres start) {
    const auto source = scene.counted();
    cluster::Clustering clustering(
        *source, s.options,
        [&](const std::string& name) {
            const double share = name == "start" ? 0.2 : name == "iteration" ? 0.7 / s.options.iterations : 0;
            return run.pass(name, share);
        },
        place_on_device(run, s, computing, source->shape(), start.count > 0 ? start.count : s.count));
    const int64_t valid = clustering.read();
    if (valid == 0) {
        run.add_pass(clustering.passes().front());
        return false;
    }
    const int wanted = start.count > 0 ? start.count : s.count;
    if (wanted > valid)
        throw Error(std::to_string(wanted) + " clusters cannot be made from " + counted(valid, "valid pixel"),
                    "Use a smaller -k.");
    tool::report_invalid(run, valid, clustering.invalid());
    if (start.count == 0) start = clustering.start(s.count);
    if (start.count < wanted)
        run.warn("the sample for the initial centres has " +
                 counted(start.count, "different spectrum", "different spectra") + ": found " +
                 counted(start.count, "cluster") + " instead of " + std::to_string(wanted));
    const auto found = clustering.refine(std::move(start));
    for (const auto& pass : clustering.passes())
        run.add_pass(pass);
    if (const double seconds = computing->kernel_seconds(); seconds > 0)
        run.report()["kernel_seconds"] = seconds;
    write_map(run, s, scene, clustering, found);
    if (!s.centres.empty()) {
        tools::BandScales(*scene.raster()).note(run);
        const auto told = raster::write_spectral_library(
            run.text_output("-centres", s.centres, run.options().destination.overwrite),
            library_of(found, *scene.raster()), run.options().destination.history);
        if (!told.empty()) run.warn(told);
    }
    report_clusters(run, s, found, valid, clustering.in_memory());
    return true;
}

/// Chooses the device for the allowed number of iterations, or for the usual number if it is smaller. MPI
/// ranks cluster on the CPU, and each rank has a part of the scene.
std::vector<CudaDevice> choose_device(tool::Run& run, const Settings& s, const stream::CubeShape& shape,
                                      int clusters) {
    if (run.ranks().several()) {
        if (run.options().device.kind == DeviceChoice::Kind::cuda)
            throw UsageError("-device cuda: several ranks compute clusters only on the CPU",
                             "Leave -device out, or run one process.");
        return {};
    }
    constexpr int usual = 30;
    const double values = static_cast<double>(shape.float_bytes()) / 4,
                 iterations = std::min(s.options.iterations, usual);
    tool::Work work;
    work.cpu_reads = work.device_reads = values * 4;
    work.writes_after = static_cast<double>(shape.pixels());
    work.add(cluster::cost::distance, values * clusters * iterations);
    work.add(cluster::cost::sums, values);
    return tool::choose_devices(run, "cluster", work, 1);
}

void run_cluster(tool::Run& run, Settings s) {
    if (s.json) run.only_print();
    auto source = run.open_source();
    tool::check_spectrum(*source, "clustering");
    tools::FittedSpectra library;
    if (!s.start.empty()) {
        source = tools::scaled_for_library(run, source, s.any_scale);
        library = tools::spectra_for_scene(run, "-start", s.start, s.start_spectra, s.library_scale,
                                           "Clustering", source, s.fit);
        check_start(s, library.spectra.size());
        tools::warn_of_other_signs(run, *source, library, "Use the same quantity in both");
        tools::warn_of_other_units(run, *source, library,
                                   "the centres start far from the pixels, but move to them");
    }
    const int wanted = library.spectra.empty() ? s.count : static_cast<int>(library.spectra.size());
    // Rejects outputs that cannot be written, before the work begins.
    outputs_of(run, s, *source, wanted);
    if (!s.centres.empty())
        raster::check_library_output(
            run.text_output("-centres", s.centres, run.options().destination.overwrite));
    s.options.numbers = tools::numbers_in_file(run, *source);
    ClusterComputing computing(run, "cluster", choose_device(run, s, source->shape(), wanted),
                               cluster::simd_target(), cluster::make_cpu_backend);
    tool::Scene scene(run, source, "clustering");
    tool::end_of_plan(run, [&] {
        for (const auto& [name, operation] : cluster::plan_operations(scene.shape(), s.options, wanted))
            tool::print_plan(run, *scene.counted(), *operation, run.pass(name, 0.5));
    });
    const auto bands = source->bands();
    const bool any = scene.attempt([&](bool) {
        cluster::Centres start;
        if (!library.spectra.empty())
            start = centres_of(s, tools::without_lost_bands(library, bands, *scene.raster()));
        return cluster_scene(run, s, computing, scene, std::move(start));
    });
    if (!any) throw tool::no_valid_pixel(*scene.raster(), run.mask() != nullptr);
}

void check_settings(const tool::Call& call, const Settings& s) {
    if (s.start.empty()) {
        if (s.count == 0)
            throw UsageError("the number of clusters is missing",
                             "Give -k N, or -start LIBRARY with the initial centres.");
        for (const char* name : {"library-scale", "spectrum", "any-scale", "resample"})
            if (call.given(name))
                throw UsageError(tool::option_requires("-" + std::string(name), "-start LIBRARY"),
                                 "Leave it out, or also give -start LIBRARY.");
    } else if (call.given("seed")) {
        throw UsageError(tool::cannot_be_used_with("-seed", "-start: no random numbers are used"),
                         "Leave one of them out.");
    }
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the clusters", true);
    args.add_destination(
        "The map: 1 to k in the order of the initial centres, 0 for nodata; it appears when it is complete");
    args.option("k", s.count, "Number of clusters; with -start the number of its spectra")
        .between(2, cluster::most_clusters)
        .defaults_to("required without -start")
        .also("clusters");
    args.option("iterations", s.options.iterations, "Maximum number of iterations").from(1);
    args.choice<cluster::Distance>(
        "distance", s.options.distance, "Distance between spectra",
        {{"euclidean", cluster::Distance::euclidean, "sum of squared differences"},
         {"angle", cluster::Distance::angle, "spectral angle, which ignores brightness"}});
    args.input("start", s.start, Content::spectra,
               "Start from the spectra of the library FILE, in their order, instead of k-means++");
    tools::add_spectrum_option(args, s.start_spectra, "the library of -start");
    args.option("library-scale", s.library_scale,
                "Multiply the library of -start by this: 10000 for reflectance 0..1 and a scene in "
                "0..10000")
        .above(0);
    tools::add_any_scale_option(args, s.any_scale);
    tools::add_resample_option(args, s.fit);
    args.option("seed", s.options.seed, "Seed of the random start of k-means++");
    args.output("centres", s.centres, Content::spectra,
                "Also write the centres, in the units of src, to FILE: .sli (ENVI library) or .csv (one row "
                "per band)");
    args.flag("json", s.json, "Print only counts, inertia and iterations, as JSON");
    args.add_compute();
    args.check([&s](const tool::Call& call) { check_settings(call, s); });
    args.body([&s](tool::Run& run) { run_cluster(run, s); });
}

} // namespace cluster_tool
} // namespace

namespace tools {

extern constinit const tool::Definition cluster{
    "cluster",
    "k-means clustering",
    "k-means: divides the pixels of a scene into clusters of similar spectra, without "
    "training, and writes a map of the clusters, on request also their centres as a library.",
    {{"gdal_hsi_cluster -k 10 scene.img clusters.tif", "Ten clusters"},
     {"gdal_hsi_cluster -k 8 -distance angle -centres means.sli scene.img clusters.tif",
      "By spectral angle, with the mean spectra"},
     {"gdal_hsi_cluster -start endmembers.sli scene.img clusters.tif", "Starting from known spectra"}},
    "",
    cluster_tool::declare};

} // namespace tools
} // namespace hsi
