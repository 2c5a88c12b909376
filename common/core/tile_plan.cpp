// SPDX-License-Identifier: MIT
#include "core/tile_plan.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// The bytes that one worker uses, or may use, in host and device memory.
struct Bytes {
    uint64_t host = 0, device = 0;
    bool within(const Bytes& limit) const { return host <= limit.host && device <= limit.device; }
};

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

Bytes budget_of(const TileRequest& r) { return {r.budget, r.device_budget ? r.device_budget : no_limit}; }

/// Returns the bytes of one worker for a tile size. The window never exceeds the scene.
Bytes cost(const TileRequest& r, int64_t tile_samples, int64_t tile_lines) {
    const int64_t cs = std::min(tile_samples, r.samples), cl = std::min(tile_lines, r.lines);
    const int64_t ws = std::min(cs + 2 * r.halo, r.samples), wl = std::min(cl + 2 * r.halo, r.lines);
    return {r.lane_bytes(ws, wl, cs, cl), r.device_budget ? r.device_bytes(ws, wl, cs, cl) : 0};
}

/// Returns the smallest tile that can be used. It is smaller than the file's own block if memory is very
/// short.
std::pair<int64_t, int64_t> smallest_tile(const TileRequest& r) {
    return {round_up(std::min<int64_t>(64, r.samples), r.align_samples), round_up(1, r.align_lines)};
}

/// Returns the number of workers, with `one` bytes each, that fit into host and device memory; at most the
/// requested number.
int fitting_lanes(const TileRequest& r, const Bytes& one) {
    const auto wanted = static_cast<uint64_t>(std::max(1, r.lanes));
    const Bytes all = budget_of(r);
    return static_cast<int>(std::min(
        {wanted, one.host ? all.host / one.host : wanted, one.device ? all.device / one.device : wanted}));
}

/// The parts of the message " needs 3 GB for buffers, more than ..." about the memory that is short, and of
/// its advice.
struct Shortage {
    std::string what, use, or_use;
};
Shortage shortage(const TileRequest& r, const Bytes& one) {
    if (one.host > r.budget)
        return {" needs " + format_byte_size(one.host) + " for buffers, more than the " +
                    format_byte_size(r.budget) + " that -memory leaves",
                memory_advice(r, one.host), ""};
    return {" needs " + format_byte_size(one.device) + " of device memory, more than the " +
                format_byte_size(r.device_budget) + " that -device-memory leaves",
            "Use a larger -device-memory", ", or -device cpu"};
}

/// Returns the largest multiple of `unit` in [unit, limit] whose cost is at most `bytes`; 0 if a single unit
/// does not fit.
template <class Cost>
int64_t largest_fitting(int64_t unit, int64_t limit, const Bytes& bytes, const Cost& cost_of) {
    int64_t lo = 0, hi = std::max<int64_t>(1, ceil_div(limit, unit));
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo + 1) / 2;
        if (cost_of(mid * unit).within(bytes))
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo * unit;
}

/// Returns the number of lines that the busiest worker computes, if each worker takes the next tile as soon
/// as it is free. The result is an upper bound if the last row of tiles is lower.
int64_t most_lines(const TileRequest& r, int64_t across, int64_t workers, int64_t height) {
    const int64_t full_rows = r.lines / height, full = full_rows * across;
    const int64_t rest = r.lines - full_rows * height, low = rest > 0 ? across : 0;
    const int64_t rounds = full / workers, ahead = full % workers; // `ahead` workers compute one more tile
    if (ahead == 0) return rounds * height + ceil_div(low, workers) * rest;
    return (rounds + ceil_div(ahead + low, workers)) * height;
}

/// Returns the height of tiles, at most `most`, for which the last worker finishes soonest. The time of a
/// tile is the number of lines of its core plus a fraction of the number of lines of its window.
int64_t even_height(const TileRequest& r, int64_t across, int64_t workers, int64_t unit, int64_t most) {
    // A lower height must save 3 % of the time, because lower tiles read more lines of the file.
    constexpr double worth = 0.97;
    int64_t best = most;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t height = most; height > 0;) {
        const int64_t down = ceil_div(r.lines, height), rounds = ceil_div(across * down, workers);
        const int64_t window = std::min(height + 2 * r.halo, r.lines);
        const double time = static_cast<double>(most_lines(r, across, workers, height)) +
                            r.line_share * static_cast<double>(rounds * window);
        if (time < worth * least) {
            least = time;
            best = height;
        }
        // The next height with one more row of tiles.
        height = std::min(height - unit, round_up(ceil_div(r.lines, down + 1), unit));
    }
    return best;
}

} // namespace

