// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

/// One state of a file or a folder of this machine, behind links: another file under the same name differs,
/// and so does the same file after it was written to. Anybody can set the time of modification back. Only the
/// system sets the time of the last change to the inode.
struct FileState {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, modified = 0, changed = 0; ///< bytes; ns since 1970
    bool folder = false;
    uint32_t access = 0; ///< another number where mode, owner, group or count of links differ
    auto operator<=>(const FileState&) const = default;
    /// Returns whether the file has not been written to since `earlier`. chmod, chown and a new or removed
    /// hard link set `changed`, too: where `access` shows one of them, the time of modification decides.
    bool has_contents_of(const FileState& earlier) const;
    /// nullopt if there is neither a file nor a folder of this name.
    static std::optional<FileState> of(const std::string& path);
};

} // namespace hsi
