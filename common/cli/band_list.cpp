// SPDX-License-Identifier: MIT
#include "cli/arguments.h"
#include "cli/tool.h"
#include "core/error.h"

#include <set>
#include <sstream>

namespace hsi::cli {

namespace {

constexpr int max_band = 65536; // GDAL's own ceiling

} // namespace

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

} // namespace hsi::cli