TilePlan::TilePlan(int64_t samples, int64_t lines, int64_t tile_samples, int64_t tile_lines, int64_t halo,
                   int lanes)
    : m_samples(samples), m_lines(lines), m_tile_samples(std::max<int64_t>(1, tile_samples)),
      m_tile_lines(std::max<int64_t>(1, tile_lines)), m_halo(halo),
      m_across(ceil_div(samples, m_tile_samples)), m_down(ceil_div(lines, m_tile_lines)),
      m_lanes(static_cast<int>(std::clamp<int64_t>(lanes, 1, std::max<int64_t>(1, m_across * m_down)))) {}

Tile TilePlan::tile(int64_t index) const {
    const Rect scene{0, 0, m_samples, m_lines};
    const Rect nominal{(index % m_across) * m_tile_samples, (index / m_across) * m_tile_lines, m_tile_samples,
                       m_tile_lines};
    const Rect core = intersect(nominal, scene);
    return Tile{index, core, intersect(grow(core, m_halo), scene)};
}

int64_t TilePlan::max_core_samples() const { return std::min(m_tile_samples, m_samples); }
int64_t TilePlan::max_core_lines() const { return std::min(m_tile_lines, m_lines); }
int64_t TilePlan::max_window_samples() const { return std::min(max_core_samples() + 2 * m_halo, m_samples); }
int64_t TilePlan::max_window_lines() const { return std::min(max_core_lines() + 2 * m_halo, m_lines); }

std::string TilePlan::describe() const {
    return counted(size(), "tile") + " of " + std::to_string(max_core_samples()) + "x" +
           std::to_string(max_core_lines()) + ", halo " + std::to_string(m_halo) + ", " +
           std::to_string(m_lanes) + " at a time";
}

uint64_t least_lane_bytes(const TileRequest& r) {
    const auto [samples, lines] = smallest_tile(r);
    return cost(r, samples, lines).host;
}

std::string memory_advice(const TileRequest& r, uint64_t bytes) {
    constexpr double kilobyte = 1024, megabyte = 1024 * kilobyte, most = 100;
    const double times = static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, r.budget));
    if (r.memory == 0 || times > most) return "Use a larger -memory";
    // The value is rounded up to whole units, so that the printed value suffices.
    const double least = times * static_cast<double>(r.memory) * (1 + 1e-9);
    const bool small = least < 8 * megabyte;
    return "Use -memory " + std::to_string(std::llround(std::ceil(least / (small ? kilobyte : megabyte)))) +
           (small ? "KB" : "MB") + " or more";
}

