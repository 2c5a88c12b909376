// SPDX-License-Identifier: MIT
#include "stream/pipeline.h"

#include "core/byte_pack.h"
#include "core/cancel_scope.h"
#include "core/codec_time.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "parallel/ranks.h"
#include "parallel/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

namespace hsi::stream {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

std::string where(const Rect& r) {
    return "tile at sample " + std::to_string(r.x) + ", line " + std::to_string(r.y) + " (" +
           std::to_string(r.w) + "x" + std::to_string(r.h) + ")";
}

TileLimits limits_of(const TilePlan& plan) {
    return TileLimits{plan.max_window_samples(), plan.max_window_lines(), plan.max_core_samples(),
                      plan.max_core_lines(), plan.ranks()};
}

uint64_t buffer_bytes(const CubeShape& shape, const std::vector<int>& outputs, const TileLimits& t) {
    uint64_t bytes =
        static_cast<uint64_t>(t.window_samples * t.window_lines) * static_cast<uint64_t>(shape.bands) * 4;
    // With several ranks, the root holds one tile of another rank in addition to its own tiles
    // (PassRun::take_in()). This tile is counted once per lane and on every rank, because the root has at
    // least one lane and all ranks make the same plan.
    const uint64_t held = t.ranks > 1 || parallel::ranks().job_size() > 1 ? 2 : 1;
    for (int bands : outputs)
        bytes +=
            held * static_cast<uint64_t>(t.core_samples * t.core_lines) * static_cast<uint64_t>(bands) * 4;
    return bytes;
}

/// Returns whether the tiles are in a device's memory, where the operation uses them in place, or are
/// computed there.
bool lies_on_device(const CubeSource& source, const Operation& operation) {
    const int device = operation.takes_from();
    return device >= 0 && (source.device() == device || source.computes_on() == device);
}

/// Lets tiles pass in order, one at a time.
class Turnstile {
  public:
    /// Waits until every earlier tile has left. Returns false if the run was aborted during the wait.
    bool enter(int64_t position) {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return m_next == position || m_aborted; });
        return !m_aborted;
    }
    void leave() {
        const std::lock_guard lock(m_mutex);
        ++m_next;
        m_changed.notify_all();
    }
    void abort() {
        const std::lock_guard lock(m_mutex);
        m_aborted = true;
        m_changed.notify_all();
    }

  private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    int64_t m_next = 0;
    bool m_aborted = false;
};

bool is_shared(const CubeSink* sink) { return dynamic_cast<const SharedSink*>(sink) != nullptr; }

/// Returns whether the ranks together write a complete output: into one file or, if no order is needed, into
/// each rank's file.
bool can_share(const std::vector<CubeSink*>& sinks, bool ordered) {
    return std::all_of(sinks.begin(), sinks.end(), [&](const CubeSink* sink) {
        return is_shared(sink) || (!ordered && dynamic_cast<const GatheringSink*>(sink) != nullptr);
    });
}

/// The arguments of run_pass(), with the state of the pass that its workers share.
class PassRun {
  public:
    PassRun(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
            const TilePlan& plan, const PassOptions& options)
        : m_source(source), m_operation(operation), m_sinks(sinks), m_plan(plan), m_options(options),
          m_outputs(operation.output_bands()), m_limits(limits_of(plan)),
          m_count(options.only ? static_cast<int64_t>(options.only->size()) : plan.size()),
          m_ordered(std::any_of(sinks.begin(), sinks.end(), [](CubeSink* s) { return !s->concurrent(); })),
          m_divided(m_ranks.several() && operation.divides() && can_share(sinks, m_ordered)) {
        if (m_outputs.size() != sinks.size())
            throw Error("internal: an operation's outputs and sinks differ in number");
    }

