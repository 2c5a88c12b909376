// SPDX-License-Identifier: MIT
// gdal_hsi_spp: spatial preprocessing, scene to scene. Two passes over the scene: the mean spectrum of its
// valid pixels, then angles and displacement tile by tile.
#include "cli/devices.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "raster/output_set.h"
#include "spp/spp.h"

#include <algorithm>
#include <cstdio>
#include <future>
#include <limits>
#include <optional>
#include <tuple>

namespace {

using namespace hsi;

struct Settings {
    spp::Options spp;
    std::string alpha_file, rho_file;
};

/// Where the displacement is computed: the CPU, or devices through the CUDA module, which start while the CPU
/// scans the scene for its mean (that pass waits for the file alone).
class Backend {
  public:
    Backend(cli::Run& run, const stream::CubeShape& shape, const Settings& settings) : m_run(run) {
        const auto& options = run.options();
        // A GPU takes about a second to start and to fill its pinned buffers: automatically only where it
        // saves more.
        const bool worth = spp::cpu_seconds(shape, settings.spp.window) / options.threads > 1.0;
        m_devices = choose_devices(options.device, "spp", worth ? shape.float_bytes() : 0);
        cli::tell_devices(run, m_devices, spp::simd_target());
        if (!m_devices.empty())
            m_starting = std::async(std::launch::async, [devices = m_devices] {
                auto* cuda =
                    reinterpret_cast<spp::CudaBackend* (*)()>(cuda_module_symbol("spp", spp::cuda_symbol))();
                uint64_t free = UINT64_MAX;
                for (const auto& d : devices)
                    free = std::min(free, cuda->free_memory(d));
                return std::pair(cuda, free);
            });
    }

    std::unique_ptr<stream::Operation> displacement(const spp::Options& options,
                                                    std::vector<double> centroid) {
        wait();
        return m_cuda ? m_cuda->make_displacement(m_devices, options, std::move(centroid))
                      : spp::make_displacement(options, std::move(centroid));
    }
    /// Device bytes for all lanes; 0 on the CPU. Known after displacement().
    uint64_t device_memory() const {
        if (!m_cuda) return 0;
        return cli::device_memory(m_run.options(), m_free);
    }

  private:
    void wait() {
        if (!m_starting.valid()) return;
        try {
            std::tie(m_cuda, m_free) = m_starting.get();
        } catch (const Error& e) {
            if (m_run.options().device.kind == DeviceChoice::Kind::cuda) throw;
            m_devices.clear();
            m_run.report()["device"] = cli::describe_devices(m_run, m_devices, spp::simd_target());
            m_run.warn(std::string(e.what()) + "; computing on the CPU");
        }
    }

