// SPDX-License-Identifier: MIT
#include "terminal/man_page.h"

#include "terminal/help.h"
#include "tool/execute.h"

#include <algorithm>
#include <cctype>

namespace hsi::terminal {
namespace {

/// Returns text that roff does not interpret: no dash becomes a hyphen, and no text line becomes a request.
std::string literal(const std::string& text) {
    std::string roff;
    bool line_begins = true;
    for (const char c : text) {
        if (line_begins && (c == '.' || c == '\'')) roff += "\\&";
        if (c == '\\')
            roff += "\\e";
        else if (c == '-')
            roff += "\\-";
        else if (c == '^')
            roff += "\\(ha"; // roff's own ^ and ~ are accents
        else if (c == '~')
            roff += "\\(ti";
        else
            roff += c;
        line_begins = c == '\n';
    }
    return roff;
}

std::string bold(const std::string& text) { return "\\fB" + literal(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + literal(text) + "\\fR"; }

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/// Returns the beginning of a page. Words are not divided and lines not stretched, because names of options
/// are long.
std::string heading(const std::string& name, const std::string& title) {
    return R"(.\" SPDX-License-Identifier: MIT)"
           "\n.TH " +
           upper(name) + R"( 1 "" "gdal-hsi )" + tool::project_version() +
           R"(" "Hyperspectral tools for GDAL")" + "\n.nh\n.ad l\n.SH NAME\n" + literal(name) + " \\- " +
           literal(title) + "\n";
}

/// Returns a text with the names of the call's options in bold.
std::string prose(const tool::Declaration& declaration, const std::string& text) {
    std::string roff;
    for (const auto& [part, is_option] : split_at_options(declaration, text))
        roff += is_option ? bold(part) : literal(part);
    return roff.rfind('.', 0) == 0 || roff.rfind('\'', 0) == 0 ? "\\&" + roff : roff;
}

/// Returns "\fB\-ws\fR \fIN\fR". Names of choices are typed literally, so they are also bold.
std::string roff_option(const tool::Argument& argument) {
    std::string text = bold("-" + argument.name);
    for (const std::string& alias : argument.aliases)
        text += ", " + bold("-" + alias);
    if (argument.value_name.empty()) return text;
    text += ' ';
    if (argument.choices.empty()) return text + italic(argument.value_name);
    for (size_t i = 0; i < argument.choices.size(); ++i)
        text += (i > 0 ? "|" : "") + bold(argument.choices[i].name);
    return text;
}

void entry(std::string& page, const std::string& left, const std::string& right) {
    page += ".TP\n" + left + "\n" + right + "\n";
}

/// Adds an option with its choices as a list below it.
void option_entry(std::string& page, const tool::Declaration& declaration, const tool::Argument& argument) {
    tool::Argument plain = argument;
    std::vector<tool::Choice> explained;
    for (tool::Choice& choice : plain.choices)
        if (!choice.summary.empty()) explained.push_back(std::exchange(choice, {choice.name, ""}));
    entry(page, roff_option(argument), prose(declaration, option_description(declaration, plain)));
    if (explained.empty()) return;
    page += ".RS\n";
    for (const tool::Choice& choice : explained)
        entry(page, bold(choice.name), prose(declaration, choice.summary));
    page += ".RE\n";
}

} // namespace

std::string man_page(const tool::Declaration& declaration) {
    const tool::Definition& definition = declaration.definition();
    const std::string name = definition.executable();
    std::string page = heading(name, definition.title);
    page += ".SH SYNOPSIS\n" + bold(name) + " [options]";
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional)
            page +=
                " " + italic(argument.name) + (argument.repeatable && !argument.takes_rest() ? " ..." : "");
    page += "\n.SH DESCRIPTION\n" + prose(declaration, definition.description) + "\n";
    const std::string notes = definition.notes;
    if (!notes.empty()) page += ".PP\n.nf\n" + literal(notes) + "\n.fi\n";
    page += ".SH ARGUMENTS\n";
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional) entry(page, italic(argument.name), prose(declaration, argument.meaning()));
    page += ".SH OPTIONS\nOptions may be written with one dash or two (" + bold("-of") + ", " + bold("--of") +
            "); " + bold("--") + " ends the options. In brackets stands the default.\n";
    for (const std::string& group : option_groups(declaration)) {
        if (group != "Options") page += ".SS " + literal(group) + "\n";
        for (const tool::Argument& argument : declaration.arguments())
            if (!argument.positional && argument.group == group) option_entry(page, declaration, argument);
    }
    page += ".SS General\n";
    for (const auto& [option, text] : general_options())
        entry(page, bold(option), literal(text));
    page += ".SH EXIT STATUS\n";
    entry(page, "0", "Done: all outputs are complete.");
    entry(page, "1", "The work failed or was interrupted: no output was written.");
    entry(page, "2", "The command line was wrong, or an option does not fit the file.");
    const char* between = ".SH EXAMPLES\n";
    for (const tool::Example& example : definition.examples) {
        page += std::exchange(between, ".PP\n");
        const std::string purpose = example.purpose;
        if (!purpose.empty()) page += prose(declaration, purpose) + ":\n.PP\n";
        page += ".RS 4\n.nf\n" + literal(example.command) + "\n.fi\n.RE\n";
    }
    return page + ".SH SEE ALSO\n.BR gdal_hsi (1),\n.BR gdalinfo (1),\n.BR gdal_translate (1)\n";
}

std::string suite_man_page(const std::vector<const tool::Definition*>& tools) {
    std::string page =
        heading("gdal_hsi", "hyperspectral image processing on georeferenced cubes of any size");
    page += ".SH SYNOPSIS\n" + bold("gdal_hsi") + " " + italic("TOOL") + " [options] " + italic("arguments") +
            "\n.br\n" + bold("gdal_hsi_") + italic("TOOL") + " [options] " + italic("arguments") +
            "\n.SH DESCRIPTION\nTools for rasters with many bands: anything that GDAL opens goes in, a "
            "georeferenced raster with its metadata comes out. They compute on all CPU cores or on an NVIDIA "
            "GPU, work on scenes larger than memory, and give the same result however the scene is cut into "
            "tiles. Each tool is a command of its own.\n.SH TOOLS\n";
    for (const tool::Definition* one : tools)
        page += ".TP\n.BR " + one->executable() + " (1)\n" + literal(one->title) + "\n";
    page += ".SH OPTIONS\n";
    entry(page, bold("--help"), "All tools, with a line each.");
    entry(page, bold("--version"), "Version of the suite and of GDAL.");
    entry(page, bold("--json-usage"), "All tools with all their arguments as JSON, for programs.");
    entry(page, bold("--man") + " " + italic("TOOL"), "A manual page as it is installed, in roff.");
    return page + ".SH SEE ALSO\n.BR gdalinfo (1),\n.BR gdal_translate (1)\n";
}

} // namespace hsi::terminal
