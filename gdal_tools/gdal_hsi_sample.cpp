// SPDX-License-Identifier: MIT
// gdal_hsi_sample: splits labels into a training raster and a test raster, stratified by class and with a
// seed.
#include "core/counted.h"
#include "core/error.h"
#include "raster/labels.h"
#include "sample/sample.h"
#include "shared/folds.h"
#include "shared/neighbours.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/passes.h"
#include "tool/phrases.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace {
namespace sample_tool {

using tool::Content;

struct Settings {
    raster::LabelOptions labels;
    std::string like, test_file, cover_file, groups_file;
    std::vector<std::string> counts, fractions;
    sample::Options sample;
    bool by_patches = false;
    int64_t patch_pixels = 0; ///< largest number of labelled pixels of a patch; 0: all
    int folds = 0;            ///< number of folds; 0: one split
};

/// Writes value_of(i) for each labelled pixel i, in strips of 256 rows. NaN: the pixel has no label.
template <class ValueOf>
void write_pixels(raster::RasterSink& sink, const raster::LabelledPixels& all, const ValueOf& value_of) {
    const auto shape = sink.shape();
    constexpr int64_t strip = 256;
    std::vector<float> lines(static_cast<size_t>(strip * shape.samples));
    size_t at = 0;
    for (int64_t y = 0; y < shape.lines; y += strip) {
        const int64_t n = std::min(strip, shape.lines - y);
        std::fill(lines.begin(), lines.end(), std::numeric_limits<float>::quiet_NaN());
        for (; at < all.index.size() && all.index[at] < (y + n) * shape.samples; ++at)
            lines[static_cast<size_t>(all.index[at] - y * shape.samples)] = value_of(at);
        sink.write(Rect{0, y, shape.samples, n}, CubeView<float>::packed(lines.data(), 1, n, shape.samples));
    }
}

/// Writes the pixels of one part as a class map.
void write_part(raster::RasterSink& sink, const raster::LabelledPixels& all, const sample::Split& split,
                sample::Part part) {
    write_pixels(sink, all, [&](size_t i) {
        return split.part[i] == part ? static_cast<float>(all.value[i])
                                     : std::numeric_limits<float>::quiet_NaN();
    });
}

/// Writes the number of each labelled pixel's patch, from 1.
void write_groups(raster::RasterSink& sink, const raster::LabelledPixels& all,
                  const std::vector<size_t>& patch) {
    write_pixels(sink, all, [&](size_t i) { return static_cast<float>(patch[i] + 1); });
}

/// Returns the number of test pixels that touch a training pixel. `tested` is increased by the number of test
/// pixels.
int64_t count_touching(const raster::LabelledPixels& all, const sample::Split& split, int64_t& tested) {
    const auto parted = [&](size_t i, size_t j) {
        const auto a = split.part[i], b = split.part[j];
        return a != b && a != sample::Part::left_out && b != sample::Part::left_out;
    };
    const auto touches = tools::touching_pixels(all.index, all.grid.samples, parted);
    int64_t touching = 0;
    for (size_t i = 0; i < touches.size(); ++i) {
        if (split.part[i] != sample::Part::test) continue;
        ++tested;
        touching += touches[i];
    }
    return touching;
}

/// Warns if many test pixels touch training pixels.
void warn_of_neighbours(tool::Run& run, const Settings& s, const raster::LabelledPixels& all,
                        const std::vector<sample::Split>& splits) {
    int64_t touching = 0, tested = 0;
    for (size_t k = 0; k < splits.size(); ++k) {
        const int64_t own = count_touching(all, splits[k], tested);
        if (s.folds > 0) run.report()["folds"][k]["test_pixels_touching_training"] = own;
        touching += own;
    }
    run.report()["test_pixels_touching_training"] = touching;
    if (tools::touching_counts(touching, tested))
        run.warn(
            std::to_string(touching) + " of " + counted(tested, "test pixel") +
            " touch a training pixel, so accuracies will be too high, most of all for maps made with "
            "neighbouring pixels (profiles, sahic, regularize). " +
            (s.by_patches ? "Use -min-distance to keep them apart"
             : s.folds > 0
                 ? "Use -by patches to keep fields together, and -min-distance with it to keep pixels apart"
                 : "Use -min-distance to keep pixels apart, or -by patches to draw whole fields"));
}

int64_t count_of(const std::map<int, int64_t>& of, int value) {
    const auto it = of.find(value);
    return it == of.end() ? int64_t{0} : it->second;
}

std::string with_comma(const std::string& list) { return list.empty() ? list : list + ", "; }

/// Adds the counts of a split, per class, to `report`. Warns of classes with too few pixels.
void report_split(tool::Run& run, const raster::LabelledPixels& all, const sample::Split& split,
                  Json& report) {
    report["left_out"] = split.left_out;
    std::string table = "Class: training and test pixels\n", without_test;
    for (const auto& c : all.classes) {
        const int64_t train = count_of(split.train, c.value), test = count_of(split.test, c.value);
        const std::string name = tool::class_text(c.value, c.name);
        table += "  " + name + ": " + std::to_string(train) + " and " + std::to_string(test) + "\n";
        report["classes"].push_back(
            {{"value", c.value}, {"name", c.name}, {"pixels", c.pixels}, {"train", train}, {"test", test}});
        if (test == 0) without_test = with_comma(without_test) + name;
        if (const int64_t n = count_of(split.missing, c.value); n > 0)
            run.warn("class " + name + ": " + std::to_string(train) + " of the " + std::to_string(train + n) +
                     " training pixels requested, since one patch is kept for the test");
    }
    table.pop_back();
    run.note(table);
    if (split.left_out > 0)
        run.note(counted(split.left_out, "pixel is", "pixels are") +
                 " nearer than -min-distance to a training pixel and left out of both sets");
    if (!without_test.empty()) run.warn("no test pixel is left of class " + without_test);
}

/// Warns of weak classes in a fold: classes that are tested but not trained, classes with fewer training
/// pixels than a cross-validation of gdal_hsi_svm_train needs, and classes that are not tested because nearby
/// pixels were removed.
void warn_of_weak_folds(tool::Run& run, const raster::LabelledPixels& all,
                        const std::vector<sample::Split>& splits) {
    std::string strangers, unknown, single, untested, never;
    for (const auto& c : all.classes) {
        std::vector<int> of_strangers, without, of_single;
        int64_t not_tested = 0;
        for (size_t k = 0; k < splits.size(); ++k) {
            const int64_t train = count_of(splits[k].train, c.value),
                          test = count_of(splits[k].test, c.value);
            const auto fold = static_cast<int>(k) + 1;
            if (train == 0) (test > 0 ? of_strangers : without).push_back(fold);
            if (train == 1) of_single.push_back(fold);
            not_tested += test == 0;
        }
        const std::string name = tool::class_text(c.value, c.name);
        const auto add = [&](std::string& list, const std::vector<int>& folds) {
            if (!folds.empty()) list = with_comma(list) + name + " (" + tools::folds_text(folds) + ")";
        };
        add(strangers, of_strangers);
        add(unknown, without);
        add(single, of_single);
        if (not_tested == static_cast<int64_t>(splits.size()))
            never = with_comma(never) + name;
        else if (not_tested > 0 && of_strangers.empty())
            untested = with_comma(untested) + name + " (" + std::to_string(not_tested) + ")";
    }
    const std::string advice = ". Use fewer folds, label more, or use -leave-out";
    if (!strangers.empty())
        run.warn("no training pixel is left in a fold that tests a class, so all of its test pixels will be "
                 "wrong: class " +
                 strangers + ". Its labels are one patch, or one pixel" + advice);
    if (!unknown.empty())
        run.warn("no training pixel and no test pixel is left of class " + unknown +
                 ": the accuracy of this class cannot be assessed" + advice);
    if (!single.empty())
        run.warn("only 1 training pixel of class " + single +
                 ": gdal_hsi_svm_train needs 2 of each class to find C and gamma" + advice);
    if (!never.empty()) run.warn("no test pixel in any fold of class " + never + advice);
    if (!untested.empty())
        run.warn("no test pixel in some folds (their count in brackets) of class " + untested);
}

/// Reports the counts of each fold.
void report_folds(tool::Run& run, const raster::LabelledPixels& all,
                  const std::vector<sample::Split>& splits) {
    auto& report = run.report();
    std::string table = "Fold: training and test pixels\n";
    int64_t left_out = 0;
    for (size_t k = 0; k < splits.size(); ++k) {
        Json classes = Json::array();
        int64_t trained = 0, tested = 0;
        for (const auto& c : all.classes) {
            const int64_t train = count_of(splits[k].train, c.value),
                          test = count_of(splits[k].test, c.value);
            classes.push_back({{"value", c.value}, {"name", c.name}, {"train", train}, {"test", test}});
            trained += train;
            tested += test;
        }
        if (tested == 0)
            throw Error("no test pixel is left in fold " + std::to_string(k + 1),
                        "Use a smaller -min-distance, or fewer folds.");
        left_out += splits[k].left_out;
        report["folds"].push_back({{"left_out", splits[k].left_out}, {"classes", classes}});
        table += "  " + std::to_string(k + 1) + ": " + std::to_string(trained) + " and " +
                 std::to_string(tested) + "\n";
    }
    table.pop_back();
    run.note(table);
    if (left_out > 0)
        run.note(counted(left_out, "pixel is", "pixels are") +
                 " nearer than -min-distance to a training pixel of another fold and left out there");
    warn_of_weak_folds(run, all, splits);
}

/// Writes, for each class, the fraction of each pixel that the class covers. Pixels without any class become
/// NaN.
void write_cover(tool::Run& run, raster::RasterSink& sink, raster::LabelSource& source,
                 const std::vector<uint16_t>& values) {
    const auto shape = sink.shape();
    const auto line = static_cast<size_t>(shape.samples);
    const int64_t strip =
        std::clamp<int64_t>((int64_t{32} << 20) / (shape.samples * shape.bands * 4), 1, 256);
    for (int64_t y = 0; y < shape.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t n = std::min(strip, shape.lines - y);
        const size_t plane = static_cast<size_t>(n) * line;
        std::vector<float> shares(plane * values.size());
        for (size_t k = 0; k < values.size(); ++k)
            source.shares(y, n, values[k], &shares[k * plane]);
        for (size_t i = 0; i < plane; ++i) {
            bool covered = false;
            for (size_t k = 0; k < values.size(); ++k)
                covered = covered || shares[k * plane + i] > 0;
            for (size_t k = 0; k < values.size() && !covered; ++k)
                shares[k * plane + i] = std::numeric_limits<float>::quiet_NaN();
        }
        sink.write(Rect{0, y, shape.samples, n},
                   CubeView<float>::packed(shares.data(), shape.bands, n, shape.samples));
    }
}

/// All outputs of the run. They are checked before the first output is created.
class Outputs {
  public:
    Outputs(tool::Run& run, const Settings& s, const raster::LabelledPixels& all, raster::LabelSource& labels,
            const std::vector<size_t>& patch)
        : m_run(run), m_all(all), m_labels(labels), m_patch(patch) {
        for (int k = 0; k < std::max(1, s.folds); ++k) {
            raster::OutputOptions train = run.options().destination,
                                  test = run.side_output("dst_test", s.test_file);
            test.type = train.type;
            if (s.folds > 0) {
                const std::string of = " of fold " + std::to_string(k + 1);
                train.path = tools::file_of_fold(train.path, k + 1);
                train.role = "dst" + of;
                test.path = tools::file_of_fold(test.path, k + 1);
                test.role += of;
            }
            add_map(train, "training labels", k, sample::Part::train);
            add_map(test, "test labels", k, sample::Part::test);
        }
        if (!s.groups_file.empty()) add_groups(s.groups_file);
        if (s.cover_file.empty()) return;
        m_values = labels.share_classes();
        if (m_values.empty())
            throw Error("-cover: no class with polygons is left", "Leave fewer classes out with -leave-out.");
        Output cover{run.side_output("-cover", s.cover_file), {}, Kind::cover, 0, {}};
        cover.options.nodata.reset(); // the nodata value is meant for the labels
        cover.spec.shape = {all.grid.samples, all.grid.lines, static_cast<int>(m_values.size())};
        cover.spec.holes = true;
        for (const uint16_t value : m_values) {
            std::string name;
            for (const auto& c : labels.legend())
                if (c.value == value) name = c.name;
            cover.spec.bands.push_back({"cover of class " + tool::class_text(value, name), {}});
        }
        m_outputs.push_back(std::move(cover));
        raster::check_output(m_outputs.back().options, m_outputs.back().spec);
    }

