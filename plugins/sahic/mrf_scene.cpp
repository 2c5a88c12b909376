// SPDX-License-Identifier: MIT
#include "sahic/mrf_scene.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/system.h"
#include "parallel/joint_memory.h"
#include "parallel/ranks.h"
#include "parallel/team.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

namespace hsi::sahic {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Sets the tile size with the fewest pixels that are computed twice. Sets nothing if no tile fits.
void choose_tile(TileRequest& request, int64_t halo) {
    int64_t least = 0;
    // The number of columns for the next smaller width.
    for (int64_t columns = 1, w = 0; columns <= (request.samples + 15) / 16;
         columns = w > 1 ? (request.samples + w - 2) / (w - 1) : request.samples + 1) {
        w = (request.samples + columns - 1) / columns;
        const int64_t window_w = std::min(w + 2 * halo, request.samples);
        // This is a lower bound of the pixels that are computed twice, for tiles as high as the scene. It
        // grows with the number of columns.
        const int64_t beside = std::min((columns - 1) * request.samples, 2 * halo * columns);
        if (least > 0 && (request.samples + beside) * request.lines >= least) break;
        const auto fits = [&](int64_t h) {
            return request.lane_bytes(std::min(w + 2 * request.halo, request.samples),
                                      std::min(h + 2 * request.halo, request.lines), w, h) <= request.budget;
        };
        if (!fits(1)) continue;
        int64_t low = 1, high = request.lines; // binary search for the largest number of lines that fits
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            (fits(middle) ? low : high) = fits(middle) ? middle : middle - 1;
        }
        const int64_t rows = (request.lines + low - 1) / low, h = (request.lines + rows - 1) / rows;
        const int64_t computed = columns * rows * window_w * std::min(h + 2 * halo, request.lines);
        if (least == 0 || computed < least) {
            least = computed;
            request.forced_samples = w;
            request.forced_lines = h;
        }
    }
}

/// Marks the training pixels of a window, which is given in scene coordinates that wrap around.
void mark_fixed(const FixedPixels& labels, const std::vector<uint16_t>& class_of,
                const stream::CubeShape& shape, const Rect& window, uint16_t* fixed) {
    std::fill_n(fixed, window.area(), uint16_t{0});
    for (int64_t y = 0; y < window.h; ++y) {
        const int64_t line = (((window.y + y) % shape.lines) + shape.lines) % shape.lines;
        auto it = std::lower_bound(labels.index.begin(), labels.index.end(), line * shape.samples);
        for (; it != labels.index.end() && *it < (line + 1) * shape.samples; ++it) {
            const int64_t sample = *it - line * shape.samples;
            const uint16_t value = class_of[labels.value[static_cast<size_t>(it - labels.index.begin())]];
            int64_t x = (((sample - window.x) % shape.samples) + shape.samples) % shape.samples;
            for (; x < window.w; x += shape.samples)
                fixed[y * window.w + x] = value;
        }
    }
}

/// Moves the core of each plane of a window to the start of the buffer, packed.
void cut_out(float* q, size_t planes, const Rect& window, const Rect& core) {
    float* to = q;
    for (size_t k = 0; k < planes; ++k)
        // Writes never overtake reads.
        for (int64_t y = core.y; y < core.bottom(); ++y, to += core.w)
            std::memmove(to,
                         q + static_cast<int64_t>(k) * window.area() + (y - window.y) * window.w + core.x -
                             window.x,
                         static_cast<size_t>(core.w) * sizeof(float));
}

