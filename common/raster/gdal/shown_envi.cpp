// SPDX-License-Identifier: MIT
#include "raster/gdal/shown_envi.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <cstdlib>
#include <cstring>

namespace hsi::raster {

std::string shown_name(const EnviFile& file) {
    return shown_envi + std::to_string(file.header.size()) + "," + file.header + "/" + file.data;
}

/// Of a name without the shown_envi.
std::optional<EnviFile> shown_parts(const std::string& name) {
    char* end = nullptr;
    const unsigned long length = std::strtoul(name.c_str(), &end, 10);
    if (end == name.c_str() || *end != ',') return std::nullopt;
    const auto begin = static_cast<size_t>(end + 1 - name.c_str());
    if (length > name.size() - begin || name[begin + length] != '/') return std::nullopt;
    return EnviFile{name.substr(begin + length + 1), name.substr(begin, length)};
}

bool is_header_name(const std::string& name) { return EQUAL(CPLGetExtension(name.c_str()), "hdr"); }

std::string file_behind(const std::string& name) {
    if (name.rfind(shown_envi, 0) != 0) return name;
    const auto parts = shown_parts(name.substr(std::strlen(shown_envi)));
    if (!parts) return name;
    return is_header_name(parts->data) ? parts->header : parts->data;
}

} // namespace hsi::raster
