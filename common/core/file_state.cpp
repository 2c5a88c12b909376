// SPDX-License-Identifier: MIT
#include "core/file_state.h"

#include "core/file_path.h"

#include <sys/stat.h>

namespace hsi {

std::optional<FileState> FileState::of(const std::string& path) {
    struct stat info {};
    if (!is_local(path) || ::stat(path.c_str(), &info) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
        return std::nullopt;
    const auto ns = [](const timespec& time) { return int64_t{1000000000} * time.tv_sec + time.tv_nsec; };
    return FileState{info.st_dev,      info.st_ino,      info.st_size,
                     ns(info.st_mtim), ns(info.st_ctim), S_ISDIR(info.st_mode)};
}

} // namespace hsi
