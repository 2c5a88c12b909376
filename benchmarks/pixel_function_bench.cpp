// SPDX-License-Identifier: MIT
// hsi_sad as GDAL calls it, without GDAL's reading, compared with the angles of gdal_hsi_atdca over a tile in
// memory. Both use the same 200 bands and pixels, and one thread. The rates count pixels.
#include "atdca/atdca.h"
#include "gdal/apply.h"
#include "gdal/function.h"
#include "support/memory_cube.h"

#include <benchmark/benchmark.h>
#include <cpl_string.h>

#include <cstring>
#include <memory>
#include <string>

namespace {

using namespace hsi;

constexpr int64_t samples = 614, lines = 128; // 63 MB for 200 bands, more than a cache
constexpr int bands = 200;

const test::Cube& scene() {
    static const test::Cube made = test::random_scene(samples, lines, bands, 1, 0.02, 1000);
    return made;
}

/// Returns the values of all bands as int16, the data type of most scenes.
const std::vector<int16_t>& whole_numbers() {
    static const std::vector<int16_t> made(scene().values.begin(), scene().values.end());
    return made;
}

std::vector<float> reference() {
    std::vector<float> r;
    for (int b = 0; b < bands; ++b)
        r.push_back(scene().at(b, 5, 7));
    return r;
}

std::shared_ptr<const plugin::Function> function(const char* nodata) {
    std::string text;
    for (const float v : reference())
        text += std::to_string(v) + " ";
    CPLStringList list;
    list.AddNameValue("spectra", text.c_str());
    if (nodata) list.AddNameValue("nodata", nodata);
    for (const auto& d : plugin::definitions())
        if (std::strcmp(d.name, "hsi_sad") == 0)
            return std::make_shared<const plugin::Function>(
                plugin::understand(d, plugin::Arguments(d.name, list.List(), {}), bands));
    return nullptr;
}

template <class T>
void apply_to(benchmark::State& state, const T* values, GDALDataType type, const char* nodata) {
    const auto f = function(nodata);
    std::vector<void*> sources;
    for (int b = 0; b < bands; ++b)
        sources.push_back(const_cast<T*>(values) + b * samples * lines);
    std::vector<float> out(static_cast<size_t>(samples * lines));
    plugin::PixelBuffers buffers;
    buffers.sources = sources.data();
    buffers.source_type = type;
    buffers.width = static_cast<int>(samples);
    buffers.height = static_cast<int>(lines);
    buffers.out = out.data();
    buffers.out_type = GDT_Float32;
    buffers.pixel_space = sizeof(float);
    buffers.line_space = samples * static_cast<int64_t>(sizeof(float));
    for (auto _ : state)
        plugin::apply(f, buffers);
    state.SetItemsProcessed(state.iterations() * samples * lines);
}

void hsi_sad(benchmark::State& state) { apply_to(state, scene().values.data(), GDT_Float32, nullptr); }
void hsi_sad_nodata(benchmark::State& state) { apply_to(state, scene().values.data(), GDT_Float32, "-9999"); }
void hsi_sad_int16(benchmark::State& state) { apply_to(state, whole_numbers().data(), GDT_Int16, "-9999"); }

void atdca_angles(benchmark::State& state) {
    atdca::ClassifyOptions options;
    options.map = false;
    options.scores = atdca::ClassifyOptions::Scores::angle;
    const auto operation = atdca::make_classification({reference()}, options);
    const auto worker = operation->start(0, {samples, lines, samples, lines});
    test::Cube cube = scene(), out(samples, lines, 1);
    Tile tile;
    tile.core = tile.window = {0, 0, samples, lines};
    const std::vector<CubeView<float>> views{out.view()};
    for (auto _ : state)
        worker->process(tile, cube.view(), views);
    state.SetItemsProcessed(state.iterations() * samples * lines);
    state.SetLabel(atdca::simd_target());
}

} // namespace

BENCHMARK(atdca_angles)->Unit(benchmark::kMillisecond);
BENCHMARK(hsi_sad)->Unit(benchmark::kMillisecond);
BENCHMARK(hsi_sad_nodata)->Unit(benchmark::kMillisecond);
BENCHMARK(hsi_sad_int16)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
