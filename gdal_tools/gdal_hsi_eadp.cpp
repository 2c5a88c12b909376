// SPDX-License-Identifier: MIT
// gdal_hsi_eadp: extended anisotropic diffusion profile of a scene. The steps are the covariance, the
// projection on components, the range and histogram of their gradients, and the diffusion.
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "eadp/profile.h"
#include "raster/raster_sink.h"
#include "shared/components.h"
#include "shared/scene_statistics.h"
#include "stream/plane_store.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/scene.h"
#include "tool/words.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace eadp_tool {

struct Settings {
    eadp::Options eadp;
    int components = 7;
    bool components_given = false, no_pca = false;
    int copies = 8;
    double step = 65;
    std::string times;
    double contrast = 0;
    std::string statistics;
};

/// Returns a number for metadata and messages: "65", "0.5".
std::string number_text(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", x);
    return text;
}

// The bands of the profile, and the schedule of the diffusion
// ----------------------------------------------------------------------------------------------------------

const char* const diffusivity_names[] = {"g1", "g2", "g3"};
const char* const evolution_names[] = {"independent", "cascade", "incremental"};
const char* const scheme_names[] = {"fed", "exact"};
const char* const precision_names[] = {"single", "double"};

template <class E>
const char* name_of(const char* const* names, E value) {
    return names[static_cast<int>(value)];
}

/// Describes the raster of the profile. `facts`: null before the scans.
raster::OutputSpec profile_spec(const stream::CubeShape& scene, const Settings& settings,
                                const std::vector<std::string>& component_names,
                                const eadp::ProfileFacts* facts) {
    bool holes = true; // assumed until the scans have counted the pixels
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
                const std::string time = number_text(o.times[static_cast<size_t>(c - 1)]);
                band.description += " T=" + time;
                band.metadata["process_time"] = time;
                if (facts)
                    for (const auto& f : facts->components)
                        if (f.component == static_cast<int>(i) &&
                            f.copy == (o.evolution == eadp::Evolution::cascade ? c - 1 : 0))
                            band.metadata["contrast"] = number_text(f.k);
            }
            spec.bands.push_back(std::move(band));
        }
    std::string times;
    for (double t : o.times)
        times += (times.empty() ? "" : ",") + number_text(t);
    auto& m = spec.metadata;
    m["HSI_EADP_COMPONENTS"] = std::to_string(component_names.size());
    m["HSI_EADP_PCA"] = settings.no_pca ? "NO" : "YES";
    m["HSI_EADP_TIMES"] = times;
    m["HSI_EADP_SIGMA"] = number_text(o.sigma);
    m["HSI_EADP_DIFFUSIVITY"] = name_of(diffusivity_names, o.diffusivity);
    if (o.contrast)
        m["HSI_EADP_K"] = number_text(*o.contrast);
    else
        m["HSI_EADP_PERCENTILE"] = number_text(o.percentile);
    m["HSI_EADP_EVOLUTION"] = name_of(evolution_names, o.evolution);
    m["HSI_EADP_SCHEME"] = name_of(scheme_names, o.scheme);
    if (o.scheme == eadp::Scheme::fed)
        m["HSI_EADP_CYCLES"] = std::to_string(o.cycles);
    else
        m["HSI_EADP_TOLERANCE"] = number_text(o.tolerance);
    m["HSI_EADP_PRECISION"] = name_of(precision_names, o.precision);
    return spec;
}

