// SPDX-License-Identifier: MIT
#include "tool/words.h"

#include "core/error.h"
#include "core/names.h"
#include "core/process_limits.h"

#include <cpl_conv.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

namespace hsi::tool {
namespace {

constexpr int max_band = 65536; // GDAL's own ceiling

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

std::vector<int> parse_band_list(const std::vector<std::string>& texts) {
    static const std::string allowed =
        "Give band numbers from 1 on, single or as ranges: -b 5, -b 1-30,45, -b 1 -b 2.";
    std::vector<int> bands;
    std::set<int> seen;
    for (const std::string& text : texts) {
        std::istringstream parts(text + ",");
        std::string part;
        while (std::getline(parts, part, ',')) {
            const size_t dash = part.find('-', 1);
            const auto first = parse_integer(part.substr(0, dash));
            const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
            if (!first || !last) throw UsageError("-b: '" + text + "' is not a list of bands", allowed);
            if (*first < 1 || *last < *first || *last > max_band)
                throw UsageError("-b: '" + part + "' is not a band or a range of bands", allowed);
            for (int band = static_cast<int>(*first); band <= static_cast<int>(*last); ++band) {
                if (!seen.insert(band).second)
                    throw UsageError("-b: band " + std::to_string(band) + " is named twice",
                                     "Name every band once.");
                bands.push_back(band);
            }
        }
    }
    return bands;
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

int default_threads(int most) {
    const char* const text = CPLGetConfigOption("GDAL_NUM_THREADS", "ALL_CPUS");
    if (equal_names(text, "ALL_CPUS")) return std::min(usable_processors(), most);
    const auto count = parse_integer(text);
    if (!count || *count < 0)
        throw UsageError("GDAL_NUM_THREADS: '" + std::string(text) +
                             "' is neither ALL_CPUS nor a number of threads",
                         "Correct the configuration option, or give -threads.");
    // To GDAL 0 means no threads beside the first.
    return static_cast<int>(std::clamp<long long>(*count, 1, most));
}

} // namespace hsi::tool
