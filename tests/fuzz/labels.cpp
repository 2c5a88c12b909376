// SPDX-License-Identifier: MIT
// Class texts of label files. The first byte selects the kind of file: a small raster whose side file
// (.aux.xml) has category names, a colour table and an attribute table; a vector file, with the attributes of
// one feature per line; or a table of points.
#include "raster/labels.h"
#include "core/json.h"
#include "fuzz/fuzz.h"

#include <cpl_conv.h>

#include <algorithm>
#include <set>
#include <utility>

namespace {

using namespace hsi;

void make_raster(const char* path) {
    GDALDriverH driver = GDALGetDriverByName("GTiff");
    GDALDatasetH dataset = GDALCreate(driver, path, 4, 4, 1, GDT_Byte, nullptr);
    unsigned char values[16];
    for (int i = 0; i < 16; ++i)
        values[i] = static_cast<unsigned char>(i % 5);
    if (GDALRasterIO(GDALGetRasterBand(dataset, 1), GF_Write, 0, 0, 4, 4, values, 4, 4, GDT_Byte, 0, 0) !=
        CE_None)
        std::abort();
    GDALClose(dataset);
}

/// Returns a vector file with one feature per line of text. A line has the class, a tab, and the class name.
/// Features are points, or squares around points that grow with the length of the line.
std::string geojson(const std::string& text, bool squares) {
    Json features = Json::array();
    double x = 0;
    for (const auto& line : fuzz::split(text, '\n')) {
        const auto cells = fuzz::split(line, '\t');
        Json properties{{"class", cells[0]}};
        if (cells.size() > 1) properties["class_name"] = cells[1];
        Json geometry{{"type", "Point"}, {"coordinates", {x + 0.5, -0.5}}};
        if (squares) {
            const double half = 0.05 * static_cast<double>(line.size()), left = x + 0.5 - half,
                         right = x + 0.5 + half, top = -0.5 + half, bottom = -0.5 - half;
            Json ring = Json::array();
            for (const auto& [east, north] :
                 {std::pair(left, top), std::pair(left, bottom), std::pair(right, bottom),
                  std::pair(right, top), std::pair(left, top)})
                ring.push_back({east, north});
            geometry = {{"type", "Polygon"}, {"coordinates", Json::array({ring})}};
        }
        features.push_back({{"type", "Feature"}, {"properties", properties}, {"geometry", geometry}});
        x = x >= 3 ? 0 : x + 1;
    }
    return Json{{"type", "FeatureCollection"}, {"features", features}}.dump(-1, ' ', false,
                                                                            Json::error_handler_t::replace);
}

void check(const raster::LabelOptions& options, const raster::Grid* grid) {
    const auto source = raster::LabelSource::open(options, grid);
    std::set<int> seen;
    for (const auto& one : source->legend()) {
        fuzz::expect(one.value >= (source->zero_is_class() ? 0 : 1) && one.value <= raster::max_class,
                     "a class is a number from 1 to 65535, or 0 where that is one");
        fuzz::expect(seen.insert(one.value).second, "a class stands in the legend once");
    }
    const auto all = raster::collect_labels(*source);
    int64_t pixels = 0;
    for (const auto& one : all.classes)
        pixels += one.pixels;
    fuzz::expect(pixels == static_cast<int64_t>(all.index.size()) && all.value.size() == all.index.size(),
                 "every labelled pixel is counted once");
    raster::OutputOptions output;
    raster::OutputSpec spec;
    raster::describe_class_map(all.classes, output, spec);
    fuzz::expect(output.nodata && std::none_of(all.classes.begin(), all.classes.end(),
                                               [&](const auto& one) { return one.value == *output.nodata; }),
                 "no class is the map's nodata value");
    for (const auto& one : all.classes)
        fuzz::expect(static_cast<size_t>(one.value) < spec.categories.size(),
                     "a class has a place in the map's legend");

    raster::LabelOptions without = options;
    const auto& first = all.classes.front();
    without.leave_out = {std::to_string(first.value) + (first.name.empty() ? "" : "," + first.name)};
    const auto others = raster::collect_labels(*raster::LabelSource::open(without, grid));
    fuzz::expect(std::none_of(others.value.begin(), others.value.end(),
                              [&](uint16_t value) { return value == first.value; }),
                 "a class that is left out labels nothing");
    fuzz::expect(static_cast<int64_t>(others.index.size()) + first.pixels <= pixels,
                 "the other labels are among those of all");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet_gdal();
    static const bool made = (make_raster("/vsimem/labels.tif"), true);
    static_cast<void>(made);
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    raster::LabelOptions options;
    try {
        if (data[0] % 3 == 0) {
            const fuzz::MemoryFile side("/vsimem/labels.tif.aux.xml", text);
            options.path = "/vsimem/labels.tif";
            check(options, nullptr);
        } else {
            const bool table = data[0] % 3 == 2;
            const bool squares = !table && data[0] >= 192;
            const fuzz::MemoryFile file(table ? "/vsimem/points.csv" : "/vsimem/fields.geojson",
                                        table ? text : geojson(text, squares));
            raster::Grid grid;
            grid.samples = 4;
            grid.lines = 1;
            grid.geotransform = {0, 1, 0, 0, 0, -1};
            options.inside_only = data[0] >= 128 && !squares;
            if (squares) options.min_cover = 0.5;
            options.path = file.path();
            check(options, &grid);
        }
    } catch (const Error&) {
    }
    return 0;
}