/// Adds the diffusion steps and the sweeps to the report, and prints them with -dry-run.
void print_schedule(tool::Run& run, const Settings& settings, int components) {
    const auto& o = settings.eadp;
    const auto stages = eadp::make_stages(o);
    auto& report = run.report()["schedule"];
    const auto say = [&](const std::string& text) { tool::add_to_plan(run, text); };
    int sweeps = 0;
    for (const auto& s : stages)
        sweeps += s.degree;
    if (o.scheme == eadp::Scheme::fed) {
        int steps = 0;
        std::vector<int> counts;
        for (size_t c = 0; c < o.times.size(); ++c) {
            const bool delta = o.evolution == eadp::Evolution::incremental && c > 0;
            const int n = eadp::fed_steps(o.times[c] - (delta ? o.times[c - 1] : 0), o.cycles) * o.cycles;
            say("T=" + number_text(o.times[c]) + ": " + counted(n, "FED step"));
            counts.push_back(n);
            steps += n;
        }
        say("Total: " + counted(steps, "FED step") + " per component, " + std::to_string(steps * components) +
            " for " + counted(components, "component") + "; computed in " + counted(sweeps, "sweep") +
            " per component");
        report["fed_steps"] = counts;
    } else {
        say("Exact to " + number_text(o.tolerance) + " of the range in " + counted(sweeps, "sweep") +
            " per component");
    }
    report["sweeps"] = sweeps;
}

// The passes
// ----------------------------------------------------------------------------------------------------------

/// One run: the scene, its device, and its outputs.
class Profiling {
  public:
    Profiling(tool::Run& run, Settings settings)
        : m_run(run), m_settings(std::move(settings)),
          m_scene(run, open_scene(), m_settings.no_pca ? "" : "PCA"), m_components(count_components()),
          m_devices(choose_devices()),
          m_computing(run, "eadp", m_devices, eadp::simd_target(), eadp::make_cpu_backend),
          // PCA runs on the same devices as the diffusion.
          m_pca_computing(run, "pca", m_settings.no_pca ? std::vector<CudaDevice>() : m_devices,
                          pca::simd_target(), pca::make_cpu_backend, false),
          m_memory(run.buffer_memory()) {
        print_schedule(run, m_settings, m_components);
        const double share = 1 - pca_share();
        m_profile.sink_takes_bands = m_takes_bands;
        m_profile.pass = [this, share](const std::string& name, double part) {
            auto options = m_run.pass(name, part * share);
            options.device_memory = m_computing.device_memory();
            return options;
        };
        m_profile.finished = [&run](const stream::PassReport& report) { run.add_pass(report); };
        m_profile.warn = [&run](const std::string& text) { run.warn(text); };
        m_profile.folder = stream::folder_beside(run.options().destination.path);
        if (run.masks_statistics()) m_profile.mask = run.mask();
    }

    void show_plan() {
        const auto& source = *m_scene.raster();
        const auto planes = planes_of(source);
        m_profile.memory = m_memory;
        if (!m_settings.no_pca) {
            if (!m_statistics)
                tool::print_plan(
                    m_run, source,
                    *tools::make_scan(m_run, m_pca_computing, source.shape(), stream::Statistics::covariance),
                    tools::without_held_memory(m_pca_computing, m_pca_computing.pass("covariance", 0.2)));
            m_run.print("Component planes: " + format_byte_size(planes.float_bytes()) +
                        (in_memory(planes) ? " in memory" : " in a temporary file in " + m_profile.folder));
            if (in_memory(planes)) m_profile.memory -= planes.float_bytes();
        }
        const auto plan = eadp::plan_profile(planes, m_settings.eadp, m_computing.backend(), m_profile);
        m_run.print("Pass diffusion: " + plan.plan.describe() + ", " + counted(plan.team, "thread") +
                    " per tile, " + format_byte_size(plan.bytes) + " of buffers" +
                    (eadp::is_written(plan.way) ? "; bands are written while others are computed" : ""));
        m_run.report()["plan"]["diffusion"] = {{"tiles", plan.plan.size()},
                                               {"tile_samples", plan.plan.max_core_samples()},
                                               {"tile_lines", plan.plan.max_core_lines()},
                                               {"halo", plan.plan.halo()},
                                               {"lanes", plan.plan.lanes()},
                                               {"threads_per_tile", plan.team},
                                               {"writes_beside", eadp::is_written(plan.way)},
                                               {"buffer_bytes", plan.bytes}};
    }

