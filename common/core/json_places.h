// SPDX-License-Identifier: MIT
// Parses JSON that people write: accepts comments, and keeps line numbers for messages.
#pragma once

#include "core/json.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace hsi {

/// The position at which a part of a document begins.
struct JsonPlace {
    int line = 0;     ///< from 1 on
    size_t order = 0; ///< position among all parts, because a Json sorts its members
};
/// Maps the path of each member and entry ("/rules/0/features") to its position.
using JsonPlaces = std::map<std::string, JsonPlace>;

/// Parses like parse_json() of json.h, but accepts comments (//, /* */). Adds the position of each member and
/// entry to `places`. `fault` ends with the number of the text line.
std::optional<Json> parse_json(const std::string& text, std::string& fault, JsonPlaces& places);

} // namespace hsi