    PassReport execute() {
        const auto begin = Clock::now();
        const CodecTime coding = codec_time();
        const int lanes = static_cast<int>(std::clamp<int64_t>(m_count, 1, m_plan.lanes()));
        m_workers.resize(static_cast<size_t>(lanes));
        // This is computed before the pass, because a source that keeps its results needs less memory at the
        // end.
        const uint64_t planned = plan_bytes(m_source, m_operation, m_plan);
        if (m_options.progress) m_options.progress(0.0);
        std::optional<parallel::SharedTiles> shared;
        if (m_divided) {
            agree_on_plan();
            if (m_options.owner) {
                std::vector<int> settled(static_cast<size_t>(m_count));
                for (int64_t position = 0; position < m_count; ++position)
                    settled[static_cast<size_t>(position)] = m_options.owner(tile_at(position));
                m_shared = &shared.emplace(m_ranks, std::move(settled));
            } else {
                m_shared = &shared.emplace(m_ranks, m_count, true);
            }
        }
        // The root of several ranks has one more thread, which writes the tiles of other ranks.
        const bool takes_in = m_divided && m_ordered && m_ranks.root();
        parallel::on_threads(
            lanes + (takes_in ? 1 : 0), [&](int lane) { lane < lanes ? run_lane(lane) : take_in(); },
            [this] {
                m_stop.store(true);
                m_turnstile.abort();
            },
            takes_in ? parallel::Members::all : parallel::Members::who_are_free);
        for (auto& worker : m_workers)
            if (worker) m_operation.stop(*worker);
        m_report.name = m_options.name;
        m_report.tiles = m_count;
        m_report.tile_samples = m_plan.max_core_samples();
        m_report.tile_lines = m_plan.max_core_lines();
        m_report.halo = m_plan.halo();
        m_report.lanes = lanes;
        m_report.buffer_bytes = planned + m_report.ahead_bytes;
        m_report.seconds = seconds_since(begin);
        const CodecTime coded = codec_time();
        m_report.decode_seconds = coded.decoding - coding.decoding;
        m_report.encode_seconds = coded.encoding - coding.encoding;
        if (m_divided) {
            m_report.tiles = m_done;
            add_up(m_ranks, m_report, m_shared->waited());
            m_operation.exchange(m_ranks);
            for (CubeSink* sink : m_sinks)
                if (auto* const gathering = dynamic_cast<GatheringSink*>(sink)) gathering->gather(m_ranks);
            m_report.seconds = seconds_since(begin);
        }
        if (m_options.progress) m_options.progress(1.0);
        return m_report;
    }

  private:
    /// Checks that all ranks have the same plan, since different plans would leave gaps in the output.
    void agree_on_plan() {
        m_ranks.agree("plan of " + m_options.name,
                      counted(m_count, "tile") + " of " + std::to_string(m_plan.tile_samples()) + "x" +
                          std::to_string(m_plan.tile_lines()),
                      "cuts the scene into other tiles",
                      "Give all ranks the same -memory, -threads and -tile.");
    }

    bool given_up() const {
        return m_stop.load() || (m_options.cancel != nullptr && m_options.cancel->requested());
    }

    /// Returns the position of the next tile; -1 at the end.
    int64_t next_position(int lane) {
        if (m_options.cancel && m_options.cancel->requested()) throw Cancelled();
        if (m_stop.load()) return -1;
        if (m_shared != nullptr) return m_shared->next(lane, [this] { return given_up(); }).value_or(-1);
        const int64_t position = m_next.fetch_add(1);
        return position < m_count ? position : -1;
    }

    /// On the root: writes the tiles of the other ranks, each at its position in the order.
    void take_in() {
        const auto give_up = [this] { return given_up(); };
        std::vector<HostBuffer<float>> parts;
        for (const int bands : m_outputs)
            parts.emplace_back(paged_allocator(),
                               static_cast<size_t>(bands * m_limits.core_samples * m_limits.core_lines));
        PassCosts mine; // not reported here: the ranks that computed the tiles count these costs
        for (int64_t position = 0; position < m_count; ++position) {
            const auto owner = m_shared->owner(position, give_up);
            if (!owner) return;
            if (*owner == 0) continue;
            const Tile tile = tile_at(position);
            std::vector<CubeView<float>> views;
            if (!m_turnstile.enter(position)) return;
            for (size_t k = 0; k < parts.size(); ++k) {
                views.push_back(
                    CubeView<float>::packed(parts[k].data(), m_outputs[k], tile.core.h, tile.core.w));
                m_shared->receive(position, *owner, parts[k].data(), part_bytes(k, tile), give_up);
            }
            write(tile, views, mine);
            m_turnstile.leave();
            tick();
        }
    }

