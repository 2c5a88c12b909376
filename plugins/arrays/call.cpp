// SPDX-License-Identifier: MIT
#include "arrays/call.h"

#include "core/error.h"
#include "core/text.h"
#include "tool/definition_json.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace hsi::arrays {
namespace {

/// Returns the word for this value on a command line.
std::string word_of(const tool::Argument& argument, const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_integer()) return value.dump();
    if (value.is_number()) {
        char text[40];
        return {text, std::to_chars(text, text + sizeof text, value.get<double>()).ptr};
    }
    throw UsageError(argument.spelling() + ": " + value.dump() + " is not a number or a text");
}

void give(tool::Call& call, const tool::Argument& argument, const Json& value) {
    if (value.is_null()) return;
    if (argument.type == tool::Type::flag) {
        if (!value.is_boolean())
            throw UsageError(argument.spelling() + ": " + value.dump() + " is not true or false");
        if (value.get<bool>()) call.give(argument.name, {});
        return;
    }
    if (!value.is_array()) return call.give(argument.name, {word_of(argument, value)});
    if (argument.values == 1) {
        if (!argument.repeatable && value.size() != 1)
            throw UsageError(argument.spelling() + " takes one value, not a list of " +
                             std::to_string(value.size()));
        for (const Json& one : value)
            call.give(argument.name, {word_of(argument, one)});
        return;
    }
    // The value is a list of argument.values values, or a list of such lists.
    const bool nested = !value.empty() && value.front().is_array();
    for (const Json& one : nested ? value : Json::array({value})) {
        std::vector<std::string> words;
        for (const Json& word : one)
            words.push_back(word_of(argument, word));
        call.give(argument.name, words);
    }
}

const tool::Argument* found(const tool::Call& call, std::string name) {
    if (const tool::Argument* argument = call.find(name)) return argument;
    std::replace(name.begin(), name.end(), '_', '-');
    return call.find(name);
}

} // namespace

OrderedJson description_of(const tool::Definition& definition) {
    const tool::Declaration declaration(definition);
    OrderedJson json = tool::definition_json(declaration);
    OrderedJson kept = OrderedJson::array();
    for (const auto& argument : json["arguments"])
        if (!tool::is_about_files(*declaration.find(argument["name"].get<std::string>())))
            kept.push_back(argument);
    json["arguments"] = std::move(kept);
    return json;
}

void give_options(tool::Call& call, const std::string& options) {
    const Json json = Json::parse(options, nullptr, false);
    if (!json.is_object())
        throw UsageError("the options are not a JSON object", R"(Give them like {"ws": 7, "threads": 2}.)");
    for (const auto& [name, value] : json.items()) {
        const tool::Argument* const argument = found(call, name);
        if (argument == nullptr) {
            std::vector<std::string> names;
            for (const tool::Argument& one : call.arguments())
                if (!tool::is_about_files(one)) names.push_back(one.name);
            throw UsageError("unknown option '" + name + "'", did_you_mean(name, names));
        }
        if (tool::is_about_files(*argument))
            throw UsageError(argument->spelling() + " applies to files, not to arrays", "Leave it out.");
        if (argument->role != tool::Role::option)
            throw UsageError(argument->spelling() + " is not an option but an input or output",
                             "Give an array or a text for it.");
        give(call, *argument, value);
    }
}

} // namespace hsi::arrays