TilePlan plan_tiles(const TileRequest& r) {
    if (r.forced_samples > 0 && r.forced_lines > 0) {
        const int64_t ts = round_up(r.forced_samples, r.align_samples);
        const int64_t tl = round_up(r.forced_lines, r.align_lines);
        const Bytes one = cost(r, ts, tl);
        const int lanes = fitting_lanes(r, one);
        if (lanes < 1) {
            const Shortage is = shortage(r, one);
            throw UsageError("-tile " + std::to_string(r.forced_samples) + " " +
                                 std::to_string(r.forced_lines) + is.what,
                             is.use + is.or_use + ", or a smaller -tile.");
        }
        return TilePlan(r.samples, r.lines, ts, tl, r.halo, lanes);
    }

    const bool whole_lines = r.block_samples <= 0 || r.block_samples >= r.samples;
    const int64_t unit_x = round_up(whole_lines ? 64 : r.block_samples, r.align_samples);
    const int64_t unit_y = round_up(std::max<int64_t>(1, r.block_lines), r.align_lines);
    const auto [min_x, min_y] = smallest_tile(r);

    int lanes = std::max(1, r.lanes);
    const Bytes smallest = cost(r, min_x, min_y), budget = budget_of(r);
    if (!smallest.within(budget)) {
        const Shortage is = shortage(r, smallest);
        throw Error("one tile of " + std::to_string(min_x) + "x" + std::to_string(min_y) +
                        " pixels with halo " + std::to_string(r.halo) + is.what,
                    is.use + is.or_use + ".");
    }
    lanes = std::min(lanes, fitting_lanes(r, smallest));
    // If the memory of each worker cannot hold a block of the file, use fewer workers. Reading the block in
    // pieces would decode it again for every piece.
    const Bytes block = cost(r, unit_x, unit_y);
    if (block.within(budget)) lanes = std::min(lanes, std::max(1, fitting_lanes(r, block)));
    const Bytes share{budget.host / static_cast<uint64_t>(lanes),
                      budget.device / static_cast<uint64_t>(lanes)};

    // `preferred` suits the caches or the device. It limits the buffers in host memory, and thereby those on
    // the device.
    Bytes target{r.preferred ? std::min(share.host, r.preferred) : share.host, share.device};
    // A window should not be much larger than its core: if the halo would dominate, use up to the whole
    // share.
    const int64_t roomy = 8 * r.halo;
    if (roomy > 0)
        target.host =
            std::min(share.host, std::max(target.host, cost(r, r.samples, std::min(r.lines, roomy)).host));
    const auto at_least = [&](uint64_t host) {
        return Bytes{std::max(target.host, std::min(share.host, host)), share.device};
    };

    int64_t ts = round_up(r.samples, r.align_samples), tl = 0;
    if (cost(r, ts, unit_y).within(at_least(4 * target.host))) {
        tl = std::max(unit_y,
                      largest_fitting(unit_y, r.lines, target, [&](int64_t n) { return cost(r, ts, n); }));
    } else {
        // Whole lines do not fit: use tiles as square as the halo requires, in units of the file's
        // blocks.
        const int64_t want_y = std::max(
            unit_y, std::min(round_up(std::max<int64_t>(1, 4 * r.halo), unit_y), round_up(r.lines, unit_y)));
        std::vector<int64_t> heights{want_y, unit_y};
        // Use part of a block's lines rather than many adjacent blocks, because each tile decodes all blocks
        // that it touches.
        const int64_t low = std::max(min_y, round_up(16, r.align_lines));
        for (int64_t y = unit_y / 2; y > low; y /= 2)
            heights.push_back(round_up(y, r.align_lines));
        heights.insert(heights.end(), {low, min_y});
        for (int64_t y : heights) {
            for (int64_t x : {unit_x, min_x}) {
                ts = largest_fitting(x, r.samples, at_least(cost(r, unit_x, y).host),
                                     [&](int64_t n) { return cost(r, n, y); });
                if (ts > 0) break;
            }
            tl = y;
            if (ts > 0) break;
        }
        if (ts == 0) { // the memory per worker is too small for any tile
            lanes = 1;
            ts = min_x;
            tl = min_y;
        }
    }
    // Use enough tiles to keep every worker busy to the end, as long as tiles have a few lines.
    const int64_t across = ceil_div(r.samples, ts);
    if (r.line_share > 0) {
        // Several workers get at least four tiles each, so that a slow worker delays the others less.
        const int64_t workers = int64_t{lanes} * std::max(1, r.ranks);
        const int64_t unit = tl % unit_y == 0 ? unit_y : r.align_lines;
        const int64_t least = workers > 1 ? 4 * workers : 2;
        const int64_t height = round_up(ceil_div(r.lines, ceil_div(least, across)), unit);
        tl = even_height(r, across, workers, unit, std::min(tl, height));
        return TilePlan(r.samples, r.lines, ts, tl, r.halo, lanes);
    }
    const int64_t wanted_rows = ceil_div(3 * lanes, across);
    const int64_t balanced = round_up(std::max<int64_t>(ceil_div(r.lines, wanted_rows), 8), unit_y);
    const int64_t halo_floor = round_up(std::max<int64_t>(1, 2 * r.halo), unit_y);
    tl = std::min(tl, std::max(balanced, halo_floor));
    if (r.kept_lines > 0) {
        const int64_t rows = ceil_div(lanes, across);
        const int64_t together = std::max<int64_t>(0, r.kept_lines - 2 * r.halo) / rows / unit_y * unit_y;
        tl = std::min(tl, std::max({together, unit_y, round_up(roomy, unit_y)}));
    }
    return TilePlan(r.samples, r.lines, ts, tl, r.halo, lanes);
}

} // namespace hsi
