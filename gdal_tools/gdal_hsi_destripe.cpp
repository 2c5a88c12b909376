// SPDX-License-Identifier: MIT
// gdal_hsi_destripe: removes stripes along the columns of a pushbroom scanner. Two passes: the first finds
// the levels of columns, and the second corrects every pixel.
#include "core/counted.h"
#include "core/error.h"
#include "destripe/destripe.h"
#include "links/links.h"
#include "raster/output_set.h"
#include "shared/column_tiles.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <memory>
#include <string>
#include <utility>

namespace hsi {
namespace {
namespace destripe_tool {

using destripe::Method;

struct Settings {
    Method method = Method::difference;
    int window = 15;
};

void warn_of_a_map(tool::Run& run, const raster::RasterSource& source) {
    double gt[6] = {0, 1, 0, 0, 0, 1};
    source.facts().copy_geotransform(gt);
    const bool rotated = gt[2] != 0 || gt[4] != 0;
    if (rotated || source.facts().srs)
        run.warn(std::string("src has ") + (rotated ? "a rotated grid" : "the grid of a map") +
                 ": stripes follow the columns only in sensor geometry");
}

raster::OutputSpec spec_of(const raster::RasterSource& scene) {
    raster::OutputSpec spec;
    spec.shape = scene.shape();
    spec.holes = true;
    spec.spectral = true;
    const auto& values = scene.facts().bands.values;
    for (size_t b = 0; b < scene.bands().size(); ++b) {
        raster::BandSpec band;
        band.like_band = static_cast<int>(b);
        if (!values.scale.empty()) {
            band.scale = values.scale[b];
            band.offset = values.offset[b];
        }
        band.unit = values.unit;
        spec.bands.push_back(std::move(band));
    }
    return spec;
}

/// Finds the levels of the columns in one pass. Omits bands without values.
destripe::Columns columns_of(tool::Run& run, const Settings& s, tool::Scene& scene) {
    std::unique_ptr<destripe::LevelScan> scan;
    const bool any = scene.attempt([&](bool again) {
        scan = destripe::make_scan(scene.shape(), s.method);
        const auto cube = scene.counted();
        auto pass = run.pass("columns", again ? 0 : 0.5);
        tools::set_column_tiles(scene.raster()->path(), 1, *cube, *scan, pass);
        if (!tool::run_pass(run, *cube, *scan, {}, pass)) {
            const size_t count = static_cast<size_t>(scene.shape().bands * scene.shape().samples);
            scan.reset();
            return count > 0; // is executed only with -dry-run
        }
        return scan->valid_pixels() > 0;
    });
    if (!any) throw tool::no_valid_pixel(*scene.raster(), run.mask() != nullptr);
    const auto shape = scene.shape();
    const size_t count = static_cast<size_t>(shape.bands * shape.samples);
    if (!scan)
        return {static_cast<size_t>(shape.samples), std::vector<double>(count, 1), std::vector<double>(count),
                static_cast<size_t>(shape.samples)};
    auto columns = scan->columns(*scene.counted(), s.window);
    run.report()["columns"] = {{"all", columns.samples}, {"usable", columns.usable}};
    if (columns.usable < 3)
        throw Error(scene.raster()->path() + " has " + counted(columns.usable, "column") +
                        " with at least 20 valid pixels, but 3 are needed",
                    "Use more lines, or another -mask.");
    if (columns.usable < columns.samples)
        run.note(counted(columns.samples - columns.usable, "column") +
                 " with fewer than 20 valid pixels: not corrected");
    return columns;
}

void run_destripe(tool::Run& run, const Settings& s) {
    const auto& dst = run.options().destination;
    const auto source = run.open_source();
    const bool computed = raster::is_virtual(dst);
    if (computed && !raster::is_computed(dst))
        throw UsageError("-of VRT: each band of a VRT would need the levels of all columns",
                         "Use the extension .hsi for the output.");
    warn_of_a_map(run, *source);
    if (!computed) tool::report_devices(run, {}, nullptr);
    tool::Scene scene(run, source, "");
    if (computed) scene.read_once();
    const auto columns = columns_of(run, s, scene);
    const auto& raster = *scene.raster();
    const auto spec = spec_of(raster);
    if (computed)
        return tool::write_virtual(
            run, dst, spec, raster, [&] { return links::striped_columns(raster.shape().bands, columns); },
            [] { return std::vector<raster::VirtualBand>(); });
    raster::OutputSet outputs;
    outputs.plan(dst, spec);
    outputs.check(raster);
    const auto operation = destripe::make_correction(raster.shape().bands, columns);
    tool::write(run, scene.cube(), *operation, outputs, &raster, [&] { return run.pass("stripes", 0.5); });
    if (operation->valid() == 0) throw tool::no_valid_pixel(raster);
    tool::report_invalid(run, operation->valid(), operation->invalid());
    outputs.commit();
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination("The scene without stripes");
    args.computes_dst();
    args.add_mask("the levels of columns", true);
    args.add_compute(false);
    args.choice("method", s.method, "How the level of a column is measured",
                {{"difference", Method::difference, "accumulated median difference to the previous column"},
                 {"ratio", Method::ratio, "accumulated median ratio, for multiplicative stripes"},
                 {"moment", Method::moment, "mean and standard deviation"},
                 {"median", Method::median, "median"}});
    args.option("window", s.window, "Columns over which levels are smoothed, odd").between(5, 999);
    args.check([&s](const tool::CommonOptions&) {
        if (s.window % 2 == 0)
            throw UsageError("-window: " + std::to_string(s.window) + " is even",
                             "Use an odd number of columns.");
    });
    args.body([&s](tool::Run& run) { run_destripe(run, s); });
}

} // namespace destripe_tool
} // namespace

namespace tools {

extern constinit const tool::Definition destripe{
    "destripe",
    "Removal of stripes along columns",
    "Destriping: removes stripes along the columns of a pushbroom scanner, band by band, by "
    "comparing each column with its neighbours.",
    {{"gdal_hsi_destripe scene.img clean.img -of ENVI", "By differences of neighbouring columns"},
     {"gdal_hsi_destripe -method ratio -window 31 scene.img clean.tif", "Multiplicative stripes"},
     {"gdal_hsi_destripe scene.img clean.hsi", "Computed when it is displayed"}},
    "",
    destripe_tool::declare};

} // namespace tools
} // namespace hsi
