// SPDX-License-Identifier: MIT
#include "core/file_path.h"

#include "core/error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <utility>

namespace hsi {
namespace {

std::string without_trailing_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/')
        path.pop_back();
    return path;
}

/// Returns the path with single slashes: "/vsimem//a" and "/vsimem/a" are the same file.
std::string with_single_slashes(const std::string& path) {
    std::string text;
    for (const char c : path)
        if (c != '/' || text.empty() || text.back() != '/') text += c;
    return without_trailing_slashes(text);
}

struct Place {
    bool exists = false, has_folder = false;
    struct stat file {
    }, folder{};
    std::string name;
};

Place place_of(const std::string& path) {
    Place place;
    std::string end = path;
    try {
        end = follow_links(without_trailing_slashes(path));
    } catch (const Error&) {
        end = path; // links that form a circle count as a file
    }
    place.exists = ::stat(end.c_str(), &place.file) == 0;
    place.has_folder = ::stat(folder_of(end).c_str(), &place.folder) == 0;
    place.name = name_of(end);
    return place;
}

/// Returns the target; empty if the path is not a link.
std::string link_target(const std::string& path) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    if (length < 0) return {};
    const std::string to(target, static_cast<size_t>(length));
    return to.front() == '/' ? to : join_path(folder_of(path), to);
}

bool same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

} // namespace

std::string folder_of(const std::string& path) {
    const std::string clean = without_trailing_slashes(path);
    const size_t slash = clean.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : clean.substr(0, slash);
}

std::string name_of(const std::string& path) {
    const std::string clean = without_trailing_slashes(path);
    const size_t slash = clean.rfind('/');
    return slash == std::string::npos ? clean : clean.substr(slash + 1);
}

std::string join_path(const std::string& folder, const std::string& name) {
    if (folder.empty()) return name;
    return folder.back() == '/' ? folder + name : folder + "/" + name;
}

bool is_local(const std::string& path) { return path.rfind("/vsi", 0) != 0; }

PathKind kind_of_path(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return PathKind::nothing;
    return S_ISREG(facts.st_mode)   ? PathKind::file
           : S_ISDIR(facts.st_mode) ? PathKind::folder
                                    : PathKind::pipe;
}

std::string follow_links(const std::string& path) {
    const auto links = links_on_the_way(path);
    return links.empty() ? path : link_target(links.back());
}

std::vector<std::string> links_on_the_way(const std::string& path) {
    constexpr int most = 40; // the limit of the Linux kernel
    std::vector<std::string> links;
    if (!is_local(path)) return links;
    // After each round, `at` is the target of the link that was just followed.
    std::string at = without_trailing_slashes(path);
    while (links.size() <= most) {
        std::string next = link_target(at);
        if (next.empty()) return links;
        links.push_back(std::exchange(at, std::move(next)));
    }
    throw Error("'" + path + "': too many symbolic links in a row");
}

bool same_file(const std::string& a, const std::string& b) {
    if (!is_local(a) || !is_local(b)) return with_single_slashes(a) == with_single_slashes(b);
    const Place x = place_of(a), y = place_of(b);
    if (x.exists && y.exists) return same(x.file, y.file);
    if (x.exists != y.exists) return false;
    if (x.has_folder && y.has_folder) return same(x.folder, y.folder) && x.name == y.name;
    return with_single_slashes(a) == with_single_slashes(b);
}

} // namespace hsi
