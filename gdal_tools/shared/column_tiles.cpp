// SPDX-License-Identifier: MIT
#include "shared/column_tiles.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "stream/resident_source.h"
#include "tool/memory_plan.h"
#include "tool/passes.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hsi::tools {

void warn_of_map_columns(tool::Run& run, const std::string& what, const raster::RasterSource& source) {
    double gt[6];
    if (!source.facts().copy_geotransform(gt)) return;
    const bool rotated = gt[2] != 0 || gt[4] != 0;
    if (!rotated && !source.facts().srs) return;
    run.warn(std::string("src has ") + (rotated ? "a rotated grid" : "the grid of a map") + ": " + what +
             " is for scenes in sensor geometry, where each column is one detector; the columns of a "
             "resampled scene mix several detectors");
}

void set_column_tiles(const std::string& what, int64_t columns, const stream::CubeSource& cube,
                      const stream::Operation& operation, stream::PassOptions& pass) {
    if (pass.tile_samples > 0) return;
    // Each line of each band of a tile is read by a separate call, so wide tiles are better.
    constexpr int64_t cache_line = 16, tiles_a_lane = 2;
    const auto shape = cube.shape();
    const int64_t group = std::min(columns, shape.samples);
    const auto whole = [](int64_t samples, int64_t unit) { return (samples + unit - 1) / unit * unit; };
    const auto plan = [&](int64_t samples) {
        return TilePlan(shape.samples, shape.lines, samples, shape.lines, operation.halo(), 1);
    };
    const auto bytes = [&](int64_t samples) { return stream::plan_bytes(cube, operation, plan(samples)); };
    const auto fits_device = [&](int64_t samples) {
        return pass.device_memory == 0 ||
               stream::plan_device_bytes(cube, operation, plan(samples)) <= pass.device_memory;
    };
    if (bytes(group) > pass.memory)
        throw Error(what + ": " + counted(group, "column") + " of " + counted(shape.lines, "line") +
                        " need " + format_byte_size(bytes(group)) + " of buffers, but -memory leaves " +
                        format_byte_size(pass.memory),
                    "Use a larger -memory" + std::string(group > 1 ? ", or fewer columns per group." : "."));
    const int64_t unit = whole(cache_line, group);
    int64_t width =
        whole((shape.samples + tiles_a_lane * pass.lanes - 1) / (tiles_a_lane * pass.lanes), unit);
    width = std::max(width, whole(cube.layout().block_samples, group));
    const uint64_t share = pass.memory / static_cast<uint64_t>(pass.lanes);
    while (width > group && (bytes(width) > share || !fits_device(width)))
        width = whole(width / 2, group);
    pass.tile_samples = width;
    pass.tile_lines = shape.lines;
}

std::shared_ptr<const stream::CubeSource>
in_memory_for_columns(tool::Run& run, const std::shared_ptr<raster::RasterSource>& source) {
    const uint64_t bytes = source->shape().float_bytes();
    if (run.ranks().several() || (source->facts().access == raster::Access::raw && !source->facts().remote) ||
        bytes > tool::half(run.buffer_memory()) || source->shape().samples == 1)
        return source;
    // Reads all values. The source keeps them in memory.
    class Filling final : public stream::Operation {
        class Nothing final : public stream::Worker {
            void process(const Tile&, const CubeView<float>&, const std::vector<CubeView<float>>&) override {}
        };
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
            return std::make_unique<Nothing>();
        }
    } filling;
    auto kept = std::make_shared<stream::ResidentSource>(source);
    auto pass = run.pass("reading", 0.2);
    tool::leave_room(pass, bytes);
    if (!tool::run_pass(run, *kept, filling, {}, pass)) return source;
    kept->seal();
    return kept;
}

} // namespace hsi::tools
