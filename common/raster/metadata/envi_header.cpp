// SPDX-License-Identifier: MIT
#include "raster/metadata/envi_header.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/text.h"
#include "raster/metadata/wavelength_unit.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

namespace hsi::raster {
namespace {

constexpr int64_t longest_header = int64_t{64} << 20; ///< bytes
constexpr size_t longest_key = 255;                   ///< a longer text before an equals sign is not a key

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; }

std::string_view trim(std::string_view s) {
    while (!s.empty() && is_blank(s.front()))
        s.remove_prefix(1);
    while (!s.empty() && is_blank(s.back()))
        s.remove_suffix(1);
    return s;
}

/// Removes the next line from `rest` and returns it without blanks at its ends. A comment becomes an empty
/// line. Lines end with LF, CR or CR LF.
std::string take_line(std::string_view& rest) {
    const size_t end = rest.find_first_of("\r\n");
    // If header files were concatenated, byte-order marks occur within the text, sometimes several in a row.
    const std::string decoded = utf8_text(std::string(trim(rest.substr(0, end))));
    std::string_view line = trim(decoded);
    constexpr std::string_view mark = "\xef\xbb\xbf";
    while (line.substr(0, mark.size()) == mark)
        line = trim(line.substr(mark.size()));
    const bool two = end != std::string_view::npos && rest.substr(end, 2) == "\r\n";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + (two ? 2 : 1));
    return line.empty() || line.front() == ';' ? std::string() : std::string(line);
}

/// Returns whether the next line begins a list, whose key is on the current line ("wavelength =").
bool next_opens_list(std::string_view rest, const char* brackets) {
    const std::string_view next = trim(rest);
    return !next.empty() && std::strchr(brackets, next.front()) != nullptr;
}

/// Appends lines to `value` until the list is closed, and removes text after the closing brace.
void complete_list(std::string& value, std::string_view& rest) {
    while (value.find('}') == std::string::npos && !rest.empty()) {
        value += '\n';
        value += take_line(rest);
    }
    while (!value.empty() && value.back() == '\n')
        value.pop_back();
    if (const size_t end = value.rfind('}'); end != std::string::npos) value.resize(end + 1);
}

bool same_key(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return x == y || (x == '_' && y == ' ') || (x == ' ' && y == '_');
    });
}

bool quoted(std::string_view s) {
    return s.size() >= 2 && (s.front() == '"' || s.front() == '\'') && s.back() == s.front();
}

std::string_view without_comment(std::string_view s) { return trim(s.substr(0, s.find(';'))); }

/// Converts exponents of Fortran: "5.0D6" -> "5.0E6".
std::string with_exponents(std::string text) {
    const auto is_digit = [&](size_t i) {
        return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    };
    for (size_t i = 1; i < text.size(); ++i) {
        const bool sign = i + 1 < text.size() && (text[i + 1] == '+' || text[i + 1] == '-');
        if ((text[i] == 'D' || text[i] == 'd') && (is_digit(i - 1) || text[i - 1] == '.') &&
            is_digit(i + (sign ? 2 : 1)))
            text[i] = 'E';
    }
    return text;
}

/// Thrown if a list cannot be read.
struct Unreadable {
    std::string why;
};

std::string_view element_of_equals(std::string_view value);

/// Returns the value of a field that has a single number or word, without quotes, braces and comments.
/// \throws Unreadable if the field has several different values.
std::string plain_value(const std::string& key, std::string value) {
    static const std::set<std::string> whole = {"samples",          "lines",     "bands",
                                                "header offset",    "data type", "byte order",
                                                "file compression", "classes"};
    static const std::set<std::string> words = {"interleave", "wavelength units", "data ignore value",
                                                "reflectance scale factor"};
    if (whole.count(key) == 0 && words.count(key) == 0) return value;
    const bool is_number = key != "interleave" && key != "wavelength units";
    std::string_view plain = is_number ? element_of_equals(value) : value;
    for (bool again = true; again;) {
        const std::string_view before = plain = without_comment(plain);
        if (quoted(plain) || is_envi_list(plain)) plain = trim(plain.substr(1, plain.size() - 2));
        again = plain != before;
    }
    // The list is not closed on the same line, or other text follows it.
    if (plain.find('\n') != std::string_view::npos || plain.substr(0, 1) == "{") return value;
    const auto number = whole.count(key) > 0 ? envi_number(plain) : std::nullopt;
    constexpr double most = 1e15; // a double represents every whole number up to this one
    if (number && *number == std::floor(*number) && std::abs(*number) < most)
        return std::to_string(static_cast<int64_t>(*number));
    value = std::string(plain); // the copy is needed because `plain` refers to `value`
    if (is_number && envi_number(value)) {
        std::replace(value.begin(), value.end(), ',', '.'); // converts a decimal comma
        value = with_exponents(std::move(value));
    }
    return value;
}

