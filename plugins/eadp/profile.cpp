// SPDX-License-Identifier: MIT
#include "eadp/profile.h"

#include "eadp/gradient.h"
#include "parallel/group.h"
#include "stream/band_writer.h"
#include "stream/copy_operation.h"
#include "stream/plane_store.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace hsi::eadp {
namespace {

stream::PassOptions options_of(const ProfileRun& run, const std::string& name, double share,
                               uint64_t memory) {
    auto options = run.pass(name, share);
    options.memory = memory;
    return options;
}

bool is_joined(Way way) { return way == Way::written_strips || way == Way::joined_strips; }

/// Returns the ways that a run may take, best first. `writes` states whether a sink that accepts bands gets
/// all bands. `strip_lines` is the number of lines of the shortest strip of the ranks.
std::vector<Way> ways_of(const stream::PassOptions& pass, bool writes, bool with_component, int ranks,
                         int64_t strip_lines) {
    if (pass.tile_samples > 0) return {Way::tiles};
    std::vector<Way> ways;
    if (ranks > 1 && writes && strip_lines > 0) ways.push_back(Way::written_strips);
    if (ranks > 1) ways.push_back(Way::joined_strips);
    if (ranks > 1) ways.push_back(Way::strips);
    if (ranks == 1 && writes && pass.lanes > 1) ways.push_back(Way::written);
    ways.push_back(with_component ? Way::kept : Way::one_tile);
    ways.push_back(Way::tiles);
    return ways;
}

/// Plans the first way that the backend supports and that fits in memory. The contrasts of `diffusion` have
/// no effect; the function sets team and strip_lines.
DiffusionPlan plan_diffusion(const stream::CubeSource& source, Diffusion diffusion, Backend& backend,
                             const ProfileRun& run, uint64_t memory) {
    const auto shape = source.shape();
    diffusion.contrasts.assign(static_cast<size_t>(shape.bands), {});
    const auto pass = options_of(run, "diffusion", 0, memory);
    const int ranks = pass.ranks > 0 ? pass.ranks : parallel::group().size();
    const int64_t share = (shape.lines + ranks - 1) / ranks;
    diffusion.strip_lines = std::min(share, shape.lines - (ranks - 1) * share);
    const bool writes = diffusion.with_component && run.sink_takes_bands;
    for (const Way way : ways_of(pass, writes, diffusion.with_component, ranks, diffusion.strip_lines)) {
        diffusion.team = way == Way::tiles ? 1 : pass.lanes;
        const auto operation = backend.make_diffusion(diffusion, way);
        if (!operation) continue;
        DiffusionPlan chosen{{}, way, diffusion.team, 0};
        if (way == Way::tiles) {
            chosen.plan = stream::plan_pass(source, *operation, pass);
            chosen.bytes = stream::plan_bytes(source, *operation, chosen.plan);
            return chosen;
        }
        const int64_t halo = operation->halo(), lines = is_joined(way)       ? share
                                                        : way == Way::strips ? std::max(share, halo)
                                                                             : shape.lines;
        chosen.plan = TilePlan(shape.samples, shape.lines, shape.samples, lines, halo, 1);
        if (is_joined(way) || way == Way::strips) chosen.plan.share_among(ranks);
        chosen.bytes = stream::plan_bytes(source, *operation, chosen.plan);
        const stream::TileLimits limits{shape.samples, lines, shape.samples, lines};
        if (chosen.bytes <= memory &&
            (pass.device_memory == 0 || operation->device_bytes(limits) <= pass.device_memory))
            return chosen;
    }
    throw Error("internal: a backend without a diffusion by tiles");
}

/// Runs the planned pass with an output.
stream::PassReport diffuse(const stream::CubeSource& source, Diffusion diffusion, Backend& backend,
                           const DiffusionPlan& plan, stream::CubeSink& sink, stream::PassOptions pass) {
    diffusion.team = plan.team;
    diffusion.strip_lines = source.shape().lines; // plan_diffusion() has checked the strip lines.
    const auto operation = backend.make_diffusion(diffusion, plan.way);
    if (is_joined(plan.way)) pass.owner = [](const Tile& tile) { return static_cast<int>(tile.index); };
    return stream::run_pass(source, *operation, {&sink}, plan.plan, pass);
}

/// Runs the planned pass and writes the bands as they are finished.
stream::PassReport diffuse_and_write(const stream::CubeSource& source, Diffusion diffusion, Backend& backend,
                                     const DiffusionPlan& plan, stream::CubeSink& sink,
                                     stream::BandTaker& bands, stream::PassOptions pass) {
    parallel::Group& ranks = parallel::group();
    const bool joined = is_joined(plan.way);
    diffusion.team = plan.team;
    diffusion.strip_lines = plan.plan.tile(0).core.h;
    const auto made = backend.make_diffusion(diffusion, plan.way);
    auto& operation = dynamic_cast<WrittenDiffusion&>(*made);
    // With a single tile, the band writer is the only source of progress.
    stream::BandWriter writer(bands, plan.plan.tile(joined ? ranks.rank() : 0).core, sink.shape().bands,
                              operation.planes(), plan.team > 1, pass.cancel,
                              std::exchange(pass.progress, {}));
    operation.write_to(writer);
    if (joined) pass.owner = [](const Tile& tile) { return static_cast<int>(tile.index); };
    auto report = stream::run_pass(source, operation, {}, plan.plan, pass);
    report.bytes_written = static_cast<uint64_t>(source.shape().pixels()) * sink.stored_bytes_per_pixel();
    std::vector<int64_t> nanoseconds{std::llround(1e9 * writer.write_seconds()),
                                     std::llround(1e9 * writer.held_seconds())};
    if (joined) ranks.add_up("seconds of writing", nanoseconds);
    report.write_seconds = 1e-9 * static_cast<double>(nanoseconds[0]);
    report.compute_seconds -= 1e-9 * static_cast<double>(nanoseconds[1]);
    return report;
}

/// Computes the ranges and contrasts of all planes of a source.
std::vector<Contrast> find_contrasts(const stream::CubeSource& source, const Options& options,
                                     Backend& backend, const ProfileRun& run, uint64_t memory,
                                     const DiffusionPlan& diffusion, double share, int copy,
                                     ProfileFacts& facts) {
    const auto shape = source.shape();
    const int components = shape.bands;
    // With a mask, the diffusion processes more pixels than the scan, so it cannot continue from the scan's
    // state.
    const bool whole = diffusion.plan.size() == 1 && backend.wants_whole_scene() && !run.mask;
    backend.keep_planes(whole);
    const std::optional<stream::MaskedSource> masked =
        run.mask ? std::optional<stream::MaskedSource>(std::in_place, source, run.mask) : std::nullopt;
    const stream::CubeSource& counted = masked ? *masked : source;
    const auto scan = [&](stream::Operation& operation, const char* name) {
        const auto pass = options_of(run, name, 0.5 * share, memory);
        const TilePlan plan =
            whole ? TilePlan(shape.samples, shape.lines, shape.samples, shape.lines, operation.halo(), 1)
                  : stream::plan_pass(counted, operation, pass);
        run.finished(stream::run_pass(counted, operation, {}, plan, pass));
    };
    const auto ranges = backend.make_range_scan(options, components);
    scan(*ranges, "gradient range");
    std::vector<Histogram> histograms;
    if (!options.contrast) {
        const auto counts = backend.make_histogram_scan(options, ranges->result());
        scan(*counts, "gradient histogram");
        histograms = counts->result();
    }
    std::vector<Contrast> contrasts;
    for (int i = 0; i < components; ++i) {
        const Range& range = ranges->result()[static_cast<size_t>(i)];
        const double k = options.contrast
                             ? *options.contrast
                             : contrast_of(range, histograms[static_cast<size_t>(i)], options.percentile);
        contrasts.push_back({k, range.level()});
        facts.components.push_back({i, copy, range, k});
        if (range.valid > 0 && !(range.steepest > 0))
            run.warn("component " + std::to_string(i + 1) +
                     (copy ? ", copy " + std::to_string(copy) + "," : "") +
                     " is constant: its profile is the component itself");
    }
    return contrasts;
}

ProfileFacts make_cascade(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run) {
    const auto shape = components.shape();
    const int n = shape.bands, copies = options.copies();
    const auto stages = make_stages(options);
    ProfileFacts facts;
    // The planes of the whole profile, since a sink takes all bands of a tile at once.
    const stream::CubeShape all{shape.samples, shape.lines, profile_bands(options, n)};
    std::unique_ptr<stream::PlaneStore> store;
    uint64_t memory = run.memory;
    if (all.float_bytes() <= memory / 2) {
        store = std::make_unique<stream::PlaneStore>(all);
        memory -= all.float_bytes();
    } else {
        store = std::make_unique<stream::PlaneStore>(all, run.folder);
    }
    const auto planes = [&](int copy) {
        std::vector<int> list;
        for (int i = 0; i < n; ++i)
            list.push_back(i * (copies + 1) + copy);
        return list;
    };
    {
        stream::CopyOperation copy(n, options.zero_is_invalid);
        const auto to = store->sink(planes(0));
        run.finished(
            stream::run_pass(components, copy, {to.get()}, options_of(run, "components", 0.02, memory)));
    }
    const double share = 0.93 / copies;
    for (int c = 0; c < copies; ++c) {
        const auto from = store->source(planes(c));
        Options step = options;
        step.zero_is_invalid = options.zero_is_invalid && c == 0;
        Diffusion diffusion{step, {stages[static_cast<size_t>(c)]}, {}, false};
        const auto plan = plan_diffusion(*from, diffusion, backend, run, memory);
        diffusion.contrasts = find_contrasts(*from, step, backend, run, memory, plan, 0.3 * share, c, facts);
        const auto to = store->sink(planes(c + 1));
        run.finished(diffuse(*from, diffusion, backend, plan, *to,
                             options_of(run, "diffusion " + std::to_string(c + 1), 0.7 * share, memory)));
    }
    std::vector<int> every(static_cast<size_t>(all.bands));
    std::iota(every.begin(), every.end(), 0);
    const auto from = store->source(every);
    stream::CopyOperation copy(all.bands, false);
    run.finished(
        stream::run_pass(*from, copy, {&open_sink(facts)}, options_of(run, "profile", 0.05, memory)));
    return facts;
}

} // namespace

