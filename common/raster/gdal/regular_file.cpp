// SPDX-License-Identifier: MIT
#include "raster/regular_file.h"

#include "core/file_path.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <unistd.h>

#include <algorithm>

namespace hsi::raster {

namespace {

/// Returns the mode of a file; 0 if the file does not exist.
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

namespace {

/// Returns true for a name of a subdataset, such as NETCDF:"a.nc":cube.
bool is_subdataset(const std::string& name) {
    return STARTS_WITH_CI(name.c_str(), "HDF5:") || STARTS_WITH_CI(name.c_str(), "NETCDF:") ||
           STARTS_WITH_CI(name.c_str(), "ZARR:");
}

} // namespace

std::string file_of_subdataset(const std::string& name) {
    if (!is_subdataset(name)) return name;
    const std::string rest = name.substr(name.find(':') + 1);
    if (rest.rfind('"', 0) == 0) return rest.substr(1, rest.find('"', 1) - 1);
    const size_t end = rest.rfind(':'); // a path may contain further colons, as in http://
    return end != std::string::npos ? rest.substr(0, end) : rest;
}

std::string array_of_subdataset(const std::string& name) {
    if (!is_subdataset(name)) return {};
    const size_t quote = name.rfind('"'), end = name.rfind(':');
    const size_t from = quote != std::string::npos ? quote + 1 : end;
    return from != name.find(':') && from + 1 < name.size() && name[from] == ':' ? name.substr(from + 1) : "";
}

bool names_array(const std::string& name, const std::string& full_name) {
    const auto plain = [](std::string text) {
        std::replace(text.begin(), text.end(), ' ', '_');
        return text.substr(std::min(text.find_first_not_of('/'), text.size()));
    };
    return plain(name) == plain(full_name);
}

bool may_lead_to_matlab(const std::string& path) {
    if (!is_regular_file(path)) return path.find(':') != std::string::npos;
    constexpr size_t header_bytes = 128;
    const std::string begin = beginning_of_file(path, header_bytes);
    const bool later = begin.size() == header_bytes && (begin.compare(header_bytes - 2, 2, "IM") == 0 ||
                                                        begin.compare(header_bytes - 2, 2, "MI") == 0);
    return later || EQUAL(CPLGetExtension(path.c_str()), "mat");
}

} // namespace hsi::raster
