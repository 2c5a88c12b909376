// SPDX-License-Identifier: MIT
// gdal_hsi_accuracy: assesses a class map with reference labels.
#include "accuracy/accuracy.h"
#include "core/class_names.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/text.h"
#include "gdal_hsi_accuracy/scores.h"
#include "gdal_hsi_accuracy/warnings.h"
#include "raster/labels.h"
#include "raster/regular_file.h"
#include "raster/side_files.h"
#include "raster/text_input.h"
#include "shared/folds.h"
#include "shared/many_scenes.h"
#include "shared/neighbours.h"
#include "shared/plot.h"
#include "shared/training_pixels.h"
#include "tool/classification.h"
#include "tool/definition.h"
#include "tool/passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace accuracy_tool {
namespace {

using tool::Content;
struct Settings {
    raster::LabelOptions map, reference, mask, training;
    std::string csv, unclassified = "ignore";
    bool json = false, overwrite = false;
    std::vector<std::array<std::string, 2>> with; ///< each pair: a map and its reference
    int folds = 0;                                ///< number of folds; 0: one map
    bool scores = false;                          ///< true if the map holds the scores of a detector
    Better better = Better::automatic;
    int64_t guard = 0;
    std::string curves, roc, recall;
    bool joined = false; ///< true if the map is one of several maps whose confusion matrices are added
    bool several() const { return folds > 0 || joined; }
};

Json number(double v) { return std::isnan(v) ? Json() : Json(v); }
Json estimate(const accuracy::Estimate& e) {
    return {{"value", number(e.value)}, {"low", number(e.low)}, {"high", number(e.high)}};
}

Json to_json(const accuracy::Result& r) {
    Json classes = Json::array(), matrix = Json::array();
    for (size_t i = 0; i < r.classes.size(); ++i) {
        const auto& c = r.by_class[i];
        classes.push_back({{"value", c.of.value},
                           {"name", c.of.name},
                           {"reference_pixels", c.reference},
                           {"map_pixels", c.mapped},
                           {"correct", c.correct},
                           {"producers_accuracy", estimate(c.producer)},
                           {"users_accuracy", estimate(c.user)},
                           {"f1", number(c.f1)}});
        Json row = Json::array();
        for (size_t j = 0; j < r.classes.size(); ++j)
            row.push_back(r.at(i, j));
        matrix.push_back(row);
    }
    return {{"overall_accuracy", estimate(r.overall)},
            {"average_accuracy", estimate(r.average)},
            {"kappa", estimate(r.kappa)},
            {"confidence", 0.95},
            {"pixels", r.pixels},
            {"unclassified", r.unclassified},
            {"unclassified_are_errors", r.unclassified_are_errors},
            {"unlabelled", r.unlabelled},
            {"false_alarms", r.alarms},
            {"masked", r.masked},
            {"classes", classes},
            {"confusion_matrix", matrix}};
}

Json to_json(const accuracy::Spread& s) {
    return {{"mean", number(s.mean)}, {"standard_deviation", number(s.deviation)}, {"folds", s.folds}};
}

Json to_json(const std::vector<accuracy::Result>& folds, const accuracy::Summary& summary) {
    Json classes = Json::array(), each = Json::array();
    for (const auto& c : summary.by_class)
        classes.push_back({{"value", c.of.value},
                           {"name", c.of.name},
                           {"reference_pixels", {{"least", c.least}, {"most", c.most}}},
                           {"producers_accuracy", to_json(c.producer)},
                           {"users_accuracy", to_json(c.user)},
                           {"f1", to_json(c.f1)}});
    for (const auto& fold : folds)
        each.push_back(to_json(fold));
    return {{"overall_accuracy", to_json(summary.overall)},
            {"average_accuracy", to_json(summary.average)},
            {"kappa", to_json(summary.kappa)},
            {"classes", classes},
            {"folds", each}};
}

using Labels = std::unique_ptr<raster::LabelSource>;

struct Files {
    Labels map, reference, mask; ///< mask may be null
};

/// Gives 0 the same meaning in two files. If `one` states that 0 is a class and `other` states no meaning of
/// 0, then 0 becomes a class of `other`, too. Returns true if `others`, the options of `other`, has changed.
bool share_zero(tool::Run& run, const raster::LabelSource& one, const raster::LabelSource& other,
                raster::LabelOptions& others) {
    if (!one.zero_is_class() || !other.zero_is_open()) return false;
    others.zero = raster::ZeroMeans::a_class;
    run.warn("'" + other.path() + "': 0 is read as a class, since it is a class of '" + one.path() +
             "'; if it means 'no label', use -zero none");
    return true;
}

Files open_files(tool::Run& run, Settings& s) {
    Files files;
    const auto open = [&] {
        files.map = raster::LabelSource::open(s.map);
        files.reference = raster::LabelSource::open(s.reference, &files.map->grid());
    };
    open();
    for (const auto* source : {files.map.get(), files.reference.get()})
        tool::report_notes(run, *source);
    if (share_zero(run, *files.map, *files.reference, s.reference) ||
        share_zero(run, *files.reference, *files.map, s.map))
        open();
    if (!s.mask.path.empty()) {
        files.mask = raster::LabelSource::open(s.mask, &files.map->grid());
        tool::report_notes(run, *files.mask);
    }
    return files;
}

/// Counts of assessed reference pixels, of assessed pixels that are training pixels, and of those that only
/// touch a training pixel.
struct Overlap {
    int64_t judged = 0, trained = 0, touching = 0;
};

/// Facts about all files of a run.
struct Known {
    std::vector<std::string> names;   ///< class names, in the spelling that was read first
    std::vector<std::string> missing; ///< texts of -leave-out that match no class of the last reference
    /// Words of -leave-out, each with the class names that it stands for in the last reference. Empty if
    /// -leave-out contains no numbers: each word then stands for itself.
    std::vector<std::pair<std::string, std::vector<std::string>>> asked;
    /// Class numbers by name, and class names by number, over the folds so far. A name has the number of the
    /// first reference with this name.
    std::map<std::string, int> number;
    std::map<int, std::string> name;
    Overlap overlap;                           ///< sum over all references
    std::string drawn_by;                      ///< history of the labels of the last training file
    std::vector<std::string> without_training; ///< messages about maps whose training pixels are unknown
};

/// Splits -leave-out into words. A text that is not a list is kept whole, and LabelSource then rejects it.
std::vector<std::string> left_out_words(const std::vector<std::string>& texts) {
    std::vector<std::string> words;
    for (const auto& text : texts) {
        const auto list = listed_words(text);
        if (!list) return {};
        words.insert(words.end(), list->begin(), list->end());
    }
    return words;
}

/// Returns the number in a word; 0 if it is not a number.
int number_of(const std::string& word) {
    const bool digits =
        !word.empty() && word.size() <= 5 && word.find_first_not_of("0123456789") == std::string::npos;
    const int value = digits ? std::stoi(word) : 0;
    return std::to_string(value) == word ? value : 0;
}

/// Returns the class names that a word of -leave-out stands for in a file with the given legend. A number
/// stands for the name that the first fold gives to this number. If the legend has no name for the number,
/// the number also stands for itself.
std::vector<std::string> asked_of(const std::string& word, const std::vector<raster::LabelClass>& legend,
                                  const Known& known) {
    const int value = number_of(word);
    if (value == 0) return {word};
    const auto named = known.name.find(value);
    const auto here =
        std::find_if(legend.begin(), legend.end(), [&](const auto& c) { return c.value == value; });
    const bool nameless = here == legend.end() || here->name.empty();
    std::vector<std::string> asked;
    if (named != known.name.end()) asked.push_back(named->second);
    if (nameless) asked.push_back(word);
    return asked;
}

/// Replaces the numbers in -leave-out by class names, because the folds may number their classes differently.
/// `learn`: true if the labels are the reference, whose names are also used in later folds.
void leave_out_by_name(raster::LabelOptions& labels, const raster::Grid& grid, Known& known, bool learn) {
    const auto words = left_out_words(labels.leave_out);
    if (learn) known.asked.clear();
    if (std::none_of(words.begin(), words.end(), [](const auto& word) { return number_of(word) > 0; }))
        return;
    raster::LabelOptions all = labels;
    all.leave_out.clear();
    const auto legend = raster::LabelSource::open(all, &grid)->legend();
    if (learn)
        for (const auto& c : legend) {
            if (c.name.empty()) continue;
            const auto same = std::find_if(known.number.begin(), known.number.end(),
                                           [&](const auto& one) { return alike_names(one.first, c.name); });
            if (same != known.number.end()) continue;
            known.number[c.name] = c.value;
            known.name.try_emplace(c.value, c.name);
        }
    labels.leave_out.clear();
    for (const auto& word : words) {
        const auto asked = asked_of(word, legend, known);
        for (const auto& one : asked)
            labels.leave_out.push_back(in_double_quotes(one));
        if (learn) known.asked.emplace_back(word, asked);
    }
}

/// Returns the words for which all class names are missing.
std::vector<std::string> words_of(const std::vector<std::pair<std::string, std::vector<std::string>>>& asked,
                                  const std::vector<std::string>& missing) {
    std::vector<std::string> words;
    for (const auto& [word, forms] : asked)
        if (std::all_of(forms.begin(), forms.end(), [&](const auto& form) {
                return std::find(missing.begin(), missing.end(), form) != missing.end();
            }))
            words.push_back(word);
    return words;
}

/// Returns the classes of a file, with names in the spelling that was read first. Two names are equal if they
/// differ only in case, or only in Unicode composition: programs on macOS may write an accent as a separate
/// character. If a file has several such names, they are different classes.
std::vector<raster::LabelClass> legend_of(tool::Run& run, const raster::LabelSource& source,
                                          std::vector<std::string>& known) {
    const auto& in_file = source.legend();
    auto legend = in_file;
    for (auto& c : legend) {
        if (c.name.empty() || std::find(known.begin(), known.end(), c.name) != known.end()) continue;
        const auto alike = [&](const std::string& name) { return alike_names(name, c.name); };
        const auto spelled = std::find_if(known.begin(), known.end(), alike);
        if (spelled == known.end() || !is_unlike_others(in_file, c.name) ||
            std::find_if(std::next(spelled), known.end(), alike) != known.end()) {
            known.push_back(c.name);
            continue;
        }
        if (differ_in_composition(*spelled, c.name))
            run.warn("'" + source.path() + "': the accents in the name of class " +
                     tool::class_text(c.value, c.name) +
                     " are encoded differently in the other file (Unicode's NFC and NFD): both names are "
                     "read as the same class");
        c.name = *spelled;
    }
    return legend;
}

accuracy::Confusion compare(tool::Run& run, const Files& files, Known& known) {
    const auto& [map, reference, mask] = files;
    auto of_reference_file = legend_of(run, *reference, known.names);
    accuracy::Confusion confusion(legend_of(run, *map, known.names), std::move(of_reference_file),
                                  map->none(), reference->none());
    constexpr int64_t strip = 256;
    const auto& grid = map->grid();
    const auto size = static_cast<size_t>(strip * grid.samples);
    std::vector<uint16_t> of_map(size), of_reference(size), of_mask(mask ? size : 0);
    bool mapped = false, labelled = false;
    const auto any = [](const std::vector<uint16_t>& values, int64_t count, uint16_t none) {
        return std::any_of(values.begin(), values.begin() + count, [&](uint16_t v) { return v != none; });
    };
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t n = std::min(strip, grid.lines - y);
        map->read(y, n, of_map.data());
        reference->read(y, n, of_reference.data());
        if (mask) mask->read(y, n, of_mask.data());
        mapped = mapped || any(of_map, n * grid.samples, map->none());
        labelled = labelled || any(of_reference, n * grid.samples, reference->none());
        confusion.add(of_map.data(), of_reference.data(), mask ? of_mask.data() : nullptr, n * grid.samples);
    }
    known.missing = reference->not_left_out();
    if (!known.asked.empty()) known.missing = words_of(known.asked, known.missing);
    if (!labelled) throw raster::no_labels(*reference);
    if (!mapped) throw raster::no_labels(*map);
    return confusion;
}

