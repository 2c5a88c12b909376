// SPDX-License-Identifier: MIT
// Includes the JSON library for all other files. Its classes are compiled once, in json.cpp. Each file that
// reads or writes a document would otherwise need seconds to compile them.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace hsi {

/// A JSON document or part of a document. The members of an object are in alphabetical order.
using Json = nlohmann::json;
/// A JSON document whose members keep the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

/// Parses a document from an untrusted source. Rejects documents that nest deeper than any real document
/// (copying them would overflow the stack) and documents with a duplicate member. Then returns null and sets
/// `fault` to the reason, in words that follow "it".
std::optional<Json> parse_json(const std::string& text, std::string& fault);

} // namespace hsi

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
