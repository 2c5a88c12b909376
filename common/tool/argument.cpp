// SPDX-License-Identifier: MIT
#include "tool/argument.h"

#include "core/error.h"
#include "core/text.h"
#include "tool/words.h"

#include <cmath>
#include <cstdio>
#include <utility>

namespace hsi::tool {

namespace {

[[noreturn]] void refuse(const Argument& argument, const std::string& text, const std::string& advice = {}) {
    throw UsageError(argument.spelling() + ": '" + text + "' is " + argument.allowed(), advice);
}

/// Throws unless the argument allows the value.
void check_limits(const Argument& argument, double value, const std::string& text) {
    const bool low =
        argument.limits.minimum && (argument.limits.above_minimum ? !(value > *argument.limits.minimum)
                                                                  : !(value >= *argument.limits.minimum));
    const bool high = argument.limits.maximum && !(value <= *argument.limits.maximum);
    const bool quantity = std::isfinite(value) || (argument.limits.infinite && !std::isnan(value));
    if (low || high || !quantity) refuse(argument, text);
}

} // namespace

const char* name_of(Type type) {
    switch (type) {
    case Type::flag:
        return "flag";
    case Type::integer:
        return "integer";
    case Type::number:
        return "number";
    case Type::text:
        break;
    }
    return "text";
}

const char* name_of(Role role) {
    switch (role) {
    case Role::source:
        return "source";
    case Role::destination:
        return "destination";
    case Role::input:
        return "input";
    case Role::output:
        return "output";
    case Role::option:
        break;
    }
    return "option";
}

const char* name_of(Content content) {
    switch (content) {
    case Content::raster:
        return "raster";
    case Content::vector:
        return "vector";
    case Content::labels:
        return "labels";
    case Content::model:
        return "model";
    case Content::spectra:
        return "spectra";
    case Content::text:
        return "text";
    case Content::none:
        break;
    }
    return "none";
}

Argument& Argument::from(double least) {
    limits.minimum = least;
    return *this;
}

Argument& Argument::above(double least) {
    limits.above_minimum = true;
    return from(least);
}

Argument& Argument::between(double least, double most) {
    limits.maximum = most;
    return from(least);
}

Argument& Argument::or_infinite() {
    limits.infinite = true;
    return *this;
}

Argument& Argument::in_unit(std::string name_of_unit) {
    unit = std::move(name_of_unit);
    return *this;
}

Argument& Argument::shown_as(std::string name_of_value) {
    value_name = std::move(name_of_value);
    return *this;
}

Argument& Argument::defaults_to(std::string note) {
    preset.value.clear();
    preset.note = std::move(note);
    return *this;
}

Argument& Argument::under(std::string heading) {
    group = std::move(heading);
    return *this;
}

Argument& Argument::also(std::string alias) {
    aliases.push_back(std::move(alias));
    return *this;
}

Argument& Argument::speaks(Vocabulary of) {
    vocabulary = of;
    return *this;
}

Argument& Argument::or_option(std::string option) {
    option_name = std::move(option);
    return *this;
}
Argument& Argument::or_list() {
    lists = true;
    return *this;
}
std::string Argument::meaning() const {
    return option_name.empty() ? summary : summary + "; or -" + option_name + " " + value_name;
}
std::string Argument::spelling() const { return positional ? name : "-" + name; }

std::string Argument::limits_text() const {
    if (limits.maximum && limits.minimum)
        return (limits.above_minimum ? "above " : "") + number_text(*limits.minimum) + " to " +
               number_text(*limits.maximum);
    if (limits.maximum) return "up to " + number_text(*limits.maximum);
    if (!limits.minimum) return {};
    return limits.above_minimum ? "above " + number_text(*limits.minimum)
                                : "from " + number_text(*limits.minimum) + " on";
}

std::string Argument::allowed() const {
    if (choices.size() == 2) return "not " + choices[0].name + " or " + choices[1].name;
    if (!choices.empty()) {
        std::vector<std::string> names;
        for (const Choice& choice : choices)
            names.push_back(choice.name);
        return "not one of " + joined(names, ", ");
    }
    std::string text = type == Type::integer ? "not a whole number" : "not a number";
    if (const std::string range = limits_text(); !range.empty())
        text += (limits.maximum && limits.minimum && !limits.above_minimum ? " from " : " ") + range;
    return text;
}

double number_in(const Argument& argument, const std::string& text) {
    const auto value = parse_number(text);
    if (!value) refuse(argument, text);
    check_limits(argument, *value, text);
    return *value;
}

long long integer_in(const Argument& argument, const std::string& text, long long least, long long most) {
    const auto value = parse_integer(text);
    if (!value || *value < least || *value > most) refuse(argument, text);
    check_limits(argument, static_cast<double>(*value), text);
    return *value;
}

size_t choice_in(const Argument& argument, const std::string& text) {
    std::vector<std::string> names;
    for (const Choice& choice : argument.choices) {
        if (equal_names(choice.name, text)) return names.size();
        names.push_back(choice.name);
    }
    refuse(argument, text, did_you_mean(text, names));
}

std::string number_text(double value) {
    char text[32];
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value); // print 1000000, not 1e+06
    std::snprintf(text, sizeof text, whole ? "%.0f" : "%g", value);
    return text;
}

} // namespace hsi::tool