/// Returns true if 0 is read as a second class, because nothing could be assessed otherwise: map and
/// reference contain only 0 and the same class, no file states the meaning of 0, and -unclassified is ignore.
bool zero_is_the_other_class(const Files& files, const std::string& unclassified) {
    const auto &map = *files.map, &reference = *files.reference;
    return unclassified == "ignore" && map.zero_is_open() && reference.zero_is_open() && map.zeros() > 0 &&
           reference.zeros() > 0 && map.only_class() != 0 && map.only_class() == reference.only_class();
}

/// Counts the overlap in one row. `judged`: one value per sample, 1 if the sample is assessed. `wide`: three
/// rows of training labels; the middle row is the row of `judged`.
void count_overlap(const std::vector<char>& judged, const std::array<const uint16_t*, 3>& wide, uint16_t none,
                   Overlap& overlap) {
    const auto samples = static_cast<int64_t>(judged.size());
    for (int64_t x = 0; x < samples; ++x) {
        if (judged[static_cast<size_t>(x)] == 0) continue;
        ++overlap.judged;
        if (wide[1][x] != none) {
            ++overlap.trained;
            continue;
        }
        bool touches = false;
        for (const uint16_t* line : wide)
            for (int64_t i = std::max<int64_t>(0, x - 1); i <= std::min(samples - 1, x + 1); ++i)
                touches = touches || line[i] != none;
        overlap.touching += touches;
    }
}

