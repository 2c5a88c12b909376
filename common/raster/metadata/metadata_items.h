// SPDX-License-Identifier: MIT
// Metadata items as GDAL keeps them, "KEY=value", and the texts in them.
#pragma once

#include "raster/metadata/scene_metadata.h"

#include <cpl_string.h>

#include <string>
#include <vector>

namespace hsi::raster {

std::string upper(std::string s);
std::string lower(std::string s);
bool starts_with(const std::string& s, const char* prefix);
std::string number_text(double v); ///< 15 digits

/// "KEY=value" -> KEY; GDAL also allows ':' as separator.
std::string item_key(const std::string& item);
std::string item_value(const std::string& item);

/// The item of that key, whatever its case; null when there is none.
const std::string* find_item(const std::vector<std::string>& items, const char* key);
/// The value of such an item in a domain; empty when there is none.
std::string value_of(const MetadataDomains& domains, const char* domain, const char* key);
/// Replaces the item of that key, or adds it.
void set_item(std::vector<std::string>& items, const std::string& key, const std::string& value);

CPLStringList to_csl(const std::vector<std::string>& items);

} // namespace hsi::raster
