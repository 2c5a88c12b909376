// SPDX-License-Identifier: MIT
#include "shared/scene_statistics.h"

#include "core/counted.h"
#include "core/error.h"
#include "model/classes.h"
#include "raster/text_input.h"
#include "statistics/statistics.h"
#include "tool/model_values.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hsi::tools {
namespace {

/// Returns an n x n matrix with bands in another order. place[b]: new index of band b.
std::vector<double> reordered(const std::vector<double>& matrix, const std::vector<int>& place) {
    const size_t n = place.size();
    std::vector<double> out(matrix.size());
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            out[static_cast<size_t>(place[a]) * n + static_cast<size_t>(place[b])] = matrix[a * n + b];
    return out;
}

template <class T>
std::vector<T> reordered_bands(const std::vector<T>& values, const std::vector<int>& place) {
    std::vector<T> out(values.size());
    for (size_t b = 0; b < values.size(); ++b)
        out[static_cast<size_t>(place[b])] = values[b];
    return out;
}

void reorder(GivenStatistics& given, const std::vector<int>& place) {
    if (std::is_sorted(place.begin(), place.end())) return;
    auto& m = given.moments;
    m.mean = reordered_bands(m.mean, place);
    m.finite = reordered_bands(m.finite, place);
    m.covariance = reordered(m.covariance, place);
    m.differences = reordered(m.differences, place);
    for (int& band : m.constant)
        band = place[static_cast<size_t>(band)];
    std::sort(m.constant.begin(), m.constant.end());
    given.minimum = reordered_bands(given.minimum, place);
    given.maximum = reordered_bands(given.maximum, place);
}

} // namespace

void add_statistics_option(tool::Builder& args, std::string& file, bool all) {
    args.input("statistics", file, tool::Content::model,
               "Use the statistics file FILE of gdal_hsi_statistics instead of a pass over src");
    args.check([&file, all](const tool::CommonOptions& options) {
        if (all) tool::check_mask_use(options.mask, file.empty(), "-statistics");
    });
}

GivenStatistics read_statistics(tool::Run& run, const std::string& file,
                                const std::shared_ptr<raster::RasterSource>& source) {
    const auto statistics = statistics::from_json(raster::read_input(file, statistics::largest_file), file);
    if (statistics.sums.valid == 0)
        throw Error("'" + file + "' has no valid pixels", "Add a scene with valid pixels.");
    const auto [scene, matched] =
        tool::match_source(run, source, file, statistics.bands, false, model::BandsOf::scenes);
    const auto values = tool::value_scale(*scene, matched);
    if (!model::same_scale(statistics.bands, values))
        throw Error("'" + file + "' is made from values with " +
                        model::scale_text({statistics.bands.value_scale, statistics.bands.value_offset,
                                           statistics.bands.value_unit}) +
                        ", but " + source->path() + " has " + model::scale_text(values),
                    "Make the statistics from scenes with the scale of " + source->path() + ".");
    GivenStatistics given{scene, statistics.result(), {}, {}};
    auto extremes = statistics.extremes();
    given.minimum = std::move(extremes.low);
    given.maximum = std::move(extremes.high);
    reorder(given, matched);
    run.note("Statistics: " + counted(statistics.sums.valid, "pixel") + " of " +
             counted(static_cast<int64_t>(statistics.scenes.size()), "scene") + ", from " + file);
    auto& report = run.report()["statistics"];
    report = {{"file", file}, {"valid_pixels", statistics.sums.valid}};
    for (const auto& one : statistics.scenes)
        report["scenes"].push_back({{"name", one.name}, {"valid_pixels", one.valid}});
    return given;
}

void check_values(tool::Run& run, const GivenStatistics& given) {
    if (given.source->growth() != nullptr) return;
    model::ModelBands known;
    known.minimum.assign(given.minimum.begin(), given.minimum.end());
    known.maximum.assign(given.maximum.begin(), given.maximum.end());
    const tool::RangeCheck check(*given.source, known);
    check.look();
    check.tell(run, "the statistics are of");
}

stream::SceneStatistics moments_at(const GivenStatistics& given, const raster::RasterSource& scene) {
    if (scene.bands() == given.source->bands()) return given.moments;
    std::vector<size_t> kept;
    const auto& all = given.source->bands();
    for (const int band : scene.bands())
        kept.push_back(static_cast<size_t>(std::find(all.begin(), all.end(), band) - all.begin()));
    const auto& from = given.moments;
    stream::SceneStatistics m;
    m.bands = static_cast<int>(kept.size());
    m.valid_pixels = from.valid_pixels;
    m.invalid_pixels = from.invalid_pixels;
    m.pairs = from.pairs;
    for (size_t a = 0; a < kept.size(); ++a) {
        m.mean.push_back(from.mean[kept[a]]);
        m.finite.push_back(from.finite[kept[a]]);
        if (std::binary_search(from.constant.begin(), from.constant.end(), static_cast<int>(kept[a])))
            m.constant.push_back(static_cast<int>(a));
        for (const size_t b : kept) {
            m.covariance.push_back(from.covariance[kept[a] * all.size() + b]);
            m.differences.push_back(from.differences[kept[a] * all.size() + b]);
        }
    }
    return m;
}

} // namespace hsi::tools