/// Counts the test pixels that are training pixels or touch a training pixel. Adds the counts to `report` and
/// `known`.
void compare_with_training(tool::Run& run, const Settings& s, const Files& files, Json& report,
                           Known& known) {
    const auto& grid = files.map->grid();
    const auto training = raster::LabelSource::open(s.training, &grid);
    tool::report_notes(run, *training);
    const auto width = static_cast<size_t>(grid.samples);
    constexpr int64_t strip = 256;
    std::vector<uint16_t> reference(static_cast<size_t>(strip) * width),
        mask(files.mask ? reference.size() : 0), trained(static_cast<size_t>(strip + 2) * width);
    const uint16_t none = training->none();
    std::vector<char> judged(width);
    Overlap overlap;
    bool any = false;
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t n = std::min(strip, grid.lines - y);
        files.reference->read(y, n, reference.data());
        if (files.mask) files.mask->read(y, n, mask.data());
        std::fill(trained.begin(), trained.end(), none);
        const int64_t above = std::min<int64_t>(1, y), below = std::min<int64_t>(1, grid.lines - y - n);
        training->read(y - above, above + n + below, trained.data() + static_cast<size_t>(1 - above) * width);
        any = any || std::any_of(trained.begin(), trained.end(), [&](uint16_t v) { return v != none; });
        for (int64_t line = 0; line < n; ++line) {
            const size_t at = static_cast<size_t>(line) * width;
            for (size_t x = 0; x < width; ++x)
                judged[x] =
                    reference[at + x] != files.reference->none() && (!files.mask || mask[at + x] != 0);
            count_overlap(judged, {&trained[at], &trained[at + width], &trained[at + 2 * width]}, none,
                          overlap);
        }
    }
    if (!any) throw raster::no_labels(*training);
    report["training"] = {{"path", training->path()},
                          {"how", training->description()},
                          {"judged_pixels", overlap.judged},
                          {"pixels_of_training", overlap.trained},
                          {"pixels_touching_training", overlap.touching}};
    known.overlap.judged += overlap.judged;
    known.overlap.trained += overlap.trained;
    known.overlap.touching += overlap.touching;
    known.drawn_by = training->item("HSI_HISTORY");
}

