// SPDX-License-Identifier: MIT
#include "cli/arguments.h"

#include "core/error.h"
#include "core/process_limits.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <memory>

namespace hsi::cli {
namespace {

struct CloseFile {
    void operator()(VSILFILE* file) const { VSIFCloseL(file); }
};

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

/// "KEY=VALUE" with a secret value hidden.
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

size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

std::string dashed(const std::string& name) { return (name.size() > 1 ? "--" : "-") + name; }

} // namespace

std::optional<double> parse_number(std::string_view text) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<long long> parse_integer(std::string_view text) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

int default_threads(int most) {
    const char* const text = CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
    if (EQUAL(text, "ALL_CPUS")) return std::min(usable_processors(), most);
    const auto count = parse_integer(text);
    if (!count || *count < 0)
        throw UsageError("GDAL_NUM_THREADS: '" + std::string(text) +
                             "' is neither ALL_CPUS nor a number of threads",
                         "Correct the configuration option, or give -threads.");
    // To GDAL 0 means no threads beside the first.
    return static_cast<int>(std::clamp<long long>(*count, 1, most));
}

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
        const std::unique_ptr<VSILFILE, CloseFile> file(VSIFOpenL(words[i].c_str(), "rb"));
        if (!file) throw UsageError("--optfile: cannot open '" + words[i] + "'");
        if (read != nullptr) read->push_back(words[i]);
        while (const char* line = CPLReadLineL(file.get())) {
            if (line[0] == '#') continue;
            const CPLStringList tokens(CSLTokenizeString(line));
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

std::string nearest_option(const std::string& name, const std::vector<KnownOption>& known) {
    std::string nearest;
    size_t best = std::max<size_t>(2, name.size() / 2 + 1);
    for (const KnownOption& option : known) {
        for (const std::string& other : option.names) {
            const size_t distance = edit_distance(name, other);
            if (distance < best && distance < other.size()) {
                best = distance;
                nearest = other;
            }
        }
    }
    return nearest;
}

Normalized normalize(const std::vector<std::string>& words, const std::vector<KnownOption>& known) {
    Normalized result;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--") {
            result.words.insert(result.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                                words.end());
            break;
        }
        if (word.size() < 2 || word[0] != '-') {
            result.words.push_back(word);
            continue;
        }
        const std::string body = word.substr(word[1] == '-' ? 2 : 1);
        const size_t equal = body.find('=');
        const std::string name = body.substr(0, equal);
        if (name == "h" || name == "help") {
            result.help = true;
            continue;
        }
        const auto option = std::find_if(known.begin(), known.end(), [&](const KnownOption& o) {
            return std::find(o.names.begin(), o.names.end(), name) != o.names.end();
        });
        if (option == known.end()) {
            if (word[1] != '-' && parse_number(word)) {
                result.words.push_back(word);
                continue;
            }
            const std::string near = nearest_option(name, known);
            throw UsageError("unknown option '" + word + "'",
                             near.empty() ? "" : "Did you mean -" + near + "?");
        }
        int missing = option->values;
        if (equal != std::string::npos && option->values == 0)
            throw UsageError("-" + name + " takes no value, '" + body.substr(equal + 1) + "' was given");
        result.words.push_back(dashed(name));
        if (equal != std::string::npos) {
            result.words.push_back(body.substr(equal + 1));
            --missing;
        }
        for (; missing > 0; --missing) {
            if (++i == words.size())
                throw UsageError("-" + name + ": " +
                                 (option->values == 1
                                      ? std::string("its value is missing")
                                      : std::to_string(option->values) + " values are needed, " +
                                            std::to_string(option->values - missing) + " were given"));
            result.words.push_back(words[i]);
        }
    }
    return result;
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

} // namespace hsi::cli
