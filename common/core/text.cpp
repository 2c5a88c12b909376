// SPDX-License-Identifier: MIT
#include "core/text.h"

#if __has_include(<xlocale.h>)
#include <xlocale.h> // strtod_l() on the BSDs
#endif

#include <algorithm>
#include <cctype>
#include <clocale> // newlocale(), which is not in namespace std
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace hsi {

namespace {

std::string lower(std::string_view text) {
    std::string s(text);
    std::transform(s.begin(), s.end(), s.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return s;
}

/// Levenshtein's distance: the number of letters that are added, left out or replaced.
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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the length of "inf", "infinity", "nan" or "nan(word)" at the beginning of the text; 0 if there is
/// none.
size_t length_of_no_number(std::string_view text) {
    if (equal_names(text.substr(0, 8), "infinity")) return 8;
    if (equal_names(text.substr(0, 3), "inf")) return 3;
    if (!equal_names(text.substr(0, 3), "nan")) return 0;
    size_t at = 4;
    const auto is_word = [](char c) {
        return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    while (at < text.size() && is_word(text[at]))
        ++at;
    return text.size() > at && text[3] == '(' && text[at] == ')' ? at + 1 : 3;
}

struct Digits {
    size_t length = 0;
    bool zero = true; ///< all digits are 0, so the number is 0 for any exponent
};

/// Reads the digits, the point and the exponent at the beginning of the text.
Digits digits_of(std::string_view text) {
    Digits digits;
    size_t at = 0;
    const auto pass = [&] {
        const size_t begin = at;
        for (; at < text.size() && is_digit(text[at]); ++at)
            digits.zero = digits.zero && text[at] == '0';
        return at - begin;
    };
    size_t count = pass();
    if (at < text.size() && text[at] == '.') {
        ++at;
        count += pass();
    }
    if (count == 0) return {};
    digits.length = at;
    if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return digits;
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at]))
        ++at;
    if (at > begin) digits.length = at;
    return digits;
}

/// Returns the value of a number with a decimal point, in any locale of the user.
double in_c_locale(const std::string& text) {
    static const locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
    if (c == nullptr) throw std::bad_alloc();
    return ::strtod_l(text.c_str(), nullptr, c);
}

} // namespace

std::optional<double> take_number(std::string_view& text) {
    const size_t sign = !text.empty() && text.front() == '-' ? 1 : 0;
    const std::string_view rest = text.substr(sign);
    const Digits digits = digits_of(rest);
    const size_t length = digits.length > 0 ? digits.length : length_of_no_number(rest);
    if (length == 0) return std::nullopt;
    const double value = in_c_locale(std::string(text.substr(0, sign + length)));
    if (digits.length > 0 && (std::isinf(value) || (value == 0 && !digits.zero))) return std::nullopt;
    text.remove_prefix(sign + length);
    return value;
}

std::optional<double> to_number(std::string_view text) {
    const auto value = take_number(text);
    return text.empty() ? value : std::nullopt;
}

std::string in_double_quotes(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text)
        quoted.append(c == '"' ? 2 : 1, c);
    return quoted + '"';
}

std::string csv_cell(std::string_view text) {
    return text.find_first_of(",\"\r\n") == std::string_view::npos ? std::string(text)
                                                                   : in_double_quotes(text);
}

std::string_view trimmed(std::string_view text, std::string_view characters) {
    const size_t begin = text.find_first_not_of(characters);
    return begin == std::string_view::npos
               ? std::string_view()
               : text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

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

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view one) { return text.substr(0, one.size()) == one; });
}

bool begins_like_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(),
                       [&](std::string_view one) { return equal_names(text.substr(0, one.size()), one); });
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

namespace {

/// Returns the bytes of the first character; 0 if it is invalid.
size_t character(std::string_view s) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
    const auto follows = [&](size_t i, unsigned low, unsigned high) {
        return i < s.size() && byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
        return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
        return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
    }
    return 0;
}

constexpr unsigned no_character = 0xFFFD;

/// `units`: pairs of bytes, the lower byte first if `little`.
std::string from_utf16(std::string_view units, bool little) {
    const auto unit = [&](size_t i) {
        const auto low = static_cast<unsigned char>(units[little ? i : i + 1]);
        const auto high = static_cast<unsigned char>(units[little ? i + 1 : i]);
        return static_cast<unsigned>(high) << 8 | low;
    };
    std::string out;
    for (size_t i = 0; i + 1 < units.size(); i += 2) {
        unsigned code = unit(i);
        const bool first = code >= 0xD800 && code < 0xDC00, second = code >= 0xDC00 && code < 0xE000;
        const unsigned next = first && i + 3 < units.size() ? unit(i + 2) : 0;
        if (next >= 0xDC00 && next < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (next - 0xDC00);
            i += 2;
        } else if (first || second) {
            code = no_character;
        }
        append_utf8(out, code);
    }
    return out;
}

unsigned windows_1252(unsigned char byte) {
    static constexpr uint16_t c1[32] = {0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD,
                                        0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};
    return byte >= 0x80 && byte < 0xA0 ? c1[byte - 0x80] : byte;
}

} // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const size_t length = character(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string utf8_text(std::string text) {
    if (text.rfind("\xFF\xFE", 0) == 0 || text.rfind("\xFE\xFF", 0) == 0)
        return from_utf16(std::string_view(text).substr(2), text[0] == '\xFF');
    if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
    if (is_utf8(text)) return text;
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    for (const char c : text)
        append_utf8(out, windows_1252(static_cast<unsigned char>(c)));
    return out;
}

char32_t take_character(std::string_view& text) {
    const size_t length = character(text);
    const auto first = static_cast<unsigned char>(text[0]);
    char32_t code = length == 0 ? no_character : length == 1 ? first : first & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length; ++i)
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    text.remove_prefix(length == 0 ? 1 : length);
    return code;
}

bool differ_in_composition(std::string_view a, std::string_view b) {
    if (a == b || !is_utf8(a) || !is_utf8(b)) return false;
    // The ranges are marks of Latin, Greek and Cyrillic letters and of kana, and parts of Hangul's syllables.
    const auto is_mark = [](char32_t c) {
        return (c >= 0x300 && c <= 0x36F) || (c >= 0x1161 && c <= 0x11FF) || c == 0x3099 || c == 0x309A;
    };
    const auto take_letter = [&](std::string_view& text) {
        std::u32string letter(1, take_character(text));
        for (auto rest = text; !rest.empty() && is_mark(take_character(rest)); text = rest)
            letter += take_character(text);
        return letter;
    };
    while (!a.empty() && !b.empty()) {
        const auto one = take_letter(a), other = take_letter(b);
        if (one == other) continue;
        const auto &less = one.size() < other.size() ? one : other, &more = &less == &one ? other : one;
        if (less.size() == more.size() || less[0] < 0x80 || less[0] == more[0]) return false;
    }
    return a.empty() && b.empty();
}

void append_utf8(std::string& text, char32_t code) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0 | code >> 6);
        tail(0);
    } else if (code < 0x10000) {
        text += static_cast<char>(0xE0 | code >> 12);
        tail(6);
        tail(0);
    } else {
        text += static_cast<char>(0xF0 | code >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

} // namespace hsi
