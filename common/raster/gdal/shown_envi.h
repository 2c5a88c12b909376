// SPDX-License-Identifier: MIT
// Names under which GDAL is shown a pair of ENVI's files (envi_file.h).
#pragma once

#include <optional>
#include <string>

namespace hsi::raster {

struct EnviFile {
    std::string data, header;
};

/// "/vsihsi_envi/10,/a/old.hdr//a/scene.img" is /a/scene.img, which has /a/old.hdr for its header: whatever
/// ends in .hdr is that header, in lines that GDAL reads, and any other name that of a file beside the data.
inline constexpr const char* shown_envi = "/vsihsi_envi/";
std::string shown_name(const EnviFile& file);
/// Of a name without the prefix; nothing where it is not of this form.
std::optional<EnviFile> shown_parts(const std::string& name);

/// The file itself behind a name that a dataset which was opened so tells; other names as they are.
std::string file_behind(const std::string& name);

bool is_header_name(const std::string& name); ///< by its extension

} // namespace hsi::raster
