// SPDX-License-Identifier: MIT
#include "raster/text_input.h"

#include "core/error.h"

#include <cpl_vsi.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace hsi::raster {
namespace {

/// Not VSIFCloseL itself: the plugin for GDAL may not need the address of a function of GDAL's when it is
/// loaded.
struct Close {
    void operator()(VSILFILE* file) const { VSIFCloseL(file); }
};

} // namespace

std::string read_file(const std::string& path, uint64_t limit, FileHolds holds) {
    VSIStatBufL status;
    const bool known = VSIStatL(path.c_str(), &status) == 0;
    if (known && VSI_ISDIR(status.st_mode)) throw Error("cannot read '" + path + "': it is a folder");
    // GDAL waits for the other end of a pipe whatever signals come.
    if (known && !VSI_ISREG(status.st_mode) && path.rfind("/vsi", 0) != 0)
        return read_text_file(path, limit, holds);
    errno = 0;
    const std::unique_ptr<VSILFILE, Close> file(VSIFOpenL(path.c_str(), "rb"));
    if (!file)
        throw Error("cannot open '" + path + "': " + (errno != 0 ? std::strerror(errno) : "no such file"));
    const uint64_t size = known && VSI_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
    errno = 0;
    std::string text = read_whole(path, limit, holds, size, [&](char* buffer, size_t bytes) {
        return VSIFReadL(buffer, 1, bytes, file.get());
    });
    if (text.size() < size)
        throw Error("cannot read '" + path + "'" +
                    (errno != 0 ? ": " + std::string(std::strerror(errno)) : " to its end"));
    return text;
}

std::string read_input(const std::string& path, uint64_t limit) { return read_text_file(path, limit); }

} // namespace hsi::raster
