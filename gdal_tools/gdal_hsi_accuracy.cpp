// SPDX-License-Identifier: MIT
// gdal_hsi_accuracy: a class map judged against reference labels.
#include "accuracy/accuracy.h"
#include "core/error.h"
#include "raster/labels.h"
#include "tool/classification.h"
#include "tool/definition.h"

#include <algorithm>
#include <cmath>

namespace hsi {
namespace {
namespace accuracy_tool {

using tool::Content;
struct Settings {
    raster::LabelOptions map, reference, mask;
    std::string csv, unclassified = "ignore";
    bool json = false, overwrite = false;
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
            {"masked", r.masked},
            {"classes", classes},
            {"confusion_matrix", matrix}};
}

void run_accuracy(tool::Run& run, const Settings& s) {
    if (s.json) run.only_print();
    const auto csv = run.text_output("-csv", s.csv, s.overwrite);
    raster::check_text_output(csv);
    const auto map = raster::LabelSource::open(s.map);
    const auto grid = map->grid();
    const auto reference = raster::LabelSource::open(s.reference, &grid);
    const auto mask = s.mask.path.empty() ? nullptr : raster::LabelSource::open(s.mask, &grid);
    for (const auto* source : {map.get(), reference.get(), mask.get()})
        if (source)
            for (const auto& note : source->notes())
                run.warn(note);
    run.report()["map"] = {{"path", map->path()}, {"how", map->description()}};
    run.report()["reference"] = {{"path", reference->path()}, {"how", reference->description()}};
    if (run.options().dry_run) {
        run.note("Map: " + map->description() + ", " + std::to_string(grid.samples) + "x" +
                 std::to_string(grid.lines) + ". Reference: " + reference->description() + ".");
        return;
    }

    accuracy::Confusion confusion(map->legend(), reference->legend());
    constexpr int64_t strip = 256;
    const auto size = static_cast<size_t>(strip * grid.samples);
    std::vector<uint16_t> of_map(size), of_reference(size), of_mask(mask ? size : 0);
    bool mapped = false, labelled = false;
    const auto any = [](const std::vector<uint16_t>& values, int64_t count) {
        return std::any_of(values.begin(), values.begin() + count, [](uint16_t v) { return v != 0; });
    };
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t n = std::min(strip, grid.lines - y);
        map->read(y, n, of_map.data());
        reference->read(y, n, of_reference.data());
        if (mask) mask->read(y, n, of_mask.data());
        mapped = mapped || any(of_map, n * grid.samples);
        labelled = labelled || any(of_reference, n * grid.samples);
        confusion.add(of_map.data(), of_reference.data(), mask ? of_mask.data() : nullptr, n * grid.samples);
    }
    if (!labelled) throw raster::no_labels(*reference);
    if (!mapped) throw raster::no_labels(*map);
    const auto result = confusion.result(s.unclassified == "error");
    if (confusion.renumbered())
        run.note("Map and reference number their classes differently: matched by name, numbers are the "
                 "reference's");
    const Json json = to_json(result);
    run.report()["accuracy"] = json;
    raster::write_text_output(csv, accuracy::csv(result));
    run.print(s.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) : accuracy::text(result));
}

void declare(tool::Call& call) {
    auto& s = call.settings<Settings>();
    s.mask.mask = true;
    call.input_argument("map", s.map.path, Content::raster, "The class map: a raster");
    call.input_argument("reference", s.reference.path, Content::labels,
                        "The reference labels: a raster or vector file, in any SRS and on any grid");
    call.flag("json", s.json, "Print the result as JSON, and nothing else");
    call.output("csv", s.csv, Content::text, "Also write the confusion matrix with accuracies to FILE (CSV)");
    call.input("mask", s.mask.path, Content::labels,
               "Judge only where the raster FILE is not 0, or inside the features of the vector FILE");
    call.choice<std::string>("unclassified", s.unclassified, "Labelled pixels that have no class in the map",
                             {{"ignore", "ignore", "leave them out of the accuracies"},
                              {"error", "error", "count them as errors"}});
    tool::add_label_options(call, s.reference);
    call.overwrite(s.overwrite, "Replace the file of -csv when it is there; without this that is an error");
    call.add_report();
    call.body([&s](tool::Run& run) { run_accuracy(run, s); });
}

} // namespace accuracy_tool
} // namespace

namespace tools {

extern const tool::Definition accuracy{
    "accuracy",
    "Accuracy of a class map",
    "Judges a class map against reference labels: confusion matrix, producer's and user's accuracy "
    "and F1 of each class, overall and average accuracy, kappa, with 95 % confidence intervals. "
    "Pixels without a label are left out. Classes are matched by name where both files name them.",
    {{"gdal_hsi_accuracy map.tif test.tif", "A map against the test pixels of gdal_hsi_sample"},
     {"gdal_hsi_accuracy -csv accuracy.csv -field landcover map.tif ground_truth.gpkg",
      "Against polygons, with a table for other programs"},
     {"gdal_hsi_accuracy -json -q map.tif test.tif | jq .overall_accuracy.value", "One figure for a script"}},
    "",
    accuracy_tool::declare,
    true};

} // namespace tools
} // namespace hsi
