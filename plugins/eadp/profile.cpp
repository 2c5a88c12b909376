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
    options.lanes = run.threads;
    return options;
}

DiffusionPlan plan_diffusion(const stream::CubeSource& source, const Options& options, Backend& backend,
                             const std::vector<Stage>& stages, bool with_component, const ProfileRun& run,
                             uint64_t memory) {
    const auto shape = source.shape();
    const std::vector<Contrast> contrasts(static_cast<size_t>(shape.bands));
    const auto pass = options_of(run, "diffusion", 0, memory);
    DiffusionPlan chosen;
    const int ranks = pass.ranks > 0 ? pass.ranks : parallel::group().size();
    if (pass.tile_samples <= 0 && ranks > 1) {
        const int64_t share = (shape.lines + ranks - 1) / ranks,
                      least = std::min(share, shape.lines - (ranks - 1) * share);
        const auto join = [&](const stream::Operation& operation, bool written) {
            TilePlan plan(shape.samples, shape.lines, shape.samples, share, operation.halo(), 1);
            plan.share_among(ranks);
            const uint64_t bytes = stream::plan_bytes(source, operation, plan);
            return DiffusionPlan{plan, false, written, true, run.threads, bytes};
        };
        if (with_component && run.sink_takes_bands && least > 0)
            if (const auto written =
                    backend.make_written_diffusion(options, stages, contrasts, run.threads, least))
                if (auto plan = join(*written, true); plan.bytes <= memory) return plan;
        if (const auto joined =
                backend.make_joined_diffusion(options, stages, contrasts, with_component, run.threads, least))
            if (auto plan = join(*joined, false); plan.bytes <= memory) return plan;
        const auto strips = backend.make_diffusion(options, stages, contrasts, with_component, run.threads);
        const int64_t lines = std::max((shape.lines + ranks - 1) / ranks, strips->halo());
        TilePlan plan(shape.samples, shape.lines, shape.samples, lines, strips->halo(), 1);
        plan.share_among(ranks);
        const uint64_t bytes = stream::plan_bytes(source, *strips, plan);
        if (strips->divides() && bytes <= memory) return {plan, false, false, false, run.threads, bytes};
    }
    if (pass.tile_samples <= 0 && ranks == 1 && with_component && run.sink_takes_bands && run.threads > 1) {
        if (const auto written = backend.make_written_diffusion(options, stages, contrasts, run.threads, 0)) {
            const TilePlan plan(shape.samples, shape.lines, shape.samples, shape.lines, written->halo(), 1);
            const uint64_t bytes = stream::plan_bytes(source, *written, plan);
            if (bytes <= memory) return {plan, true, true, false, run.threads, bytes};
        }
    }
    if (pass.tile_samples <= 0) {
        const auto whole = with_component
                               ? backend.make_whole_diffusion(options, stages, contrasts, run.threads)
                               : backend.make_diffusion(options, stages, contrasts, false, run.threads);
        const TilePlan plan(shape.samples, shape.lines, shape.samples, shape.lines, whole->halo(), 1);
        const uint64_t bytes = stream::plan_bytes(source, *whole, plan);
        const stream::TileLimits limits{shape.samples, shape.lines, shape.samples, shape.lines};
        if (bytes <= memory && (pass.device_memory == 0 || whole->device_bytes(limits) <= pass.device_memory))
            return {plan, true, false, false, run.threads, bytes};
    }
    const auto tiled = backend.make_diffusion(options, stages, contrasts, with_component, 1);
    chosen.plan = stream::plan_pass(source, *tiled, pass);
    chosen.bytes = stream::plan_bytes(source, *tiled, chosen.plan);
    return chosen;
}

/// The pass of a plan that is not for the whole scene.
stream::PassReport diffuse(const stream::CubeSource& source, const Options& options, Backend& backend,
                           const std::vector<Stage>& stages, const std::vector<Contrast>& contrasts,
                           bool with_component, const DiffusionPlan& plan, stream::CubeSink& sink,
                           stream::PassOptions pass) {
    const auto operation =
        plan.joined ? backend.make_joined_diffusion(options, stages, contrasts, with_component, plan.team,
                                                    source.shape().lines)
                    : backend.make_diffusion(options, stages, contrasts, with_component, plan.team);
    if (plan.joined) pass.owner = [](const Tile& tile) { return static_cast<int>(tile.index); };
    return stream::run_pass(source, *operation, {&sink}, plan.plan, pass);
}

