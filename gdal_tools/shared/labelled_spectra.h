// SPDX-License-Identifier: MIT
// Reads the spectra of given pixels of a scene, in one pass over the tiles that contain the pixels.
#pragma once

#include "raster/raster_source.h"
#include "shared/training_pixels.h"
#include "svm/gather.h"
#include "tool/memory_plan.h"
#include "tool/passes.h"
#include "tool/words.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace hsi::tools {

/// Reads the spectra of pixels. `index`: line * samples + sample, ascending. Bands without any value at these
/// pixels are removed from `scene`, with a warning, because they would make every pixel invalid.
inline svm::Gather read_spectra(tool::Run& run, std::shared_ptr<raster::RasterSource>& scene,
                                const std::vector<int64_t>& index) {
    const auto shape = scene->shape();
    const uint64_t bytes = spectra_bytes(run, index.size(), shape.bands);
    svm::Gather operation(shape.bands, shape.samples, index);
    auto pass = run.pass("training pixels", 0.05);
    tool::leave_room(pass, bytes);
    const auto plan = stream::plan_pass(*scene, operation, pass);
    const auto tiles = operation.tiles(plan);
    pass.only = &tiles;
    run.add_pass(stream::run_pass(*scene, operation, {}, plan, pass));

    std::vector<int> empty, numbers;
    const auto bands = static_cast<size_t>(shape.bands);
    for (size_t b = 0; b < bands; ++b) {
        bool any = false;
        for (size_t i = 0; i < index.size() && !any; ++i)
            any = std::isfinite(operation.spectra()[i * bands + b]);
        if (any) continue;
        empty.push_back(static_cast<int>(b));
        numbers.push_back(scene->bands()[b]);
    }
    if (empty.empty() || empty.size() == bands) return operation;
    run.warn("no labelled pixel has a value in band " + tool::list_text(numbers) + ": left out");
    run.report()["bands_without_values"] = numbers;
    scene = scene->without_bands(empty);
    return read_spectra(run, scene, index);
}

} // namespace hsi::tools
