// SPDX-License-Identifier: MIT
// gdal_hsi_orthorectify: places the pixels of a swath on the grid of a geographic lookup table (GLT). One
// pass runs over the grid. If reading the swath in the order of the grid would decode its blocks many times,
// an earlier pass reads the swath into memory.
#include "core/counted.h"
#include "core/error.h"
#include "raster/lookup_table.h"
#include "raster/output_set.h"
#include "raster/scene_document.h"
#include "tool/definition.h"
#include "tool/passes.h"
#include "tool/scene.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace hsi {
namespace {
namespace orthorectify_tool {

using tool::Content;

struct Settings {
    std::string table;
};

/// Reads the whole scene and does nothing with it: a source that keeps its tiles then has them in memory.
class Reading final : public stream::Operation {
  public:
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Reader>();
    }

  private:
    struct Reader final : stream::Worker {
        void process(const Tile&, const CubeView<float>&, const std::vector<CubeView<float>>&) override {}
    };
};

/// Copies values band by band, and counts the pixels with at least one value.
class Placing final : public stream::Operation {
  public:
    explicit Placing(int bands) : m_bands(bands) {}
    std::vector<int> output_bands() const override { return {m_bands}; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return static_cast<uint64_t>(limits.core_samples);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Placer>();
    }
    void stop(stream::Worker& worker) override { m_placed += static_cast<const Placer&>(worker).placed; }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override {
        std::vector<int64_t> counts{m_placed};
        ranks.add_up("pixels", counts);
        m_placed = counts[0];
    }
    int64_t placed() const { return m_placed; }

  private:
    struct Placer final : stream::Worker {
        void process(const Tile&, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            std::vector<char> some(static_cast<size_t>(in.samples));
            for (int64_t y = 0; y < in.lines; ++y) {
                std::fill(some.begin(), some.end(), char{0});
                for (int b = 0; b < in.bands; ++b) {
                    const float* const from = in.row(b, y);
                    float* const to = out[0].row(b, y);
                    for (int64_t x = 0; x < in.samples; ++x) {
                        to[x] = from[x];
                        some[static_cast<size_t>(x)] |= !std::isnan(from[x]);
                    }
                }
                placed += std::count(some.begin(), some.end(), char{1});
            }
        }
        int64_t placed = 0;
    };
    const int m_bands;
    int64_t m_placed = 0;
};

/// Describes an output with the data type of src. Values that a float cannot represent are copied bit by bit.
raster::OutputSpec spec_of(const raster::RasterSource& grid) {
    raster::OutputSpec spec;
    spec.shape = grid.shape();
    spec.type = grid.facts().type;
    if (!grid.facts().exact_in_float) spec.sample_type = spec.type;
    spec.same_bands = true;
    spec.holes = true;
    return spec;
}

raster::OutputSet output_of(const tool::Run& run, const raster::RasterSource& grid) {
    raster::OutputSet outputs;
    outputs.plan(run.options().destination, spec_of(grid));
    outputs.check(grid);
    return outputs;
}

/// Writes an .hsi that refers to the scene and the table. Both files are read whenever the .hsi is read.
void write_computed(tool::Run& run, const raster::RasterSource& scene, const raster::RasterSource& grid) {
    if (!scene.facts().exact_in_float)
        throw UsageError("-of HSI: single precision cannot store the values of " + scene.path(),
                         "Write another format.");
    const auto spec = spec_of(grid);
    raster::check_virtual(run.options().destination, spec, grid);
    tool::begin_virtual(run, run.options().destination);
    stream::Link link;
    link.operation = raster::grid_operation;
    raster::write_virtual(run.options().destination, spec, grid, link);
}

void run_orthorectify(tool::Run& run, const Settings& s) {
    const auto scene = run.open_source(tool::Precision::full);
    const auto read = scene->facts().exact_in_float ? scene : scene->in_samples();
    const std::string path = s.table.empty() ? run.options().source.path : s.table;
    const auto table = raster::LookupTable::open(path);
    const auto shown = raster::orthorectified(scene, scene, table);
    const auto to_read = raster::orthorectified(read, read, table);
    run.report()["lookup_table"] = {{"file", path}, {"samples", table->samples()}, {"lines", table->lines()}};
    if (raster::is_computed(run.options().destination)) return write_computed(run, *scene, *shown);
    auto outputs = output_of(run, *shown);
    Placing placing(read->shape().bands);
    tool::end_of_plan(run,
                      [&] { tool::print_plan(run, *to_read, placing, run.pass("orthorectification", 1)); });
    outputs.create(shown.get());
    run.reserve_cache(outputs.cache_bytes());
    // The pixels stay in memory if enough memory is left for the second pass, which copies parts of the swath
    // into its own buffers.
    const auto pixels = run.keep_if_slow(read, stream::least_pass_bytes(*to_read, placing));
    const bool kept = pixels.get() != read.get();
    if (kept) {
        Reading reading;
        run.add_pass(stream::run_pass(*pixels, reading, {}, run.pass("reading", 0.4)));
        tool::seal(*pixels);
    }
    const auto grid = raster::orthorectified(read, pixels, table);
    auto pass = run.pass("orthorectification", kept ? 0.6 : 1);
    pass.output_layout = outputs.layout();
    run.add_pass(stream::run_pass(*grid, placing, outputs.sinks(), pass));
    const int64_t all = grid->shape().pixels();
    run.report()["pixels"] = {{"grid", all}, {"placed", placing.placed()}};
    if (placing.placed() == 0)
        throw Error("no pixel of the grid has a value of src",
                    "The lookup table is empty, or does not refer to this part of the scene.");
    run.note(std::to_string(placing.placed()) + " of " + counted(all, "pixel") + " of the grid of " +
             size_text(table->samples(), table->lines()) + worded(placing.placed(), " has", " have") +
             " a value");
    outputs.commit();
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_destination();
    args.computes_dst();
    args.add_compute(false);
    args.input("glt", s.table, Content::raster,
               "Geographic lookup table: the product of src (EMIT), or a raster of two bands, sample and"
               " line (AVIRIS)")
        .defaults_to("src itself, if it is such a product");
    args.body([&s](tool::Run& run) { run_orthorectify(run, s); });
}

} // namespace orthorectify_tool
} // namespace

namespace tools {

extern constinit const tool::Definition orthorectify{
    "orthorectify",
    "Orthorectification by a lookup table",
    "Resamples a scene in sensor geometry, or a result made from one, onto the orthorectified grid of "
    "its geographic lookup table (GLT): every grid pixel gets the unchanged values of one scene pixel, or "
    "nodata. Run other tools first and orthorectify their results, because the grid repeats some pixels and "
    "omits others.",
    {{"gdal_hsi_orthorectify emit.nc scene.tif", "The product itself"},
     {"gdal_hsi_unmix emit.nc minerals.csv a.tif && gdal_hsi_orthorectify -glt emit.nc a.tif abundances.tif",
      "Abundances of the product"},
     {"gdal_hsi_orthorectify -glt ang20150420t182050_glt ang_rdn.img ang_ortho.img -of ENVI",
      "A flight line with its own table"}},
    "",
    orthorectify_tool::declare,
    false,
    false};

} // namespace tools
} // namespace hsi