/// The pass of a plan whose bands are written as they are made.
stream::PassReport diffuse_and_write(const stream::CubeSource& source, const Options& options,
                                     Backend& backend, const std::vector<Stage>& stages,
                                     const std::vector<Contrast>& contrasts, const DiffusionPlan& plan,
                                     stream::CubeSink& sink, stream::BandTaker& bands,
                                     stream::PassOptions pass) {
    parallel::Group& ranks = parallel::group();
    const auto operation = backend.make_written_diffusion(options, stages, contrasts, plan.team,
                                                          plan.joined ? plan.plan.tile(0).core.h : 0);
    // Of the one tile there is no other progress.
    stream::BandWriter writer(bands, plan.plan.tile(plan.joined ? ranks.rank() : 0).core, sink.shape().bands,
                              operation->planes(), plan.team > 1, pass.cancel,
                              std::exchange(pass.progress, {}));
    operation->write_to(writer);
    if (plan.joined) pass.owner = [](const Tile& tile) { return static_cast<int>(tile.index); };
    auto report = stream::run_pass(source, *operation, {}, plan.plan, pass);
    report.bytes_written = static_cast<uint64_t>(source.shape().pixels()) * sink.stored_bytes_per_pixel();
    std::vector<int64_t> nanoseconds{std::llround(1e9 * writer.write_seconds()),
                                     std::llround(1e9 * writer.held_seconds())};
    if (plan.joined) ranks.add_up("seconds of writing", nanoseconds);
    report.write_seconds = 1e-9 * static_cast<double>(nanoseconds[0]);
    report.compute_seconds -= 1e-9 * static_cast<double>(nanoseconds[1]);
    return report;
}

/// Ranges and contrasts of all planes of a source.
std::vector<Contrast> find_contrasts(const stream::CubeSource& source, const Options& options,
                                     Backend& backend, const ProfileRun& run, uint64_t memory,
                                     const DiffusionPlan& diffusion, double share, int copy,
                                     ProfileFacts& facts) {
    const auto shape = source.shape();
    const int components = shape.bands;
    // What the diffusion takes from where a scan has left it has all pixels.
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
    // All planes of the profile, since a sink takes all bands of a tile at once.
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
        const std::vector<Stage> stage{stages[static_cast<size_t>(c)]};
        const auto plan = plan_diffusion(*from, step, backend, stage, false, run, memory);
        const auto contrasts = find_contrasts(*from, step, backend, run, memory, plan, 0.3 * share, c, facts);
        const auto to = store->sink(planes(c + 1));
        run.finished(diffuse(*from, step, backend, stage, contrasts, false, plan, *to,
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
    if (cascade) // the longest
        stages = {*std::max_element(stages.begin(), stages.end(),
                                    [](const Stage& a, const Stage& b) { return a.degree < b.degree; })};
    return plan_diffusion(components, options, backend, stages, !cascade, run, run.memory);
}

ProfileFacts make_profile(const stream::CubeSource& components, const Options& options, Backend& backend,
                          const std::function<stream::CubeSink&(const ProfileFacts&)>& open_sink,
                          const ProfileRun& run) {
    check(options);
    if (options.evolution == Evolution::cascade)
        return make_cascade(components, options, backend, open_sink, run);
    ProfileFacts facts;
    const auto stages = make_stages(options);
    auto plan = plan_diffusion(components, options, backend, stages, true, run, run.memory);
    const auto contrasts = find_contrasts(components, options, backend, run, run.memory, plan, 0.3, 0, facts);
    stream::CubeSink* sink = nullptr;
    if (plan.written) {
        sink = &open_sink(facts);
        auto* const bands = dynamic_cast<stream::BandTaker*>(sink);
        if (bands != nullptr && bands->takes_bands()) {
            run.finished(diffuse_and_write(components, options, backend, stages, contrasts, plan, *sink,
                                           *bands, options_of(run, "diffusion", 0.7, run.memory)));
            return facts;
        }
        ProfileRun otherwise = run;
        otherwise.sink_takes_bands = false;
        plan = plan_diffusion(components, options, backend, stages, true, otherwise, run.memory);
    }
    if (!plan.whole) {
        if (sink == nullptr) sink = &open_sink(facts);
        run.finished(diffuse(components, options, backend, stages, contrasts, true, plan, *sink,
                             options_of(run, "diffusion", 0.7, run.memory)));
        return facts;
    }
    {
        const auto scan = backend.make_whole_diffusion(options, stages, contrasts, plan.team);
        run.finished(stream::run_pass(components, *scan, {}, plan.plan,
                                      options_of(run, "diffusion", 0.5, run.memory)));
    }
    // Out of the memory where the copies were made, by all lanes: one that held the profile would first have
    // to make room for all of it, and then write alone.
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

} // namespace

DiffusionPlan plan_profile(const stream::CubeShape& components, const Options& options, Backend& backend,
                           const ProfileRun& run) {
    return plan_profile(PlannedSource(components), options, backend, run);
}

} // namespace hsi::eadp