    void write() {
        std::optional<pca::Model> model;
        const auto facts = m_settings.no_pca ? profile_bands() : profile_components(model);
        auto& list = m_run.report()["contrast"];
        for (const auto& f : facts.components)
            list.push_back({{"component", f.component + 1},
                            {"copy", f.copy},
                            {"k", f.k},
                            {"steepest", f.range.steepest}});
        m_sink->commit();
        if (model) tools::print_components(m_run, *model);
    }

  private:
    tool::Run& m_run;
    Settings m_settings;
    std::optional<tools::GivenStatistics> m_statistics;
    tool::Scene m_scene;
    int m_components;
    bool m_takes_bands = false; ///< true if the output takes whole bands; set with m_devices
    std::vector<CudaDevice> m_devices;
    tool::Computing<eadp::Backend> m_computing;
    tools::PcaComputing m_pca_computing;
    uint64_t m_memory; ///< bytes for buffers and component planes
    eadp::ProfileRun m_profile;
    std::unique_ptr<raster::RasterSink> m_sink;

    /// Opens the scene; with -statistics, with the bands of the statistics.
    std::shared_ptr<raster::RasterSource> open_scene() {
        auto source = m_run.open_source();
        if (m_settings.statistics.empty()) return source;
        m_statistics = tools::read_statistics(m_run, m_settings.statistics, source);
        tools::check_values(m_run, *m_statistics);
        return m_statistics->source;
    }

    double pca_share() const { return m_settings.no_pca ? 0.0 : 0.3; }

    int count_components() const {
        const int bands = m_scene.raster()->shape().bands;
        return m_settings.no_pca
                   ? bands
                   : tools::component_count(m_settings.components, m_settings.components_given, bands);
    }

    /// Chooses the devices. Before that, rejects outputs that cannot be written.
    std::vector<CudaDevice> choose_devices() {
        const auto& source = *m_scene.raster();
        const auto& destination = m_run.options().destination;
        const auto spec = profile_spec(
            source.shape(), m_settings,
            m_settings.no_pca ? source.facts().bands.names : tools::component_names(m_components), nullptr);
        raster::check_output(destination, spec, source);
        m_takes_bands = raster::will_take_bands(destination, spec);
        auto work = m_settings.no_pca ? tool::Work()
                                      : tools::projection_work(source.shape(), m_components, !m_statistics);
        const double values = static_cast<double>(source.shape().pixels()) * m_components;
        double sweeps = 0;
        for (const auto& stage : eadp::make_stages(m_settings.eadp))
            sweeps += stage.degree;
        work.writes_after = values * (1 + m_settings.eadp.copies()) * 4;
        tool::Work diffusion;
        diffusion.add(eadp::cost::value, values);
        diffusion.add(eadp::cost::sweep, values * sweeps * (1 + m_settings.eadp.copies()), values * sweeps);
        work.core_seconds += diffusion.core_seconds;
        work.device_seconds += diffusion.device_seconds;
        if (writes_beside()) work.seconds_beside = diffusion.core_seconds;
        return tool::choose_devices(m_run, "eadp", work, 1);
    }

    /// Returns true if a run on the CPU can write finished bands while other threads compute further bands.
    /// See eadp::Way::written.
    bool writes_beside() const {
        const auto& o = m_run.options();
        return m_takes_bands && o.threads > 1 && o.ranks <= 1 && !m_run.ranks().several() &&
               o.tile_samples <= 0 && m_settings.eadp.evolution != eadp::Evolution::cascade;
    }

    stream::CubeShape planes_of(const stream::CubeSource& cube) const {
        return {cube.shape().samples, cube.shape().lines, m_components};
    }
    /// Returns true if the component planes fit into half of m_memory.
    bool in_memory(const stream::CubeShape& planes) const {
        return planes.float_bytes() <= tool::half(m_memory);
    }

