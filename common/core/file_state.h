// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

/// One state of a file or a folder of this machine, behind links: another file under the same name differs,
/// and so does the same file after it was written to. Anybody can set the time of modification back; the time
/// of the last change to the inode only the system sets, also when a mode, a name or the count of links
/// changes.
struct FileState {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, modified = 0, changed = 0; ///< bytes; ns since 1970
    bool folder = false;
    auto operator<=>(const FileState&) const = default;
    /// nullopt if there is neither a file nor a folder of this name.
    static std::optional<FileState> of(const std::string& path);
};

} // namespace hsi
