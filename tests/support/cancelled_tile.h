// SPDX-License-Identifier: MIT
// Tests that an operation is cancelled while it processes a tile.
#pragma once

#include "core/cancel.h"
#include "core/error.h"
#include "stream/pipeline.h"
#include "support/memory_cube.h"

#include <memory>
#include <vector>

namespace hsi::test {

/// Cancels a pass of one tile after the tile was read. Returns true if the pass ends before it writes.
inline bool ends_within_its_tile(const Cube& scene, stream::Operation& operation) {
    CancelFlag cancel;
    MemorySource source(scene);
    source.on_read = [&](const Rect&) { cancel.request(); };
    bool written = false;
    std::vector<std::unique_ptr<MemorySink>> sinks;
    std::vector<stream::CubeSink*> outputs;
    for (const int bands : operation.output_bands()) {
        sinks.push_back(std::make_unique<MemorySink>(scene.shape.samples, scene.shape.lines, bands));
        sinks.back()->on_write = [&](const Rect&) { written = true; };
        outputs.push_back(sinks.back().get());
    }
    stream::PassOptions options;
    options.tile_samples = scene.shape.samples;
    options.tile_lines = scene.shape.lines;
    options.cancel = &cancel;
    try {
        stream::run_pass(source, operation, outputs, options);
    } catch (const Cancelled&) {
        return !written;
    }
    return false;
}

} // namespace hsi::test
