// SPDX-License-Identifier: MIT
// The one way to the JSON library. Its classes are compiled once, in json.cpp; each file that reads or writes
// a document would need seconds to compile them.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace hsi {

/// A JSON document or a part of one; the members of an object are in alphabetical order.
using Json = nlohmann::json;
/// The same with its members in the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

/// Parses a document that a stranger may have written. Refused are documents that nest deeper than any real
/// one (copying them would overflow the stack) and documents with a duplicate member. Returns null then;
/// `fault` is the reason, in words that follow "it".
std::optional<Json> parse_json(const std::string& text, std::string& fault);

} // namespace hsi

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
