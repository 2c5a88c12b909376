// SPDX-License-Identifier: MIT
// gdal_hsi_spp: spatial preprocessing (SPP) of a scene. The first pass computes the mean spectrum of the
// valid pixels. The second pass computes angles and the displacement, tile by tile.
#include "core/error.h"
#include "core/file_path.h"
#include "links/links.h"
#include "raster/output_set.h"
#include "raster/side_files.h"
#include "shared/components.h"
#include "spp/spp.h"
#include "stream/statistics_scan.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

namespace hsi {
namespace {
namespace spp_tool {

using tool::Content;

struct Settings {
    spp::Options spp;
    std::string alpha_file, rho_file;
};

void check_window(const stream::CubeShape& shape, int window) {
    const int64_t largest = std::max(shape.samples, shape.lines);
    if (window > largest)
        throw UsageError("-ws: " + std::to_string(window) + " is larger than the scene (" +
                             std::to_string(shape.samples) + "x" + std::to_string(shape.lines) + ")",
                         largest < 3 ? "The smallest window is 3."
                                     : "Use an odd number from 3 to " +
                                           std::to_string(largest - (largest + 1) % 2) + ".");
}

raster::OutputSpec cube_spec(const Settings& settings, const raster::RasterSource& source, bool holes) {
    raster::OutputSpec spec;
    spec.shape = source.shape();
    spec.same_bands = true;
    spec.holes = holes;
    spec.metadata["HSI_SPP_WINDOW"] = std::to_string(settings.spp.window);
    return spec;
}

/// Plans one raster per output of the operation: y' (unless it is virtual), alpha, rho. Checks everything
/// that can fail.
raster::OutputSet outputs_of(const tool::Run& run, const Settings& settings,
                             const raster::RasterSource& source, bool holes) {
    raster::OutputSet outputs;
    const raster::OutputSpec cube = cube_spec(settings, source, holes);
    if (settings.spp.cube)
        outputs.plan(run.options().destination, cube);
    else
        raster::check_virtual(run.options().destination, cube, source);
    const auto single = [&](const char* role, const std::string& path, const char* name, const char* unit) {
        if (path.empty()) return;
        raster::OutputSpec spec;
        spec.shape = {cube.shape.samples, cube.shape.lines, 1};
        spec.holes = holes;
        spec.bands = {{name, {{"unit", unit}}}};
        spec.metadata = cube.metadata;
        raster::OutputOptions options = run.side_output(role, path);
        // If y' is virtual, -dstnodata applies to y' alone. In the other outputs, the same value could be a
        // valid angle.
        if (!settings.spp.cube) {
            options.nodata.reset();
            spec.nodata = std::numeric_limits<double>::quiet_NaN();
        }
        outputs.plan(options, spec);
    };
    single("-alpha", settings.alpha_file, "SPP alpha", "radian");
    single("-rho", settings.rho_file, "SPP rho", "1");
    outputs.check(source);
    return outputs;
}

/// Returns the default path of alpha for a virtual y': a file next to dst.
std::string alpha_beside(const std::string& destination) {
    const size_t slash = destination.rfind('/'), dot = destination.rfind('.');
    const bool extension = dot != std::string::npos && dot > (slash == std::string::npos ? 0 : slash + 1);
    return (extension ? destination.substr(0, dot) : destination) + "_alpha.tif";
}

/// Rejects replacing a file next to dst that the user did not name, unless the file holds alpha of an older
/// dst. \throws Error.
void check_alpha_beside(const std::string& alpha, const std::string& destination) {
    if (::access(alpha.c_str(), F_OK) != 0) return;
    const auto old = raster::files_read_with(destination);
    if (std::none_of(old.begin(), old.end(), [&](const auto& file) { return same_file(file, alpha); }))
        throw Error("'" + alpha +
                        "', the file for alpha of a virtual dst, already exists and does not belong to '" +
                        destination + "'",
                    "Give another file for alpha with -alpha.");
}

/// Writes a virtual y'. A VRT computes each band from the original band, alpha and the mean spectrum when the
/// band is read. An .hsi computes everything from the scene and the mean spectrum.
void write_virtual(tool::Run& run, const Settings& settings, const raster::RasterSource& source,
                   const std::vector<double>& mean, bool holes) {
    tool::write_virtual(
        run, run.options().destination, cube_spec(settings, source, holes), source,
        [&] { return links::displacement(settings.spp.window, mean); },
        [&] {
            std::vector<raster::VirtualBand> bands;
            for (size_t b = 0; b < mean.size(); ++b) {
                char text[32];
                std::snprintf(text, sizeof text, "%.17g", mean[b]);
                bands.push_back(
                    {"hsi_spp", {{"centroid", text}}, {static_cast<int>(b)}, settings.alpha_file});
            }
            return bands;
        });
}

/// Chooses the outputs of the operation, depending on dst and -alpha.
void choose_outputs(const tool::Run& run, Settings& settings) {
    const auto& dst = run.options().destination;
    settings.spp.cube = !raster::is_virtual(dst);
    if (settings.spp.cube) return;
    if (!raster::is_computed(dst) && settings.alpha_file.empty()) {
        settings.alpha_file = alpha_beside(dst.path);
        check_alpha_beside(settings.alpha_file, dst.path);
    }
    settings.spp.alpha = !settings.alpha_file.empty();
}

tool::Work work_of(const stream::CubeShape& shape, const spp::Options& options) {
    const auto bytes = static_cast<double>(shape.float_bytes());
    const double area = static_cast<double>(options.window) * options.window;
    tool::Work work;
    work.cpu_reads = work.device_reads = 2 * bytes;
    work.writes = options.cube ? bytes : 0;
    const double values = static_cast<double>(shape.pixels()) * shape.bands;
    work.add(spp::cost::value, values);
    // Each value is used for (area - 1) / 2 angles, because each angle between two pixels is computed once.
    work.add(spp::cost::angle, values * (area - 1) / 2);
    work.add(spp::cost::window, bytes * area);
    return work;
}

void run_spp(tool::Run& run, Settings settings) {
    tool::Scene scene(run, "SPP");
    check_window(scene.shape(), settings.spp.window);
    choose_outputs(run, settings);
    auto outputs = outputs_of(run, settings, *scene.raster(), true);
    tool::Computing<spp::Backend> computing(
        run, "spp", tool::choose_devices(run, "spp", work_of(scene.shape(), settings.spp)),
        spp::simd_target(), spp::make_cpu_backend);
    // The mean of an array in device memory is computed on the device.
    std::optional<tools::PcaComputing> there;
    if (scene.raster()->device() >= 0 && computing.on_devices())
        there.emplace(run, "pca", computing.devices(), pca::simd_target(), pca::make_cpu_backend, false);
    const auto statistics_scan = [&] {
        return there ? tools::make_scan(run, *there, scene.shape(), stream::Statistics::means, true)
                     : std::make_unique<stream::StatisticsScan>(scene.shape(), stream::Statistics::means);
    };
    const auto statistics_pass = [&](bool again) {
        const double share = again ? 0.0 : 0.3;
        return there ? there->pass("centroid", share) : run.pass("centroid", share);
    };
    if (outputs.empty()) scene.read_once();
    const auto statistics = scene.scan(statistics_scan, statistics_pass);
    check_window(scene.shape(), settings.spp.window);
    const bool holes = statistics.invalid_pixels > 0;
    outputs = outputs_of(run, settings, *scene.raster(), holes);
    if (!outputs.empty()) {
        const auto operation = computing->make_displacement(settings.spp, statistics.mean);
        tool::write(run, scene.cube(), *operation, outputs, scene.raster().get(),
                    [&] { return computing.pass("displacement", 0.7); });
        outputs.commit();
    }
    if (!settings.spp.cube) write_virtual(run, settings, *scene.raster(), statistics.mean, holes);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the mean spectrum", true);
    args.add_destination();
    args.computes_dst();
    args.add_compute();
    args.option("ws", s.spp.window, "Window size, an odd number not larger than the scene")
        .between(spp::min_window, spp::max_window)
        .in_unit("pixels");
    args.output("alpha", s.alpha_file, Content::raster,
                "Also write alpha, the weighted mean angle to the neighbours in radians, to FILE, as one "
                "Float32 band");
    args.output("rho", s.rho_file, Content::raster,
                "Also write rho = (1 + sqrt(alpha))^2 to FILE, as one Float32 band");
    args.check([&s](const tool::CommonOptions&) {
        if (s.spp.window % 2 == 0)
            throw UsageError("-ws: " + std::to_string(s.spp.window) + " is not a window size",
                             "Use an odd number from 3 to 63.");
        s.spp.alpha = !s.alpha_file.empty();
        s.spp.rho = !s.rho_file.empty();
    });
    args.looks_around();
    args.body([&s](tool::Run& run) { run_spp(run, s); });
}

} // namespace spp_tool
} // namespace

namespace tools {

extern constinit const tool::Definition spp{
    "spp",
    "Spatial preprocessing (SPP)",
    "Spatial preprocessing (SPP): moves every spectrum towards the scene's mean spectrum, the"
    " further the less it resembles its neighbours, so that endmembers are found in "
    "homogeneous areas.",
    {{"gdal_hsi_spp scene.img scene_spp.tif", "A window of 5x5 pixels, the result as tiled GeoTIFF"},
     {"gdal_hsi_spp -of VRT scene.img scene_spp.vrt", "Computed when it is displayed"},
     {"gdal_hsi_spp -ws 9 -alpha alpha.tif -memory 512MB flightline.dat spp.dat -of ENVI",
      "A wider window, limited memory, and the angles"}},
    "",
    spp_tool::declare};

} // namespace tools
} // namespace hsi
