// SPDX-License-Identifier: MIT
// The identity, size and times of a file, by which a change of its contents is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

/// The state of a local file or folder, with links followed. The state changes if the file is written to or
/// replaced by another file. Two times are compared, because any user can set back the time of modification.
/// Only the system sets the time of the last change to the inode.
struct FileState {
    uint64_t device = 0, inode = 0;
    int64_t size = 0, modified = 0, changed = 0; ///< size in bytes; times in ns since 1970
    bool folder = false;
    uint32_t access = 0; ///< Hash of the mode, owner, group and count of hard links.
    auto operator<=>(const FileState&) const = default;
    /// Returns whether the file has not been written to since `earlier`. The time `changed` also advances
    /// with chmod, chown and a new or removed hard link. If `access` differs, one of these has happened:
    /// `changed` is then ignored, and the time of modification decides.
    bool has_contents_of(const FileState& earlier) const;
    /// Returns the state of the local file or folder with this path; nullopt if there is none.
    static std::optional<FileState> of(const std::string& path);
};

} // namespace hsi
