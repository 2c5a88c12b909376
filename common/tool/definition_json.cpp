// SPDX-License-Identifier: MIT
#include "tool/definition_json.h"

#include "tool/execute.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace hsi::tool {
namespace {

const char* vocabulary_name(Vocabulary vocabulary) {
    switch (vocabulary) {
    case Vocabulary::raster_drivers:
        return "raster_drivers";
    case Vocabulary::vector_drivers:
        return "vector_drivers";
    case Vocabulary::pixel_types:
        return "pixel_types";
    case Vocabulary::none:
        break;
    }
    return nullptr;
}

/// The names of arguments that do not apply to arrays, in any tool: drivers and their options, existing
/// files, features of vector files, and where results are printed or recorded.
constexpr std::array about_files{"if",
                                 "oo",
                                 "bbl",
                                 "of",
                                 "co",
                                 "dsco",
                                 "lco",
                                 "overwrite",
                                 "report",
                                 "report-append",
                                 "append",
                                 "dry-run",
                                 "q",
                                 "if-needed",
                                 "follow",
                                 "ranks",
                                 "json",
                                 "table",
                                 "field",
                                 "group",
                                 "layer",
                                 "name-field",
                                 "all-touched",
                                 "inside-only",
                                 "min-cover",
                                 "pixel-coordinates",
                                 "o",
                                 "folds",
                                 "list",
                                 "stac",
                                 "stac-datetime",
                                 "with"};

} // namespace

bool is_about_files(const Argument& argument) {
    // -o is the file for printed output, except if it is a model: then -o is the tool's result.
    if (argument.name == "o" && argument.content == Content::model) return false;
    // -group is either a field of vector labels, or the name of a group in a file of rules, which also
    // applies to arrays.
    if (argument.name == "group" && argument.value_name != "FIELD") return false;
    return std::find(about_files.begin(), about_files.end(), std::string_view(argument.name)) !=
           about_files.end();
}

OrderedJson argument_json(const Argument& argument) {
    OrderedJson json{{"name", argument.name},
                     {"aliases", argument.aliases},
                     {"summary", argument.summary},
                     {"group", argument.group},
                     {"type", name_of(argument.type)},
                     {"role", name_of(argument.role)},
                     {"positional", argument.positional},
                     {"required", argument.required},
                     {"repeatable", argument.repeatable},
                     {"values", argument.values}};
    if (argument.lists) json["lists"] = true;
    if (!argument.option_name.empty()) json["option"] = argument.option_name;
    if (argument.content != Content::none) json["content"] = name_of(argument.content);
    if (argument.values > 0) json["value_name"] = argument.value_name;
    if (!argument.unit.empty()) json["unit"] = argument.unit;
    if (argument.limits.minimum) {
        json["minimum"] = *argument.limits.minimum;
        json["minimum_is_allowed"] = !argument.limits.above_minimum;
    }
    if (argument.limits.maximum) json["maximum"] = *argument.limits.maximum;
    for (const Choice& choice : argument.choices)
        json["choices"].push_back({{"name", choice.name}, {"summary", choice.summary}});
    if (const char* vocabulary = vocabulary_name(argument.vocabulary)) json["vocabulary"] = vocabulary;
    if (!argument.preset.value.empty()) json["default"] = argument.preset.value;
    if (!argument.preset.note.empty()) json["default_note"] = argument.preset.note;
    json["shared"] = argument.shared;
    json["about_files"] = is_about_files(argument);
    return json;
}

OrderedJson definition_json(const Declaration& declaration) {
    const Definition& definition = declaration.definition();
    OrderedJson json{{"name", definition.name},
                     {"executable", definition.executable()},
                     {"version", project_version()},
                     {"title", definition.title},
                     {"description", definition.description},
                     {"arrays", definition.on_arrays},
                     {"computes", declaration.computes()}};
    json["arguments"] = OrderedJson::array();
    for (const Argument& argument : declaration.arguments())
        json["arguments"].push_back(argument_json(argument));
    json["exclusive"] = OrderedJson::array();
    for (const auto& [one, other] : declaration.exclusions())
        json["exclusive"].push_back({one, other});
    json["examples"] = OrderedJson::array();
    for (const Example& example : definition.examples)
        json["examples"].push_back({{"command", example.command}, {"purpose", example.purpose}});
    return json;
}

} // namespace hsi::tool