    eadp::ProfileFacts profile_of(const stream::CubeSource& planes, const raster::RasterSource& like,
                                  const std::vector<std::string>& names, uint64_t memory) {
        m_profile.memory = memory;
        const auto open_sink = [&](const eadp::ProfileFacts& facts) -> stream::CubeSink& {
            m_sink = raster::create_sink(m_run.options().destination,
                                         profile_spec(like.shape(), m_settings, names, &facts), &like);
            return *m_sink;
        };
        return eadp::make_profile(planes, m_settings.eadp, m_computing.backend(), open_sink, m_profile);
    }

    /// Computes the profile of the bands themselves, for -no-pca.
    eadp::ProfileFacts profile_bands() {
        const auto source = m_scene.raster();
        auto facts = profile_of(*source, *source, source->facts().bands.names, m_memory);
        if (std::none_of(facts.components.begin(), facts.components.end(),
                         [](const auto& f) { return f.range.valid > 0; }))
            throw tool::no_valid_pixel(*source, m_run.mask() != nullptr);
        if (m_run.mask())
            for (const auto& f : facts.components)
                if (f.copy == 0) m_run.report()["mask"]["valid_pixels"] = f.range.valid;
        return facts;
    }

    eadp::ProfileFacts profile_components(std::optional<pca::Model>& model) {
        const auto made = tools::project_into_planes(m_scene, m_pca_computing,
                                                     {m_settings.components, m_settings.components_given,
                                                      tool::half(m_memory), m_profile.folder, pca_share(),
                                                      m_statistics ? &*m_statistics : nullptr});
        m_components = made.components(); // bands without values are omitted
        model = made.model;
        std::vector<int> every(static_cast<size_t>(m_components));
        std::iota(every.begin(), every.end(), 0);
        return profile_of(*made.planes->source(every), *m_scene.raster(),
                          tools::component_names(m_components), m_memory - made.held_bytes());
    }
};

/// Computes the profile of the scene, or prints its plan with -dry-run. Steps: covariance and projection
/// (except with -no-pca), then ranges, histograms and diffusion of the component planes.
void run_profile(tool::Run& run, const Settings& settings) {
    Profiling profiling(run, settings);
    tool::end_of_plan(run, [&] { profiling.show_plan(); });
    profiling.write();
}

// The options
// ----------------------------------------------------------------------------------------------------------

std::vector<double> parse_times(const std::string& text) {
    std::vector<double> times;
    std::stringstream list(text);
    for (std::string part; std::getline(list, part, ',');) {
        const auto value =
            tool::parse_number(part.substr(std::min(part.find_first_not_of(' '), part.size())));
        if (!value)
            throw UsageError("-times: '" + part + "' is not a number",
                             "Give diffusion times such as -times 65,130,195.");
        times.push_back(*value);
    }
    return times;
}

