// SPDX-License-Identifier: MIT
// The one way to the JSON library. Its classes are compiled once, in json.cpp: they would be compiled anew in
// every file that reads or writes a document, which costs seconds each.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace hsi {

/// A JSON document or a part of one; the members of an object stand in the order of the alphabet.
using Json = nlohmann::json;
/// The same with its members in the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

/// Parses a document that a stranger may have written: one that nests deeper than any real one, which would
/// overflow the stack when it is copied, or that has a member twice, of which either could count, is not
/// taken. Null: `fault` says why, in words that follow "it".
std::optional<Json> parse_json(const std::string& text, std::string& fault);

} // namespace hsi

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
