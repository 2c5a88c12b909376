// SPDX-License-Identifier: MIT
// Names of files, and which file a name leads to.
#pragma once

#include <string>
#include <vector>

namespace hsi {

/// Folder part of a path, "." for none.
std::string folder_of(const std::string& path);
/// The part after the last slash; trailing slashes do not count.
std::string name_of(const std::string& path);
/// "folder/name"; name alone when the folder is empty.
std::string join_path(const std::string& folder, const std::string& name);
/// True when the path names a file of the local file system, not one of GDAL's virtual ones (/vsimem/ ...).
bool is_local(const std::string& path);

/// The kind of file that a local path leads to, after all links. Opening a pipe waits for its other end, so a
/// name of unknown origin is classified first.
enum class PathKind {
    nothing,
    file,
    folder,
    pipe ///< or a device, or a socket
};
PathKind kind_of_path(const std::string& path);

/// The end of a chain of symbolic links, whether it exists or not; the path itself if it is not a link.
/// Throws Error when the links form a circle.
std::string follow_links(const std::string& path);

/// The links from the path itself to the end; empty if the path is not a link, or not local.
std::vector<std::string> links_on_the_way(const std::string& path);

/// True when both names lead to one file: by its identity when it is there, else by the folder's identity and
/// the name in it, so that "x", "./x" and a way through linked folders are the same. Names that are not local
/// are compared as they are spelled.
bool same_file(const std::string& a, const std::string& b);

} // namespace hsi
