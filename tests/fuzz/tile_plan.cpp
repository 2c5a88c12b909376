// SPDX-License-Identifier: MIT
// Plans of tiles for any sizes of scenes, blocks, halos and memory: the tiles cover the scene once, their
// windows are inside of the scene, and they fit into the memory.
#include "core/tile_plan.h"
#include "fuzz/fuzz.h"

#include <algorithm>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::Bytes bytes(data, size);
    const bool large = bytes.take<uint8_t>() % 4 == 0;
    const int64_t most = large ? int64_t{1} << 31 : 3000;
    TileRequest request;
    request.samples = bytes.take(1, most);
    request.lines = bytes.take(1, most);
    request.block_samples = bytes.take(0, bytes.take<uint8_t>() % 2 ? 1024 : most);
    request.block_lines = bytes.take(1, 1024);
    request.halo = bytes.take(0, 100);
    request.lanes = static_cast<int>(bytes.take(1, 300));
    request.budget = static_cast<uint64_t>(bytes.take(0, int64_t{1} << bytes.take(0, 42)));
    request.preferred =
        bytes.take<uint8_t>() % 2 ? static_cast<uint64_t>(bytes.take(0, int64_t{1} << 32)) : 0;
    request.align_samples = int64_t{1} << bytes.take(0, 8);
    request.align_lines = int64_t{1} << bytes.take(0, 8);
    if (bytes.take<uint8_t>() % 3 == 0) {
        request.forced_samples = bytes.take(1, most);
        request.forced_lines = bytes.take(1, most);
    }
    const uint64_t per_window = static_cast<uint64_t>(bytes.take(0, 2000));
    const uint64_t per_core = static_cast<uint64_t>(bytes.take(0, 2000));
    const uint64_t fixed = static_cast<uint64_t>(bytes.take(0, 100000));
    if (bytes.take<uint8_t>() % 3 == 0) {
        request.line_share = static_cast<double>(bytes.take(1, 1000)) / 1000;
        request.ranks = static_cast<int>(bytes.take(1, 64));
    }
    request.lane_bytes = [&](int64_t ws, int64_t wl, int64_t cs, int64_t cl) {
        return fixed + per_window * static_cast<uint64_t>(ws) * static_cast<uint64_t>(wl) / 4 +
               per_core * static_cast<uint64_t>(cs) * static_cast<uint64_t>(cl) / 4;
    };
    if (large && (request.samples > (int64_t{1} << 20) && request.lines > (int64_t{1} << 20)))
        request.lines = 1 + request.lines % 1000; // keeps the cost in bytes within 64 bits
    try {
        const TilePlan plan = plan_tiles(request);
        const Rect scene{0, 0, request.samples, request.lines};
        fuzz::expect(plan.size() >= 1, "there is a tile");
        fuzz::expect(plan.lanes() >= 1 && plan.lanes() <= request.lanes, "no more lanes than are wanted");
        fuzz::expect(plan.tile_samples() % request.align_samples == 0 &&
                         plan.tile_lines() % request.align_lines == 0,
                     "tiles keep the alignment");
        const uint64_t lane = request.lane_bytes(plan.max_window_samples(), plan.max_window_lines(),
                                                 plan.max_core_samples(), plan.max_core_lines());
        fuzz::expect(lane <= request.budget / static_cast<uint64_t>(plan.lanes()),
                     "all lanes fit into the memory");
        if (request.forced_samples > 0)
            fuzz::expect(plan.tile_samples() >= request.forced_samples &&
                             plan.tile_lines() >= request.forced_lines,
                         "the size that was asked for is kept");
        // Row by row, each core must begin where the previous core ends. The cores then cover the scene once.
        const int64_t step = std::max<int64_t>(1, plan.size() / 5000);
        int64_t area = 0;
        for (int64_t i = 0; i < plan.size(); i += step) {
            const Tile tile = plan.tile(i);
            fuzz::expect(tile.index == i && !tile.core.empty(), "a tile has pixels");
            fuzz::expect(scene.contains(tile.window) && tile.window.contains(tile.core),
                         "core in window in scene");
            fuzz::expect(tile.window == intersect(grow(tile.core, request.halo), scene),
                         "the window is core and halo");
            fuzz::expect(tile.core.w <= plan.max_core_samples() && tile.core.h <= plan.max_core_lines() &&
                             tile.window.w <= plan.max_window_samples() &&
                             tile.window.h <= plan.max_window_lines(),
                         "no tile is larger than said");
            area += tile.core.area();
            if (i + 1 < plan.size()) {
                const Rect next = plan.tile(i + 1).core;
                const bool beside =
                    next.y == tile.core.y && next.x == tile.core.right() && next.h == tile.core.h;
                const bool below =
                    next.x == 0 && next.y == tile.core.bottom() && tile.core.right() == request.samples;
                fuzz::expect(beside || below, "tiles follow one another without a gap");
            } else {
                fuzz::expect(tile.core.right() == request.samples && tile.core.bottom() == request.lines,
                             "the last tile ends where the scene ends");
            }
        }
        if (step == 1) fuzz::expect(area == scene.area(), "all tiles together are the scene");
    } catch (const Error&) {
    }
    return 0;
}