/// Computes the outputs of a tile's core from q, the smoothed probabilities, strip by strip. All threads
/// share the lines of a strip.
class Writer {
  public:
    Writer(const MrfOutputs& outputs, const std::vector<ModelClass>& classes, int threads)
        : m_outputs(outputs), m_classes(classes), m_team(threads),
          m_by_class(static_cast<size_t>(threads), std::vector<int64_t>(classes.size(), 0)) {}
    /// `q` is [class][line][sample] of `window`. `p0` is the first plane of the probabilities, NaN for
    /// invalid pixels.
    void write(const Rect& core, const Rect& window, float* q, const float* p0) {
        constexpr int64_t strip = 256; // height of a strip in lines, equal to the block height of tiled files
        const auto classes = static_cast<int>(m_classes.size());
        const int bands = m_outputs.probability_bands > 0 ? m_outputs.probability_bands : classes;
        for (int64_t y = core.y; y < core.bottom();) {
            const int64_t lines = std::min(strip - y % strip, core.bottom() - y);
            const auto pixels = static_cast<size_t>(core.w * lines);
            if (m_outputs.map) m_map.resize(pixels);
            if (m_outputs.confidence) m_best.resize(pixels);
            if (m_outputs.probabilities) m_p.resize(pixels * static_cast<size_t>(classes));
            constexpr int64_t unit = 8; // number of lines in a unit of work
            m_team.run((lines + unit - 1) / unit, [&](int64_t i, int member) {
                for (int64_t l = i * unit; l < std::min(lines, (i + 1) * unit); ++l) {
                    const int64_t from = (y + l - window.y) * window.w + core.x - window.x;
                    line(q + from, p0 + from, window.area(), core.w, static_cast<size_t>(l * core.w), pixels,
                         m_by_class[static_cast<size_t>(member)]);
                }
            });
            const Rect part{core.x, y, core.w, lines};
            size_t next = 0;
            if (m_outputs.map)
                m_outputs.sinks[next++]->write(part, CubeView<float>::packed(m_map.data(), 1, lines, core.w));
            if (m_outputs.probabilities)
                m_outputs.sinks[next++]->write(part,
                                               CubeView<float>::packed(m_p.data(), bands, lines, core.w));
            if (m_outputs.confidence)
                m_outputs.sinks[next++]->write(part,
                                               CubeView<float>::packed(m_best.data(), 1, lines, core.w));
            y += lines;
        }
    }
    std::vector<int64_t> pixels_by_class() const {
        std::vector<int64_t> sum(m_classes.size(), 0);
        for (const auto& one : m_by_class)
            for (size_t c = 0; c < sum.size(); ++c)
                sum[c] += one[c];
        return sum;
    }

  private:
    void line(float* q, const float* p0, int64_t plane, int64_t count, size_t to, size_t pixels,
              std::vector<int64_t>& by_class) {
        const size_t classes = m_classes.size();
        const bool projected = m_outputs.probabilities || m_outputs.confidence;
        for (int64_t i = 0; i < count; ++i) {
            const size_t at = to + static_cast<size_t>(i);
            if (std::isnan(p0[i])) {
                if (m_outputs.map) m_map[at] = std::nanf("");
                if (m_outputs.confidence) m_best[at] = std::nanf("");
                if (m_outputs.probabilities)
                    for (size_t k = 0; k < classes; ++k)
                        m_p[k * pixels + at] = std::nanf("");
                continue;
            }
            size_t best = 0;
            for (size_t k = 1; k < classes; ++k)
                if (q[static_cast<int64_t>(k) * plane + i] > q[static_cast<int64_t>(best) * plane + i])
                    best = k;
            ++by_class[best];
            if (m_outputs.map) m_map[at] = static_cast<float>(m_classes[best].value);
            if (!projected) continue;
            project_on_simplex(q + i, static_cast<int>(classes), plane, 1);
            if (m_outputs.confidence) m_best[at] = q[static_cast<int64_t>(best) * plane + i];
            if (m_outputs.probabilities)
                for (size_t k = 0; k < classes; ++k)
                    m_p[k * pixels + at] = q[static_cast<int64_t>(k) * plane + i];
        }
    }
    const MrfOutputs& m_outputs;
    const std::vector<ModelClass>& m_classes;
    Team m_team;
    std::vector<float> m_map, m_best, m_p;
    std::vector<std::vector<int64_t>> m_by_class; ///< one list per thread of the team
};

} // namespace

