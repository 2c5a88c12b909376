// SPDX-License-Identifier: MIT
#include "core/file_state.h"

#include "core/file_path.h"

#include <sys/stat.h>

#include <initializer_list>
#include <tuple>

namespace hsi {

std::optional<FileState> FileState::of(const std::string& path) {
    struct stat info {};
    if (!is_local(path) || ::stat(path.c_str(), &info) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
        return std::nullopt;
    const auto ns = [](const timespec& time) { return int64_t{1000000000} * time.tv_sec + time.tv_nsec; };
    uint32_t access = 0;
    for (const uint64_t part :
         {uint64_t{info.st_mode}, uint64_t{info.st_uid}, uint64_t{info.st_gid}, uint64_t{info.st_nlink}})
        access = access * 2654435761u + static_cast<uint32_t>(part);
    return FileState{info.st_dev,      info.st_ino,           info.st_size, ns(info.st_mtim),
                     ns(info.st_ctim), S_ISDIR(info.st_mode), access};
}

bool FileState::has_contents_of(const FileState& earlier) const {
    FileState now = *this;
    if (now.access != earlier.access)
        std::tie(now.access, now.changed) = std::tie(earlier.access, earlier.changed);
    return now == earlier;
}

} // namespace hsi
