// SPDX-License-Identifier: MIT
// gdal_hsi_identify: finds the material of each pixel by rules on absorption features, in one pass.
#include "identify/identify.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/json.h"
#include "core/name_index.h"
#include "core/text.h"
#include "core/valid_pixel.h"
#include "gdal_hsi_identify/references.h"
#include "links/links.h"
#include "raster/labels.h"
#include "raster/output_set.h"
#include "raster/pixel_size.h"
#include "raster/text_input.h"
#include "raster/text_output.h"
#include "shared/scene_and_library.h"
#include "shared/spectral_bands.h"
#include "tool/definition.h"
#include "tool/devices.h"
#include "tool/passes.h"
#include "tool/phrases.h"
#include "tool/plan.h"
#include "tool/scene.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hsi {
namespace identify_tool {
namespace {

using identify::Best;
using identify::Plan;
using tool::Content;

struct Settings {
    std::string rules, colours, scores, centre, areas, materials;
    ReferenceOptions references;
    Best best = Best::fit;
    std::vector<std::string> group_words, rule_words;
    Best value = Best::depth;
    bool accepted = false;
    std::vector<std::array<int64_t, 2>> explained; ///< row and sample of each pixel of -explain
    std::string text;                              ///< content of the rule file
    identify::RuleFile file;
    identify::Choice choice;
};

std::vector<std::pair<std::string, std::string>> further_outputs(const Settings& s) {
    return {{"-scores", s.scores}, {"-centre", s.centre}, {"-materials", s.materials}, {"-areas", s.areas}};
}

// The rules
// ----------------------------------------------------------------------------------------------------------

template <class List>
std::vector<size_t> chosen(const List& list, const std::vector<std::string>& words, const char* what) {
    std::vector<std::string> names;
    for (const auto& one : list)
        names.push_back(one.name);
    try {
        return raster::chosen_names(names, words, what);
    } catch (const Error&) {
        throw UsageError("-" + std::string(what) + ": no " + what + " matches " + joined(words, " or "),
                         "Names in the rule file: " + joined(names, ", ") + ".");
    }
}

void read_rule_file(tool::Run& run, Settings& s) {
    s.text = raster::read_input(s.rules, largest_file::model);
    s.file = identify::read_rules(s.text, s.rules);
    s.choice.groups = chosen(s.file.groups, s.group_words, "group");
    s.choice.rules = chosen(s.file.rules, s.rule_words, "rule");
    s.choice.best = s.best;
    if (s.file.drops_centres)
        run.note(s.rules + ": \"absorption_center_range\" is ignored; convert it with scripts/cramm_rules");
    if (s.colours.empty()) return;
    NameIndex names;
    for (size_t k = 0; k < s.file.rules.size(); ++k)
        names.add(s.file.rules[k].name, k);
    std::string unknown;
    for (const auto& [name, colour] :
         identify::read_colours(raster::read_input(s.colours, largest_file::model), s.colours)) {
        if (const auto rule = names.find(name))
            s.file.rules[*rule].colour = colour;
        else if (unknown.empty())
            unknown = name;
    }
    if (!unknown.empty()) run.warn("-colours " + s.colours + ": no rule is called '" + unknown + "'");
}

const std::string& name_of(const Plan& plan, size_t rule) {
    return plan.file.rules[plan.rules[rule].rule].name;
}

void report_rules(tool::Run& run, const Plan& plan) {
    Json rules = Json::array();
    size_t features = 0;
    std::vector<Json> reasons(plan.rules.size(), Json::array());
    for (const auto& [rule, why] : plan.left_out)
        reasons[rule].push_back(why);
    for (size_t k = 0; k < plan.rules.size(); ++k) {
        Json parts = Json::array();
        for (const auto& part : plan.rules[k].features) {
            const auto& fit = plan.fits[part.fit];
            const auto& span = plan.spans[fit.span];
            parts.push_back({{"bands", span.x.size()},
                             {"from_nm", span.x.front()},
                             {"to_nm", span.x.back()},
                             {"weight", part.weight},
                             {"depth", fit.extent},
                             {"chance", part.chance}});
        }
        features += parts.size();
        std::string text = name_of(plan, k) + ": ";
        for (const auto& part : parts)
            text += (&part == &parts.front() ? "" : ", ") + tools::nm_text(part["from_nm"].get<double>()) +
                    " - " + tools::nm_text(part["to_nm"].get<double>()) + " (" +
                    counted(part["bands"].get<size_t>(), "band") + ")";
        tool::add_to_plan(run, text);
        rules.push_back(
            {{"name", name_of(plan, k)}, {"used", true}, {"reason", reasons[k]}, {"features", parts}});
    }
    for (const auto& [rule, why] : plan.skipped)
        rules.push_back(
            {{"name", plan.file.rules[rule].name}, {"used", false}, {"reason", Json::array({why})}});
    run.report()["rules"] = rules;
    run.note(counted(plan.rules.size(), "rule") + ", " + counted(features, "feature") + ", " +
             counted(plan.used.size(), "band"));
    for (const auto& [rule, why] : plan.skipped)
        run.note("Rule '" + plan.file.rules[rule].name + "' (line " +
                 std::to_string(plan.file.rules[rule].line) + ") is skipped: " + why);
    for (const auto& [rule, why] : plan.left_out)
        run.note("Rule '" + name_of(plan, rule) + "': left out: " + why);
}

/// Warns of rules that white noise often satisfies.
void warn_of_noise(tool::Run& run, const Plan& plan) {
    constexpr double often = 0.05;
    std::vector<std::string> noisy;
    for (size_t k = 0; k < plan.rules.size(); ++k)
        if (const auto& parts = plan.rules[k].features; parts.size() == 1 && parts.front().chance > often)
            noisy.push_back(name_of(plan, k));
    constexpr size_t most_named = 20;
    const size_t count = noisy.size();
    noisy.resize(std::min(count, most_named));
    if (count > 0)
        run.warn("white noise would reach the least fit of " + counted(count, "rule") +
                 " with one feature in over 5 % of the pixels: " + joined(noisy, ", ") +
                 (count > most_named ? " and " + std::to_string(count - most_named) + " more" : "") +
                 ". Use more bands, a limit on the depth, or another feature");
}

Plan plan_of(tool::Run& run, const Settings& s, const raster::RasterSource& scene) {
    const auto& facts = scene.facts().bands;
    const auto references = references_of(run, s.references, s.rules, s.file, s.choice, scene);
    auto plan = identify::plan_rules(
        s.file, s.choice, {facts.wavelengths_nm, facts.values.scale, facts.values.offset, s.references.unit},
        references);
    report_rules(run, plan);
    return plan;
}

// Outputs
// ----------------------------------------------------------------------------------------------------------

/// Returns the path of a group's map, such as map_2um.tif for map.tif.
std::string path_of_group(const std::string& path, const std::string& group) {
    std::string tail = "_";
    for (const char c : group)
        tail += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
    const size_t slash = path.find_last_of('/'), dot = path.find_last_of('.');
    const bool extension =
        dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
    return extension ? path.substr(0, dot) + tail + path.substr(dot) : path + tail;
}

const std::string& group_name(const Plan& plan, size_t group) {
    return plan.file.groups[plan.groups[group].group].name;
}

/// Describes a map with one band per group of `groups`.
raster::OutputSpec map_spec(const Plan& plan, const raster::RasterSource& scene,
                            const std::vector<size_t>& groups, raster::OutputOptions& options) {
    std::map<int, raster::LabelClass> classes;
    raster::OutputSpec spec;
    for (const size_t g : groups) {
        for (const size_t k : plan.groups[g].rules) {
            const auto& rule = plan.file.rules[plan.rules[k].rule];
            auto& one = classes[static_cast<int>(plan.rules[k].rule) + 1];
            one.value = static_cast<int>(plan.rules[k].rule) + 1;
            one.name = rule.name;
            one.colour = rule.colour;
        }
        spec.bands.push_back({group_name(plan, g), {}});
    }
    std::vector<raster::LabelClass> list;
    for (auto& [value, one] : classes)
        list.push_back(std::move(one));
    raster::describe_class_map(list, options, spec);
    spec.shape = {scene.shape().samples, scene.shape().lines, static_cast<int>(groups.size())};
    spec.type = plan.file.rules.size() > 255 ? "UInt16" : "Byte";
    spec.keep_nan = true; // the tiles may also contain the value 0
    return spec;
}

/// Describes the maps of the groups. Maps in files have one colour table each; with `stacked`, one array has
/// a band per group.
std::vector<std::pair<raster::OutputOptions, raster::OutputSpec>>
maps_of(const tool::Run& run, const Plan& plan, const raster::RasterSource& scene, bool stacked) {
    const auto shown = plan.shown();
    std::vector<std::pair<raster::OutputOptions, raster::OutputSpec>> maps;
    for (const size_t g : shown) {
        auto options = run.options().destination;
        if (shown.size() > 1 && !stacked) options.path = path_of_group(options.path, group_name(plan, g));
        auto spec = map_spec(plan, scene, stacked ? shown : std::vector<size_t>{g}, options);
        maps.emplace_back(std::move(options), std::move(spec));
        if (stacked) break;
    }
    return maps;
}

raster::OutputSet outputs_of(const tool::Run& run, const Settings& s, const Plan& plan,
                             const raster::RasterSource& scene, bool stacked) {
    raster::OutputSet outputs;
    for (auto& [options, spec] : maps_of(run, plan, scene, stacked))
        outputs.plan(std::move(options), std::move(spec));
    const auto add = [&](const char* role, const std::string& path, std::vector<raster::BandSpec> bands) {
        if (path.empty()) return;
        raster::OutputSpec spec;
        spec.shape = {scene.shape().samples, scene.shape().lines, static_cast<int>(bands.size())};
        spec.bands = std::move(bands);
        spec.holes = true;
        outputs.plan(run.side_output(role, path), std::move(spec));
    };
    std::vector<raster::BandSpec> scores, centres, materials;
    for (const size_t g : plan.shown()) {
        for (const char* const quantity : {" fit", " depth", " fd"})
            scores.push_back({group_name(plan, g) + quantity, {}});
        centres.push_back({group_name(plan, g), {}});
        centres.back().unit = "nm";
    }
    for (size_t k = 0; k < plan.rules.size(); ++k)
        materials.push_back({name_of(plan, k), {}});
    add("-scores", s.scores, std::move(scores));
    add("-centre", s.centre, std::move(centres));
    add("-materials", s.materials, std::move(materials));
    outputs.check(scene);
    return outputs;
}

std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    return text;
}

/// Reports the result of each group to the user. Returns the table of -areas.
std::string report_areas(tool::Run& run, const Plan& plan, const identify::Identification& found,
                         bool areas) {
    std::string table = "group,number,name,pixels,share,area_m2,mean_fit,mean_depth,mean_fd\n";
    const auto shown = plan.shown();
    Json report = Json::array();
    for (size_t g = 0; g < shown.size(); ++g) {
        const auto& group = group_name(plan, shown[g]);
        for (size_t at = 1; at <= plan.file.rules.size() + 1; ++at) {
            const size_t label = at <= plan.file.rules.size() ? at : 0;
            const auto tally = found.tally(g, label);
            if (tally.pixels == 0) continue;
            const auto n = static_cast<double>(tally.pixels);
            const double share = n / static_cast<double>(found.valid());
            const std::string name = label > 0 ? plan.file.rules[label - 1].name : "";
            table += csv_cell(group) + "," + std::to_string(label) + "," + csv_cell(name) + "," +
                     std::to_string(tally.pixels) + "," + number(share) + "," +
                     (areas ? number(tally.area) : "");
            Json row{{"group", group}, {"number", label}, {"name", name}, {"pixels", tally.pixels}};
            std::string means = ",,,";
            if (label > 0)
                means =
                    "," + number(tally.fit / n) + "," + number(tally.depth / n) + "," + number(tally.fd / n);
            table += means + "\n";
            if (areas) row["area_m2"] = tally.area;
            report.push_back(row);
            char text[64];
            std::snprintf(text, sizeof text, "%7.2f %%  ", 100 * share);
            run.note(text + (shown.size() > 1 ? group + ": " : "") + (label > 0 ? name : "no rule accepted") +
                     ", " + counted(tally.pixels, "pixel") +
                     (areas ? ", " + tools::short_number(std::round(tally.area)) + " m2" : ""));
        }
    }
    run.report()["areas"] = report;
    return table;
}

// The pass
// ----------------------------------------------------------------------------------------------------------

/// Warns if the values are so small or so large that -library-scale is probably wrong.
void warn_of_unit(tool::Run& run, const Settings& s, const Plan& plan, const raster::RasterSource& scene) {
    // Only this rank prints the warning, so only this rank reads the scene for it.
    if (!run.ranks().root()) return;
    auto values = first_values(scene, plan.bands.scale, plan.bands.offset);
    if (values.empty()) return;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    const double unit = s.references.unit, median = *middle;
    constexpr double least = 0.01, most = 2;
    if (median >= least * unit && median <= most * unit) return;
    run.warn("half of the values are at most " + number(median) + ", but reflectance 1 is " + number(unit) +
             ": limits on the continuum need the value of src at reflectance 1, -library-scale");
}

/// Prints the results of all rules for a pixel (-explain).
void explain(tool::Run& run, const Settings& s, const Plan& plan, const raster::RasterSource& scene) {
    Json all = Json::array();
    const auto reader = scene.open_reader();
    for (const auto& [line, sample] : s.explained) {
        std::vector<float> values(plan.used.size());
        reader->read({sample, line, 1, 1},
                     CubeView<float>::packed(values.data(), static_cast<int>(values.size()), 1, 1));
        const std::string where = "Line " + std::to_string(line) + ", sample " + std::to_string(sample);
        if (!is_valid_pixel(values.data(), static_cast<int>(values.size()), 1))
            throw Error("-explain " + std::to_string(line) + " " + std::to_string(sample) +
                            ": the pixel is invalid",
                        "Choose a pixel with a value in all bands of the features.");
        run.print(where + ":");
        Json rules = Json::array();
        for (const auto& verdict : identify::explain(plan, values)) {
            char text[128];
            std::snprintf(text, sizeof text, "fit %.4g, depth %.4g, fd %.4g", verdict.fit, verdict.depth,
                          verdict.fd);
            const bool has_value = std::isfinite(verdict.value);
            run.print("  " + name_of(plan, verdict.rule) + ": " +
                      (verdict.accepted ? std::string("accepted, ") : "rejected, ") + text +
                      (verdict.accepted ? "" : "; " + verdict.failed) +
                      (has_value ? " is " + number(verdict.value) : ""));
            rules.push_back({{"name", name_of(plan, verdict.rule)},
                             {"accepted", verdict.accepted},
                             {"fit", verdict.fit},
                             {"depth", verdict.depth},
                             {"fd", verdict.fd}});
            if (verdict.accepted) continue;
            rules.back()["failed"] = {{"condition", verdict.failed},
                                      {"value", has_value ? Json(verdict.value) : Json()}};
        }
        all.push_back({{"line", line}, {"sample", sample}, {"rules", rules}});
    }
    if (!all.empty()) run.report()["explained"] = all;
}

/// Rejects settings that are not possible for a virtual scene.
void check_virtual(const tool::Run& run, const Settings& s) {
    const auto& options = run.options().destination;
    const std::string kind = raster::virtual_kind(options);
    if (!raster::is_computed(options))
        throw UsageError(kind + " cannot store rules", "Write a virtual scene (.hsi), or another format.");
    for (const auto& [role, path] : further_outputs(s))
        if (!path.empty())
            throw UsageError(tool::cannot_be_used_with(role, kind),
                             "Write it in a separate run, with a map in another format.");
    const size_t groups = s.choice.groups.empty() ? s.file.groups.size() : s.choice.groups.size();
    if (groups > 1 && options.document)
        throw UsageError("a step passes on the map of one group, but there are " + std::to_string(groups),
                         "Choose a group with -group.");
}

void write_virtual(tool::Run& run, const Settings& s, std::shared_ptr<raster::RasterSource> all) {
    tool::leave_out_unseen_bands(run, all);
    const auto plan = plan_of(run, s, *all);
    const auto scene = tool::only_bands(all, plan.used);
    explain(run, s, plan, *scene);
    warn_of_noise(run, plan);
    const auto maps = maps_of(run, plan, *scene, false);
    for (const auto& [options, spec] : maps)
        raster::check_virtual(options, spec, *scene);
    for (size_t k = 0; k < maps.size(); ++k)
        tool::write_virtual(
            run, maps[k].first, maps[k].second, *scene,
            [&] { return links::identification(s.text, plan, plan.shown()[k]); },
            [] { return std::vector<raster::VirtualBand>(); });
}

/// Makes the pass. Returns false if no pixel is valid.
bool compute(tool::Run& run, const Settings& s, const std::shared_ptr<raster::RasterSource>& all,
             double share) {
    const auto plan = std::make_shared<const Plan>(plan_of(run, s, *all));
    const auto scene = tool::only_bands(all, plan->used);
    const bool map = !run.options().destination.path.empty(), stacked = scene->facts().driver == "array";
    const auto table = run.text_output("-areas", s.areas, run.options().destination.overwrite);
    raster::OutputSet outputs;
    if (map) {
        outputs = outputs_of(run, s, *plan, *scene, stacked);
        raster::check_text_output(table);
    }
    explain(run, s, *plan, *scene);
    if (share > 0) {
        warn_of_noise(run, *plan);
        warn_of_unit(run, s, *plan, *scene);
    }
    if (!map) return true;
    const identify::Outputs wanted{stacked, !s.scores.empty(), !s.centre.empty(), !s.materials.empty(),
                                   s.value, s.accepted};
    auto areas = raster::pixel_areas(*scene);
    const bool known = !areas.empty();
    const auto operation = identify::make_identification(plan, wanted, std::move(areas));
    tool::write(run, *scene, *operation, outputs, scene.get(),
                [&] { return run.pass("identification", share); });
    if (operation->valid() == 0) return false;
    tool::report_invalid(run, operation->valid(), operation->invalid(), "and left without a name");
    if (!known && !s.areas.empty()) {
        double gt[6];
        run.note("The column area_m2 of " + s.areas + " is empty: " +
                 (scene->facts().copy_geotransform(gt) ? "the area of a pixel is unknown in the scene's SRS"
                                                       : "the scene has no geotransform"));
    }
    raster::write_text_output(table, report_areas(run, *plan, *operation, known));
    outputs.commit();
    return true;
}

void run_identify(tool::Run& run, Settings s) {
    read_rule_file(run, s);
    const auto& dst = run.options().destination;
    const bool is_virtual = !dst.path.empty() && raster::is_virtual(dst);
    if (is_virtual) check_virtual(run, s);
    auto scene = run.open_source();
    tool::check_spectrum(*scene, "identification");
    const auto shape = scene->shape();
    for (const auto& [line, sample] : s.explained)
        if (line < 0 || line >= shape.lines || sample < 0 || sample >= shape.samples)
            throw UsageError("-explain " + std::to_string(line) + " " + std::to_string(sample) +
                                 ": the scene has lines 0 to " + std::to_string(shape.lines - 1) +
                                 " and samples 0 to " + std::to_string(shape.samples - 1),
                             "Count line and sample from 0, within -srcwin.");
    if (is_virtual) return write_virtual(run, s, scene);
    tool::report_devices(run, {}, identify::simd_target());
    if (!tool::attempt(run, {tool::banded(scene)},
                       [&](bool again) { return compute(run, s, scene, again ? 0 : 1); }))
        throw tool::no_valid_pixel(*scene);
}

void check_settings(const tool::Call& call, const Settings& s) {
    const tool::CommonOptions& o = call.options();
    for (const char* const option : {"materials-value", "materials-where"})
        if (call.given(option) && s.materials.empty())
            throw UsageError("-" + std::string(option) + " requires -materials");
    if (o.destination.path.empty()) {
        if (s.explained.empty()) throw UsageError("dst is missing");
        for (const auto& [role, path] : further_outputs(s))
            if (!path.empty()) throw UsageError(role + " requires dst");
    }
    if (o.mask.given()) tool::check_mask_use(o.mask, false, "gdal_hsi_identify");
}

void declare(tool::Builder& args) {
    auto& s = args.settings<Settings>();
    args.add_source();
    args.add_mask("the identification", true);
    args.input_argument("rules", s.rules, Content::model,
                        "The rules: a JSON file of this tool's format or of CRAMM's");
    args.add_destination(
            "The map: the number of the rule, 0 if no rule is met; with several groups one file per group,"
            " NAME_GROUP")
        .required = false; // -explain needs no dst
    args.computes_dst();
    args.add_compute(false);
    args.input("library", s.references.library, Content::spectra,
               "Library of the reference spectra, instead of the library in the rule file");
    tools::add_resample_option(args, s.references.fit);
    args.option(
            "library-scale", s.references.unit,
            "Value of src at reflectance 1, for limits on the continuum: 10000 for reflectance in 0..10000")
        .above(0);
    static constexpr std::initializer_list<tool::Named<Best>> values = {
        {"fit", Best::fit, "the weighted fit"},
        {"depth", Best::depth, "the weighted depth"},
        {"fd", Best::fd, "the weighted product of fit and depth"}};
    args.choice("best", s.best, "Value that decides which rule wins its group", values);
    args.option("group", s.group_words, "Map only this group: a name or a pattern").shown_as("NAME");
    args.option("rule", s.rule_words, "Use only this rule: a name or a pattern").shown_as("NAME");
    args.input("colours", s.colours, Content::text,
               "Colours by the names of rules: JSON {\"name\": [r, g, b]}");
    args.output("scores", s.scores, Content::raster,
                "Also write fit, depth and fit times depth of the winners");
    args.output("centre", s.centre, Content::raster,
                "Also write the position (nm) of the first feature of the winners, one band per group");
    args.output("areas", s.areas, Content::text,
                "Also write pixels, shares, areas and means by material to this CSV file");
    args.output("materials", s.materials, Content::raster,
                "Also write the values of each rule to FILE, one band per rule");
    args.choice("materials-value", s.value, "Content of -materials", values);
    args.choice("materials-where", s.accepted, "Pixels with values in -materials; 0 elsewhere",
                {{"won", false, "where the rule won a group"}, {"accepted", true, "where the rule is met"}});
    args.option("explain", s.explained,
                "Print the result of all rules for this pixel, counted from 0 in src or -srcwin; dst is then "
                "optional")
        .shown_as("LINE SAMPLE");
    args.check([&s](const tool::Call& call) { check_settings(call, s); });
    args.body([&s](tool::Run& run) { run_identify(run, s); });
}

} // namespace
} // namespace identify_tool

namespace tools {

extern constinit const tool::Definition identify{
    "identify",
    "Materials by rules",
    "Identifies the material of each pixel by rules on absorption features, as Tetracorder and MICA do, and "
    "writes a map "
    "with the names and colours of the rules.",
    {{"gdal_hsi_identify scene.img minerals.json map.tif", "A map of the materials"},
     {"gdal_hsi_identify -scores scores.tif -areas areas.csv scene.img minerals.json map.tif",
      "Also fit and depth, and a table of areas"},
     {"gdal_hsi_identify -explain 120 45 scene.img minerals.json", "The result of every rule for one pixel"}},
    "",
    identify_tool::declare};

} // namespace tools
} // namespace hsi
