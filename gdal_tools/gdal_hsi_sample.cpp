// SPDX-License-Identifier: MIT
// gdal_hsi_sample: labels, split into a training and a test raster; stratified and seeded.
#include "core/counted.h"
#include "core/error.h"
#include "raster/labels/labels.h"
#include "sample/sample.h"
#include "shared/neighbours.h"
#include "tool/classification.h"
#include "tool/definition.h"

#include <algorithm>
#include <limits>

namespace hsi {
namespace {
namespace sample_tool {

using tool::Content;

struct Settings {
    raster::LabelOptions labels;
    std::string like, test_file;
    std::vector<std::string> counts, fractions;
    sample::Options sample;
};

/// Writes the pixels of one part as a class map, strip by strip.
void write_part(raster::RasterSink& sink, const raster::LabelledPixels& all, const sample::Split& split,
                sample::Part part) {
    const auto shape = sink.shape();
    constexpr int64_t strip = 256;
    std::vector<float> lines(static_cast<size_t>(strip * shape.samples));
    size_t at = 0;
    for (int64_t y = 0; y < shape.lines; y += strip) {
        const int64_t n = std::min(strip, shape.lines - y);
        std::fill(lines.begin(), lines.end(), std::numeric_limits<float>::quiet_NaN()); // no label
        for (; at < all.index.size() && all.index[at] < (y + n) * shape.samples; ++at)
            if (split.part[at] == part)
                lines[static_cast<size_t>(all.index[at] - y * shape.samples)] = all.value[at];
        sink.write(Rect{0, y, shape.samples, n}, CubeView<float>::packed(lines.data(), 1, n, shape.samples));
    }
}

/// Test pixels beside training pixels: a warning where they are many.
void warn_of_neighbours(tool::Run& run, const raster::LabelledPixels& all, const sample::Split& split) {
    const auto is_test = [&](size_t i) { return split.part[i] == sample::Part::test; };
    const auto parted = [&](size_t i, size_t j) {
        const auto a = split.part[i], b = split.part[j];
        return a != b && a != sample::Part::left_out && b != sample::Part::left_out;
    };
    const auto touches = tools::touching_pixels(all.index, all.grid.samples, parted);
    int64_t touching = 0, tested = 0;
    for (size_t i = 0; i < touches.size(); ++i) {
        if (!is_test(i)) continue;
        ++tested;
        touching += touches[i];
    }
    run.report()["test_pixels_touching_training"] = touching;
    if (tools::touching_counts(touching, tested))
        run.warn(std::to_string(touching) + " of " + counted(tested, "test pixel") +
                 " touch a training pixel: what looks at neighbours (profiles, sahic, regularize) will be "
                 "judged on pixels that it has seen, and all others on their like. -min-distance parts them");
}

void run_sample(tool::Run& run, Settings& settings) {
    raster::OpenOptions grid_file;
    grid_file.path = settings.like.empty() ? settings.labels.path : settings.like;
    std::unique_ptr<raster::LabelSource> source;
    std::shared_ptr<raster::RasterSource> scene;
    if (settings.like.empty()) {
        source = raster::LabelSource::open(settings.labels);
        scene = raster::RasterSource::open(grid_file);
    } else {
        scene = raster::RasterSource::open(grid_file);
        const auto grid = raster::grid_of(*scene);
        source = raster::LabelSource::open(settings.labels, &grid);
    }
    for (const auto& note : source->notes())
        run.warn(note);
    const auto all = raster::collect_labels(*source);
    for (const auto& note : all.notes)
        run.warn(note);
    for (const auto& text : settings.counts)
        sample::apply_share(text, false, all.classes, settings.sample);
    for (const auto& text : settings.fractions)
        sample::apply_share(text, true, all.classes, settings.sample);
    const auto split =
        sample::split(all.index, all.value, all.grid.samples, all.grid.lines, all.classes, settings.sample);

    auto& report = run.report();
    report["labels"] = {
        {"path", source->path()}, {"how", source->description()}, {"pixels", all.index.size()}};
    report["left_out"] = split.left_out;
    std::string table = "Class: training and test pixels\n";
    std::string without_test;
    for (const auto& c : all.classes) {
        const auto count = [&](const std::map<int, int64_t>& of) {
            const auto it = of.find(c.value);
            return it == of.end() ? int64_t{0} : it->second;
        };
        const std::string name = std::to_string(c.value) + (c.name.empty() ? "" : " " + c.name);
        table += "  " + name + ": " + std::to_string(count(split.train)) + " and " +
                 std::to_string(count(split.test)) + "\n";
        report["classes"].push_back({{"value", c.value},
                                     {"name", c.name},
                                     {"pixels", c.pixels},
                                     {"train", count(split.train)},
                                     {"test", count(split.test)}});
        if (count(split.test) == 0) without_test += (without_test.empty() ? "" : ", ") + name;
    }
    table.pop_back();
    run.note(table);
    if (split.left_out > 0)
        run.note(counted(split.left_out, "pixel is", "pixels are") +
                 " nearer than -min-distance to a training pixel and in neither set");
    if (!without_test.empty()) run.warn("no test pixel is left of class " + without_test);

    raster::OutputOptions train = run.options().destination,
                          test = run.side_output("dst_test", settings.test_file);
    test.type = train.type;
    raster::OutputSpec train_spec;
    train_spec.shape = {all.grid.samples, all.grid.lines, 1};
    raster::OutputSpec test_spec = train_spec;
    raster::describe_class_map(all.classes, train, train_spec);
    raster::describe_class_map(all.classes, test, test_spec);
    train_spec.bands = {{"training labels", {}}};
    test_spec.bands = {{"test labels", {}}};
    raster::RasterSink::check(train, train_spec);
    raster::RasterSink::check(test, test_spec);
    warn_of_neighbours(run, all, split);
    if (run.options().dry_run) return;
    const auto train_sink = raster::RasterSink::create(train, train_spec, scene.get());
    const auto test_sink = raster::RasterSink::create(test, test_spec, scene.get());
    write_part(*train_sink, all, split, sample::Part::train);
    if (run.cancel().requested()) throw Cancelled();
    write_part(*test_sink, all, split, sample::Part::test);
    train_sink->commit();
    test_sink->commit();
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    call.input_argument("labels", s.labels.path, Content::labels,
                        "The labels to split: a raster or vector file");
    call.add_destination("The training labels; both outputs appear when they are complete");
    call.output_argument("dst_test", s.test_file, Content::raster,
                         "The test labels: the pixels that are not drawn");
    call.option("n", s.counts, "Training pixels of each class: 50; of some, by number or name: 15:1,7,9")
        .shown_as("N[:CLASSES]")
        .defaults_to("50")
        .also("count");
    call.option("fraction", s.fractions, "Share of each class for training: 0.1; of some: 0.3:1,9")
        .shown_as("F[:CLASSES]");
    call.option("seed", s.sample.seed, "Seed of the random draw: the same seed gives the same split").from(0);
    call.option("min-distance", s.sample.min_distance,
                "Spatially disjoint split: training pixels form compact patches, and test pixels nearer than "
                "this to one are left out")
        .between(0, 10000)
        .in_unit("pixels")
        .shown_as("PIXELS");
    call.option("patches", s.sample.patches, "With -min-distance: training patches of each class").from(1);
    call.input("like", s.like, Content::raster,
               "Put the labels on the grid of the raster FILE; vector labels need it");
    tool::add_label_options(call, s.labels);
    call.add_report();
    call.check([&s, &call](const tool::CommonOptions&) {
        for (const auto& text : s.counts)
            sample::check_share(text, false);
        for (const auto& text : s.fractions)
            sample::check_share(text, true);
        const auto of_all = [](const std::string& text) { return text.find(':') == std::string::npos; };
        if (std::any_of(s.counts.begin(), s.counts.end(), of_all) &&
            std::any_of(s.fractions.begin(), s.fractions.end(), of_all))
            throw UsageError("-n and -fraction both tell how many pixels of every class are for training",
                             "Leave one of them out, or name its classes: 15:1,7,9.");
        if (call.given("patches") && !(s.sample.min_distance > 0))
            throw UsageError("-patches means nothing without -min-distance");
    });
    call.body([&s](tool::Run& run) { run_sample(run, s); });
}

} // namespace sample_tool
} // namespace

namespace tools {

extern const tool::Definition sample{
    "sample",
    "Training and test labels",
    "Splits labels into training and test pixels, class by class: so many or such a share of each, "
    "drawn with a seed. Labels are a raster, or any vector file with -like naming the scene.",
    {{"gdal_hsi_sample -n 50 -n 15:1,7,9 -seed 3 labels.tif train.tif test.tif",
      "50 pixels of each class, 15 of three small ones"},
     {"gdal_hsi_sample -fraction 0.1 -like scene.img -field landcover fields.gpkg train.tif test.tif",
      "A tenth of each class, from polygons"},
     {"gdal_hsi_sample -n 50 -min-distance 5 -patches 4 labels.tif train.tif test.tif",
      "Test pixels at least 5 pixels away from training pixels"}},
    "",
    sample_tool::declare,
    true};

} // namespace tools
} // namespace hsi