    void write(const std::vector<sample::Split>& splits, const raster::RasterSource& scene) {
        for (const Output& o : m_outputs) {
            if (m_run.cancel().requested()) throw Cancelled();
            const auto sink = raster::create_sink(o.options, o.spec, &scene);
            if (o.kind == Kind::cover)
                write_cover(m_run, *sink, m_labels, m_values);
            else if (o.kind == Kind::groups)
                write_groups(*sink, m_all, m_patch);
            else
                write_part(*sink, m_all, splits[static_cast<size_t>(o.split)], o.part);
            sink->commit();
        }
    }

  private:
    enum class Kind { part, groups, cover };
    struct Output {
        raster::OutputOptions options;
        raster::OutputSpec spec;
        Kind kind = Kind::part;
        int split = 0;
        sample::Part part = sample::Part::left_out; ///< only for Kind::part
    };

    void add_groups(const std::string& path) {
        const size_t patches = *std::max_element(m_patch.begin(), m_patch.end()) + 1;
        if (patches > static_cast<size_t>(raster::max_class))
            throw Error("-groups: the labels have " + counted(patches, "patch", "patches") +
                            ", more than the 65535 numbers of a file of groups",
                        "Leave -groups out, or label fewer patches.");
        Output groups{m_run.side_output("-groups", path), {}, Kind::groups, 0, {}};
        groups.options.type = "UInt16";
        groups.options.nodata = 0;
        groups.spec.shape = {m_all.grid.samples, m_all.grid.lines, 1};
        groups.spec.type = "UInt16";
        groups.spec.holes = true;
        groups.spec.bands = {{"patch of the labels", {}}};
        m_outputs.push_back(std::move(groups));
        raster::check_output(m_outputs.back().options, m_outputs.back().spec);
    }