MrfPlan plan_mrf(const MrfRequest& field) {
    const auto& shape = field.shape;
    const int classes = field.classes;
    const auto k = static_cast<uint64_t>(classes);
    // In addition to the solver's memory, a window needs p, the weights, the training pixels and q.
    const auto window_bytes = [&](int64_t w, int64_t h) {
        const auto pixels = static_cast<uint64_t>(w) * static_cast<uint64_t>(h);
        return pixels * (4 * (2 * k + 1) + 2) + field.host_bytes({classes, h, w});
    };
    const auto device_fits = [&](int64_t w, int64_t h) {
        return field.device_memory == 0 || field.device_bytes({classes, h, w}) <= field.device_memory;
    };
    MrfPlan plan;
    const uint64_t store = static_cast<uint64_t>(shape.pixels()) * 4 * (k + 1);
    const bool forced =
        field.tile_samples > 0 && (field.tile_samples < shape.samples || field.tile_lines < shape.lines);
    plan.limits = {classes, shape.lines, shape.samples};
    plan.tiles = TilePlan(shape.samples, shape.lines, shape.samples, shape.lines, 0, 1);
    plan.host_bytes = window_bytes(shape.samples, shape.lines);
    if (!forced && plan.host_bytes <= field.memory && device_fits(shape.samples, shape.lines)) return plan;

    plan.whole = false;
    const auto halo = mrf_halo(field.mrf);
    if (!halo) {
        char text[100];
        std::snprintf(text, sizeof text, "-mu %g with %d iterations reaches too far for tiles", field.mrf.mu,
                      field.mrf.iterations);
        std::string what = text;
        if (!forced)
            what += ", and the whole scene of " + std::to_string(shape.samples) + "x" +
                    std::to_string(shape.lines) + " pixels needs " + format_byte_size(plan.host_bytes);
        throw Error(
            what,
            "Leave -tile out, give more -memory or -device-memory, or use -mu 0.05 or less and at most 200 "
            "-iterations.");
    }
    plan.halo = *halo;
    // The store takes at most a quarter of the memory, because larger tiles save more time.
    plan.store_in_memory = store <= field.memory / 4;
    const uint64_t budget = plan.store_in_memory ? field.memory - store : field.memory;
    TileRequest request;
    request.samples = shape.samples;
    request.lines = shape.lines;
    request.halo = field.periodic ? 0 : *halo;
    request.budget = budget;
    request.forced_samples = field.tile_samples;
    request.forced_lines = field.tile_lines;
    const int64_t around = field.periodic ? 2 * *halo : 0;
    request.lane_bytes = [&](int64_t w, int64_t h, int64_t, int64_t) {
        return device_fits(w + around, h + around) ? window_bytes(w + around, h + around) : budget + 1;
    };
    if (!forced) choose_tile(request, *halo);
    plan.tiles = plan_tiles(request);
    plan.limits = {classes, plan.tiles.max_window_lines() + around, plan.tiles.max_window_samples() + around};
    plan.host_bytes =
        window_bytes(plan.limits.samples, plan.limits.lines) + (plan.store_in_memory ? store : 0);
    return plan;
}

MrfSetup make_mrf_setup(Backend& backend, const MrfRequest& request, const MrfPlan& plan) {
    parallel::Ranks& ranks = parallel::ranks();
    MrfSetup by;
    by.allocator = by.of_q = backend.allocator();
    if (ranks.several() && plan.whole && backend.joins()) {
        // The buffers of the solver and q start at page boundaries.
        constexpr uint64_t most_buffers = 64;
        const uint64_t q =
            static_cast<uint64_t>(request.shape.pixels()) * 4 * static_cast<uint64_t>(plan.limits.classes);
        const auto memory = parallel::JointMemory::make(
            ranks, "field", backend.mrf_host_bytes(plan.limits) + q + most_buffers * system::page_size());
        if (memory) {
            by.solver = backend.make_joint_mrf_solver(request.mrf, plan.limits, memory);
            by.of_q = memory;
            by.joint = true;
            return by;
        }
    }
    if (!plan.whole || ranks.root()) by.solver = backend.make_mrf_solver(request.mrf, plan.limits);
    return by;
}

