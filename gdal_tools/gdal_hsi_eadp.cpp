// SPDX-License-Identifier: MIT
// gdal_hsi_eadp: extended anisotropic diffusion profile, scene to profile: covariance, projection on
// components, range and histogram of their gradients, diffusion.
#include "cli/tool.h"
#include "core/byte_size.h"
#include "eadp/plane_store.h"
#include "eadp/profile.h"
#include "pca_stage.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>

namespace {

using namespace hsi;

struct Settings {
    eadp::Options eadp;
    int components = 7;
    bool components_given = false, no_pca = false;
    int copies = 8;
    double step = 65;
    std::string times;
    double contrast = 0;
};

std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", x);
    return text;
}

std::vector<double> parse_times(const std::string& text) {
    std::vector<double> times;
    std::stringstream list(text);
    for (std::string part; std::getline(list, part, ',');) {
        char* end = nullptr;
        const double value = std::strtod(part.c_str(), &end);
        if (part.empty() || *end != 0)
            throw UsageError("-times: '" + part + "' is no number",
                             "Give process times as in -times 65,130,195.");
        times.push_back(value);
    }
    return times;
}

/// Where to compute: the CPU, or one GPU through the CUDA modules.
class Backends {
  public:
    Backends(cli::Run& run, uint64_t work_bytes, bool with_pca) {
        auto devices = choose_devices(run.options().device, "eadp", work_bytes);
        if (devices.size() > 1) devices.resize(1); // components stay on one device
        cli::load_or_use_cpu(run, devices, [&] {
            using Make = eadp::Backend* (*)(const std::vector<CudaDevice>&);
            m_eadp.reset(reinterpret_cast<Make>(cuda_module_symbol("eadp", eadp::cuda_symbol))(devices));
        });
        if (!m_eadp) m_eadp = eadp::make_cpu_backend();
        m_on_cuda = !devices.empty();
        m_pca = std::make_unique<tools::PcaBackend>(run, with_pca ? devices : std::vector<CudaDevice>{});
        cli::tell_devices(run, devices, eadp::simd_target());
    }
    eadp::Backend& eadp() const { return *m_eadp; }
    const tools::PcaBackend& pca() const { return *m_pca; }
    uint64_t device_memory(const cli::CommonOptions& options) const {
        if (!m_on_cuda) return 0;
        return cli::device_memory(options, m_eadp->free_memory());
    }

  private:
    std::unique_ptr<eadp::Backend> m_eadp;
    std::unique_ptr<tools::PcaBackend> m_pca;
    bool m_on_cuda = false;
};

const char* const diffusivity_names[] = {"g1", "g2", "g3"};
const char* const evolution_names[] = {"independent", "cascade", "incremental"};
const char* const scheme_names[] = {"fed", "exact"};
const char* const precision_names[] = {"single", "double"};

template <class E>
const char* name_of(const char* const* names, E value) {
    return names[static_cast<int>(value)];
}

raster::OutputSpec profile_spec(const stream::CubeShape& scene, const Settings& settings,
                                const std::vector<std::string>& component_names,
                                const eadp::ProfileFacts* facts) {
    bool holes = true; // until the scans have counted
    if (facts) {
        holes = false;
        for (const auto& f : facts->components)
            holes = holes || f.range.valid < scene.pixels();
    }
    const auto& o = settings.eadp;
    raster::OutputSpec spec;
    spec.shape = {scene.samples, scene.lines,
                  eadp::profile_bands(o, static_cast<int>(component_names.size()))};
    spec.holes = holes;
    for (size_t i = 0; i < component_names.size(); ++i)
        for (int c = 0; c <= o.copies(); ++c) {
            raster::BandSpec band{component_names[i], {}};
            band.metadata["component"] = std::to_string(i + 1);
            band.metadata["copy"] = std::to_string(c);
            if (c > 0) {
                const std::string time = number(o.times[static_cast<size_t>(c - 1)]);
                band.description += " T=" + time;
                band.metadata["process_time"] = time;
                if (facts)
                    for (const auto& f : facts->components)
                        if (f.component == static_cast<int>(i) &&
                            f.copy == (o.evolution == eadp::Evolution::cascade ? c - 1 : 0))
                            band.metadata["contrast"] = number(f.k);
            }
            spec.bands.push_back(std::move(band));
        }
    std::string times;
    for (double t : o.times)
        times += (times.empty() ? "" : ",") + number(t);
    auto& m = spec.metadata;
    m["HSI_EADP_COMPONENTS"] = std::to_string(component_names.size());
    m["HSI_EADP_PCA"] = settings.no_pca ? "NO" : "YES";
    m["HSI_EADP_TIMES"] = times;
    m["HSI_EADP_SIGMA"] = number(o.sigma);
    m["HSI_EADP_DIFFUSIVITY"] = name_of(diffusivity_names, o.diffusivity);
    if (o.contrast)
        m["HSI_EADP_K"] = number(*o.contrast);
    else
        m["HSI_EADP_PERCENTILE"] = number(o.percentile);
    m["HSI_EADP_EVOLUTION"] = name_of(evolution_names, o.evolution);
    m["HSI_EADP_SCHEME"] = name_of(scheme_names, o.scheme);
    if (o.scheme == eadp::Scheme::fed)
        m["HSI_EADP_CYCLES"] = std::to_string(o.cycles);
    else
        m["HSI_EADP_TOLERANCE"] = number(o.tolerance);
    m["HSI_EADP_PRECISION"] = name_of(precision_names, o.precision);
    return spec;
}

