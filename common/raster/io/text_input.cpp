// SPDX-License-Identifier: MIT
#include "raster/text_input.h"

#include "core/error.h"
#include "raster/gdal_errors.h"
#include "raster/io/remote_file.h"
#include "raster/io/server_answers.h"

#include <cpl_vsi.h>
#include <cpl_vsi_error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace hsi::raster {
namespace {

/// Closes a file. A function object is used instead of a pointer to VSIFCloseL(), because the GDAL plugin
/// must not need the address of a function of GDAL when it is loaded.
struct Close {
    void operator()(VSILFILE* file) const { VSIFCloseL(file); }
};

} // namespace

std::string read_file(const std::string& path, uint64_t limit, FileHolds holds) {
    const GdalErrors quiet;
    VSIStatBufL status;
    const auto look = [&] { return VSIStatL(path.c_str(), &status) == 0; };
    bool known = look();
    if (known && !VSIIsLocal(path.c_str())) {
        // All answers must agree with the size of the file. Otherwise a part of a table could be used as the
        // whole table.
        const auto version = ServedVersion::of(path);
        const auto differs = [&] {
            return !version->difference({{"Content-Length", std::to_string(status.st_size)}}).empty();
        };
        if (status.st_size > 0 && differs()) {
            (void)forget_cached(path);
            version->forget();
            known = look();
            if (known) (void)differs();
        }
    }
    if (known && VSI_ISDIR(status.st_mode)) throw Error("cannot read '" + path + "': it is a folder");
    // Pipes are read without GDAL, which would wait for the other end of a pipe and ignore signals.
    if (known && !VSI_ISREG(status.st_mode) && path.rfind("/vsi", 0) != 0)
        return read_text_file(path, limit, holds);
    errno = 0;
    VSIErrorReset();
    const std::unique_ptr<VSILFILE, Close> file(open_watched(path));
    if (!file) {
        const std::string cannot = "cannot open '" + path + "': ";
        if (is_trouble(VSIGetLastErrorMsg())) throw Error(cannot + VSIGetLastErrorMsg());
        if (!VSIIsLocal(path.c_str())) // errno says nothing about a file on a server
            throw Error(cannot + "the server has no such file, or does not answer",
                        "Check the name, or try again later.");
        throw Error(cannot + (errno != 0 ? std::strerror(errno) : "no such file"));
    }
    const uint64_t size = known && VSI_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
    errno = 0;
    const bool served = size > 0 && !VSIIsLocal(path.c_str());
    uint64_t at = 0;
    std::string text = hsi::read_whole(path, limit, holds, size, [&](char* buffer, size_t bytes) {
        if (!served) return VSIFReadL(buffer, 1, bytes, file.get());
        const size_t wanted = std::min<uint64_t>(bytes, size - at);
        std::string why;
        if (!read_whole(path, file.get(), at, wanted, buffer, &why))
            throw Error("cannot read '" + path + "': " + why, why.starts_with(server_is_to_blame)
                                                                  ? "Fetch the file first: curl -O URL."
                                                                  : "Try again later.");
        at += wanted;
        return wanted;
    });
    if (text.size() < size)
        throw Error("cannot read '" + path + "'" +
                    (errno != 0 ? ": " + std::string(std::strerror(errno)) : " to its end"));
    return text;
}

std::string read_input(const std::string& path, uint64_t limit) { return read_file(path, limit); }

} // namespace hsi::raster