bool in_utf16(std::string_view text) {
    const std::string_view begin = text.substr(0, 2);
    return begin == "\xff\xfe" || begin == "\xfe\xff" ||
           (begin.size() == 2 && (begin[0] == '\0') != (begin[1] == '\0'));
}

// --- Lists in other forms than ENVI's ----------------------------------------

/// Returns whether the field is a list of numbers.
bool is_number_list(const std::string& key) {
    static const std::set<std::string> names = {"wavelength",
                                                "wavelengths",
                                                "fwhm",
                                                "bbl",
                                                "default bands",
                                                "class lookup",
                                                "correction factors",
                                                "smoothing factors",
                                                "data gain values",
                                                "data offset values",
                                                "data reflectance gain values",
                                                "data reflectance offset values"};
    return names.count(key) > 0;
}

/// Returns whether the field is a list of names, or of names and numbers.
bool is_text_list(const std::string& key) {
    static const std::set<std::string> names = {"band names", "class names",     "spectra names",
                                                "map info",   "projection info", "geo points"};
    return names.count(key) > 0;
}

/// Returns the position of the first bracket of "[1, 2]", "(1, 2)", "np.array([1, 2])" or "Index(['a', 'b'],
/// dtype='object')"; npos for other texts.
size_t begin_of_python_list(std::string_view value) {
    const size_t bracket = value.find_first_of("[(");
    if (bracket == std::string_view::npos || bracket == 0) return bracket;
    const std::string_view type = value.substr(0, bracket);
    const bool word = std::all_of(type.begin(), type.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '_';
    });
    const std::string_view behind = trim(value.substr(bracket + 1));
    const bool list = behind.empty() || behind.front() == '[' || behind.front() == '(';
    return !word || !list   ? std::string_view::npos
           : behind.empty() ? bracket
                            : value.find_first_of("[(", bracket + 1);
}

/// Returns the position of the bracket that closes the list; npos if the list is not closed. Brackets in
/// quotes are ignored.
size_t end_of_python_list(std::string_view value) {
    int open = 0;
    char quote = 0;
    for (size_t i = 0; i < value.size(); ++i) {
        const char c = value[i];
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || c == '(') {
            ++open;
        } else if ((c == ']' || c == ')') && --open == 0) {
            return i;
        }
    }
    return std::string_view::npos;
}

bool only_numbers(std::string_view line) {
    return line.find_first_of("0123456789") != std::string_view::npos &&
           line.find_first_not_of("0123456789+-.eEdD,; \t") == std::string_view::npos;
}

/// Returns whether a line with an equals sign continues an open Python list and is not a field. Such a line
/// contains names in quotes, or the description that pandas prints after a list.
bool is_part_of_list(std::string_view line) {
    for (const char* word : {"dtype=", "length=", "name="})
        if (line.rfind(word, 0) == 0) return true;
    return line.front() == '"' || line.front() == '\'' || line.find("dtype=") != std::string_view::npos;
}