/// Warns once for all maps if test pixels are training pixels, or if many test pixels touch a training pixel.
/// The advice omits steps that are already in the history of the training labels.
void warn_of_overlap(tool::Run& run, const Known& known, const std::string& of) {
    const Overlap& overlap = known.overlap;
    if (overlap.trained > 0)
        run.warn(
            of + std::to_string(overlap.trained) + " of " + counted(overlap.judged, "reference pixel") +
            worded(overlap.trained, " is a training pixel", " are training pixels") +
            ": accuracies on training pixels do not apply to other pixels. Use independent reference pixels");
    if (tools::touching_counts(overlap.touching, overlap.judged)) {
        std::vector<std::string> options;
        for (const char* const option : {"-min-distance", "-by patches"})
            if (known.drawn_by.find(option) == std::string::npos) options.emplace_back(option);
        run.warn(of + std::to_string(overlap.touching) + " of " + counted(overlap.judged, "reference pixel") +
                 " touch a training pixel: the accuracies are too high, most of all for maps made with "
                 "neighbouring pixels (profiles, sahic, regularize)" +
                 (options.empty() ? std::string()
                                  : ". Keep them apart with gdal_hsi_sample " + joined(options, " and ")));
    }
    if (const size_t maps = known.without_training.size(); maps > 0)
        run.warn(known.without_training.front() +
                 (maps > 1 ? "; the same applies to " + counted(maps - 1, "other map") : std::string()));
}