    void add_map(raster::OutputOptions options, const char* band, int split, sample::Part part) {
        Output map{std::move(options), {}, Kind::part, split, part};
        map.spec.shape = {m_all.grid.samples, m_all.grid.lines, 1};
        raster::describe_class_map(m_all.classes, map.options, map.spec);
        map.spec.bands = {{band, {}}};
        raster::check_output(map.options, map.spec);
        m_outputs.push_back(std::move(map));
    }

    tool::Run& m_run;
    const raster::LabelledPixels& m_all;
    raster::LabelSource& m_labels;
    const std::vector<size_t>& m_patch; ///< patch of each labelled pixel, from 0; empty if not needed
    std::vector<uint16_t> m_values;     ///< class values of the bands of -cover
    std::vector<Output> m_outputs;
};

/// Warns if files of an earlier run with more folds exist, because a file name pattern for all folds also
/// matches these files.
void warn_of_further_folds(tool::Run& run, const Settings& s) {
    auto files = tools::files_of_more_folds(run.options().destination.path, s.folds);
    for (auto& file : tools::files_of_more_folds(s.test_file, s.folds))
        files.push_back(std::move(file));
    if (files.empty()) return;
    run.warn(tools::some_files(files) + worded(files.size(), " is", " are") + " from more than " +
             std::to_string(s.folds) +
             " folds and not part of this split, but a pattern such as train_*.tif includes " +
             worded(files.size(), "it", "them") + ": delete " + worded(files.size(), "it", "them"));
    run.report()["files_of_more_folds"] = files;
}

/// Keeps at most `most` labelled pixels of each patch, nearest to its centre.
void keep_centres(tool::Run& run, raster::LabelledPixels& all, std::vector<size_t>& patch, int64_t most) {
    const auto keep = sample::nearest_to_centres(all.index, all.grid.samples, patch, most);
    size_t kept = 0;
    std::map<int, int64_t> pixels;
    for (size_t i = 0; i < keep.size(); ++i) {
        if (keep[i] == 0) continue;
        all.index[kept] = all.index[i];
        all.value[kept] = all.value[i];
        patch[kept] = patch[i];
        ++pixels[all.value[i]];
        ++kept;
    }
    run.note("-patch-pixels keeps " + std::to_string(kept) + " of " + counted(keep.size(), "labelled pixel"));
    run.report()["labels"]["kept_pixels"] = kept;
    all.index.resize(kept);
    all.value.resize(kept);
    patch.resize(kept);
    for (auto& c : all.classes)
        c.pixels = pixels[c.value];
}

void run_sample(tool::Run& run, Settings& settings) {
    raster::OpenOptions grid_file;
    grid_file.path = settings.like.empty() ? settings.labels.path : settings.like;
    settings.labels.shares = !settings.cover_file.empty();
    std::unique_ptr<raster::LabelSource> source;
    std::shared_ptr<raster::RasterSource> scene;
    if (settings.like.empty()) {
        source = raster::LabelSource::open(settings.labels);
        scene = raster::open_raster(grid_file);
    } else {
        scene = raster::open_raster(grid_file);
        const auto grid = raster::grid_of(*scene);
        source = raster::LabelSource::open(settings.labels, &grid);
    }
    tool::report_notes(run, *source);
    auto all = raster::collect_labels(*source);
    for (const auto& note : all.notes)
        run.warn(note);
    for (const auto& text : settings.counts)
        sample::apply_share(text, false, all.classes, settings.sample);
    for (const auto& text : settings.fractions)
        sample::apply_share(text, true, all.classes, settings.sample);
    auto& report = run.report();
    report["labels"] = {
        {"path", source->path()}, {"how", source->description()}, {"pixels", all.index.size()}};
    std::vector<size_t> patches_of, patch; // patch: empty if single pixels are drawn
    if (settings.by_patches || settings.patch_pixels > 0 || !settings.groups_file.empty()) {
        sample::Patches patches(all.index, all.value, all.grid.samples);
        source->each_polygon(
            [&](uint16_t value, const std::vector<int64_t>& pixels) { patches.join(value, pixels); });
        patches_of = patches.numbers();
        if (settings.patch_pixels > 0) keep_centres(run, all, patches_of, settings.patch_pixels);
        if (settings.by_patches) patch = patches_of;
        report["patches"] = *std::max_element(patches_of.begin(), patches_of.end()) + 1;
        run.note(counted(report["patches"].get<size_t>(), "patch", "patches") + " of labelled pixels");
    }
    const auto& index = all.index;
    const auto samples = all.grid.samples, lines = all.grid.lines;
    std::vector<sample::Split> splits;
    if (settings.folds > 0) {
        splits = sample::folds(index, all.value, samples, lines, all.classes, settings.sample, settings.folds,
                               patch);
        report_folds(run, all, splits);
    } else {
        splits = {sample::split(index, all.value, samples, lines, all.classes, settings.sample, patch)};
        report_split(run, all, splits.front(), report);
    }
    Outputs outputs(run, settings, all, *source, patches_of);
    warn_of_neighbours(run, settings, all, splits);
    if (settings.folds > 0) warn_of_further_folds(run, settings);
    tool::end_of_plan(run);
    outputs.write(splits, *scene);
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.input_argument("labels", s.labels.path, Content::labels,
                        "The labels to split: a raster or vector file");
    args.add_destination("The training labels; both outputs appear when they are complete");
    args.output_argument("dst_test", s.test_file, Content::raster, "The test labels: the remaining pixels");
    args.option("n", s.counts,
                "Training pixels of each class: 50; at most 150: '150 at most'; of some classes: 15:1,7,9")
        .shown_as("N[:CLASSES]")
        .defaults_to("50; with -folds all of the other folds")
        .also("count");
    args.option("fraction", s.fractions,
                "Share of each class for training: 0.1; for some classes: 0.3:1,9 (classes 1 and 9)")
        .shown_as("F[:CLASSES]");
    args.option("seed", s.sample.seed, "Seed of the random draw: equal seeds give equal splits").from(0);
    args.choice<bool>(
        "by", s.by_patches, "Unit that is drawn",
        {{"pixels", false, "single pixels"},
         {"patches", true, "whole patches: connected pixels of a class, or the pixels of a polygon"}});
    args.option("folds", s.folds,
                "Make K folds of a cross-validation instead of one split: train_1.tif, test_1.tif, "
                "train_2.tif ..")
        .between(2, tools::most_folds)
        .shown_as("K")
        .preset.value.clear();
    args.option("patch-pixels", s.patch_pixels,
                "Use at most N labelled pixels of each patch, nearest to its centre")
        .from(1)
        .shown_as("N")
        .defaults_to("all");
    args.option("min-distance", s.sample.min_distance,
                "Exclude test pixels nearer than this to training pixels, and draw training pixels as "
                "compact patches")
        .between(0, 10000)
        .in_unit("pixels")
        .shown_as("PIXELS");
    args.option("patches", s.sample.patches,
                "With -min-distance and single pixels: number of training patches per class")
        .from(1);
    args.input("like", s.like, Content::raster,
               "Put the labels on the grid of the raster FILE; required for vector labels");
    tool::add_label_options(args, s.labels);
    args.output("cover", s.cover_file, Content::raster,
                "Also write the fractional cover of each class's polygons to FILE, one band per class");
    args.output(
        "groups", s.groups_file, Content::raster,
        "Also write the number of each labelled pixel's patch to FILE, for gdal_hsi_svm_train -cv-by");
    args.add_report();
    args.check([&s](const tool::Call& call) {
        for (const auto& text : s.counts)
            sample::check_share(text, false);
        for (const auto& text : s.fractions)
            sample::check_share(text, true);
        const auto of_all = [](const std::string& text) { return text.find(':') == std::string::npos; };
        for (const auto* texts : {&s.counts, &s.fractions})
            if (std::count_if(texts->begin(), texts->end(), of_all) > 1)
                throw UsageError(
                    std::string(texts == &s.counts ? "-n" : "-fraction") + " is given twice for all classes",
                    "Give it once for all classes; repeat it only for single classes, such as 15:1,7,9.");
        if (std::any_of(s.counts.begin(), s.counts.end(), of_all) &&
            std::any_of(s.fractions.begin(), s.fractions.end(), of_all))
            throw UsageError("-n and -fraction both set the training pixels of every class",
                             "Leave one of them out, or add classes to it: 15:1,7,9.");
        if (call.given("patches") && !(s.sample.min_distance > 0))
            throw UsageError(tool::option_requires("-patches", "-min-distance"));
        if (call.given("patches") && s.by_patches)
            throw UsageError("-patches grows new patches, but -by patches draws existing patches",
                             "Leave one of them out.");
        if (s.folds > 0 && s.sample.min_distance > 0 && !s.by_patches)
            throw UsageError("-min-distance with -folds of single pixels would leave no test pixel",
                             "Add -by patches, or leave -min-distance out.");
        // By default, all other folds are training pixels.
        if (s.folds > 0) s.sample.share = {-1, 1.0};
    });
    args.body([&s](tool::Run& run) { run_sample(run, s); });
}

} // namespace sample_tool
} // namespace

