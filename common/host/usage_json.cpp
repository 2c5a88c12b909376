// SPDX-License-Identifier: MIT
#include "host/usage_json.h"
#include "core/json.h"

#include "host/help.h"
#include "tool/execute.h"

namespace hsi::host {
namespace {

const char* name_of(tool::Vocabulary vocabulary) {
    switch (vocabulary) {
    case tool::Vocabulary::raster_drivers:
        return "raster_drivers";
    case tool::Vocabulary::vector_drivers:
        return "vector_drivers";
    case tool::Vocabulary::pixel_types:
        return "pixel_types";
    case tool::Vocabulary::none:
        break;
    }
    return nullptr;
}

OrderedJson describe(const tool::Argument& argument) {
    OrderedJson json{{"name", argument.name},
                     {"aliases", argument.aliases},
                     {"summary", argument.summary},
                     {"group", argument.group},
                     {"type", tool::name_of(argument.type)},
                     {"role", tool::name_of(argument.role)},
                     {"positional", argument.positional},
                     {"required", argument.required},
                     {"repeatable", argument.repeatable},
                     {"values", argument.values}};
    if (!argument.option_name.empty()) json["option"] = argument.option_name;
    if (argument.content != tool::Content::none) json["content"] = tool::name_of(argument.content);
    if (argument.values > 0) json["value_name"] = argument.value_name;
    if (!argument.unit.empty()) json["unit"] = argument.unit;
    if (argument.minimum) {
        json["minimum"] = *argument.minimum;
        json["minimum_is_allowed"] = !argument.above_minimum;
    }
    if (argument.maximum) json["maximum"] = *argument.maximum;
    for (const tool::Choice& choice : argument.choices)
        json["choices"].push_back({{"name", choice.name}, {"summary", choice.summary}});
    if (const char* vocabulary = name_of(argument.vocabulary)) json["vocabulary"] = vocabulary;
    if (!argument.default_value.empty()) json["default"] = argument.default_value;
    if (!argument.default_note.empty()) json["default_note"] = argument.default_note;
    json["shared"] = argument.shared;
    return json;
}

} // namespace

std::string usage_json(const tool::Call& call) {
    const tool::Definition& definition = call.definition();
    OrderedJson json{{"schema", usage_schema},
                     {"name", definition.name},
                     {"executable", definition.executable()},
                     {"version", tool::project_version()},
                     {"title", definition.title},
                     {"description", definition.description},
                     {"usage", definition.executable() + " [options] " + usage_arguments(call)}};
    json["arguments"] = OrderedJson::array();
    for (const tool::Argument& argument : call.arguments())
        json["arguments"].push_back(describe(argument));
    json["exclusive"] = OrderedJson::array();
    for (const auto& [one, other] : call.exclusions())
        json["exclusive"].push_back({one, other});
    json["examples"] = OrderedJson::array();
    for (const tool::Example& example : definition.examples)
        json["examples"].push_back({{"command", example.command}, {"purpose", example.purpose}});
    return json.dump(2) + "\n";
}

} // namespace hsi::host
