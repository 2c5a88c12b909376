// SPDX-License-Identifier: MIT
#include "tool/words.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <utility>

namespace hsi::tool {
namespace {

constexpr int max_band = 65536; // GDAL's maximum number of bands

} // namespace

bool is_integer_type(const std::string& name) {
    return name == "Byte" || name.rfind("Int", 0) == 0 || name.rfind("UInt", 0) == 0;
}

std::optional<double> parse_number(std::string_view text) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    return to_number(text);
}

std::optional<long long> parse_integer(std::string_view text) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::vector<int> parse_band_list(const std::vector<std::string>& texts, const std::string& option) {
    const std::string allowed = "Give band numbers from 1, single or as ranges: " + option + " 5, " + option +
                                " 1-30,45, " + option + " 1 " + option + " 2.";
    std::vector<int> bands;
    std::set<int> seen;
    for (const std::string& text : texts) {
        std::istringstream parts(text + ",");
        std::string part;
        while (std::getline(parts, part, ',')) {
            const size_t dash = part.find('-', 1);
            const auto first = parse_integer(part.substr(0, dash));
            const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
            if (!first || !last)
                throw UsageError(option + ": '" + text + "' is not a list of bands", allowed);
            if (*first < 1 || *last < *first || *last > max_band)
                throw UsageError(option + ": '" + part + "' is not a band or a range of bands", allowed);
            for (int band = static_cast<int>(*first); band <= static_cast<int>(*last); ++band) {
                if (!seen.insert(band).second)
                    throw UsageError(option + ": band " + std::to_string(band) + " is named twice",
                                     "Name each band once.");
                bands.push_back(band);
            }
        }
    }
    return bands;
}

namespace {

/// Returns the items between commas.
std::vector<std::string> items_of(const std::vector<std::string>& texts) {
    std::vector<std::string> items;
    for (const std::string& text : texts) {
        std::istringstream parts(text + ",");
        for (std::string part; std::getline(parts, part, ',');)
            items.push_back(part);
    }
    return items;
}

/// A number with its unit in nanometres: 1 (nm), 1000 (um) or 0 (no unit). take_length() removes it from the
/// beginning of `text`.
struct Length {
    double value = 0;
    double unit_nm = 0;
};
std::optional<Length> take_length(std::string_view& text) {
    Length length;
    if (!text.empty() && (text.front() < '0' || text.front() > '9') && text.front() != '.')
        return std::nullopt;
    const auto value = take_number(text);
    if (!value) return std::nullopt;
    length.value = *value;
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    for (const auto& [name, nm] : {std::pair{std::string_view("nm"), 1.0},
                                   {std::string_view("um"), 1000.0},
                                   {std::string_view("\xc2\xb5m"), 1000.0},
                                   {std::string_view("\xce\xbcm"), 1000.0}})
        if (text.size() >= name.size() && equal_names(text.substr(0, name.size()), name)) {
            length.unit_nm = nm;
            text.remove_prefix(name.size());
            break;
        }
    return length;
}

constexpr const char* wavelengths_allowed =
    "Give wavelengths with their unit, nm or um: 450-900nm, 0.45-0.9um, 2100nm.";

raster::BandChoice parse_wavelengths(const std::string& option, const std::string& item) {
    const UsageError bad(option + ": '" + item + "' is not a wavelength or a range of them",
                         wavelengths_allowed);
    std::string_view text = item;
    const auto first = take_length(text);
    if (!first) throw bad;
    auto last = first;
    const bool range = !text.empty() && text.front() == '-';
    if (range) {
        text.remove_prefix(1);
        last = take_length(text);
    }
    if (!last || !text.empty()) throw bad;
    if (last->unit_nm == 0)
        throw UsageError(option + " " + item + ": the unit of the wavelength is missing",
                         wavelengths_allowed);
    raster::BandChoice choice;
    choice.text = item;
    choice.nearest = !range;
    choice.from_nm = first->value * (first->unit_nm > 0 ? first->unit_nm : last->unit_nm);
    choice.to_nm = last->value * last->unit_nm;
    // A range from 0 on includes all shorter wavelengths.
    if (choice.to_nm <= 0 || choice.to_nm < choice.from_nm)
        throw UsageError(option + " " + item + ": the range is empty",
                         "Give the shorter wavelength first: 450-900nm.");
    return choice;
}

} // namespace

bool names_wavelengths(const std::vector<std::string>& texts) {
    return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
        return text.find_first_not_of("0123456789,-+ ") != std::string::npos;
    });
}

std::vector<raster::BandChoice> parse_band_choices(const std::vector<std::string>& texts,
                                                   const std::string& option) {
    std::vector<raster::BandChoice> choices;
    for (const std::string& item : items_of(texts)) {
        if (names_wavelengths({item})) {
            choices.push_back(parse_wavelengths(option, item));
            choices.back().option = option;
            continue;
        }
        const auto numbers = parse_band_list({item}, option);
        choices.push_back({numbers.front(), numbers.back(), 0, 0, false, item, option});
    }
    return choices;
}

std::vector<raster::BandChoice> parse_ranges(const std::vector<std::string>& texts,
                                             const std::string& option) {
    std::vector<raster::BandChoice> ranges;
    for (const std::string& item : items_of(texts)) {
        ranges.push_back(parse_wavelengths(option, item));
        ranges.back().option = option;
        if (ranges.back().nearest)
            throw UsageError(option + " " + item + " is not a range",
                             "Give two wavelengths: " + option + " 1340-1460nm.");
    }
    return ranges;
}

std::vector<raster::BandChoice> parse_excluded_ranges(const std::vector<std::string>& texts) {
    return parse_ranges(texts, "-exclude-range");
}

std::string ranges_text(const std::vector<int>& numbers) {
    std::vector<std::string> ranges;
    for (size_t from = 0, to = 0; from < numbers.size(); from = to) {
        for (to = from + 1; to < numbers.size() && numbers[to] == numbers[to - 1] + 1;)
            ++to;
        const std::string first = std::to_string(numbers[from]), last = std::to_string(numbers[to - 1]);
        ranges.push_back(to - from == 1   ? first
                         : to - from == 2 ? first + ", " + last
                                          : first + " to " + last);
    }
    return joined(ranges, ", ");
}

std::string list_text(const std::vector<int>& numbers) {
    std::string text;
    for (int n : numbers)
        text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}

std::string one_line(std::string text) {
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    while (!text.empty() && text.back() == ' ')
        text.pop_back();
    return text;
}

int64_t integer_of(const std::string& text, const std::string& option, int64_t least, int64_t greatest,
                   const std::string& allowed) {
    const auto value = parse_integer(text);
    if (!value || *value < least || *value > greatest)
        throw UsageError(option + ": '" + text + "' is not " + allowed);
    return *value;
}

} // namespace hsi::tool