namespace tools {

extern constinit const tool::Definition sample{
    "sample",
    "Training and test labels",
    "Splits labels into training and test pixels, class by class: a number or a share of each"
    " class, drawn with a seed, as single pixels or whole patches, once or in folds. Labels "
    "are a raster, or a vector file together with -like.",
    {{"gdal_hsi_sample -n 50 -n 15:1,7,9 -seed 3 labels.tif train.tif test.tif",
      "50 pixels of each class, 15 of three small ones"},
     {"gdal_hsi_sample -fraction 0.1 -like scene.img -field landcover fields.gpkg train.tif test.tif",
      "A tenth of each class, from polygons"},
     {"gdal_hsi_sample -n 50 -min-distance 5 -patches 4 labels.tif train.tif test.tif",
      "Test pixels at least 5 pixels away from training pixels"},
     {"gdal_hsi_sample -folds 5 -by patches -patch-pixels 25 -groups groups.tif -like scene.img fields.gpkg "
      "train.tif test.tif && gdal_hsi_svm_train -cv-by groups.tif scene.img train_1.tif model_1.json",
      "Few pixels of each field; the search for C and gamma holds out the same fields"},
     {"gdal_hsi_sample -folds 5 -by patches -min-cover 0.7 -like scene.img fields.gpkg train.tif test.tif",
      "Five folds of whole fields, with pixels covered to at least 70 per cent: train_1.tif, test_1.tif .."}},
    "",
    sample_tool::declare,
    true};

} // namespace tools
} // namespace hsi
