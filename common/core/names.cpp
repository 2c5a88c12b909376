// SPDX-License-Identifier: MIT
#include "core/names.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace hsi {
namespace {

std::string lower(std::string_view text) {
    std::string s(text);
    std::transform(s.begin(), s.end(), s.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return s;
}

/// Levenshtein's: letters that were added, left out or replaced.
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

} // namespace

std::optional<std::vector<std::string>> listed_words(std::string_view text) {
    constexpr const char* blanks = " \t\r\n";
    const auto skip = [&](size_t at) { return std::min(text.find_first_not_of(blanks, at), text.size()); };
    std::vector<std::string> words;
    for (size_t at = 0;;) {
        at = skip(at);
        std::string word;
        if (at < text.size() && text[at] == '"') {
            for (++at; at < text.size(); ++at) {
                if (text[at] == '"' && (at + 1 == text.size() || text[at + 1] != '"')) break;
                at += text[at] == '"';
                word += text[at];
            }
            if (at == text.size()) return std::nullopt;
            at = skip(at + 1);
            if (at < text.size() && text[at] != ',') return std::nullopt;
        } else {
            const size_t comma = std::min(text.find(',', at), text.size());
            word = text.substr(at, comma - at);
            word.erase(word.find_last_not_of(blanks) + 1);
            at = comma;
        }
        if (word.empty()) return std::nullopt;
        words.push_back(std::move(word));
        if (at == text.size()) return words;
        ++at;
    }
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i)
        text += (i ? between : "") + words[i];
    return text;
}

bool equal_names(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
    std::string nearest;
    size_t best = std::max<size_t>(2, name.size() / 2 + 1);
    for (const std::string& other : names) {
        const size_t distance = edit_distance(lower(name), lower(other));
        if (distance < best && distance < other.size()) {
            best = distance;
            nearest = other;
        }
    }
    return nearest;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names, const char* before) {
    const std::string near = nearest_name(name, names);
    return near.empty() ? "" : "Did you mean " + std::string(before) + near + "?";
}

} // namespace hsi