/// Returns the tool in the map's history that uses neighbouring pixels; empty if the history is unknown or
/// contains no such tool.
std::string tool_with_neighbours(const tool::Run& run, const std::string& history) {
    std::string found;
    size_t first = std::string::npos;
    for (const tool::Definition* one : run.tools())
        for (const char* const suite : {"gdal_hsi_", "gdal hsi "})
            if (const size_t at = history.find(suite + std::string(one->name) + " ");
                at < first && tool::Declaration(*one).looks_around()) {
                first = at;
                found = one->executable();
            }
    return found;
}

/// Returns the path of the labels that the file of a model states; empty if the path is unknown.
std::string labels_of_model(const std::string& model) {
    std::error_code error;
    if (const auto there = std::filesystem::status(model, error);
        std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
        return {}; // the map may come from someone else, and name a pipe
    try {
        const Json json = Json::parse(raster::read_input(model, largest_file::model), nullptr, false);
        if (json.is_object() && json.contains("training") && json["training"].is_object())
            return json["training"].value("labels", std::string());
    } catch (const std::exception&) { // the file of the model was moved
    }
    return {};
}

/// Stores a message if the map was made with neighbouring pixels and its training pixels are unknown.
void note_without_training(const tool::Run& run, const Settings& s, const raster::LabelSource& map,
                           Known& known) {
    const std::string tool = tool_with_neighbours(run, map.item("HSI_HISTORY"));
    if (!s.training.path.empty() || tool.empty()) return;
    std::string model = map.item("HSI_SVM_MODEL");
    if (model.empty()) model = map.item("HSI_SAHIC_MODEL");
    const std::string labels = labels_of_model(model);
    known.without_training.push_back(
        "'" + map.path() + "' was made with the neighbours of pixels (" + tool +
        "), and without -training it is unknown how many reference pixels are training pixels or touch one: "
        "the accuracies may be too high. Give the map's training labels" +
        (labels.empty() ? " (-training)"
                        : ": -training " + labels + ", which its model '" + model + "' names"));
}

/// Assesses one map with its reference, and describes both in `report`. Returns nullopt with -dry-run.
std::optional<accuracy::Result> judge(tool::Run& run, Settings s, Json& report, Known& known) {
    if (s.several() && !s.reference.leave_out.empty()) {
        const auto grid = raster::LabelSource::open(s.map)->grid();
        leave_out_by_name(s.reference, grid, known, true);
        if (!s.training.path.empty()) leave_out_by_name(s.training, grid, known, false);
    }
    Files files = open_files(run, s);
    const auto grid = files.map->grid();
    report["map"] = {{"path", files.map->path()}, {"how", files.map->description()}};
    report["reference"] = {{"path", files.reference->path()}, {"how", files.reference->description()}};
    if (tool::add_to_plan(run, "Map: " + files.map->description() + ", " + std::to_string(grid.samples) +
                                   "x" + std::to_string(grid.lines) +
                                   ". Reference: " + files.reference->description() + "."))
        return {};
    auto confusion = compare(run, files, known);
    if (zero_is_the_other_class(files, s.unclassified)) {
        run.warn("map and reference have only 0 and class " + std::to_string(files.map->only_class()) +
                 ": 0 is also read as a class; if it means 'no label', use -zero none");
        s.map.zero = s.reference.zero = raster::ZeroMeans::a_class;
        files = {raster::LabelSource::open(s.map), raster::LabelSource::open(s.reference, &grid),
                 std::move(files.mask)};
        confusion = compare(run, files, known);
    }
    for (const auto* source : {files.map.get(), files.reference.get()})
        for (const auto& note : source->reading_notes())
            run.warn(note);
    if (!s.several()) files.reference->check_left_out();
    if (!s.training.path.empty()) compare_with_training(run, s, files, report, known);
    note_without_training(run, s, *files.map, known);
    auto result = confusion.result(s.unclassified == "error");
    if (const std::string pair = raster::shared_name(result.classes); !pair.empty())
        run.warn(pair + ": classes are matched by their numbers");
    else
        warn_of_other_names(run, confusion.named_pairs());
    if (confusion.renumbered())
        run.note("Map and reference number their classes differently: classes are matched by name and have "
                 "the reference's numbers");
    return result;
}

/// Returns the file of a fold if it exists, else the file that is used for all folds.
std::string file_for_fold(tool::Run& run, const std::string& role, const std::string& path, int fold) {
    const std::string own = tools::file_of_fold(path, fold);
    if (!raster::is_there(own) && raster::is_there(path)) return path;
    run.files()->reads(role, own, raster::files_read_with(own));
    return own;
}

/// Each item of -leave-out must be a class of at least one reference.
void check_left_out(const std::vector<accuracy::Result>& results, const std::vector<std::string>& missing) {
    if (results.empty() || missing.empty()) return;
    std::map<int, std::string> classes;
    for (const auto& result : results)
        for (const auto& c : result.by_class)
            if (c.reference > 0) classes.try_emplace(c.of.value, tool::class_text(c.of.value, c.of.name));
    std::vector<std::string> list;
    for (const auto& [value, text] : classes)
        list.push_back(text);
    throw UsageError("-leave-out: no reference has a class '" + missing.front() + "'",
                     "The remaining classes are " + joined(list, ", ") + ".");
}

/// Removes the words from `all` that are not in `lacking`. With `first`, `all` is set to `lacking`.
void keep_common(bool first, const std::vector<std::string>& lacking, std::vector<std::string>& all) {
    if (first) all = lacking;
    std::erase_if(all, [&](const std::string& word) {
        return std::find(lacking.begin(), lacking.end(), word) == lacking.end();
    });
}

std::vector<accuracy::Result> judge_folds(tool::Run& run, const Settings& s) {
    std::vector<accuracy::Result> results;
    std::vector<std::string> missing; // words of -leave-out that are missing in all references so far
    Known known;
    auto& folds = run.report()["folds"] = Json::array();
    for (int k = 1; k <= s.folds; ++k) {
        Settings own = s;
        own.map.path = tools::file_of_fold(s.map.path, k);
        run.files()->reads("map", own.map.path, raster::files_read_with(own.map.path));
        own.reference.path = file_for_fold(run, "reference", s.reference.path, k);
        if (!s.training.path.empty()) own.training.path = file_for_fold(run, "-training", s.training.path, k);
        folds.push_back(Json::object());
        auto result = judge(run, own, folds.back(), known);
        if (!result) continue;
        keep_common(results.empty(), known.missing, missing);
        results.push_back(std::move(*result));
    }
    check_left_out(results, missing);
    warn_of_overlap(run, known, "all folds: ");
    if (const auto further = tools::files_of_more_folds(s.map.path, s.folds); !further.empty())
        run.warn(std::string("there ") + worded(further.size(), "is a map", "are maps") +
                 " of more folds than the " + std::to_string(s.folds) + " assessed: " +
                 tools::some_files(further) + ". Use a larger -folds, or delete the files of an earlier run");
    if (accuracy::unite_classes(results))
        run.warn("the folds number their classes differently: classes are matched by name and have the "
                 "number in the first fold with that class");
    return results;
}

/// Assesses the map and its reference together with the pairs of -with: their confusion matrices are added.
/// Returns nullopt with -dry-run.
std::optional<accuracy::Result> judge_all(tool::Run& run, const Settings& s, Known& known) {
    const auto pairs = tools::listed_pairs(run, "-with", s.with);
    if (pairs.empty()) return judge(run, s, run.report(), known);
    std::vector<Settings> all{s};
    for (const auto& pair : pairs) {
        for (const Settings& other : all)
            if (same_file(pair[0], other.map.path))
                throw UsageError("-with " + pair[0] + ": the map is given twice",
                                 "Its pixels would count twice.");
        Settings own = s;
        own.map.path = pair[0];
        own.reference.path = pair[1];
        for (const std::string& path : pair)
            run.files()->reads("-with", path, raster::files_read_with(path));
        open_files(run, own); // missing files are refused before any work
        all.push_back(std::move(own));
    }
    std::vector<accuracy::Result> results;
    std::vector<std::string> missing; // words of -leave-out that are missing in all references so far
    auto& list = run.report()["with"] = Json::array();
    for (Settings& own : all) {
        Json facts = Json::object();
        own.joined = true;
        auto result = judge(run, own, results.empty() ? run.report() : facts, known);
        if (!result) continue;
        if (!results.empty()) list.push_back(facts);
        keep_common(results.empty(), known.missing, missing);
        results.push_back(std::move(*result));
    }
    if (results.empty()) return {};
    check_left_out(results, missing);
    return accuracy::join(std::move(results));
}

void run_accuracy(tool::Run& run, Settings& s) {
    if (s.scores)
        return assess_scores(run, {s.map.path, s.reference, s.mask, s.better, s.guard, s.json, s.overwrite,
                                   s.csv, s.curves, s.roc, s.recall});
    if (s.json) run.only_print();
    const auto csv = run.text_output("-csv", s.csv, s.overwrite);
    raster::check_text_output(csv);
    const auto give = [&](const Json& json, const std::string& table, const std::string& text) {
        run.report()["accuracy"] = json;
        raster::write_text_output(csv, table);
        run.print(s.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) : text);
    };
    if (s.folds > 0) {
        const auto results = judge_folds(run, s);
        if (results.empty()) return;
        warn_of_few_pixels(run, results);
        warn_of_one_class(run, results);
        warn_of_unknown_classes(run, results, left_out_words(s.reference.leave_out));
        const auto summary = accuracy::summarize(results);
        return give(to_json(results, summary), accuracy::csv(results, summary),
                    accuracy::text(results, summary));
    }
    Known known;
    if (const auto result = judge_all(run, s, known)) {
        warn_of_overlap(run, known, s.with.empty() ? "" : "all references: ");
        warn_of_few_pixels(run, {*result});
        warn_of_one_class(run, {*result});
        warn_of_unknown_classes(run, {*result}, left_out_words(s.reference.leave_out));
        give(to_json(*result), accuracy::csv(*result), accuracy::text(*result));
    }
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    s.mask.mask = true;
    args.input_argument("map", s.map.path, Content::raster, "The class map: a raster");
    args.input_argument("reference", s.reference.path, Content::labels,
                        "The reference labels: a raster or vector file, in any SRS and on any grid");
    args.option("folds", s.folds,
                "Assess K maps (map.tif: map_1.tif .. map_K.tif) and print mean and standard deviation")
        .between(2, tools::most_folds)
        .shown_as("K")
        .preset.value.clear();
    tools::add_pairs_option(
        args, s.with, "Also assess this map against this reference, and the pixels of all maps together",
        "MAP REFERENCE");
    args.exclusive("with", "folds");
    args.flag("json", s.json, "Print only the result, as JSON");
    args.output(
        "csv", s.csv, Content::text,
        "Also write the confusion matrix with accuracies, or with -folds one row per fold, to FILE (CSV)");
    args.input("mask", s.mask.path, Content::labels,
               "Assess only pixels where the raster FILE is not 0, or inside features of the vector FILE");
    args.input("training", s.training.path, Content::labels,
               "Labels that the map was trained with; a warning is printed if reference pixels overlap "
               "or touch them");
    args.choice<std::string>("unclassified", s.unclassified, "Labelled pixels without a class in the map",
                             {{"ignore", "ignore", "exclude them from the accuracies"},
                              {"error", "error", "count them as errors"}});
    args.flag(
        "scores", s.scores,
        "map contains detector scores, one band per target: print AUC, detections, thresholds and precision");
    args.choice("better", s.better, "With -scores: which scores are better",
                {{"auto", Better::automatic, "as stated by the bands (HSI_BETTER), otherwise larger scores"},
                 {"larger", Better::larger, "larger scores"},
                 {"smaller", Better::smaller, "smaller scores, as for angles"}});
    args.option("guard", s.guard,
                "With -scores: exclude unlabelled pixels within N pixels of a target from the background")
        .between(0, 10000)
        .shown_as("N");
    args.output("curves", s.curves, Content::text,
                "With -scores: also write Pd, Pfa, precision and objects by threshold to FILE (CSV)");
    args.output("roc", s.roc, Content::text, "With -scores: also plot Pd over Pfa: an .svg or .png");
    args.output("recall", s.recall, Content::text,
                "With -scores: also plot precision over recall: an .svg or .png");
    tool::add_label_options(args, s.reference);
    for (const char* const other : {"folds", "with", "unclassified", "training"})
        args.exclusive("scores", other);
    args.overwrite(s.overwrite,
                   "Replace the file of -csv if it exists; otherwise an existing file is an error");
    args.add_report();
    args.check([&s](const tool::Call& call) {
        for (const char* const option : {"better", "guard", "curves", "roc", "recall"})
            if (call.given(option) && !s.scores)
                throw UsageError("-" + std::string(option) + " requires -scores");
        tools::PlotOutput::check_name("roc", s.roc);
        tools::PlotOutput::check_name("recall", s.recall);
        s.map.zero = s.reference.zero;
        const std::string path = s.training.path;
        // Training labels are read in the same way as the reference, even if one is a raster and the other
        // has polygons.
        s.training = s.reference;
        s.training.path = path;
        s.training.said_of_another = true;
    });
    args.body([&s](tool::Run& run) { run_accuracy(run, s); });
}

} // namespace
} // namespace accuracy_tool

namespace tools {

extern constinit const tool::Definition accuracy{
    "accuracy",
    "Accuracy of a class map",
    "Assesses a class map with reference labels: confusion matrix, producer's and user's "
    "accuracy and F1 of each class, overall and average accuracy, kappa, with 95 % confidence"
    " intervals; for several maps the mean and the spread. Pixels without a label are "
    "ignored. Classes are matched by name if both files name them.",
    {{"gdal_hsi_accuracy map.tif test.tif", "A map against the test pixels of gdal_hsi_sample"},
     {"gdal_hsi_accuracy -csv accuracy.csv -field landcover map.tif ground_truth.gpkg",
      "Against polygons, with a table for other programs"},
     {"gdal_hsi_accuracy -folds 5 -training train.tif map.tif test.tif",
      "map_1.tif against test_1.tif, map_2.tif against test_2.tif ..: mean and spread"},
     {"gdal_hsi_accuracy -json -q map.tif test.tif | jq .overall_accuracy.value", "One figure for a script"}},
    "",
    accuracy_tool::declare,
    true};

} // namespace tools
} // namespace hsi
