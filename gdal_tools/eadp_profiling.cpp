// SPDX-License-Identifier: MIT
#include "component_planes.h"
#include "core/byte_size.h"
#include "core/counted.h"
#include "core/error.h"
#include "eadp_profile.h"
#include "parallel/ranks.h"
#include "raster/sink/raster_sink.h"
#include "stream/plane_store.h"
#include "tool/devices.h"
#include "tool/scene.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi::tools {
namespace {

/// One run: the scene, where it is computed, and what becomes of it.
class Profiling {
  public:
    Profiling(tool::Run& run, EadpSettings settings)
        : m_run(run), m_settings(std::move(settings)), m_scene(run, m_settings.no_pca ? "" : "PCA"),
          m_components(count_components()), m_devices(choose_devices()),
          m_computing(run, "eadp", m_devices, eadp::simd_target(), eadp::make_cpu_backend),
          // PCA runs where the diffusion does.
          m_pca_computing(run, "pca", m_settings.no_pca ? std::vector<CudaDevice>() : m_devices,
                          pca::simd_target(), pca::make_cpu_backend, false),
          m_memory(run.buffer_memory()) {
        print_schedule(run, m_settings, m_components);
        const double share = 1 - pca_share();
        m_profile.threads = run.options().threads;
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
            tool::print_plan(
                m_run, source,
                *m_pca_computing->make_covariance(source.shape(), memory_to_keep(m_run, m_pca_computing)),
                held_apart(m_pca_computing, m_pca_computing.pass("covariance", 0.2)));
            m_run.print("Component planes: " + format_byte_size(planes.float_bytes()) +
                        (in_memory(planes) ? " in memory" : " in a temporary file in " + m_profile.folder));
            if (in_memory(planes)) m_profile.memory -= planes.float_bytes();
        }
        const auto plan = eadp::plan_profile(planes, m_settings.eadp, m_computing.backend(), m_profile);
        m_run.print("Pass diffusion: " + plan.plan.describe() + ", " + counted(plan.team, "thread") +
                    " a tile, " + format_byte_size(plan.bytes) + " of buffers" +
                    (plan.written ? "; bands are written while others are made" : ""));
        m_run.report()["plan"]["diffusion"] = {{"tiles", plan.plan.size()},
                                               {"tile_samples", plan.plan.max_core_samples()},
                                               {"tile_lines", plan.plan.max_core_lines()},
                                               {"halo", plan.plan.halo()},
                                               {"lanes", plan.plan.lanes()},
                                               {"threads_per_tile", plan.team},
                                               {"writes_beside", plan.written},
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
        if (model) print_components(m_run, *model);
    }

  private:
    tool::Run& m_run;
    EadpSettings m_settings;
    tool::Scene m_scene;
    int m_components;
    bool m_takes_bands = false; ///< the output; set with m_devices
    std::vector<CudaDevice> m_devices;
    tool::Computing<eadp::Backend> m_computing;
    PcaComputing m_pca_computing;
    uint64_t m_memory; ///< for buffers and component planes
    eadp::ProfileRun m_profile;
    std::unique_ptr<raster::RasterSink> m_sink;

    double pca_share() const { return m_settings.no_pca ? 0.0 : 0.3; }

    int count_components() const {
        const int bands = m_scene.raster()->shape().bands;
        return m_settings.no_pca ? bands
                                 : component_count(m_settings.components, m_settings.components_given, bands);
    }

    /// Refuses what cannot be written, before a device is looked for.
    std::vector<CudaDevice> choose_devices() {
        const auto& source = *m_scene.raster();
        const auto& destination = m_run.options().destination;
        const auto spec =
            profile_spec(source.shape(), m_settings,
                         m_settings.no_pca ? source.band_names() : component_names(m_components), nullptr);
        raster::RasterSink::check(destination, spec);
        m_takes_bands = raster::RasterSink::will_take_bands(destination, spec);
        auto work = m_settings.no_pca ? tool::Work() : pca_work(source.shape(), m_components, true);
        const double values = static_cast<double>(source.shape().pixels()) * m_components;
        double sweeps = 0;
        for (const auto& stage : eadp::make_stages(m_settings.eadp))
            sweeps += stage.degree;
        work.writes_after = values * (1 + m_settings.eadp.copies()) * 4;
        const double diffusion = values * (5e-8 + 4e-10 * sweeps * (1 + m_settings.eadp.copies()));
        work.core_seconds += diffusion;
        if (writes_beside()) work.seconds_beside = diffusion;
        work.device_seconds += values * (3e-10 + 2e-12 * sweeps);
        return tool::choose_devices(m_run, "eadp", work, 1);
    }

    /// On a CPU with enough memory: see eadp::DiffusionPlan::written.
    bool writes_beside() const {
        const auto& o = m_run.options();
        return m_takes_bands && o.threads > 1 && o.ranks <= 1 && !parallel::ranks().several() &&
               o.tile_samples <= 0 && m_settings.eadp.evolution != eadp::Evolution::cascade;
    }

    stream::CubeShape planes_of(const stream::CubeSource& cube) const {
        return {cube.shape().samples, cube.shape().lines, m_components};
    }
    /// Component planes stay in memory when they take no more than half of it.
    bool in_memory(const stream::CubeShape& planes) const { return planes.float_bytes() <= m_memory / 2; }

    eadp::ProfileFacts profile_of(const stream::CubeSource& planes, const raster::RasterSource& like,
                                  const std::vector<std::string>& names, uint64_t memory) {
        m_profile.memory = memory;
        const auto open_sink = [&](const eadp::ProfileFacts& facts) -> stream::CubeSink& {
            m_sink = raster::RasterSink::create(m_run.options().destination,
                                                profile_spec(like.shape(), m_settings, names, &facts), &like);
            return *m_sink;
        };
        return eadp::make_profile(planes, m_settings.eadp, m_computing.backend(), open_sink, m_profile);
    }

    /// -no-pca: the bands themselves.
    eadp::ProfileFacts profile_bands() {
        const auto source = m_scene.raster();
        const auto facts = profile_of(*source, *source, source->band_names(), m_memory);
        if (std::none_of(facts.components.begin(), facts.components.end(),
                         [](const auto& f) { return f.range.valid > 0; }))
            throw tool::no_valid_pixel(*source, m_run.mask() != nullptr);
        if (m_run.mask())
            for (const auto& f : facts.components)
                if (f.copy == 0) m_run.report()["mask"]["valid_pixels"] = f.range.valid;
        return facts;
    }

    eadp::ProfileFacts profile_components(std::optional<pca::Model>& model) {
        const auto made = project_scene(m_scene, m_pca_computing,
                                        {m_settings.components, m_settings.components_given, m_memory / 2,
                                         m_profile.folder, pca_share()});
        m_components = made.components(); // bands without values are out
        model = made.model;
        std::vector<int> every(static_cast<size_t>(m_components));
        std::iota(every.begin(), every.end(), 0);
        return profile_of(*made.planes->source(every), *m_scene.raster(), component_names(m_components),
                          m_memory - made.held_bytes());
    }
};

} // namespace

void run_profile(tool::Run& run, const EadpSettings& settings) {
    Profiling profiling(run, settings);
    if (run.options().dry_run)
        profiling.show_plan();
    else
        profiling.write();
}

} // namespace hsi::tools
