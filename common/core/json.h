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

/// Parses a document from an untrusted source. Rejects documents with a duplicate member, and documents that
/// nest deeper than any real document, because copying them would overflow the stack. Returns nullopt for a
/// rejected or invalid document. `fault` is then the reason, phrased to follow the word "it".
std::optional<Json> parse_json(const std::string& text, std::string& fault);

} // namespace hsi

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