    size_t part_bytes(size_t output, const Tile& tile) const {
        return static_cast<size_t>(m_outputs[output] * tile.core.area()) * sizeof(float);
    }

    void write(const Tile& tile, const std::vector<CubeView<float>>& views, PassCosts& mine) {
        const auto t0 = Clock::now();
        for (size_t k = 0; k < m_sinks.size(); ++k) {
            // If the tiles are not divided, all ranks have processed all tiles, and only the root writes to a
            // shared sink.
            if (!m_divided && !m_ranks.root() && is_shared(m_sinks[k])) continue;
            const int device = m_operation.puts_on();
            try {
                if (device < 0 || !m_sinks[k]->place_on(device, tile.core))
                    m_sinks[k]->write(tile.core, views[k]);
            } catch (const Error& e) {
                throw Error(std::string(e.what()) + ", " + where(tile.core), e.advice());
            }
            mine.bytes_written +=
                static_cast<uint64_t>(tile.core.area()) * m_sinks[k]->stored_bytes_per_pixel();
        }
        mine.write_seconds += seconds_since(t0);
    }

    /// Writes to the sinks, or sends to the root, which has the sinks.
    void write_or_send(int64_t position, const Tile& tile, const std::vector<CubeView<float>>& views,
                       PassCosts& mine) {
        if (m_divided && m_ordered && !m_ranks.root()) {
            const auto t0 = Clock::now();
            for (size_t k = 0; k < m_sinks.size(); ++k) {
                m_shared->send(position, views[k].data, part_bytes(k, tile), [this] { return given_up(); });
                mine.bytes_written +=
                    static_cast<uint64_t>(tile.core.area()) * m_sinks[k]->stored_bytes_per_pixel();
            }
            mine.write_seconds += seconds_since(t0);
            return;
        }
        if (m_ordered && !m_turnstile.enter(position)) return;
        write(tile, views, mine);
        if (m_ordered) m_turnstile.leave();
    }

    /// Several workers read while others compute. If the memory suffices for only one worker, its reader
    /// decodes ahead, at most the next tile, in the memory that the plan leaves.
    void let_look_ahead(CubeReader& reader) {
        if (m_plan.lanes() > 1 || m_options.lanes < 2 || m_shared != nullptr || m_count < 2) return;
        const uint64_t planned = plan_bytes(m_source, m_operation, m_plan);
        const uint64_t left = m_options.memory - std::min(planned, m_options.memory);
        const auto tile = static_cast<uint64_t>(m_limits.window_samples * m_limits.window_lines) *
                          m_source.stored_bytes_per_pixel();
        const uint64_t ahead = reader.look_ahead(std::min(tile, left), m_options.lanes - 1);
        const std::lock_guard lock(m_mutex);
        m_report.ahead_bytes = ahead;
    }

    /// Announces tiles that were not announced before, as many as the reader accepts. The worker will read
    /// `position` next.
    void name_what_comes(CubeReader& reader, int64_t position) {
        const std::lock_guard lock(m_named_mutex);
        while (m_named < m_count && reader.expect(tile_at(m_named).window))
            ++m_named;
        m_named = std::max(m_named, position + 1);
    }

