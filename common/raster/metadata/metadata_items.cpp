// SPDX-License-Identifier: MIT
#include "raster/metadata/metadata_items.h"

#include <cctype>

namespace hsi::raster {

std::string upper(std::string s) {
    for (char& c : s)
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return s;
}

std::string lower(std::string s) {
    for (char& c : s)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return s;
}

bool starts_with(const std::string& s, const char* prefix) { return s.rfind(prefix, 0) == 0; }

std::string number_text(double v) { return CPLSPrintf("%.15g", v); }

std::string item_key(const std::string& item) {
    const size_t at = item.find_first_of("=:");
    return at == std::string::npos ? item : item.substr(0, at);
}

std::string item_value(const std::string& item) {
    const size_t at = item.find_first_of("=:");
    return at == std::string::npos ? std::string() : item.substr(at + 1);
}

const std::string* find_item(const std::vector<std::string>& items, const char* key) {
    for (const std::string& item : items)
        if (EQUAL(item_key(item).c_str(), key)) return &item;
    return nullptr;
}

std::string value_of(const MetadataDomains& domains, const char* domain, const char* key) {
    const auto at = domains.find(domain);
    if (at == domains.end()) return {};
    const std::string* item = find_item(at->second, key);
    return item ? item_value(*item) : std::string();
}

void set_item(std::vector<std::string>& items, const std::string& key, const std::string& value) {
    for (std::string& item : items)
        if (EQUAL(item_key(item).c_str(), key.c_str())) {
            item = key + "=" + value;
            return;
        }
    items.push_back(key + "=" + value);
}

CPLStringList to_csl(const std::vector<std::string>& items) {
    CPLStringList list;
    for (const std::string& item : items)
        list.AddString(item.c_str());
    return list;
}

} // namespace hsi::raster