    cli::Run& m_run;
    std::vector<CudaDevice> m_devices;
    std::future<std::pair<spp::CudaBackend*, uint64_t>> m_starting;
    spp::CudaBackend* m_cuda = nullptr;
    uint64_t m_free = 0;
};

void check_scene(const raster::RasterSource& source, int window) {
    const auto shape = source.shape();
    if (shape.bands < 2)
        throw UsageError("-b: " + std::to_string(shape.bands) + " band of " + source.path() +
                             " is no spectrum: SPP needs at least 2 bands",
                         "Give more bands with -b, or keep bad ones with -bbl ignore.");
    const int64_t largest = std::max(shape.samples, shape.lines);
    if (window > largest)
        throw UsageError("-ws: " + std::to_string(window) + " is larger than the scene (" +
                             std::to_string(shape.samples) + "x" + std::to_string(shape.lines) + ")",
                         largest < 3 ? "The smallest window is 3."
                                     : "Use an odd number from 3 to " +
                                           std::to_string(largest - (largest + 1) % 2) + ".");
}

/// One raster for each output of the operation, in its order: y', alpha, rho. What can be refused is refused
/// here.
raster::OutputSet outputs_of(const cli::Run& run, const Settings& settings,
                             const raster::RasterSource& source, bool holes) {
    raster::OutputSet outputs;
    const auto shape = source.shape();
    raster::OutputSpec cube;
    cube.shape = shape;
    cube.same_bands = true;
    cube.holes = holes;
    cube.metadata["HSI_SPP_WINDOW"] = std::to_string(settings.spp.window);
    if (settings.spp.cube) outputs.plan(run.options().destination, cube);
    const auto single = [&](const char* role, const std::string& path, const char* name, const char* unit) {
        if (path.empty()) return;
        raster::OutputSpec spec;
        spec.shape = {shape.samples, shape.lines, 1};
        spec.holes = holes;
        spec.bands = {{name, {{"unit", unit}}}};
        spec.metadata = cube.metadata;
        raster::OutputOptions options = run.side_output(role, path);
        if (!settings.spp.cube) { // -dstnodata is that of y'; other values could be angles for whom computes
                                  // with them
            options.nodata.reset();
            spec.nodata = std::numeric_limits<double>::quiet_NaN();
        }
        outputs.plan(options, spec);
    };
    single("-alpha", settings.alpha_file, "SPP alpha", "radian");
    single("-rho", settings.rho_file, "SPP rho", "1");
    outputs.check();
    return outputs;
}

stream::PassOptions displacement_pass(cli::Run& run, const Backend& backend) {
    auto options = run.pass("displacement", 0.7);
    options.device_memory = backend.device_memory();
    return options;
}

void print_plan(cli::Run& run, Backend& backend, const Settings& settings,
                const raster::RasterSource& source) {
    const auto print = [&](const stream::Operation& operation, const stream::PassOptions& options) {
        const auto plan = stream::plan_pass(source, operation, options);
        const uint64_t bytes = stream::plan_bytes(source, operation, plan);
        run.print("Pass " + options.name + ": " + plan.describe() + ", " + format_byte_size(bytes) +
                  " of buffers");
        run.report()["plan"][options.name] = {{"tiles", plan.size()},
                                              {"tile_samples", plan.max_core_samples()},
                                              {"tile_lines", plan.max_core_lines()},
                                              {"halo", plan.halo()},
                                              {"lanes", plan.lanes()},
                                              {"buffer_bytes", bytes}};
    };
    const int bands = source.shape().bands;
    print(stream::BandStatisticsScan(bands), run.pass("centroid", 0.3));
    const auto operation =
        backend.displacement(settings.spp, std::vector<double>(static_cast<size_t>(bands)));
    print(*operation, displacement_pass(run, backend));
}

/// Where alpha of a virtual y' is kept when -alpha does not say it: beside it.
std::string alpha_beside(const std::string& destination) {
    const size_t slash = destination.rfind('/'), dot = destination.rfind('.');
    const bool extension = dot != std::string::npos && dot > (slash == std::string::npos ? 0 : slash + 1);
    return (extension ? destination.substr(0, dot) : destination) + "_alpha.tif";
}

/// y' as a VRT: each band is computed from the original band, alpha and the mean when it is read.
class VirtualCube {
  public:
    VirtualCube(const cli::Run& run, const Settings& settings, const raster::RasterSource& source)
        : m_options(run.options().destination), m_alpha(settings.alpha_file) {
        m_spec.shape = source.shape();
        m_spec.same_bands = true;
        m_spec.holes = true;
        m_spec.metadata["HSI_SPP_WINDOW"] = std::to_string(settings.spp.window);
        raster::RasterSink::check_virtual(m_options, m_spec, source);
    }
    void write(const raster::RasterSource& source, const std::vector<double>& mean, bool holes) {
        m_spec.shape = source.shape();
        m_spec.holes = holes;
        std::vector<raster::VirtualBand> bands;
        for (size_t b = 0; b < mean.size(); ++b) {
            char text[32];
            std::snprintf(text, sizeof text, "%.17g", mean[b]);
            bands.push_back({"hsi_spp", {{"centroid", text}}, {static_cast<int>(b)}, m_alpha});
        }
        raster::RasterSink::write_virtual(m_options, m_spec, source, bands);
    }

