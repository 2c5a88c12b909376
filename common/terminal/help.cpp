// SPDX-License-Identifier: MIT
#include "terminal/help.h"

#include "core/text.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace hsi::terminal {
namespace {

constexpr size_t text_width = 100, option_column = 34;

void append_wrapped(std::string& out, const std::string& text, size_t column, size_t used) {
    std::istringstream words(text);
    std::string word;
    size_t at = used;
    bool first = true;
    while (words >> word) {
        if (!first && at + 1 + word.size() > text_width) {
            out += '\n' + std::string(column, ' ');
            at = column;
        } else if (!first) {
            out += ' ';
            ++at;
        }
        out += word;
        at += word.size();
        first = false;
    }
    out += '\n';
}

void append_entry(std::string& out, const std::string& left, const std::string& right) {
    out += "  " + left;
    size_t used = 2 + left.size();
    if (used + 2 > option_column) {
        out += '\n';
        used = 0;
    }
    out += std::string(option_column - used, ' ');
    append_wrapped(out, right, option_column, option_column);
}

// --- Markdown

std::string code(const std::string& text) { return "`" + text + "`"; }

/// Returns the text with names of the call's options as code.
std::string with_code(const tool::Declaration& declaration, const std::string& text) {
    std::string marked;
    for (const auto& [part, is_option] : split_at_options(declaration, text))
        marked += is_option ? code(part) : part;
    return marked;
}

/// Returns a row of a table; the first cell is already code.
std::string row(const tool::Declaration& declaration, const std::vector<std::string>& cells) {
    std::string text = "|";
    for (size_t i = 0; i < cells.size(); ++i) {
        std::string cell = i == 0 ? cells[i] : with_code(declaration, cells[i]);
        for (size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2))
            cell.insert(at, "\\");
        text += (cell.empty() ? "" : " ") + cell + " |";
    }
    return text + "\n";
}

std::string table_of(const tool::Declaration& declaration,
                     const std::vector<const tool::Argument*>& options) {
    std::string text = "| option | meaning | default |\n| --- | --- | --- |\n";
    for (const tool::Argument* option : options)
        text += row(declaration, {code(option_text(*option)), option_meaning(declaration, *option),
                                  option_default(*option)});
    return text;
}

} // namespace

std::vector<std::string> option_groups(const tool::Declaration& declaration) {
    std::vector<std::string> order;
    for (const tool::Argument& argument : declaration.arguments())
        if (!argument.positional && std::find(order.begin(), order.end(), argument.group) == order.end())
            order.push_back(argument.group);
    std::stable_partition(order.begin(), order.end(),
                          [](const std::string& group) { return group == "Options"; });
    return order;
}

const std::vector<std::pair<std::string, std::string>>& general_options() {
    static const std::vector<std::pair<std::string, std::string>> options{
        {"-h, --help", "Print arguments, options and examples"},
        {"--version", "Version of the tool and of GDAL"},
        {"--json-usage", "The same as JSON, for programs"},
        {"--formats, --format NAME", "The formats that GDAL knows; one of them in detail"},
        {"--config KEY VALUE", "A configuration option of GDAL; also KEY=VALUE"},
        {"--optfile FILE", "Take further options from a file"},
        {"--debug ON|OFF|NAMES", "GDAL's debug messages"},
        {"--help-general", "GDAL's general options"}};
    return options;
}

std::vector<std::pair<std::string, bool>> split_at_options(const tool::Declaration& declaration,
                                                           const std::string& text) {
    std::vector<std::pair<std::string, bool>> parts;
    std::string other;
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        if (text[at] == '-' && (at == 0 || text[at - 1] == ' ' || text[at - 1] == '('))
            end = std::min(text.find_first_of(" ,;:.)", at), text.size());
        if (end > at + 1 && declaration.find(text.substr(at + 1, end - at - 1)) != nullptr) {
            if (!other.empty()) parts.emplace_back(std::exchange(other, ""), false);
            parts.emplace_back(text.substr(at, end - at), true);
            at = end;
        } else {
            other += text[at++];
        }
    }
    if (!other.empty()) parts.emplace_back(other, false);
    return parts;
}

std::string usage_arguments(const tool::Declaration& declaration) {
    std::string text;
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional)
            text += (text.empty() ? "" : " ") + argument.name +
                    (argument.repeatable && !argument.takes_rest() ? " ..." : "");
    return text;
}

std::string option_text(const tool::Argument& argument) {
    std::string text = "-" + argument.name;
    for (const std::string& alias : argument.aliases)
        text += ", -" + alias;
    if (!argument.value_name.empty()) text += ' ' + argument.value_name;
    return text;
}

