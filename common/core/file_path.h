// SPDX-License-Identifier: MIT
// Splits and joins paths, follows symbolic links, and compares the names of files.
#pragma once

#include <string>
#include <vector>

namespace hsi {

/// Returns the folder part of a path, "." if there is none.
std::string folder_of(const std::string& path);
/// Returns the part after the last slash. Trailing slashes do not count.
std::string name_of(const std::string& path);
/// Returns "folder/name", or `name` if the folder is empty.
std::string join_path(const std::string& folder, const std::string& name);
/// Returns true if the path names a local file. GDAL's virtual files (/vsimem/ ...) are not local.
bool is_local(const std::string& path);

/// The type of file that a local path leads to, after all links are followed. Opening a pipe waits for the
/// other end, so names of unknown origin are classified before they are opened.
enum class PathKind {
    nothing,
    file,
    folder,
    pipe ///< or a device, or a socket
};
PathKind kind_of_path(const std::string& path);

/// Returns the end of a chain of symbolic links, whether it exists or not; the path itself if it is not a
/// link. Throws Error if the links form a circle.
std::string follow_links(const std::string& path);

/// Returns all symbolic links that follow_links() follows, beginning with the path itself. Returns an empty
/// list if the path is not a link, or not local. Throws Error if the links form a circle.
std::vector<std::string> links_on_the_way(const std::string& path);

/// Returns true if both names lead to the same file. An existing file is compared by its identity, a missing
/// file by the folder's identity and the name. So "x", "./x" and a path through linked folders are the same.
/// Names that are not local are compared as text.
bool same_file(const std::string& a, const std::string& b);

} // namespace hsi