  private:
    raster::OutputOptions m_options;
    raster::OutputSpec m_spec;
    const std::string m_alpha;
};

void run_spp(cli::Run& run, Settings settings) {
    auto source = run.open_source();
    check_scene(*source, settings.spp.window);
    settings.spp.cube = !raster::RasterSink::is_virtual(run.options().destination);
    std::optional<VirtualCube> virtual_cube;
    if (!settings.spp.cube) {
        if (settings.alpha_file.empty()) settings.alpha_file = alpha_beside(run.options().destination.path);
        settings.spp.alpha = true;
        virtual_cube.emplace(run, settings, *source);
    }
    outputs_of(run, settings, *source, true); // refuses what can be refused before any work
    Backend backend(run, source->shape(), settings);
    if (run.options().dry_run) return print_plan(run, backend, settings, *source);

    stream::BandStatistics statistics;
    std::shared_ptr<stream::CubeSource> scene;
    for (;;) {
        scene = run.keep_if_slow(source);
        stream::BandStatisticsScan scan(source->shape().bands);
        run.add_pass(stream::run_pass(*scene, scan, {}, run.pass("centroid", 0.3)));
        cli::Run::seal(*scene);
        statistics = scan.result();
        if (statistics.valid_pixels > 0) break;
        scene.reset();
        if (!run.leave_out_empty_bands(source, statistics.empty_bands())) break;
        check_scene(*source, settings.spp.window);
    }
    if (statistics.valid_pixels == 0) throw cli::no_valid_pixel(*source);
    run.report()["valid_pixels"] = statistics.valid_pixels;
    run.report()["invalid_pixels"] = statistics.invalid_pixels;
    if (statistics.invalid_pixels > 0)
        run.note(std::to_string(statistics.invalid_pixels) + " of " +
                 std::to_string(source->shape().pixels()) +
                 " pixels are invalid (nodata, masked, NaN or all zero) and stay without a value");

    auto outputs = outputs_of(run, settings, *source, statistics.invalid_pixels > 0);
    const auto operation = backend.displacement(settings.spp, statistics.mean);
    outputs.create(source.get());
    run.reserve_cache(outputs.cache_bytes());
    auto options = displacement_pass(run, backend);
    options.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(*scene, *operation, outputs.sinks(), options));
    outputs.commit();
    if (virtual_cube) virtual_cube->write(*source, statistics.mean, statistics.invalid_pixels > 0);
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool("gdal_hsi_spp",
                   "Spatial preprocessing (SPP): moves every spectrum towards the scene's mean spectrum, the "
                   "more so the "
                   "less it resembles its neighbours, so that endmembers are found in homogeneous areas.",
                   "Examples:\n"
                   "  gdal_hsi_spp scene.img scene_spp.tif\n"
                   "  gdal_hsi_spp -of VRT scene.img scene_spp.vrt\n"
                   "  gdal_hsi_spp -ws 9 -alpha alpha.tif -memory 512MB flightline.dat spp.dat -of ENVI\n");
    tool.add_source();
    tool.add_destination();
    tool.add_compute();
    Settings settings;
    tool.app()
        .add_option("--ws", settings.spp.window, "Window size: an odd number of pixels, 3 to 63")
        ->capture_default_str();
    tool.app().add_option(
        "--alpha", settings.alpha_file,
        "Also write alpha, the weighted mean angle to the neighbours in radians, to this file");
    tool.app().add_option("--rho", settings.rho_file, "Also write rho = (1 + sqrt(alpha))^2 to this file");
    tool.check([&](const cli::CommonOptions&) {
        if (settings.spp.window < spp::min_window || settings.spp.window > spp::max_window ||
            settings.spp.window % 2 == 0)
            throw UsageError("-ws: " + std::to_string(settings.spp.window) + " is not a window size",
                             "Use an odd number from 3 to 63.");
        settings.spp.alpha = !settings.alpha_file.empty();
        settings.spp.rho = !settings.rho_file.empty();
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_spp(run, settings); });
}