/// Checks the options together, and the diffusion times.
void check_settings(const tool::Call& call, Settings& s) {
    if (s.eadp.scheme == eadp::Scheme::exact && call.given("cycles"))
        throw UsageError(tool::cannot_be_used_with("-cycles", "-scheme exact"), "Use -tolerance.");
    if (s.eadp.scheme == eadp::Scheme::fed && call.given("tolerance"))
        throw UsageError("-tolerance requires -scheme exact", "Use -cycles, or -scheme exact.");
    s.components_given = call.given("nc");
    s.eadp.zero_is_invalid = s.no_pca;
    if (s.components < 1)
        throw UsageError("-nc: " + std::to_string(s.components) + " is not a number of components",
                         "Use a number from 1 to the number of bands.");
    if (call.given("times")) {
        s.eadp.times = parse_times(s.times);
    } else {
        if (!(s.step > 0))
            throw UsageError("-ts: " + number_text(s.step) + " is not a diffusion time",
                             "Use a positive number.");
        s.eadp.times.clear();
        for (int c = 1; c <= s.copies; ++c)
            s.eadp.times.push_back(s.step * c);
    }
    if (call.given("k")) s.eadp.contrast = s.contrast;
    eadp::check(s.eadp);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the statistics", true);
    args.add_destination();
    args.add_compute();
    args.option("nc", s.components, "Number of principal components, 1 to the number of bands");
    args.flag("no-pca", s.no_pca, "Diffuse the bands themselves instead of components");
    args.option("c", s.copies, "Number of diffused copies of every component")
        .also("copies")
        .between(1, 1000);
    args.option("ts", s.step, "Diffusion time of copy c, divided by c").in_unit("squared pixels");
    args.option("times", s.times, "Diffusion times in squared pixels: T1,T2,...").shown_as("LIST");
    args.option("sigma", s.eadp.sigma, "Standard deviation of the Gaussian before the gradient; 0: none")
        .in_unit("pixels");
    args.choice("g", s.eadp.diffusivity, "Diffusivity",
                {{"g1", eadp::Diffusivity::g1, "exponential"},
                 {"g2", eadp::Diffusivity::g2, "rational"},
                 {"g3", eadp::Diffusivity::g3, "Weickert"}})
        .also("diffusivity");
    args.option("percentile", s.eadp.percentile,
                "Contrast k as the quantile of the gradients, above 0 and at most 1");
    args.option("k", s.contrast, "Contrast k of all components, in their unit per pixel")
        .defaults_to("")
        .also("contrast");
    args.option("cycles", s.eadp.cycles,
                "With -scheme fed: cycles per diffusion time, 1 to 1000; more cycles are more accurate");
    args.choice("evolution", s.eadp.evolution, "Source of each copy",
                {{"independent", eadp::Evolution::independent, "the component"},
                 {"cascade", eadp::Evolution::cascade, "the previous copy, for time T_c, with new gradients"},
                 {"incremental", eadp::Evolution::incremental,
                  "the previous copy, for the time between them; times must increase"}});
    args.choice("scheme", s.eadp.scheme, "How the diffusion is solved",
                {{"fed", eadp::Scheme::fed, "fast explicit diffusion"},
                 {"exact", eadp::Scheme::exact, "the exact solution for gradients frozen at the start"}});
    args.option("tolerance", s.eadp.tolerance,
                "With -scheme exact: allowed error, 1e-12 to 0.1, as a share of the component's range");
    args.choice(
        "precision", s.eadp.precision, "Precision of the diffusion; earlier steps are in double precision",
        {{"single", eadp::Precision::single_precision}, {"double", eadp::Precision::double_precision}});
    tools::add_statistics_option(args, s.statistics, false);
    args.exclusive("statistics", "no-pca");
    args.exclusive("nc", "no-pca");
    args.exclusive("c", "times");
    args.exclusive("ts", "times");
    args.exclusive("percentile", "k");
    args.check([&s](const tool::Call& call) {
        tool::check_mask_use(call.options().mask, !(s.no_pca && call.given("k")), "-no-pca and -k");
        check_settings(call, s);
    });
    args.looks_around();
    args.body([&s](tool::Run& run) { run_profile(run, s); });
}

} // namespace eadp_tool
} // namespace

namespace tools {

extern constinit const tool::Definition eadp{
    "eadp",
    "Extended anisotropic diffusion profile (EADP)",
    "Extended anisotropic diffusion profile (EADP): principal components, and copies of each "
    "that are smoothed for increasing times by diffusion that stops at edges. The bands of "
    "the profile are features for classification.",
    {{"gdal_hsi_eadp scene.img profile.tif", "7 components, 8 copies of each: 63 bands"},
     {"gdal_hsi_eadp -nc 4 -c 5 -ts 20 -memory 1GB flightline.dat profile.dat -of ENVI",
      "Fewer and shorter, in bounded memory, as ENVI"},
     {"gdal_hsi_eadp -no-pca -b 30,20,10 -times 10,100 -scheme exact scene.img smooth.tif",
      "Smooth three bands themselves, exactly"}},
    "",
    eadp_tool::declare};

} // namespace tools
} // namespace hsi