/// Appends lines to the value of a list that has no braces, up to the end of the list.
void complete_other_list(const std::string& key, std::string& value, std::string_view& rest) {
    const bool python = begin_of_python_list(value) != std::string_view::npos;
    if (!python && !value.empty() && !only_numbers(value) && value.back() != ',') return;
    while (!rest.empty() && !(python && end_of_python_list(value) != std::string::npos)) {
        std::string_view ahead = rest;
        const std::string line = take_line(ahead);
        const bool field = line.find('=') != std::string::npos && !(python && is_part_of_list(line));
        const bool more = python || line.empty() || only_numbers(line) ||
                          (is_text_list(key) && !value.empty() && value.back() == ',');
        if (field || !more) return;
        if (!line.empty()) value += '\n' + line;
        rest = ahead;
    }
}

/// Returns numbers without the brackets and type names of Python: "[np.float64(450.0), 460]" -> "450.0, 460".
std::string without_brackets(std::string_view value) {
    if (const size_t type = value.find("dtype="); type != std::string_view::npos)
        value = value.substr(0, type);
    std::string out;
    for (const char c : value) {
        if (c == '(') // also removes the type name before the bracket
            while (!out.empty() && (std::isalnum(static_cast<unsigned char>(out.back())) != 0 ||
                                    out.back() == '.' || out.back() == '_'))
                out.pop_back();
        out += std::strchr("[](){}\"'", c) != nullptr ? ' ' : c;
    }
    return out;
}

/// Splits the text at blanks, line ends and semicolons.
std::vector<std::string> words_between_blanks(std::string_view text) {
    std::vector<std::string> out;
    std::string one;
    for (const char c : std::string(text) + " ")
        if (!is_blank(c) && c != ';') {
            one += c;
        } else if (!one.empty()) {
            out.push_back(std::move(one));
            one.clear();
        }
    return out;
}

bool are_numbers(const std::vector<std::string>& list) {
    return !list.empty() && std::all_of(list.begin(), list.end(),
                                        [](const std::string& one) { return envi_number(one).has_value(); });
}

/// Splits elements that contain several numbers: "0 0 0" and "255 0 0" become six elements.
std::vector<std::string> numbers_apart(const std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const std::string& element : list) {
        auto words = words_between_blanks(element);
        if (words.size() < 2 || !are_numbers(words)) words = {element};
        out.insert(out.end(), words.begin(), words.end());
    }
    return out;
}

/// Splits a text at commas, semicolons and blanks into numbers.
std::vector<std::string> parted_numbers(std::string text) {
    while (!text.empty() && (is_blank(text.back()) || text.back() == ','))
        text.pop_back();
    if (text.find(',') == std::string::npos) return words_between_blanks(text);
    auto list = numbers_apart(envi_list("{" + text + "}"));
    while (!list.empty() && list.back().empty())
        list.pop_back();
    return list;
}

/// Returns the first value of a list whose values are all equal, as a view of the text. Returns texts that
/// are not a list unchanged. \throws Unreadable if the values differ.
std::string_view element_of_equals(std::string_view value) {
    const bool python = value.find_first_of("[(") == 0 && end_of_python_list(value) == value.size() - 1;
    const bool braces = is_envi_list(value) && value.find_first_of("{}", 1) == value.size() - 1;
    if (!braces && !python) return value;
    const auto list = parted_numbers(without_brackets(value));
    if (list.empty()) return value;
    const auto differs = [&](const std::string& one) {
        const auto a = envi_number(one), b = envi_number(list.front());
        return a && b ? *a != *b : one != list.front();
    };
    if (const auto other = std::find_if(list.begin(), list.end(), differs); other != list.end())
        throw Unreadable{"it has " + counted(list.size(), "value") + " (" + list.front() + ", " + *other +
                         (list.size() > 2 ? " ..." : "") + "), but must have one value for all bands"};
    return value.substr(value.find(list.front()), list.front().size());
}

/// Adds the commas that numpy omits between quoted texts: "'a' 'b'" -> "'a', 'b'".
std::string with_commas(std::string_view text) {
    std::string out;
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        out += c;
        const bool closes = quote != 0 && c == quote;
        if (quote == 0 && (c == '"' || c == '\'')) quote = c;
        if (!closes) continue;
        quote = 0;
        const std::string_view behind = trim(text.substr(i + 1));
        if (!behind.empty() && (behind.front() == '"' || behind.front() == '\'')) out += ',';
    }
    return out;
}

