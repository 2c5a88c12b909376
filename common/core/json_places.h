// SPDX-License-Identifier: MIT
// JSON that people write: with comments, and with lines for messages.
#pragma once

#include "core/json.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace hsi {

/// Where a part of a document begins.
struct JsonPlace {
    int line = 0;     ///< from 1 on
    size_t order = 0; ///< among all parts: members of a Json have lost theirs
};
/// The place of each member and entry, by path: "/rules/0/features".
using JsonPlaces = std::map<std::string, JsonPlace>;

/// As parse_json() of json.h; the document may have comments (//, /* */), and the fault names the line.
std::optional<Json> parse_json(const std::string& text, std::string& fault, JsonPlaces& places);

} // namespace hsi
