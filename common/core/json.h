// SPDX-License-Identifier: MIT
// The one way to the JSON library. Its classes are compiled once, in json.cpp: they would be compiled anew in
// every file that reads or writes a document, which costs seconds each.
#pragma once

#include <nlohmann/json.hpp>

namespace hsi {

/// A JSON document or a part of one; the members of an object stand in the order of the alphabet.
using Json = nlohmann::json;
/// The same with its members in the order in which they were added.
using OrderedJson = nlohmann::ordered_json;

} // namespace hsi

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