MrfResult smooth_scene(const MrfRequest& request, const MrfPlan& plan, const MrfSetup& by,
                       const stream::PlaneStore& planes, const FixedPixels& fixed,
                       const std::vector<ModelClass>& classes, const MrfOutputs& outputs,
                       const stream::PassOptions& pass) {
    const size_t k = classes.size();
    std::vector<uint16_t> class_of(65536, 0); // index by label value; a label may have any 16-bit value
    for (size_t c = 0; c < k; ++c)
        class_of[static_cast<size_t>(classes[c].value)] = static_cast<uint16_t>(c + 1);
    const auto most = static_cast<size_t>(plan.limits.lines * plan.limits.samples);
    const bool direct = plan.whole && planes.in_memory();
    HostBuffer<float> window_data(by.allocator, by.solver && !direct ? most * (k + 1) : 0);
    const bool makes_q = by.solver && by.q.size() < most * k;
    const HostBuffer<float> own_q(by.of_q, makes_q ? most * k : 0);
    float* const q = makes_q ? own_q.data() : by.q.data();
    std::vector<uint16_t> marks(by.solver ? most : 0);
    Writer writer(outputs, classes, std::max(1, pass.lanes));
    MrfResult result;
    auto& report = result.report;
    report.name = pass.name;
    report.tiles = plan.tiles.size();
    report.tile_samples = plan.tiles.max_core_samples();
    report.tile_lines = plan.tiles.max_core_lines();
    report.halo = plan.halo;
    report.lanes = 1;
    report.buffer_bytes = plan.host_bytes;
    const auto begin = Clock::now();
    // Each rank solves every n-th tile. A single tile is solved by the ranks that have a solver. The root
    // writes all tiles in order, so that sums over tiles are added in a fixed order.
    parallel::Ranks& ranks = parallel::ranks();
    std::vector<int> owners;
    for (int64_t t = 0; t < plan.tiles.size(); ++t)
        owners.push_back(static_cast<int>(t % ranks.size()));
    std::optional<parallel::SharedTiles> shared;
    if (ranks.several()) shared.emplace(ranks, owners);
    const auto give_up = [&] { return pass.cancel != nullptr && pass.cancel->requested(); };
    report.tiles = 0;
    for (int64_t t = 0; t < plan.tiles.size(); ++t) {
        const int owner = owners[static_cast<size_t>(t)];
        if (owner != ranks.rank() && !ranks.root() && !by.joint) continue;
        const Tile tile = plan.tiles.tile(t);
        const size_t core_bytes = static_cast<size_t>(tile.core.area()) * k * sizeof(float);
        MrfResiduals residuals;
        if (owner != ranks.rank() && !by.joint) {
            const auto now = Clock::now();
            shared->receive(t, owner, &residuals, sizeof residuals, give_up);
            shared->receive(t, owner, q, core_bytes, give_up);
            planes.read(tile.core, window_data.data());
            result.residuals += residuals;
            writer.write(tile.core, tile.core, q, window_data.data());
            report.write_seconds += seconds_since(now);
            continue;
        }
        const bool wraps = request.periodic && !plan.whole;
        const Rect window = wraps ? grow(tile.core, plan.halo) : tile.window;
        auto now = Clock::now();
        const float* p = planes.data();
        if (!direct) {
            planes.read(window, window_data.data());
            p = window_data.data();
        }
        mark_fixed(fixed, class_of, request.shape, window, marks.data());
        report.read_seconds += seconds_since(now);
        MrfProblem problem;
        problem.classes = static_cast<int>(k);
        problem.lines = window.h;
        problem.samples = window.w;
        problem.p = p;
        problem.weight = p + k * static_cast<size_t>(window.area());
        problem.fixed = marks.data();
        problem.periodic = request.periodic && plan.whole;
        problem.core = {tile.core.x - window.x, tile.core.y - window.y, tile.core.w, tile.core.h};
        by.solver->progress = [&](double share) {
            if (pass.progress)
                pass.progress((static_cast<double>(t) + share) / static_cast<double>(plan.tiles.size()));
        };
        now = Clock::now();
        residuals += by.solver->solve(problem, q, pass.cancel);
        report.compute_seconds += seconds_since(now);
        if (owner == ranks.rank()) ++report.tiles;
        now = Clock::now();
        if (ranks.root()) {
            result.residuals += residuals;
            writer.write(tile.core, window, q, p);
        } else if (!by.joint) {
            cut_out(q, k, window, tile.core);
            shared->send(t, &residuals, sizeof residuals, give_up);
            shared->send(t, q, core_bytes, give_up);
        }
        report.write_seconds += seconds_since(now);
    }
    report.seconds = seconds_since(begin);
    stream::add_up(ranks, report, 0);
    result.pixels_by_class = writer.pixels_by_class();
    if (ranks.several()) {
        const auto bytes =
            ranks.broadcast("field", BytePacker().put(result.residuals).put(result.pixels_by_class).take());
        ByteUnpacker in(bytes);
        in.get(result.residuals);
        in.get(result.pixels_by_class);
    }
    return result;
}

} // namespace hsi::sahic