    void run_lane(int lane) {
        const CancelScope scope(m_options.cancel); // workers check the flag within a tile
        const size_t bands = static_cast<size_t>(m_source.shape().bands);
        const auto reader = m_source.open_reader();
        let_look_ahead(*reader);
        const auto allocator = m_operation.allocator();
        const bool in_place = m_operation.reads_in_place();
        const size_t in_size = bands * static_cast<size_t>(m_limits.window_samples * m_limits.window_lines);
        const bool there_already = in_place || lies_on_device(m_source, m_operation);
        HostBuffer<float> in(allocator, there_already ? 0 : in_size);
        std::vector<HostBuffer<float>> out(m_outputs.size());
        auto& worker = m_workers[static_cast<size_t>(lane)];
        worker = m_operation.start(lane, m_limits);

        PassCosts mine;
        std::vector<CubeView<float>> out_views(m_outputs.size());
        for (int64_t position = next_position(lane); position >= 0; position = next_position(lane)) {
            const Tile tile = tile_at(position);
            if (m_shared == nullptr) {
                if (position + m_plan.lanes() < m_count)
                    reader->prefetch(tile_at(position + m_plan.lanes()).window);
                name_what_comes(*reader, position);
            }

            auto t0 = Clock::now();
            CubeView<float> in_view;
            try {
                const int device = m_operation.takes_from();
                auto there = device >= 0 ? reader->view_on(device, tile.window) : std::nullopt;
                if (!there && in_place) there = reader->view(tile.window);
                if (!there && in.size() < in_size) in = HostBuffer<float>(allocator, in_size);
                in_view = there ? *there
                                : CubeView<float>::packed(in.data(), static_cast<int>(bands), tile.window.h,
                                                          tile.window.w);
                if (!there) reader->read(tile.window, in_view);
            } catch (const Cancelled&) {
                throw;
            } catch (const Error& e) {
                throw Error(std::string(e.what()) + ", " + where(tile.window), e.advice());
            }
            mine.read_seconds += seconds_since(t0);
            mine.bytes_read += static_cast<uint64_t>(tile.window.area()) * m_source.stored_bytes_per_pixel();

            t0 = Clock::now();
            for (size_t k = 0; k < out.size(); ++k)
                out_views[k] = output_place(k, tile, allocator, out[k]);
            worker->process(tile, in_view, out_views);
            mine.compute_seconds += seconds_since(t0);

            if (!m_sinks.empty()) write_or_send(position, tile, out_views, mine);
            {
                const std::lock_guard lock(m_mutex);
                ++m_done;
            }
            tick();
        }
        const std::lock_guard lock(m_mutex);
        m_report.add(mine);
    }

    /// Returns the memory for an output of a tile: its final memory in the sink, or a buffer.
    CubeView<float> output_place(size_t output, const Tile& tile,
                                 const std::shared_ptr<HostAllocator>& allocator, HostBuffer<float>& buffer) {
        const int bands = m_outputs[output], device = m_operation.puts_on();
        if (device >= 0)
            if (const auto place = m_sinks[output]->place_on(device, tile.core)) return *place;
        const size_t size =
            static_cast<size_t>(bands) * static_cast<size_t>(m_limits.core_samples * m_limits.core_lines);
        if (buffer.size() < size) buffer = HostBuffer<float>(allocator, size);
        return CubeView<float>::packed(buffer.data(), bands, tile.core.h, tile.core.w);
    }

    Tile tile_at(int64_t position) const {
        return m_plan.tile(m_options.only ? (*m_options.only)[static_cast<size_t>(position)] : position);
    }

    /// Reports the progress. Of shared tiles, counts those that are assigned, minus those that may be in
    /// progress here.
    void tick() {
        const std::lock_guard lock(m_mutex);
        const int64_t done =
            m_shared != nullptr ? std::max<int64_t>(0, m_shared->assigned() - m_plan.lanes()) : m_done;
        if (m_options.progress) m_options.progress(static_cast<double>(done) / static_cast<double>(m_count));
    }

    const CubeSource& m_source;
    Operation& m_operation;
    const std::vector<CubeSink*>& m_sinks;
    const TilePlan& m_plan;
    const PassOptions& m_options;
    const std::vector<int> m_outputs;
    const TileLimits m_limits;
    const int64_t m_count;
    const bool m_ordered;
    parallel::Ranks& m_ranks = parallel::ranks();
    const bool m_divided;                      ///< true: the tiles are shared among ranks
    parallel::SharedTiles* m_shared = nullptr; ///< assigns the shared tiles; null if the tiles are not shared
    Turnstile m_turnstile;
    std::atomic<int64_t> m_next{0};
    std::atomic<bool> m_stop{false};
    std::mutex m_named_mutex;
    int64_t m_named = 0; ///< First tile that was not announced to readers; guarded by m_named_mutex.
    std::mutex m_mutex;  ///< guards the following members
    PassReport m_report;
    int64_t m_done = 0;
    /// One worker per lane, used only by the thread of the lane.
    std::vector<std::unique_ptr<Worker>> m_workers;
};

