// SPDX-License-Identifier: MIT
#include "terminal/command_line.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/text_input.h"
#include "tool/words.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

namespace hsi::terminal {
namespace {

std::string upper(std::string_view text) {
    std::string s(text);
    std::transform(s.begin(), s.end(), s.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return s;
}

bool is_secret(std::string_view key) {
    static constexpr std::array words{"PASSWORD", "PASSWD", "SECRET",     "TOKEN",    "USERPWD",
                                      "HEADERS",  "COOKIE", "ACCESS_KEY", "AUTH_KEY", "CREDENTIAL"};
    const std::string name = upper(key);
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// Returns "KEY=VALUE" with a secret value hidden.
std::string without_secret(const std::string& word) {
    const size_t equal = word.find('=');
    if (equal == std::string::npos || !is_secret(word.substr(0, equal))) return word;
    return word.substr(0, equal + 1) + "***";
}

std::string quote(const std::string& word) {
    static constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./:=,+%@";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

/// Returns the text of an option file without a byte-order mark. \throws UsageError if the file cannot be
/// read.
std::string option_file(const std::string& path) {
    try {
        std::string text = raster::read_file(path, largest_file::options);
        constexpr std::string_view mark = "\xEF\xBB\xBF"; // byte-order mark of an editor
        return text.compare(0, mark.size(), mark) == 0 ? text.substr(mark.size()) : text;
    } catch (const Error& error) {
        throw UsageError("--optfile: " + std::string(error.what()), error.advice());
    }
}

} // namespace

std::vector<std::string> expand_option_files(std::vector<std::string> words, std::vector<std::string>* read) {
    std::vector<std::string> expanded;
    for (size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--") {
            expanded.insert(expanded.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
            break;
        }
        if (words[i] != "--optfile") {
            expanded.push_back(std::move(words[i]));
            continue;
        }
        if (++i == words.size()) throw UsageError("--optfile: the file name is missing");
        std::istringstream text(option_file(words[i]));
        if (read != nullptr) read->push_back(words[i]);
        for (std::string line; std::getline(text, line);) {
            if (!line.empty() && line.back() == '\r') line.pop_back();
            if (!line.empty() && line.front() == '#') continue;
            const CPLStringList tokens(CSLTokenizeString(line.c_str()));
            for (int t = 0; t < tokens.size(); ++t) {
                if (EQUAL(tokens[t], "--optfile"))
                    throw UsageError("--optfile: '" + words[i] + "' names another option file",
                                     "Put all options into one file.");
                expanded.emplace_back(tokens[t]);
            }
        }
    }
    return expanded;
}

std::vector<std::pair<std::string, std::string>> take_configuration(std::vector<std::string>& words) {
    std::vector<std::pair<std::string, std::string>> configuration;
    std::vector<std::string> rest;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--") {
            rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
            break;
        }
        if (word == "--config") {
            if (i + 1 >= words.size()) throw UsageError("--config: KEY and VALUE are missing");
            const std::string& key = words[++i];
            if (const size_t equal = key.find('='); equal != std::string::npos) {
                configuration.emplace_back(key.substr(0, equal), key.substr(equal + 1));
            } else {
                if (i + 1 >= words.size())
                    throw UsageError("--config: the value of " + key + " is missing",
                                     "Give --config KEY VALUE or --config KEY=VALUE.");
                configuration.emplace_back(key, words[++i]);
            }
        } else if (word == "--debug") {
            if (i + 1 >= words.size()) throw UsageError("--debug: the value is missing", "Give --debug ON.");
            configuration.emplace_back("CPL_DEBUG", words[++i]);
        } else {
            rest.push_back(word);
        }
    }
    words = std::move(rest);
    return configuration;
}

CommandLine parse_words(const std::vector<std::string>& words, const std::vector<KnownOption>& known,
                        bool rest) {
    CommandLine line;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--") {
            line.arguments.insert(line.arguments.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                  words.end());
            break;
        }
        if (word.size() < 2 || word[0] != '-') {
            if (rest) {
                line.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
                break;
            }
            line.arguments.push_back(word);
            continue;
        }
        const std::string body = word.substr(word[1] == '-' ? 2 : 1);
        const size_t equal = body.find('=');
        const std::string name = body.substr(0, equal);
        if (name == "h" || name == "help") {
            line.help = true;
            continue;
        }
        if (name == "json-usage") {
            line.json_usage = true;
            continue;
        }
        const auto option = std::find_if(known.begin(), known.end(), [&](const KnownOption& o) {
            return std::find(o.names.begin(), o.names.end(), name) != o.names.end();
        });
        if (option == known.end()) {
            if (word[1] != '-' && tool::parse_number(word)) {
                line.arguments.push_back(word);
                continue;
            }
            std::vector<std::string> names;
            for (const KnownOption& one : known)
                names.insert(names.end(), one.names.begin(), one.names.end());
            throw UsageError("unknown option '" + word + "'", did_you_mean(name, names, "-"));
        }
        if (equal != std::string::npos && option->values == 0)
            throw UsageError("-" + name + " takes no value, but '" + body.substr(equal + 1) + "' was given");
        GivenOption given{name, {}};
        const auto needed = static_cast<size_t>(option->values);
        if (equal != std::string::npos) given.values.push_back(body.substr(equal + 1));
        while (given.values.size() < needed) {
            if (option->lists && given.values.size() == 1 && given.values.front().rfind('@', 0) == 0) break;
            if (++i == words.size())
                throw UsageError("-" + name + ": " +
                                 (needed == 1 ? std::string("its value is missing")
                                              : std::to_string(needed) + " values are needed, but " +
                                                    std::to_string(given.values.size()) +
                                                    worded(given.values.size(), " was", " were") + " given"));
            given.values.push_back(words[i]);
        }
        line.options.push_back(std::move(given));
    }
    return line;
}

std::string quote_command(const std::string& tool, const std::vector<std::string>& words) {
    std::string command = tool;
    for (size_t i = 0; i < words.size(); ++i) {
        const bool is_value =
            i > 1 && words[i - 2] == "--config" && words[i - 1].find('=') == std::string::npos;
        command += ' ' + quote(is_value && is_secret(words[i - 1]) ? "***" : without_secret(words[i]));
    }
    return command;
}

} // namespace hsi::terminal
