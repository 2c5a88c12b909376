// SPDX-License-Identifier: MIT
#include "profile_bands.h"

#include "parallel/ranks.h"
#include "stream/band_writer.h"
#include "stream/copy_operation.h"
#include "stream/rank_report.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <vector>

namespace hsi::tools {
namespace {

class ProfileBands {
  public:
    ProfileBands(tool::Run& run, bool whole, const profile::Options& options, const ProfilePlan& plan,
                 raster::RasterSink& sink)
        : m_run(run), m_whole(whole), m_options(options), m_plan(plan), m_sink(sink), m_shape(sink.shape()) {}

    void write_bands(stream::PlaneStore& components) {
        make(components, 0.7, [&](int band, std::vector<float>& values) {
            stream::write_plane(m_sink, band, {0, 0, m_shape.samples, m_shape.lines}, plane_of(values),
                                &m_run.cancel());
        });
    }

    /// Where dst wants all bands of a tile at once.
    void write_tiles(std::unique_ptr<stream::PlaneStore> components) {
        auto& ranks = parallel::ranks();
        const auto profile = m_plan.profile_held
                                 ? stream::PlaneStore::in_memory_of(ranks, m_shape)
                                 : std::make_unique<stream::PlaneStore>(
                                       m_shape, stream::folder_beside(m_run.options().destination.path));
        const Rect all{0, 0, m_shape.samples, m_shape.lines};
        std::mutex mutex;
        std::vector<stream::PlaneStore::Part> made;
        make(*components, 0.6, [&](int band, std::vector<float>& values) {
            profile->sink({band})->write(all, plane_of(values));
            const std::lock_guard lock(mutex);
            made.push_back({{band}, all});
        });
        components.reset();
        m_run.reserve_cache(m_sink.cache_bytes());
        std::vector<int> every(static_cast<size_t>(m_shape.bands));
        std::iota(every.begin(), every.end(), 0);
        stream::CopyOperation copy(m_shape.bands, false);
        auto pass = m_run.pass("writing", 0.1);
        pass.memory = std::min(pass.memory, m_plan.pass_bytes);
        pass.output_layout = m_sink.layout();
        // What has been made plane by plane is written tile by tile: each rank gets the lines that it writes.
        const auto source = profile->source(every);
        const auto tiles = stream::plan_pass(*source, copy, pass);
        const int64_t rows = tiles.tile_lines();
        profile->share(ranks, made, rows);
        pass.owner = [&](const Tile& tile) {
            return stream::PlaneStore::owner(tile.core.y, rows, ranks.size());
        };
        m_run.add_pass(stream::run_pass(*source, copy, {&m_sink}, tiles, pass));
    }

  private:
    CubeView<float> plane_of(std::vector<float>& values) const {
        return CubeView<float>::packed(values.data(), 1, m_shape.lines, m_shape.samples);
    }

    void make(stream::PlaneStore& components, double share, const profile::TakeBand& take) {
        const auto begin = std::chrono::steady_clock::now();
        const auto pass = m_run.pass("profile", share);
        profile::make_profile(components, m_whole, m_options, take,
                              {m_plan.workers, pass.cancel, pass.progress});
        stream::PassReport report;
        report.name = pass.name;
        report.lanes = m_plan.workers;
        report.buffer_bytes = m_plan.side_bytes * static_cast<uint64_t>(m_plan.workers);
        report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        stream::add_up(parallel::ranks(), report, 0);
        m_run.add_pass(report);
    }

    tool::Run& m_run;
    const bool m_whole;
    const profile::Options& m_options;
    const ProfilePlan& m_plan;
    raster::RasterSink& m_sink;
    const stream::CubeShape m_shape;
};

} // namespace

void write_profile(tool::Run& run, std::unique_ptr<stream::PlaneStore> components, bool whole,
                   const profile::Options& options, const ProfilePlan& plan, raster::RasterSink& sink) {
    ProfileBands bands(run, whole, options, plan, sink);
    if (plan.written && sink.takes_bands())
        bands.write_bands(*components);
    else
        bands.write_tiles(std::move(components));
}

} // namespace hsi::tools