/// Makes enough tiles to keep the workers of all ranks busy to the end, as plan_tiles() does for one rank
/// (and for all ranks, if it makes equal shares).
TilePlan enough_for(int ranks, TilePlan plan, const TileRequest& r) {
    if (ranks < 2 || r.forced_lines > 0 || r.line_share > 0) return plan;
    const int64_t across = (r.samples + plan.tile_samples() - 1) / plan.tile_samples();
    const int64_t rows = std::max<int64_t>(1, int64_t{3} * r.lanes * ranks / across);
    const int64_t unit = std::lcm(std::max<int64_t>(1, r.block_lines), r.align_lines);
    const int64_t least = std::max<int64_t>({8, 2 * r.halo, (r.lines + rows - 1) / rows});
    const int64_t lines = (least + unit - 1) / unit * unit;
    if (lines >= plan.tile_lines()) return plan;
    return {r.samples, r.lines, plan.tile_samples(), lines, r.halo, plan.lanes()};
}

} // namespace

void PassCosts::add(const PassCosts& other) {
    tiles += other.tiles;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    seconds += other.seconds;
    read_seconds += other.read_seconds;
    compute_seconds += other.compute_seconds;
    write_seconds += other.write_seconds;
    decode_seconds += other.decode_seconds;
    encode_seconds += other.encode_seconds;
}

void add_up(parallel::Group& ranks, PassReport& report, double waited) {
    if (!ranks.several()) return;
    const RankPass mine{report, report.lanes, waited};
    static_cast<PassCosts&>(report) = {};
    for (const std::string& bytes : ranks.all("pass " + report.name, BytePacker().put(mine).take())) {
        const RankPass& one = report.ranks.emplace_back(ByteUnpacker(bytes).one<RankPass>());
        report.add(one);
    }
    report.seconds = mine.seconds; // the ranks ran at the same time, so their seconds are not added
}

namespace {

/// `source` and `operation` must outlive the request.
TileRequest request_of(const CubeSource& source, const Operation& operation, const PassOptions& options) {
    const CubeShape shape = source.shape();
    BlockLayout layout = source.layout();
    if (layout.kept_lines > 0) layout = {0, 1, layout.kept_lines};
    const std::vector<int> outputs = operation.output_bands();
    TileRequest request;
    request.samples = shape.samples;
    request.lines = shape.lines;
    request.block_samples = layout.block_samples;
    request.block_lines = layout.block_lines;
    if (const BlockLayout& out = options.output_layout; out.block_samples > 0) {
        // Tiles are whole blocks of the output, and of the source too if one size divides the other.
        request.block_samples =
            layout.block_samples > 0 ? std::max(out.block_samples, layout.block_samples) : out.block_samples;
        request.block_lines = std::max(out.block_lines, layout.block_lines);
    }
    request.kept_lines = layout.kept_lines;
    request.halo = operation.halo();
    const uint64_t reader = source.reader_bytes();
    const bool raw = reader == 0 && (source.window_bytes(1, 1) == 0 || source.computes_on() >= 0);
    request.lanes = worker_count(options.lanes, raw ? shape.float_bytes() : 0, options.limit);
    request.budget = options.memory;
    request.memory = options.asked_memory;
    request.preferred = operation.preferred_bytes();
    request.align_samples = operation.align_samples();
    request.align_lines = operation.align_lines();
    request.line_share = operation.line_share();
    request.forced_samples = options.tile_samples;
    request.forced_lines = options.tile_lines;
    const bool there = lies_on_device(source, operation);
    const int ranks = options.ranks > 0 ? options.ranks : parallel::ranks().size();
    request.ranks = ranks;
    request.lane_bytes = [=, &source, &operation](int64_t ws, int64_t wl, int64_t cs, int64_t cl) {
        const TileLimits limits{ws, wl, cs, cl, ranks};
        return reader + source.window_bytes(ws, wl) +
               buffer_bytes(there ? CubeShape{} : shape, outputs, limits) + operation.scratch_bytes(limits);
    };
    request.device_budget = options.device_memory;
    request.device_bytes = [=, &source, &operation](int64_t ws, int64_t wl, int64_t cs, int64_t cl) {
        return source.device_bytes(ws, wl) + operation.device_bytes(TileLimits{ws, wl, cs, cl, ranks});
    };
    // If copies cost almost nothing compared with computing, a scene that fits into the memory is one tile.
    // Its inputs and outputs then have the form that kernels use. Larger outputs need several tiles, so that
    // all workers copy them to host memory.
    const auto fits = [](uint64_t bytes, uint64_t most) { return most == 0 || bytes <= most; };
    constexpr int few = 8;
    const bool little = few * std::accumulate(outputs.begin(), outputs.end(), 0) <= shape.bands;
    const bool puts_there = outputs.empty() || operation.puts_on() == source.device();
    if (there && source.device() >= 0 && puts_there && (little || options.outputs_on_device) &&
        options.tile_samples == 0 && options.tile_lines == 0 &&
        fits(request.lane_bytes(shape.samples, shape.lines, shape.samples, shape.lines), options.memory) &&
        fits(request.device_bytes(shape.samples, shape.lines, shape.samples, shape.lines),
             options.device_memory)) {
        request.forced_samples = shape.samples;
        request.forced_lines = shape.lines;
        request.lanes = 1;
    }
    return request;
}

} // namespace

