// SPDX-License-Identifier: MIT
#include "terminal/completion.h"

#include "core/error.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/output_format.h"

#include <cpl_minixml.h>
#include <cpl_string.h>
#include <gdal.h>
#include <gdal_priv.h>

#include <algorithm>
#include <functional>
#include <map>

namespace hsi::terminal {
namespace {

constexpr const char* files = "FILES\n";

using Words = std::vector<std::string>;

/// The meaning of the words before the word that is being typed.
struct Before {
    std::map<std::string, Words> values;    ///< values of options and positional arguments, by name
    const tool::Argument* option = nullptr; ///< Option whose value is being typed; null: none.
    std::string general;                    ///< General option whose value is being typed: "--config".
    bool only_files = false;                ///< true: after the word "--"

    std::string first(const std::string& name) const {
        const auto found = values.find(name);
        return found == values.end() || found->second.empty() ? std::string() : found->second.front();
    }
};

bool begins_with(const std::string& text, const std::string& begin) {
    return text.size() >= begin.size() && equal_names(text.substr(0, begin.size()), begin);
}

/// Returns the number of words that follow a general option.
int values_of_general(const std::string& word) {
    if (word == "--config") return 2;
    return word == "--optfile" || word == "--format" || word == "--debug" ? 1 : 0;
}

Before read(const tool::Declaration& declaration, const Words& words) {
    Before before;
    std::vector<const tool::Argument*> positional;
    for (const tool::Argument& argument : declaration.arguments())
        if (argument.positional) positional.push_back(&argument);
    size_t place = 0; // index of the next positional argument
    int missing = 0;  // words that the option still takes
    for (size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& word = words[i];
        if (missing > 0) {
            if (before.option != nullptr) before.values[before.option->name].push_back(word);
            --missing;
        } else if (!before.only_files && word == "--") {
            before.only_files = true;
        } else if (!before.only_files && word.size() > 1 && word[0] == '-') {
            before.general.clear();
            before.option = declaration.find(word.substr(word[1] == '-' ? 2 : 1));
            missing = before.option != nullptr ? before.option->values : values_of_general(word);
            if (before.option == nullptr) before.general = word;
            if (before.option != nullptr) before.values[before.option->name];
        } else {
            while (place < positional.size() && before.values.count(positional[place]->name) != 0 &&
                   !positional[place]->repeatable)
                ++place; // the argument was given as an option
            if (place == positional.size()) continue;
            const tool::Argument& next = *positional[place];
            before.values[next.name].push_back(word);
            if (!next.repeatable) ++place;
        }
    }
    if (missing == 0) {
        before.option = nullptr;
        before.general.clear();
    }
    return before;
}

bool writes_vectors(GDALDriver* driver) {
    return raster::has_capability(driver, GDAL_DCAP_VECTOR) &&
           raster::has_capability(driver, GDAL_DCAP_CREATE);
}

bool writes_rasters(GDALDriver* driver) {
    return raster::has_capability(driver, GDAL_DCAP_RASTER) &&
           (raster::has_capability(driver, GDAL_DCAP_CREATE) ||
            raster::has_capability(driver, GDAL_DCAP_CREATECOPY));
}

Words driver_names(const std::function<bool(GDALDriver*)>& qualifies) {
    GDALAllRegister();
    Words names;
    for (int i = 0; i < GetGDALDriverManager()->GetDriverCount(); ++i)
        if (GDALDriver* const driver = GetGDALDriverManager()->GetDriver(i); qualifies(driver))
            names.emplace_back(driver->GetDescription());
    return names;
}

/// Returns the driver of an output with this content: by -of if it applies, else by the extension of the
/// first output that is named, else the default driver of the tools.
GDALDriver* output_driver(const tool::Declaration& declaration, const Before& before, bool vectors) {
    GDALAllRegister();
    const tool::Argument* const of = declaration.find("of");
    const bool about = of != nullptr && (of->vocabulary == tool::Vocabulary::vector_drivers) == vectors;
    if (const std::string format = before.first("of"); about && !format.empty())
        return GetGDALDriverManager()->GetDriverByName(format.c_str());
    for (const tool::Argument& argument : declaration.arguments()) {
        const bool output = argument.role == tool::Role::destination || argument.role == tool::Role::output;
        const auto content = vectors ? tool::Content::vector : tool::Content::raster;
        const std::string path = before.first(argument.name);
        if (!output || argument.content != content || path.empty()) continue;
        if (vectors) {
            if (auto* const driver = raster::driver_by_extension(raster::extension_of(path), writes_vectors))
                return driver;
            continue;
        }
        raster::OutputOptions options;
        options.path = path;
        return raster::choose_driver(options);
    }
    return GetGDALDriverManager()->GetDriverByName(vectors ? "GPKG" : "GTiff");
}

GDALDriver* source_driver(const Before& before) {
    GDALAllRegister();
    if (const std::string format = before.first("if"); !format.empty())
        return GetGDALDriverManager()->GetDriverByName(format.c_str());
    const std::string path = before.first("src");
    return path.empty() ? nullptr : static_cast<GDALDriver*>(GDALIdentifyDriver(path.c_str(), nullptr));
}

/// Returns NAME= of all options in the driver's list, or NAME=VALUE of the option that is being typed.
Words pairs_of(GDALDriver* driver, const char* list_name, const std::string& typed) {
    Words pairs;
    const char* const list = driver != nullptr ? driver->GetMetadataItem(list_name) : nullptr;
    if (list == nullptr) return pairs;
    const CPLXMLTreeCloser xml(CPLParseXMLString(list));
    if (!xml) return pairs;
    const size_t equal = typed.find('=');
    for (const CPLXMLNode* option = xml->psChild; option != nullptr; option = option->psNext) {
        if (option->eType != CXT_Element || !EQUAL(option->pszValue, "Option")) continue;
        const std::string name = CPLGetXMLValue(option, "name", "");
        if (equal == std::string::npos) {
            pairs.push_back(name + "=");
            continue;
        }
        if (!equal_names(name, typed.substr(0, equal))) continue;
        for (const CPLXMLNode* value = option->psChild; value != nullptr; value = value->psNext)
            if (value->eType == CXT_Element && EQUAL(value->pszValue, "Value"))
                pairs.push_back(name + "=" + CPLGetXMLValue(value, nullptr, ""));
        if (EQUAL(CPLGetXMLValue(option, "type", ""), "boolean"))
            for (const char* const value : {"=YES", "=NO"})
                pairs.push_back(name + value);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    return pairs;
}

/// Returns the values that an option accepts; empty if it accepts any.
Words values_of(const tool::Declaration& declaration, const Before& before, const std::string& typed) {
    const tool::Argument& argument = *before.option;
    const bool input = argument.name == "if";
    switch (argument.vocabulary) {
    case tool::Vocabulary::pixel_types:
        return raster::pixel_types();
    case tool::Vocabulary::raster_drivers:
        if (!input) return driver_names(writes_rasters);
        return driver_names([](GDALDriver* d) { return raster::has_capability(d, GDAL_DCAP_RASTER); });
    case tool::Vocabulary::vector_drivers:
        return driver_names(writes_vectors);
    case tool::Vocabulary::none:
        break;
    }
    if (argument.name == "co")
        return pairs_of(output_driver(declaration, before, false), GDAL_DMD_CREATIONOPTIONLIST, typed);
    if (argument.name == "dsco")
        return pairs_of(output_driver(declaration, before, true), GDAL_DMD_CREATIONOPTIONLIST, typed);
    if (argument.name == "lco")
        return pairs_of(output_driver(declaration, before, true), GDAL_DS_LAYER_CREATIONOPTIONLIST, typed);
    if (argument.name == "oo") return pairs_of(source_driver(before), GDAL_DMD_OPENOPTIONLIST, typed);
    if (argument.name == "device") return {"auto", "cpu", "cuda", "cuda:0"};
    if (argument.name == "threads") return {"ALL_CPUS"};
    Words values;
    for (const tool::Choice& choice : argument.choices)
        values.push_back(choice.name);
    return values;
}

std::string lines_of(const Words& candidates, const std::string& begin) {
    std::string text;
    for (const std::string& candidate : candidates)
        if (begins_with(candidate, begin)) text += candidate + "\n";
    return text;
}

Words options_of(const tool::Declaration& declaration, const Before& before, bool two_dashes) {
    const std::string dashes = two_dashes ? "--" : "-";
    Words names;
    for (const tool::Argument& argument : declaration.arguments()) {
        const std::string& name = argument.positional ? argument.option_name : argument.name;
        if (!name.empty() && (argument.repeatable || before.values.count(argument.name) == 0))
            names.push_back(dashes + name);
    }
    for (const char* const general : {"--help", "--version", "--json-usage", "--formats", "--format",
                                      "--config", "--optfile", "--debug", "--help-general"})
        names.emplace_back(general);
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace

std::string completions(const tool::Declaration& declaration, const std::vector<std::string>& words) {
    if (words.empty()) return files;
    const std::string& last = words.back();
    const Before before = read(declaration, words);
    if (before.general == "--format") return lines_of(driver_names([](GDALDriver*) { return true; }), last);
    if (before.general == "--debug") return lines_of({"ON", "OFF"}, last);
    if (before.general == "--config") return {};
    if (!before.general.empty()) return files;
    if (before.option != nullptr) {
        if (before.option->content != tool::Content::none) return files;
        if (before.option->name == "bbl") { // one of two words, or a table
            const std::string two = lines_of({"use", "ignore"}, last);
            return two.empty() ? files : two;
        }
        try {
            return lines_of(values_of(declaration, before, last), last);
        } catch (const Error&) { // an unknown driver or extension
            return {};
        }
    }
    if (!before.only_files && !last.empty() && last[0] == '-')
        return lines_of(options_of(declaration, before, last.rfind("--", 0) == 0), last);
    return files;
}

} // namespace hsi::terminal
