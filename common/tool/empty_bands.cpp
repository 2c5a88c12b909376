// SPDX-License-Identifier: MIT
#include "tool/empty_bands.h"

#include "stream/statistics_scan.h"
#include "tool/plan.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace hsi::tool {

std::shared_ptr<raster::RasterSource> only_bands(const std::shared_ptr<raster::RasterSource>& source,
                                                 const std::vector<int>& wanted) {
    std::vector<int> others;
    for (int b = 0; b < source->shape().bands; ++b)
        if (!std::binary_search(wanted.begin(), wanted.end(), b)) others.push_back(b);
    return others.empty() ? source : source->without_bands(others);
}

bool leave_out_unseen_bands(Run& run, std::shared_ptr<raster::RasterSource>& source) {
    const auto shape = source->shape();
    const int64_t width = std::min<int64_t>(shape.samples, 512), windows = std::min<int64_t>(shape.lines, 32);
    std::vector<float> values(static_cast<size_t>(shape.bands * width));
    const auto view = CubeView<float>::packed(values.data(), shape.bands, 1, width);
    std::vector<char> seen(static_cast<size_t>(shape.bands), 0);
    const auto reader = source->open_reader();
    for (int64_t k = 0; k < windows; ++k) {
        reader->read({(shape.samples - width) / 2, (2 * k + 1) * shape.lines / (2 * windows), width, 1},
                     view);
        for (int b = 0; b < shape.bands; ++b)
            for (int64_t i = 0; i < width && !seen[static_cast<size_t>(b)]; ++i)
                seen[static_cast<size_t>(b)] = std::isfinite(view.row(b, 0)[i]);
        if (std::find(seen.begin(), seen.end(), 0) == seen.end()) return false;
    }
    if (run.options().dry_run) return false;
    const std::vector<BandedSource> scenes{banded(source)};
    return leave_out_bands(run, scenes, empty_bands(run, scenes));
}

BandedSource banded(std::shared_ptr<raster::RasterSource>& source) {
    return {source, source->bands(),
            [&source](const std::vector<int>& empty) { source = source->without_bands(empty); }};
}

std::vector<int> empty_bands(Run& run, const std::vector<BandedSource>& scenes) {
    std::vector<int> empty;
    for (const BandedSource& scene : scenes) {
        stream::StatisticsScan scan(scene.cube->shape(), stream::Statistics::means);
        run.add_pass(stream::run_pass(*scene.cube, scan, {}, run.pass("statistics", 0)));
        const auto found = scan.result().empty_bands();
        empty.insert(empty.end(), found.begin(), found.end());
    }
    std::sort(empty.begin(), empty.end());
    empty.erase(std::unique(empty.begin(), empty.end()), empty.end());
    return empty;
}

bool leave_out_bands(Run& run, const std::vector<BandedSource>& scenes, const std::vector<int>& empty) {
    if (empty.empty() || empty.size() == scenes.front().bands.size()) return false;
    std::vector<std::string> texts;
    for (const BandedSource& scene : scenes) {
        std::vector<int> numbers;
        for (const int b : empty)
            numbers.push_back(scene.bands[static_cast<size_t>(b)]);
        if (texts.empty()) run.report()["bands_without_values"] = numbers;
        texts.push_back(list_text(numbers));
    }
    std::string text = "no valid value in band " + texts.front();
    // Only a comparison has two scenes; its arguments are called src and other.
    if (texts.back() == texts.front())
        text += ": left out";
    else
        text += " of src or in band " + texts.back() +
                " of other: " + (empty.size() == 1 ? "this pair of bands is" : "these pairs of bands are") +
                " left out";
    run.warn(text);
    for (const BandedSource& scene : scenes)
        scene.leave_out(empty);
    return true;
}

} // namespace hsi::tool