std::vector<std::string> pc_names(int components) {
    std::vector<std::string> names;
    for (int k = 1; k <= components; ++k)
        names.push_back("PC" + std::to_string(k));
    return names;
}

/// What a shape alone says: for planning passes over planes that do not exist yet.
class PlannedSource final : public stream::CubeSource {
  public:
    explicit PlannedSource(const stream::CubeShape& shape) : m_shape(shape) {}
    stream::CubeShape shape() const override { return m_shape; }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        throw Error("internal: nothing to read yet");
    }

  private:
    const stream::CubeShape m_shape;
};

void print_schedule(cli::Run& run, const Settings& settings, int components) {
    const auto& o = settings.eadp;
    const auto stages = eadp::make_stages(o);
    auto& report = run.report()["schedule"];
    const auto say = [&](const std::string& text) {
        if (run.options().dry_run) run.print(text);
    };
    int sweeps = 0;
    for (const auto& s : stages)
        sweeps += s.degree;
    if (o.scheme == eadp::Scheme::fed) {
        int steps = 0;
        std::vector<int> counts;
        for (size_t c = 0; c < o.times.size(); ++c) {
            const bool delta = o.evolution == eadp::Evolution::incremental && c > 0;
            const int n = eadp::fed_steps(o.times[c] - (delta ? o.times[c - 1] : 0), o.cycles) * o.cycles;
            say("T=" + number(o.times[c]) + ": " + std::to_string(n) + " FED steps");
            counts.push_back(n);
            steps += n;
        }
        say("In all " + std::to_string(steps) + " FED steps a component, " +
            std::to_string(steps * components) + " for " + std::to_string(components) +
            (components == 1 ? " component" : " components") + "; done as " + std::to_string(sweeps) +
            " sweeps a component");
        report["fed_steps"] = counts;
    } else {
        say("Exact to " + number(o.tolerance) + " of the range in " + std::to_string(sweeps) +
            " sweeps a component");
    }
    report["sweeps"] = sweeps;
}

/// Where planes go that do not fit in memory: beside dst.
std::string folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    std::error_code ec;
    if (folder.empty()) return ".";
    if (std::filesystem::is_directory(folder, ec)) return folder.string();
    return std::filesystem::temp_directory_path(ec).string(); // dst is no ordinary file
}

