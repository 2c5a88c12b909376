// SPDX-License-Identifier: MIT
#include "gdal/arguments.h"

#include "core/error.h"
#include "raster/regular_file.h"
#include "raster/text_input.h"

#include <cpl_conv.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hsi::plugin {
namespace {

bool is_gap(char c) { return c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r'; }

/// Returns the beginning of a text for a message, since texts may be long.
std::string shown(const std::string& text) {
    constexpr size_t most = 40;
    return text.size() <= most ? text : text.substr(0, most) + "...";
}

} // namespace

Arguments::Arguments(std::string function, CSLConstList list, std::string folder)
    : m_function(std::move(function)), m_list(list), m_folder(std::move(folder)) {}

const char* Arguments::find(const char* name) const {
    if (std::find(m_asked.begin(), m_asked.end(), name) == m_asked.end()) m_asked.emplace_back(name);
    return CSLFetchNameValue(m_list, name);
}

void Arguments::refuse(const std::string& what, const std::string& advice) const {
    throw Error(what, advice);
}

std::string Arguments::text(const char* name) const {
    const char* const value = find(name);
    if (value == nullptr || *value == '\0') refuse(std::string("the argument '") + name + "' is missing");
    return value;
}

std::vector<double> Arguments::numbers(const char* name) const {
    const std::string all = text(name);
    std::vector<double> values;
    const char* at = all.c_str();
    for (;;) {
        while (is_gap(*at))
            ++at;
        if (*at == '\0') break;
        char* end = nullptr;
        const double value = CPLStrtod(at, &end);
        if (end == at || !(is_gap(*end) || *end == '\0'))
            refuse(std::string("the argument '") + name + "': '" + shown(at) + "' is not a number");
        if (!std::isfinite(value))
            refuse(std::string("the argument '") + name + "': value " + std::to_string(values.size() + 1) +
                   " is not finite");
        values.push_back(value);
        at = end;
    }
    if (values.empty()) refuse(std::string("the argument '") + name + "' is empty");
    return values;
}

double Arguments::number(const char* name, std::optional<double> otherwise) const {
    if (otherwise && !has(name)) return *otherwise;
    const auto values = numbers(name);
    if (values.size() != 1)
        refuse(std::string("the argument '") + name + "' must be one number, not " +
               std::to_string(values.size()));
    return values.front();
}

int Arguments::whole(const char* name, int least, int most, std::optional<int> otherwise) const {
    if (otherwise && !has(name)) return *otherwise;
    const double value = number(name);
    if (value != std::floor(value) || value < least || value > most)
        refuse(std::string("the argument '") + name + "': " + shown(text(name)) +
               " is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return static_cast<int>(value);
}

bool Arguments::yes(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    const std::string value = text(name);
    for (const char* positive : {"yes", "true", "on", "1"})
        if (EQUAL(value.c_str(), positive)) return true;
    for (const char* negative : {"no", "false", "off", "0"})
        if (EQUAL(value.c_str(), negative)) return false;
    refuse(std::string("the argument '") + name + "': '" + shown(value) + "' is not yes or no");
}

std::string Arguments::choice(const char* name, const std::vector<const char*>& allowed) const {
    if (!has(name)) return allowed.front();
    const std::string value = text(name);
    std::string list;
    for (const char* one : allowed) {
        if (value == one) return value;
        list += (list.empty() ? "" : ", ") + std::string(one);
    }
    refuse(std::string("the argument '") + name + "': '" + shown(value) + "' is not one of " + list);
}

std::vector<std::string> Arguments::pieces(const char* name) const {
    const CPLStringList list(
        CSLTokenizeString2(text(name).c_str(), ";", CSLT_STRIPLEADSPACES | CSLT_STRIPENDSPACES));
    std::vector<std::string> out;
    for (int i = 0; i < list.size(); ++i)
        if (*list[i] != '\0') out.emplace_back(list[i]);
    if (out.empty()) refuse(std::string("the argument '") + name + "' is empty");
    return out;
}

std::vector<std::vector<double>> Arguments::lists(const char* name) const {
    std::vector<std::vector<double>> out;
    for (const auto& piece : pieces(name)) {
        const CPLStringList one(CSLAddNameValue(nullptr, name, piece.c_str()));
        out.push_back(Arguments(m_function, one.List(), m_folder).numbers(name));
    }
    return out;
}

std::string Arguments::path(const char* name) const {
    std::string file = text(name);
    if (CPLIsFilenameRelative(file.c_str())) {
        const std::string folder = !m_folder.empty() ? m_folder : CPLGetConfigOption("GDAL_HSI_PATH", "");
        if (!folder.empty()) file = CPLFormFilename(folder.c_str(), file.c_str(), nullptr);
    }
    // A program that displays a VRT must not wait for the other end of a pipe.
    if (raster::is_pipe_or_device(file))
        refuse(std::string("the argument '") + name + "': '" + shown(file) + "' is a pipe or a device");
    m_files.push_back(file);
    return file;
}

void Arguments::refuse_others() const {
    for (CSLConstList item = m_list; item != nullptr && *item != nullptr; ++item) {
        char* key = nullptr;
        CPLParseNameValue(*item, &key);
        const std::string name = key ? key : *item;
        CPLFree(key);
        const bool asked = std::any_of(m_asked.begin(), m_asked.end(), [&](const std::string& known) {
            return EQUAL(known.c_str(), name.c_str());
        });
        if (asked) continue;
        std::string list;
        for (const auto& known : m_asked)
            list += (list.empty() ? "" : ", ") + known;
        refuse("unknown argument '" + name + "'", "Arguments are " + list + ".");
    }
}

std::string read_model(const std::string& path) {
    VSIStatBufL status;
    if (VSIStatL(path.c_str(), &status) != 0)
        throw Error("cannot read '" + path + "'",
                    "Relative names start in the folder of the configuration option GDAL_HSI_PATH, or in the "
                    "working folder if that option is not set.");
    return raster::read_file(path, largest_file::model);
}

} // namespace hsi::plugin
