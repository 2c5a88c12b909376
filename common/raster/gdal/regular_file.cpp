// SPDX-License-Identifier: MIT
#include "raster/gdal/regular_file.h"

#include "core/file_path.h"
#include "raster/gdal/gdal_errors.h"

#include <cpl_conv.h>
#include <cpl_vsi.h>

#include <unistd.h>

namespace hsi::raster {

namespace {

/// The mode of what there is; 0 for nothing.
decltype(VSIStatBufL::st_mode) mode_of(const std::string& path) {
    VSIStatBufL status;
    return VSIStatExL(path.c_str(), &status, VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG) == 0
               ? status.st_mode
               : 0;
}

} // namespace

bool is_regular_file(const std::string& path) { return VSI_ISREG(mode_of(path)); }

bool is_there(const std::string& path) { return mode_of(path) != 0; }

std::string unreadable_header(const std::string& path) {
    if (!is_local(path)) return {};
    for (const char* extension : {"hdr", "HDR"})
        for (const std::string& header :
             {std::string(CPLResetExtension(path.c_str(), extension)), path + "." + extension})
            if (access(header.c_str(), F_OK) == 0 && access(header.c_str(), R_OK) != 0) return header;
    return {};
}

bool is_pipe_or_device(const std::string& path) {
    const auto mode = mode_of(path);
    return mode != 0 && !VSI_ISREG(mode) && !VSI_ISDIR(mode);
}

std::string beginning_of_file(const std::string& path, size_t bytes) {
    const GdalErrors quiet;
    if (!is_regular_file(path)) return {};
    VSILFILE* const file = VSIFOpenL(path.c_str(), "rb");
    if (file == nullptr) return {};
    std::string text(bytes, '\0');
    text.resize(VSIFReadL(text.data(), 1, text.size(), file));
    VSIFCloseL(file);
    return text;
}

} // namespace hsi::raster
