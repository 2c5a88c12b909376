// SPDX-License-Identifier: MIT
// gdal_hsi_accuracy: a class map judged against reference labels.
#include "accuracy/accuracy.h"
#include "cli/tool.h"
#include "core/error.h"
#include "raster/labels.h"

#include <algorithm>
#include <cmath>

namespace {

using namespace hsi;
using Json = nlohmann::json;

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

std::vector<accuracy::Class> classes_of(const raster::LabelSource& source) {
    std::vector<accuracy::Class> classes;
    for (const auto& c : source.legend())
        classes.push_back({c.value, c.name});
    return classes;
}

void run_accuracy(cli::Run& run, const Settings& s) {
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

    accuracy::Confusion confusion(classes_of(*map), classes_of(*reference));
    constexpr int64_t strip = 256;
    const auto size = static_cast<size_t>(strip * grid.samples);
    std::vector<uint16_t> of_map(size), of_reference(size), of_mask(mask ? size : 0);
    for (int64_t y = 0; y < grid.lines; y += strip) {
        if (run.cancel().requested()) throw Cancelled();
        const int64_t n = std::min(strip, grid.lines - y);
        map->read(y, n, of_map.data());
        reference->read(y, n, of_reference.data());
        if (mask) mask->read(y, n, of_mask.data());
        confusion.add(of_map.data(), of_reference.data(), mask ? of_mask.data() : nullptr, n * grid.samples);
    }
    const auto result = confusion.result(s.unclassified == "error");
    if (confusion.renumbered())
        run.note("Map and reference number their classes differently: matched by name, numbers are the "
                 "reference's");
    const Json json = to_json(result);
    run.report()["accuracy"] = json;
    raster::write_text_output(csv, accuracy::csv(result));
    run.print(s.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) : accuracy::text(result));
}

} // namespace

int main(int argc, char** argv) {
    cli::Tool tool(
        "gdal_hsi_accuracy",
        "Judges a class map against reference labels: confusion matrix, producer's and user's accuracy and "
        "F1 "
        "of each class, overall and average accuracy, kappa, with 95 % confidence intervals. Pixels without "
        "a label are left out. Classes are matched by name where both files name them.",
        "Examples:\n"
        "  gdal_hsi_accuracy map.tif test.tif\n"
        "  gdal_hsi_accuracy -csv accuracy.csv -field landcover map.tif ground_truth.gpkg\n"
        "  gdal_hsi_accuracy -json -q map.tif test.tif | jq .overall_accuracy.value\n");
    Settings s;
    auto& app = tool.app();
    app.add_option("map", s.map.path, "class map: a raster")->required();
    app.add_option("reference", s.reference.path,
                   "reference labels: raster or vector, in any SRS and on any grid")
        ->required();
    app.add_flag("--json", s.json, "Print the result as JSON, and nothing else");
    app.add_option("--csv", s.csv, "Write the confusion matrix with accuracies to this file")
        ->type_name("FILE");
    app.add_option("--mask", s.mask.path,
                   "Judge only where this raster is not 0, or inside the features of this vector file")
        ->type_name("FILE");
    app.add_option("--unclassified", s.unclassified,
                   "Labelled pixels that have no class in the map: leave them out of the accuracies, or "
                   "count them as errors")
        ->type_name("ignore|error")
        ->capture_default_str();
    app.add_option("--field", s.reference.field, "Class field of a vector reference")->type_name("NAME");
    app.add_option("--name-field", s.reference.name_field, "Class names beside a field of numbers")
        ->type_name("NAME");
    app.add_option("--layer", s.reference.layer, "Layer of a vector reference")->type_name("NAME");
    app.add_flag("--all-touched", s.reference.all_touched, "Burn every pixel that a polygon touches");
    app.add_flag("--overwrite", s.overwrite, "Replace the file of -csv when it is there");
    tool.add_report();
    tool.add_input("map", s.map.path);
    tool.add_input("reference", s.reference.path);
    tool.add_input("-mask", s.mask.path);
    s.mask.mask = true;
    tool.check([&](const cli::CommonOptions&) {
        if (s.unclassified != "ignore" && s.unclassified != "error")
            throw UsageError("-unclassified: '" + s.unclassified + "' is neither ignore nor error");
    });
    return tool.run(argc, argv, [&](cli::Run& run) { run_accuracy(run, s); });
}