/// Returns the value of a list field in ENVI's form, with braces. A value in this form is returned unchanged.
std::string in_braces(const std::string& key, const std::string& value) {
    if (value.find('{') == 0 && value.find('}') == std::string::npos)
        return value; // the header ends before the list is closed
    const bool numbers = is_number_list(key);
    const size_t begin = begin_of_python_list(value);
    const auto refuse_dots = [](const std::vector<std::string>& list) {
        for (const std::string& one : list)
            if (one.find("...") != std::string::npos) throw Unreadable{"elements are left out ('...')"};
    };
    if (begin != std::string::npos) {
        const std::string_view opened = std::string_view(value).substr(begin);
        const size_t end = end_of_python_list(opened);
        if (end == std::string::npos) throw Unreadable{"its bracket is not closed"};
        const std::string_view behind = without_comment(opened.substr(end + 1));
        // A text such as "(c) 2020, somebody" is not a list.
        if (!numbers && begin == 0 && !behind.empty()) return value;
        const std::string_view inner = opened.substr(0, end + 1);
        if (numbers) {
            const auto list = parted_numbers(with_exponents(without_brackets(inner)));
            refuse_dots(list);
            return envi_list_text(list);
        }
        std::string_view elements = inner;
        if (const size_t type = elements.rfind(", dtype="); type != std::string_view::npos)
            elements = elements.substr(0, type); // also removes the closing bracket
        while (elements.size() > 1 && std::strchr("[(", elements.front()) != nullptr) {
            elements.remove_prefix(1);
            if (std::strchr("])", elements.back()) != nullptr) elements.remove_suffix(1);
            elements = trim(elements);
        }
        refuse_dots(envi_list("{" + std::string(elements) + "}"));
        return "{" + with_commas(elements) + "}";
    }
    if (!numbers) {
        const bool one_line = value.find_first_of("{[(\n") == std::string::npos;
        return (key == "map info" || key == "projection info") && one_line &&
                       value.find(',') != std::string::npos
                   ? "{" + value + "}"
                   : value;
    }
    const std::string plain = with_exponents(value);
    const bool braces = is_envi_list(plain), brackets = plain.find_first_of("[(") != std::string::npos;
    if (braces && !brackets && plain.find(',') != std::string::npos) {
        const auto list = envi_list(plain), apart = numbers_apart(list);
        return apart.size() == list.size() ? plain : envi_list_text(apart);
    }
    const auto list = parted_numbers(without_brackets(plain));
    if (brackets) refuse_dots(list);
    return are_numbers(list) && (braces || list.size() > 1) ? envi_list_text(list) : plain;
}

/// Returns names of bands or classes; a line end within a name is replaced by one blank.
std::vector<std::string> names_in(std::vector<std::string> list) {
    for (std::string& name : list) {
        std::string joined;
        for (const char c : name)
            if (!is_blank(c) || c == ' ' || c == '\t')
                joined += c;
            else if (!joined.empty() && joined.back() != ' ')
                joined += ' ';
            else
                continue;
        name = joined;
    }
    return list;
}

/// Splits the text at `separator`, and removes commas at the ends of the parts.
std::vector<std::string> parts_of(std::string_view text, char separator) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const size_t end = std::min(text.find(separator), text.size());
        std::string_view part = trim(text.substr(0, end));
        while (!part.empty() && part.back() == ',')
            part = trim(part.substr(0, part.size() - 1));
        if (!part.empty()) out.emplace_back(quoted(part) ? part.substr(1, part.size() - 2) : part);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

/// Returns the `count` names of a list. The names are separated by commas or, if commas give another count,
/// by semicolons or line ends. \throws Unreadable with both counts.
std::vector<std::string> names_of(const std::string& value, size_t count, const char* of,
                                  const char* several) {
    const std::string braced = value.front() == '{' ? value : "{" + value + "}";
    const auto list = names_in(envi_list(braced));
    if (list.size() == count) return list;
    const std::string_view inner = std::string_view(braced).substr(1, braced.size() - 2);
    std::vector<std::string> lines;
    for (const std::string& element : envi_list(braced))
        for (std::string& part : parts_of(element, '\n'))
            lines.push_back(std::move(part));
    for (const auto& parts : {parts_of(inner, ';'), parts_of(inner, '\n'), lines})
        if (parts.size() == count) return names_in(parts);
    throw Unreadable{"it has " + counted(list.size(), "name") + " for " + counted(count, of, several) +
                     "; put names with commas into quotes"};
}