std::string option_meaning(const tool::Declaration& declaration, const tool::Argument& argument) {
    std::string text = argument.summary;
    std::string meanings;
    for (const tool::Choice& choice : argument.choices)
        if (!choice.summary.empty())
            meanings += (meanings.empty() ? "" : "; ") + choice.name + ": " + choice.summary;
    if (!meanings.empty()) text += ". " + meanings;

    std::vector<std::string> facts;
    if (argument.required) facts.emplace_back("required");
    const std::string limits = argument.limits_text();
    if (!limits.empty())
        facts.push_back(limits + (argument.unit.empty() ? "" : " ") + argument.unit);
    else if (!argument.unit.empty() && !equal_names(argument.unit, argument.value_name))
        facts.push_back("in " + argument.unit);
    if (argument.repeatable) facts.emplace_back("may be repeated");
    std::vector<std::string> others;
    for (const auto& [one, other] : declaration.exclusions())
        if (one == argument.name || other == argument.name)
            others.push_back("-" + (one == argument.name ? other : one));
    if (!others.empty()) facts.push_back("not with " + joined(others, " or "));
    if (!facts.empty()) text += " (" + joined(facts, "; ") + ")";
    return text;
}

std::string option_default(const tool::Argument& argument) {
    return argument.preset.value.empty() ? argument.preset.note : argument.preset.value;
}

std::string option_description(const tool::Declaration& declaration, const tool::Argument& argument) {
    const std::string standard = option_default(argument);
    return option_meaning(declaration, argument) + (standard.empty() ? "" : " [" + standard + "]");
}

std::string help_text(const tool::Declaration& declaration) {
    const tool::Definition& definition = declaration.definition();
    const std::string name = definition.executable();
    std::string text = "Usage: " + name + " [options] " + usage_arguments(declaration) + "\n\n";
    append_wrapped(text, definition.description, 0, 0);
    text += "\nArguments:\n";
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional) append_entry(text, argument.name, argument.meaning());
    for (const std::string& group : option_groups(declaration)) {
        text += "\n" + group + ":\n";
        for (const tool::Argument& argument : declaration.arguments())
            if (!argument.positional && argument.group == group)
                append_entry(text, option_text(argument), option_description(declaration, argument));
    }
    text += "\nGeneral:\n";
    for (const auto& [option, meaning] : general_options())
        append_entry(text, option, meaning);
    text += "\nOptions may be written with one dash or two (-of, --of); -- ends the options.\n";
    const std::string notes = definition.notes;
    if (!notes.empty()) text += "\n" + notes + (notes.back() == '\n' ? "" : "\n");
    text += "\nExamples:\n";
    for (const tool::Example& example : definition.examples) {
        const std::string purpose = example.purpose;
        if (!purpose.empty()) append_wrapped(text += "  # ", purpose, 4, 4);
        text.append("  ").append(example.command).append("\n");
    }
    return text;
}

std::string option_table(const tool::Declaration& declaration) {
    std::string text = "| argument | meaning |\n| --- | --- |\n";
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional) text += row(declaration, {code(argument.name), argument.meaning()});
    std::string shared;
    std::vector<const tool::Argument*> own;
    for (const tool::Argument& argument : declaration.arguments()) {
        if (argument.positional) continue;
        if (!argument.shared)
            own.push_back(&argument);
        else
            shared += (shared.empty() ? "" : ", ") + code("-" + argument.name);
    }
    if (!own.empty()) text += "\n" + table_of(declaration, own);
    if (!shared.empty()) {
        text += '\n';
        append_wrapped(text, "The tool also has these [shared options](options.md): " + shared + ".", 0, 0);
    }
    return text;
}

std::string shared_option_table() {
    const tool::Definition definition{"shared", "", "", {}, "", [](tool::Builder& args) {
                                          args.add_source();
                                          args.add_mask("statistics", true);
                                          args.add_destination();
                                          args.add_compute();
                                      }};
    const tool::Declaration declaration(definition);
    std::string text;
    for (const std::string& group : option_groups(declaration)) {
        std::vector<const tool::Argument*> options;
        for (const tool::Argument& argument : declaration.arguments())
            if (!argument.positional && argument.group == group) options.push_back(&argument);
        text += "### " + group + "\n\n" + table_of(declaration, options) + "\n";
    }
    text += "### General\n\n| option | meaning |\n| --- | --- |\n";
    for (const auto& [option, meaning] : general_options())
        text += row(declaration, {code(option), meaning});
    return text;
}

} // namespace hsi::terminal