void run_eadp(cli::Run& run, Settings settings) {
    const auto source = run.open_source();
    if (!settings.no_pca) tools::check_spectrum(*source, "PCA");
    int components = settings.no_pca ? source->shape().bands
                                     : tools::component_count(settings.components, settings.components_given,
                                                              source->shape().bands);
    settings.eadp.zero_is_invalid = settings.no_pca;
    raster::RasterSink::check(run.options().destination,
                              profile_spec(source->shape(), settings,
                                           settings.no_pca ? source->band_names() : pc_names(components),
                                           nullptr));
    const Backends backends(
        run,
        std::max(source->shape().float_bytes(),
                 static_cast<uint64_t>(source->shape().pixels()) * 4 *
                     static_cast<uint64_t>(eadp::profile_bands(settings.eadp, components))),
        !settings.no_pca);
    print_schedule(run, settings, components);

    const double pca_share = settings.no_pca ? 0.0 : 0.3;
    eadp::ProfileRun profile;
    profile.threads = run.options().threads;
    profile.pass = [&](const std::string& name, double share) {
        auto options = run.pass(name, share * (1 - pca_share));
        options.device_memory = backends.device_memory(run.options());
        return options;
    };
    profile.finished = [&](const stream::PassReport& report) { run.add_pass(report); };
    profile.warn = [&](const std::string& text) { run.warn(text); };
    profile.folder = folder_of(run.options().destination.path);
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
            const auto scan = backends.pca().covariance(source->shape().bands);
            auto pass = run.pass("covariance", 0.2);
            pass.device_memory = backends.pca().device_memory(run.options());
            tools::print_plan(run, "covariance", *source, *scan, stream::plan_pass(*source, *scan, pass));
            const bool in_memory = fits(planes_of(*source), memory);
            run.print("Component planes: " + format_byte_size(planes_of(*source).float_bytes()) +
                      (in_memory ? " in memory" : " in a temporary file in " + profile.folder));
            if (in_memory) profile.memory -= planes_of(*source).float_bytes();
        }
        const PlannedSource planned(planes_of(*source));
        const auto plan = eadp::plan_profile(planned, settings.eadp, backends.eadp(), profile);
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
                                          profile_spec(like->shape(), settings, names, &facts), like.get());
        return *sink;
    };
    eadp::ProfileFacts facts;
    std::optional<pca::Model> fitted;
    if (settings.no_pca) {
        names = source->band_names();
        profile.memory = memory;
        facts = eadp::make_profile(*source, settings.eadp, backends.eadp(), open_sink, profile);
        if (std::none_of(facts.components.begin(), facts.components.end(),
                         [](const auto& f) { return f.range.valid > 0; }))
            throw Error(source->path() +
                            ": no pixel is valid (in every one a selected band is nodata, masked or NaN, or "
                            "all bands are zero)",
                        "Check the nodata value (-srcnodata) and leave out bad bands (-b).");
    } else {
        auto scene = tools::scan_scene(run, source, backends.pca(), 0.5 * pca_share);
        like = scene.raster;
        const int bands = like->shape().bands;
        tools::check_spectrum(*like, "PCA");
        components = tools::component_count(settings.components, settings.components_given, bands);
        names = pc_names(components);
        const auto model = tools::fit_scene(run, scene, {components, false, false});
        fitted = model;
        const auto shape = planes_of(*like);
        const bool in_memory = fits(shape, memory);
        auto planes = in_memory ? std::make_unique<eadp::PlaneStore>(shape)
                                : std::make_unique<eadp::PlaneStore>(shape, profile.folder);
        run.report()["component_planes"] = in_memory ? "memory" : "temporary file";
        const uint64_t held = in_memory ? shape.float_bytes() : 0;
        std::vector<int> all(static_cast<size_t>(bands)), every(static_cast<size_t>(components));
        std::iota(all.begin(), all.end(), 0);
        std::iota(every.begin(), every.end(), 0);
        {
            const auto operation = backends.pca().transform(pca::projection(model, components, all, bands));
            auto pass = run.pass("projection", 0.5 * pca_share);
            pass.memory -= std::min(pass.memory, scene.resident_bytes + held);
            pass.device_memory = backends.pca().device_memory(run.options());
            const auto to = planes->sink(every);
            run.add_pass(stream::run_pass(*scene.cube, *operation, {to.get()}, pass));
        }
        scene.cube.reset(); // a copy of the scene in memory is needed no more
        profile.memory = memory - held;
        const auto from = planes->source(every);
        facts = eadp::make_profile(*from, settings.eadp, backends.eadp(), open_sink, profile);
    }
    auto& list = run.report()["contrast"];
    for (const auto& f : facts.components)
        list.push_back(
            {{"component", f.component + 1}, {"copy", f.copy}, {"k", f.k}, {"steepest", f.range.steepest}});
    sink->commit();
    if (fitted) tools::print_components(run, *fitted);
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool("gdal_hsi_eadp",
                   "Extended anisotropic diffusion profile (EADP): principal components and, of each, copies "
                   "smoothed for "
                   "rising times by diffusion that stops at edges. The bands of the profile are features for "
                   "classification.",
                   "Examples:\n"
                   "  gdal_hsi_eadp scene.img profile.tif\n"
                   "  gdal_hsi_eadp -nc 4 -c 5 -ts 20 -memory 1GB flightline.dat profile.dat -of ENVI\n"
                   "  gdal_hsi_eadp -no-pca -b 30,20,10 -times 10,100 -scheme exact scene.img smooth.tif\n");
    tool.add_source();
    tool.add_destination();
    tool.add_compute();
    Settings s;
    auto& app = tool.app();
    auto* const nc = app.add_option("--nc", s.components, "Number of components, 1 to the number of bands")
                         ->capture_default_str();
    auto* const no_pca = app.add_flag("--no-pca", s.no_pca, "Diffuse the bands themselves");
    auto* const copies = app.add_option("-c,--c", s.copies, "Number of diffused copies of every component")
                             ->capture_default_str();
    auto* const step =
        app.add_option("--ts", s.step, "Copy c is diffused for time c times this, in squared pixels")
            ->capture_default_str();
    auto* const times = app.add_option("--times", s.times, "The process times themselves: T1,T2,...");
    app.add_option("--sigma", s.eadp.sigma,
                   "Standard deviation of the Gaussian before the gradient, in pixels; 0: none")
        ->capture_default_str();
    app.add_option("-g,--g", s.eadp.diffusivity,
                   "Diffusivity: g1 (exponential), g2 (rational) or g3 (Weickert)")
        ->transform(CLI::CheckedTransformer(std::map<std::string, eadp::Diffusivity>{
            {"g1", eadp::Diffusivity::g1}, {"g2", eadp::Diffusivity::g2}, {"g3", eadp::Diffusivity::g3}}))
        ->default_str("g2");
    auto* const percentile =
        app.add_option("--percentile", s.eadp.percentile, "Share of the gradients below the contrast k")
            ->capture_default_str();
    auto* const k = app.add_option("-k,--k", s.contrast,
                                   "Contrast k itself, for all components, in their unit per pixel");
    auto* const cycles =
        app.add_option("--cycles", s.eadp.cycles, "FED cycles for one time: more are more accurate")
            ->capture_default_str();
    app.add_option("--evolution", s.eadp.evolution,
                   "independent: every copy from the component; cascade: copy c from copy c-1, for time T_c, "
                   "with its own "
                   "gradients; incremental: copy c from copy c-1, for the time between them")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, eadp::Evolution>{{"independent", eadp::Evolution::independent},
                                                   {"cascade", eadp::Evolution::cascade},
                                                   {"incremental", eadp::Evolution::incremental}}))
        ->default_str("independent");
    app.add_option("--scheme", s.eadp.scheme,
                   "fed: fast explicit diffusion; exact: the exact solution for frozen gradients")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, eadp::Scheme>{{"fed", eadp::Scheme::fed}, {"exact", eadp::Scheme::exact}}))
        ->default_str("fed");
    auto* const tolerance = app.add_option("--tolerance", s.eadp.tolerance,
                                           "With -scheme exact: error allowed, as a share of the range")
                                ->capture_default_str();
    app.add_option("--precision", s.eadp.precision, "Arithmetic of the diffusion: single or double")
        ->transform(CLI::CheckedTransformer(std::map<std::string, eadp::Precision>{
            {"single", eadp::Precision::single_precision}, {"double", eadp::Precision::double_precision}}))
        ->default_str("single");
    tool.check([&](const cli::CommonOptions&) {
        const auto exclude = [](const CLI::Option* a, const CLI::Option* b, const char* names) {
            if (a->count() > 0 && b->count() > 0)
                throw UsageError(std::string(names) + " exclude one another", "Leave one of them out.");
        };
        exclude(nc, no_pca, "-nc and -no-pca");
        exclude(copies, times, "-c and -times");
        exclude(step, times, "-ts and -times");
        exclude(percentile, k, "-percentile and -k");
        if (s.eadp.scheme == eadp::Scheme::exact && cycles->count() > 0)
            throw UsageError("-cycles does not go with -scheme exact", "Use -tolerance.");
        if (s.eadp.scheme == eadp::Scheme::fed && tolerance->count() > 0)
            throw UsageError("-tolerance goes with -scheme exact", "Use -cycles, or -scheme exact.");
        s.components_given = nc->count() > 0;
        if (s.components < 1)
            throw UsageError("-nc: " + std::to_string(s.components) + " is no number of components",
                             "Use a number from 1 to the number of bands.");
        if (times->count() > 0) {
            s.eadp.times = parse_times(s.times);
        } else {
            if (s.copies < 1 || s.copies > 1000)
                throw UsageError("-c: " + std::to_string(s.copies) + " is no number of copies",
                                 "Use a number from 1 to 1000.");
            if (!(s.step > 0))
                throw UsageError("-ts: " + number(s.step) + " is no process time", "Use a positive number.");
            s.eadp.times.clear();
            for (int c = 1; c <= s.copies; ++c)
                s.eadp.times.push_back(s.step * c);
        }
        if (k->count() > 0) s.eadp.contrast = s.contrast;
        eadp::check(s.eadp);
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_eadp(run, s); });
}