/// Returns a list of names. Names with commas are put in quotes; if such a name contains both kinds of
/// quotes, its commas are replaced by blanks.
std::string names_text(std::vector<std::string> names) {
    for (std::string& name : names) {
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '{' || c == '}'; }, ' ');
        const bool both = name.find('"') != std::string::npos && name.find('\'') != std::string::npos;
        if (name == envi_name(name) || both)
            name = envi_name(name);
        else
            name = name.find('"') == std::string::npos ? '"' + name + '"' : "'" + name + "'";
    }
    return envi_list_text(names);
}

/// Rewrites lists whose length is known in ENVI's form. `bands` and `classes` are 0 if unknown. \throws
/// Unreadable if the length is wrong.
void complete_names(EnviField& field, size_t bands, size_t classes) {
    const std::string key = envi_key(field.key);
    // True if the header ends before the list is closed.
    const bool open = field.value.find('{') == 0 && !is_envi_list(field.value);
    if (open || trim(field.value).empty() || (is_envi_list(field.value) && envi_list(field.value).empty()))
        return;
    const size_t count = key == "band names" ? bands : key == "class names" ? classes : 0;
    if (count > 0) {
        const bool plain = is_envi_list(field.value) && envi_list(field.value).size() == count;
        const auto names = names_of(field.value, count, key == "band names" ? "band" : "class",
                                    key == "band names" ? "bands" : "classes");
        if (!plain || names != envi_list(field.value)) field.value = names_text(names);
    }
    constexpr size_t parts = 3; // red, green and blue
    if (key != "class lookup" || classes == 0) return;
    if (const size_t found = envi_list(field.value).size(); found != parts * classes)
        throw Unreadable{"it has " + counted(found, "value") + " for " +
                         counted(classes, "class", "classes") + " instead of " +
                         std::to_string(parts * classes)};
}

/// Returns "key = value", broken into lines that GDAL can read.
std::string field_text(const EnviField& field) {
    constexpr size_t longest = 8000;
    std::string out = field.key + " = ";
    size_t line = out.size(), most = 0;
    for (const char c : field.value)
        most = std::max(most, line = c == '\n' ? 0 : line + 1);
    if (most <= longest) return out + field.value + "\n";
    // Lines break after a comma or a blank. Text without commas and blanks is broken at the maximum length.
    const std::string value = field.value.front() == '{' ? field.value : "{" + field.value + "}";
    line = out.size();
    for (std::string_view rest = value; !rest.empty();) {
        size_t size = rest.find_first_of(", \n");
        size = std::min(size == std::string_view::npos ? rest.size() : size + 1, longest);
        if (line + size > longest) {
            out += '\n';
            line = 0;
        }
        out += rest.substr(0, size);
        line = rest[size - 1] == '\n' ? 0 : line + size;
        rest.remove_prefix(size);
    }
    return out + "\n";
}

} // namespace