uint64_t least_pass_bytes(const CubeSource& source, const Operation& operation) {
    return least_lane_bytes(request_of(source, operation, {}));
}

TilePlan plan_pass(const CubeSource& source, const Operation& operation, const PassOptions& options) {
    const TileRequest request = request_of(source, operation, options);
    if (const uint64_t reader = source.reader_bytes(); reader > options.memory)
        throw Error("a reader of the scene needs " + format_byte_size(reader) +
                        " of decoded blocks, more than the " + format_byte_size(options.memory) +
                        " that -memory leaves for buffers",
                    memory_advice(request, least_lane_bytes(request)) +
                        ", or store the scene with smaller blocks or separate blocks per band "
                        "(gdal_translate -co TILED=YES -co INTERLEAVE=BAND).");
    TilePlan plan = enough_for(request.ranks, plan_tiles(request), request);
    plan.share_among(request.ranks);
    return plan;
}

uint64_t plan_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan) {
    const TileLimits limits = limits_of(plan);
    return static_cast<uint64_t>(plan.lanes()) *
           (source.reader_bytes() + source.window_bytes(limits.window_samples, limits.window_lines) +
            buffer_bytes(lies_on_device(source, operation) ? CubeShape{} : source.shape(),
                         operation.output_bands(), limits) +
            operation.scratch_bytes(limits));
}

uint64_t plan_device_bytes(const CubeSource& source, const Operation& operation, const TilePlan& plan) {
    const TileLimits limits = limits_of(plan);
    return static_cast<uint64_t>(plan.lanes()) *
           (source.device_bytes(limits.window_samples, limits.window_lines) + operation.device_bytes(limits));
}

PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const TilePlan& plan, const PassOptions& options) {
    return PassRun(source, operation, sinks, plan, options).execute();
}

PassReport run_pass(const CubeSource& source, Operation& operation, const std::vector<CubeSink*>& sinks,
                    const PassOptions& options) {
    PassOptions asked = options;
    const int device = operation.puts_on();
    asked.outputs_on_device = device >= 0 && std::all_of(sinks.begin(), sinks.end(), [&](CubeSink* sink) {
                                  return sink->place_on(device, {0, 0, 1, 1}).has_value();
                              });
    return run_pass(source, operation, sinks, plan_pass(source, operation, asked), options);
}

} // namespace hsi::stream