DiffusionPlan plan_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                           const ProfileRun& run) {
    auto stages = make_stages(options);
    const bool cascade = options.evolution == Evolution::cascade;
    if (cascade) // The plan is for the longest stage of the cascade.
        stages = {*std::max_element(stages.begin(), stages.end(),
                                    [](const Stage& a, const Stage& b) { return a.degree < b.degree; })};
    return plan_diffusion(components, {options, stages, {}, !cascade}, backend, run, run.memory);
}

ProfileFacts make_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run) {
    check(options);
    if (options.evolution == Evolution::cascade)
        return make_cascade(components, options, backend, open_sink, run);
    ProfileFacts facts;
    Diffusion diffusion{options, make_stages(options), {}};
    auto plan = plan_diffusion(components, diffusion, backend, run, run.memory);
    diffusion.contrasts = find_contrasts(components, options, backend, run, run.memory, plan, 0.3, 0, facts);
    stream::CubeSink* sink = nullptr;
    if (is_written(plan.way)) {
        sink = &open_sink(facts);
        auto* const bands = dynamic_cast<stream::BandTaker*>(sink);
        if (bands != nullptr && bands->takes_bands()) {
            run.finished(diffuse_and_write(components, diffusion, backend, plan, *sink, *bands,
                                           options_of(run, "diffusion", 0.7, run.memory)));
            return facts;
        }
        ProfileRun otherwise = run;
        otherwise.sink_takes_bands = false;
        plan = plan_diffusion(components, diffusion, backend, otherwise, run.memory);
    }
    if (plan.way != Way::kept) {
        if (sink == nullptr) sink = &open_sink(facts);
        run.finished(diffuse(components, diffusion, backend, plan, *sink,
                             options_of(run, "diffusion", 0.7, run.memory)));
        return facts;
    }
    diffusion.team = plan.team;
    {
        const auto scan = backend.make_diffusion(diffusion, Way::kept);
        run.finished(stream::run_pass(components, *scan, {}, plan.plan,
                                      options_of(run, "diffusion", 0.5, run.memory)));
    }
    // All workers write from the memory where the copies were computed. If one worker held the whole profile,
    // it would have to allocate all of it first, and then write alone.
    const auto shape = components.shape();
    const stream::CubeShape copies{shape.samples, shape.lines, options.copies() * shape.bands};
    const auto profile = backend.make_kept_output(options);
    if (sink == nullptr) sink = &open_sink(facts);
    auto pass = options_of(run, "profile", 0.2, run.memory - backend.kept_bytes(copies));
    pass.output_layout = sink->layout();
    run.finished(stream::run_pass(components, *profile, {sink}, pass));
    return facts;
}

namespace {

/// A source with only a shape, for planning passes over planes that do not exist yet.
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

} // namespace

DiffusionPlan plan_profile(const stream::CubeShape& components, const Options& options, Backend& backend,
                           const ProfileRun& run) {
    return plan_profile(PlannedSource(components), options, backend, run);
}

} // namespace hsi::eadp