std::string envi_key(std::string_view key) {
    std::string out;
    for (char c : trim(key)) {
        if (c == '_' || c == '\t') c = ' ';
        if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out;
}

bool is_envi_list(std::string_view value) {
    value = trim(value);
    return value.size() >= 2 && value.front() == '{' && value.back() == '}';
}

std::string envi_name(std::string name) {
    for (char& c : name)
        if (c == ',' || c == '{' || c == '}') c = ' ';
    if (!name.empty() && name.front() == ';') name.front() = ' ';
    return name;
}

std::vector<std::string> envi_list(std::string_view value) {
    std::vector<std::string> out;
    value = trim(value);
    if (!is_envi_list(value)) return out;
    value = value.substr(1, value.size() - 2);
    if (trim(value).empty()) return out;
    for (;;) {
        // A comment after the last comma of a line ends at the line end.
        while (!(value = trim(value)).empty() && value.front() == ';' &&
               value.find('\n') != std::string_view::npos)
            value.remove_prefix(value.find('\n'));
        size_t comma = value.find(',');
        std::string_view element = trim(value.substr(0, comma));
        // A comma within quotes does not end an element.
        // Maximum length of a quoted name. A quotation mark can also be the sign for feet or minutes, which
        // has no closing mark.
        constexpr size_t longest = 1000;
        const std::string_view near = value.substr(0, longest);
        if (!value.empty() && (value.front() == '"' || value.front() == '\''))
            for (size_t end = near.find(value.front(), 1); end != std::string_view::npos;
                 end = near.find(value.front(), end + 1)) {
                const std::string_view behind = trim(value.substr(end + 1));
                if (!behind.empty() && behind.front() != ',') continue;
                element = trim(value.substr(1, end - 1));
                comma = value.find(',', end + 1);
                break;
            }
        out.emplace_back(element);
        if (comma == std::string_view::npos) break;
        value.remove_prefix(comma + 1);
    }
    if (out.back().empty()) out.pop_back(); // a trailing comma does not begin an element
    return out;
}

std::optional<double> envi_number(std::string_view text) {
    text = without_comment(text);
    if (quoted(text)) text = trim(text.substr(1, text.size() - 2));
    std::string plain = with_exponents(std::string(text));
    // A comma before three digits (",000") is ambiguous: it may separate thousands or decimals.
    constexpr size_t group = 4;
    if (const size_t comma = plain.find(','); comma != std::string::npos && plain.size() - comma != group &&
                                              plain.find_first_of(",.", comma + 1) == std::string::npos)
        plain[comma] = '.';
    char* end = nullptr;
    const double value = CPLStrtod(plain.c_str(), &end);
    if (plain.empty() || end != plain.c_str() + plain.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

std::string envi_list_text(const std::vector<std::string>& elements) {
    std::string out = "{";
    size_t line = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
        if (i > 0) {
            out += ", ";
            if (line > 100) {
                out.back() = '\n';
                line = 0;
            }
        }
        out += elements[i];
        line += elements[i].size() + 2;
    }
    return out + "}";
}

std::vector<std::string> envi_class_names(const EnviHeader& header) {
    const auto list = [&](const char* key) {
        const std::string* const text = header.find(key);
        return text ? envi_list(*text) : std::vector<std::string>();
    };
    auto names = list("class names"), quoted = list(quoted_names_field);
    // If another program has changed "class names", the list in quotes is outdated.
    const bool same =
        std::equal(names.begin(), names.end(), quoted.begin(), quoted.end(),
                   [](const std::string& a, const std::string& b) { return a == trim(envi_name(b)); });
    return same ? quoted : names;
}

void set_quoted_class_names(EnviHeader& header, const std::vector<std::string>& names) {
    std::vector<std::string> quoted;
    bool any = false;
    for (std::string name : names) {
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '{' || c == '}'; }, ' ');
        const bool both = name.find('"') != std::string::npos && name.find('\'') != std::string::npos;
        if (trim(envi_name(name)) == name || both) {
            quoted.push_back(envi_name(name));
            continue;
        }
        const char* const quote = name.find('"') == std::string::npos ? "\"" : "'";
        quoted.push_back(quote + name + quote);
        any = true;
    }
    header.erase(quoted_names_field);
    if (any) header.set(quoted_names_field, envi_list_text(quoted));
}

EnviHeader EnviHeader::parse(std::string_view text) {
    EnviHeader header;
    while (!text.empty()) {
        const std::string line = take_line(text);
        const size_t equals = line.find('=');
        if (equals == std::string::npos || line.front() == ';') continue;
        std::string key;
        for (char c : trim(std::string_view(line).substr(0, equals))) {
            if (c == '\t') c = ' ';
            if (c == ' ' && !key.empty() && key.back() == ' ') continue;
            key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        std::string value(trim(std::string_view(line).substr(equals + 1)));
        const std::string name = envi_key(key);
        const bool is_list = is_number_list(name) || is_text_list(name);
        while (value.empty() && next_opens_list(text, is_list ? "{[(" : "{"))
            value = take_line(text);
        if (!value.empty() && value.front() == '{')
            complete_list(value, text);
        else if (is_list)
            complete_other_list(name, value, text);
        if (key.empty() || key.front() == '{' || key.size() > longest_key) continue;
        try {
            value = is_list ? in_braces(name, value) : plain_value(name, std::move(value));
        } catch (const Unreadable& list) {
            header.m_unreadable.push_back("'" + key + "': " + list.why);
            continue;
        }
        if (const std::string* known = header.find(key); known && *known != value)
            header.m_repeated.push_back(key);
        header.set(key, value);
    }
    header.complete_lists();
    return header;
}

void EnviHeader::complete_lists() {
    const auto number = [&](const char* key) {
        const std::string* const text = find(key);
        constexpr double most = 65535; // maximum number of bands in GDAL
        const double value = text ? envi_number(*text).value_or(0) : 0;
        return value >= 1 && value <= most ? static_cast<size_t>(value) : size_t{0};
    };
    const std::string* const type = find("file type");
    const bool library = type != nullptr && envi_key(*type).find("spectral library") != std::string::npos;
    const size_t bands = number(library ? "samples" : "bands"), classes = number("classes");
    std::vector<std::string> wrong;
    for (EnviField& field : m_fields) {
        const std::string key = envi_key(field.key);
        const bool for_all_bands = key == "fwhm" || key.find("gain values") != std::string::npos ||
                                   key.find("offset values") != std::string::npos;
        if (bands > 1 && for_all_bands) {
            const auto list =
                is_envi_list(field.value) ? envi_list(field.value) : std::vector<std::string>{field.value};
            if (list.size() == 1 && (envi_number(list.front()) || written_wavelength(list.front())))
                field.value = envi_list_text(std::vector<std::string>(bands, list.front()));
        }
        try {
            complete_names(field, library ? 0 : bands, classes);
        } catch (const Unreadable& list) {
            m_unreadable.push_back("'" + field.key + "': " + list.why);
            wrong.push_back(field.key);
        }
    }
    for (const std::string& key : wrong)
        erase(key);
}

std::string EnviHeader::text() const {
    std::string out = "ENVI\n";
    for (const EnviField& f : m_fields)
        out += field_text(f);
    return out;
}

const std::string* EnviHeader::find(std::string_view key) const {
    for (const EnviField& f : m_fields)
        if (same_key(f.key, key)) return &f.value;
    return nullptr;
}

void EnviHeader::set(const std::string& key, const std::string& value) {
    for (EnviField& f : m_fields)
        if (same_key(f.key, key)) {
            f.value = value;
            return;
        }
    m_fields.push_back({key, value});
}

void EnviHeader::erase(std::string_view key) {
    m_fields.erase(std::remove_if(m_fields.begin(), m_fields.end(),
                                  [&](const EnviField& f) { return same_key(f.key, key); }),
                   m_fields.end());
}

EnviHeader read_envi_header(const std::string& path) {
    GByte* bytes = nullptr;
    vsi_l_offset size = 0;
    VSIStatBufL info;
    if (VSIStatExL(path.c_str(), &info, VSI_STAT_SIZE_FLAG) == 0 && info.st_size > longest_header)
        throw Error("'" + path + "' has " + std::to_string(info.st_size >> 20) +
                    " MB, too much for an ENVI header");
    if (!VSIIngestFile(nullptr, path.c_str(), &bytes, &size, longest_header)) return {};
    const std::string text(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    VSIFree(bytes);
    if (in_utf16(text))
        throw Error("the ENVI header '" + path + "' is in UTF-16",
                    "Save it as plain text (UTF-8) in an editor.");
    return EnviHeader::parse(text);
}

bool is_envi_header(const std::string& path) {
    std::string word; // the first letters of the file; bytes of 0 in UTF-16 are skipped
    for (const char c : beginning_of_file(path, 256))
        if (!is_blank(c) && static_cast<unsigned char>(c) < 0x80) word += c;
    return STARTS_WITH_CI(word.c_str(), "ENVI");
}

} // namespace hsi::raster
