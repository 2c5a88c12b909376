// SPDX-License-Identifier: MIT
#include "raster/files/atomic_file.h"

#include "core/error.h"
#include "core/system.h"
#include "raster/files/already_exists.h"
#include "raster/io/raw_file.h"
#include "raster/run_files.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>

namespace hsi::raster {
namespace {

namespace fs = std::filesystem;

constexpr int tries = 3; // number of tries for steps that must not fail; a network file system may fail once
constexpr const char* lock_name = "lock";
constexpr const char* new_name = "new";
constexpr const char* old_name = "old";
/// Follows the destination's name in the names of private folders.
constexpr const char* private_mark = ".hsi-";

bool exists(const std::string& path) {
    VSIStatBufL info;
    if (!is_local(path)) return VSIStatExL(path.c_str(), &info, VSI_STAT_EXISTS_FLAG) == 0;
    struct stat facts {};
    // lstat(), because a symbolic link to a missing file also occupies the name
    return ::lstat(path.c_str(), &facts) == 0;
}

bool remove_tree(const std::string& path) {
    for (int i = 0; i < tries; ++i) {
        if (!is_local(path)) {
            VSIStatBufL info;
            const bool folder = VSIStatL(path.c_str(), &info) == 0 && VSI_ISDIR(info.st_mode);
            if (folder ? VSIRmdirRecursive(path.c_str()) == 0 : VSIUnlink(path.c_str()) == 0) return true;
            if (!exists(path)) return true;
        } else {
            std::error_code ec;
            fs::remove_all(path, ec);
            if (!ec) return true;
        }
    }
    return false;
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

/// Returns the prefix of the names of private folders for this destination. It is cut, because file names are
/// limited to 255 bytes.
std::string private_prefix(const std::string& destination) {
    return "." + name_of(destination).substr(0, 150) + private_mark;
}

/// Replaces `from` by `to` in a small text file; binary and large files are not changed.
void rename_inside(const std::string& path, const std::string& from, const std::string& to) {
    constexpr size_t largest = size_t{8} << 20;
    VSIStatBufL info;
    if (VSIStatL(path.c_str(), &info) != 0 || VSI_ISDIR(info.st_mode) ||
        static_cast<size_t>(info.st_size) > largest)
        return;
    std::string text(static_cast<size_t>(info.st_size), 0);
    VSILFILE* file = VSIFOpenL(path.c_str(), "rb");
    if (!file) return;
    const size_t got = VSIFReadL(text.data(), 1, text.size(), file);
    VSIFCloseL(file);
    text.resize(got);
    if (text.find('\0') != std::string::npos || text.find(from) == std::string::npos) return;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    file = VSIFOpenL(path.c_str(), "wb");
    const bool written = file && VSIFWriteL(text.data(), 1, text.size(), file) == text.size();
    if ((file && VSIFCloseL(file) != 0) || !written)
        throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

using system::Renamed;

bool plain_rename(const std::string& from, const std::string& to) {
    if (!is_local(to)) return VSIRename(from.c_str(), to.c_str()) == 0;
    int result;
    do
        result = ::rename(from.c_str(), to.c_str());
    while (result != 0 && errno == EINTR);
    return result == 0;
}

bool surely_rename(const std::string& from, const std::string& to) {
    for (int i = 0; i < tries; ++i)
        if (plain_rename(from, to)) return true;
    return false;
}

/// Renames without replacing a file. If two processes try this at the same time, only one succeeds.
Renamed rename_to_free_name(const std::string& from, const std::string& to) {
    if (!is_local(to)) {
        if (exists(to)) return Renamed::taken;
        return VSIRename(from.c_str(), to.c_str()) == 0 ? Renamed::done : Renamed::failed;
    }
    const Renamed result = system::rename_to_free(from.c_str(), to.c_str());
    if (result != Renamed::unsupported) return result;
    // An empty file or folder is first created exclusively under the name, and then replaced.
    struct stat info {};
    if (::lstat(from.c_str(), &info) != 0) return Renamed::failed;
    if (S_ISDIR(info.st_mode)) {
        if (::mkdir(to.c_str(), 0777) != 0) return errno == EEXIST ? Renamed::taken : Renamed::failed;
        if (plain_rename(from, to)) return Renamed::done;
        ::rmdir(to.c_str());
        return Renamed::failed;
    }
    const int holder = ::open(to.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (holder < 0) return errno == EEXIST ? Renamed::taken : Renamed::failed;
    ::close(holder);
    if (plain_rename(from, to)) return Renamed::done;
    const int reason = errno;
    ::unlink(to.c_str());
    errno = reason;
    return Renamed::failed;
}

/// Restores the earlier name `to` of the file `kept`, unless another file has this name now.
bool give_back(const std::string& kept, const std::string& to) {
    for (int i = 0; i < tries; ++i)
        if (const Renamed result = rename_to_free_name(kept, to);
            result == Renamed::done || result == Renamed::taken)
            return true;
    return false;
}

} // namespace

std::string with_final_names(std::string text) {
    for (size_t at = 0; (at = text.find(private_mark, at)) != std::string::npos;) {
        const size_t slash = text.rfind('/', at), begin = slash == std::string::npos ? 0 : slash + 1;
        const size_t end = text.find('/', at);
        // The destination's name may also contain the mark.
        if (end != std::string::npos) at = text.rfind(private_mark, end);
        const std::string inner = end == std::string::npos ? "" : text.substr(end + 1, 6);
        at += std::strlen(private_mark);
        if (text[begin] != '.') continue;
        if (inner.rfind(std::string(new_name) + "/", 0) == 0) {
            text.erase(begin, end + 1 + std::strlen(new_name) + 1 - begin);
            at = begin;
        } else if (inner == "stage.") {
            size_t last = end + 1;
            while (last < text.size() && std::strchr(" '\":;,", text[last]) == nullptr)
                ++last;
            const std::string name = text.substr(begin + 1, at - std::strlen(private_mark) - begin - 1);
            text.replace(begin, last - begin, name);
            at = begin + name.size();
        }
    }
    return text;
}

/// The folder .NAME.hsi-XXXXXX with new/ (the new files, under their final names), old/ (the replaced files)
/// and a lock.
class AtomicFile::PrivateFolder {
  public:
    explicit PrivateFolder(const std::string& destination) {
        const std::string folder = folder_of(destination);
        if (!is_local(destination)) {
            static std::atomic<unsigned> count{0};
            static const unsigned seed = std::random_device{}();
            m_path = join_path(folder, private_prefix(destination) + CPLSPrintf("%d-%08x%u",
                                                                                static_cast<int>(getpid()),
                                                                                seed, count.fetch_add(1)));
            if (VSIMkdirRecursive(made_folder().c_str(), 0700) != 0)
                throw Error("cannot write '" + destination + "': cannot make a folder next to it");
            return;
        }
        remove_abandoned(folder, private_prefix(destination));
        // Another process may remove the empty folder as abandoned before it is locked, so creating it is
        // tried again.
        for (int i = 0; i < tries; ++i) {
            m_path = join_path(folder, private_prefix(destination) + "XXXXXX");
            if (::mkdtemp(m_path.data()) == nullptr) break;
            claim(m_path);
            if (lock() && make(made_folder())) return;
            const int reason = errno;
            remove_tree(m_path);
            errno = reason;
            if (reason != ENOENT) break;
        }
        throw Error("cannot write '" + destination + "': " + std::strerror(errno));
    }
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;
    ~PrivateFolder() {
        if (!m_kept) remove_private(place());
        if (m_lock >= 0) ::close(m_lock);
    }

    std::string made_folder() const { return join_path(m_path, new_name); }
    std::string stage(const std::string& extension) const { return join_path(m_path, "stage." + extension); }
    /// Returns a free name in old/ for a file that is being replaced.
    std::string name_for_old() {
        const std::string folder = join_path(m_path, old_name);
        if (m_old == 0 && (is_local(folder) ? !make(folder) : VSIMkdir(folder.c_str(), 0700) != 0))
            throw Error("cannot make '" + folder + "': " + std::strerror(errno));
        return join_path(folder, std::to_string(m_old++));
    }
    /// Keeps the folder, because it contains a file that could not be restored.
    void keep() { m_kept = true; }

  private:
    /// Removes the folder. The lock file is removed last, because other runs could not recognise a folder
    /// without it as abandoned.
    static void remove_private(const std::string& path) {
        for (const std::string& name : {std::string(new_name), std::string(old_name)})
            if (exists(join_path(path, name))) remove_tree(join_path(path, name));
        if (is_local(path)) {
            std::error_code ec;
            for (fs::directory_iterator at(path, ec), end; !ec && at != end; at.increment(ec))
                if (at->path().filename() != lock_name) remove_tree(at->path().string());
        }
        remove_tree(path);
    }

    /// Gives the owner all permissions, because the umask may have removed the permission to delete the
    /// folder.
    static void claim(const std::string& folder) { ::chmod(folder.c_str(), S_IRWXU); }

    /// Returns the current path of the folder, because a folder above it may have been renamed.
    std::string place() const {
        struct stat held {
        }, found{};
        const std::string file = m_lock >= 0 ? system::path_of(m_lock) : std::string();
        const bool known = !file.empty() && ::fstat(m_lock, &held) == 0 &&
                           ::stat(file.c_str(), &found) == 0 && held.st_dev == found.st_dev &&
                           held.st_ino == found.st_ino && name_of(file) == lock_name;
        return known ? folder_of(file) : m_path;
    }

    static bool make(const std::string& folder) {
        int result;
        do
            result = ::mkdir(folder.c_str(), S_IRWXU);
        while (result != 0 && errno == EINTR);
        if (result == 0) claim(folder);
        return result == 0;
    }

    bool lock() {
        const std::string name = join_path(m_path, lock_name);
        do
            m_lock = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        while (m_lock < 0 && errno == EINTR);
        if (m_lock < 0) return false;
        // If the file system does not support locks, the folder of a killed process is never removed, because
        // nothing shows that it is abandoned.
        if (::flock(m_lock, LOCK_EX | LOCK_NB) != 0) return true;
        const std::string host = host_name();
        ssize_t written;
        do
            written = ::write(m_lock, host.data(), host.size());
        while (written < 0 && errno == EINTR);
        return true; // if the computer's name is truncated, the folder counts as another computer's
    }

    static void remove_abandoned(const std::string& folder, const std::string& prefix) {
        std::error_code ec;
        for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
            const std::string name = at->path().filename().string();
            if (name.compare(0, prefix.size(), prefix) != 0) continue;
            const std::string path = at->path().string(), lock = join_path(path, lock_name);
            const int file = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
            if (file < 0) {
                if (errno == ENOENT) ::rmdir(path.c_str()); // only removes an empty folder
                continue;
            }
            char host[256] = {};
            const ssize_t size = ::read(file, host, sizeof host - 1);
            // A running process, also in another container, holds the lock. If the lock file has no
            // computer's name, its process ended before writing the name.
            const bool ours = size == 0 || (size > 0 && host_name() == host);
            if (ours && ::flock(file, LOCK_EX | LOCK_NB) == 0) remove_private(path);
            ::close(file);
        }
    }

    std::string m_path;
    int m_lock = -1, m_old = 0;
    bool m_kept = false;
};

/// Identifies a file independently of its name. The file is kept open, so that no other file gets its inode
/// number.
class AtomicFile::KnownFile {
  public:
    KnownFile() = default;
    explicit KnownFile(const std::string& path)
        : m_known(::lstat(path.c_str(), &m_info) == 0),
          m_held(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}

    enum class Found { none, itself, other };
    /// Returns which file has the name now: none, this file or another file. Returns `itself` if this is
    /// unknown.
    Found find(const std::string& name) const {
        struct stat info {};
        if (!is_local(name)) return exists(name) ? Found::itself : Found::none;
        if (::lstat(name.c_str(), &info) != 0)
            return errno == ENOENT || errno == ENOTDIR ? Found::none : Found::itself;
        const bool same = info.st_dev == m_info.st_dev && info.st_ino == m_info.st_ino;
        return !m_known || same ? Found::itself : Found::other;
    }

  private:
    struct stat m_info {};
    bool m_known = false;
    FileHandle m_held;
};

struct AtomicFile::Move {
    std::string from, to;
    /// Current path of the file that was at `to`. Empty if there was none, or if it was exchanged.
    std::string kept;
    bool exchanged = false; ///< `from` and `to` were exchanged: the file that was at `to` is at `from`
    bool removal = false;   ///< the file at `to` was only removed, and no new file was moved there
    KnownFile file = {};    ///< the file that was moved to `to`, if the AtomicFile is watched
};

AtomicFile::AtomicFile(const std::string& destination, bool replace)
    : m_destination(is_local(destination) ? follow_links(destination) : destination),
      m_folder(folder_of(m_destination)), m_links(links_on_the_way(destination)), m_replace(replace) {
    if (is_local(m_destination) || m_destination.rfind("/vsimem/", 0) == 0) {
        m_private = std::make_unique<PrivateFolder>(m_destination);
        m_path = join_path(m_private->made_folder(), name_of(m_destination));
    } else {
        m_path = m_destination;
    }
}

AtomicFile::~AtomicFile() {
    if (m_done || m_private) return;
    remove_tree(m_destination);
}

std::string AtomicFile::scratch_path(const std::string& extension) const {
    if (m_private) return m_private->stage(extension);
    // File systems without a private folder accept only one file after another, so intermediate files are
    // written to the folder for temporary files.
    const char* folder = CPLGetConfigOption("CPL_TMPDIR", nullptr);
    for (const char* name : {"TMPDIR", "TMP", "TEMP"})
        if (folder == nullptr) folder = CPLGetConfigOption(name, nullptr);
    std::string path = join_path(folder ? folder : "/tmp", "hsi-XXXXXX." + extension);
    const int file = ::mkostemps(path.data(), static_cast<int>(extension.size()) + 1, O_CLOEXEC);
    if (file < 0) throw Error("cannot make a temporary file '" + path + "': " + std::strerror(errno));
    ::close(file);
    return path;
}

std::vector<std::string> AtomicFile::made() const {
    if (!m_private) return {m_destination};
    std::vector<std::string> out;
    const std::string folder = m_private->made_folder();
    const CPLStringList names(VSIReadDir(folder.c_str()));
    for (int i = 0; i < names.size(); ++i)
        if (const std::string name = names[i]; name != "." && name != "..")
            out.push_back(join_path(folder, name));
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> AtomicFile::targets() const {
    if (!m_named.empty()) return m_named;
    std::vector<std::string> out;
    for (const std::string& path : made())
        out.push_back(m_private ? join_path(m_folder, name_of(path)) : path);
    return out;
}

/// Returns true if a file may be replaced. Without `replace`, files that belong to other datasets are never
/// replaced. A file whose name is the destination's full name and an extension (out.tif.aux.xml) can only
/// belong to an earlier destination that no longer exists.
bool AtomicFile::may_replace(const std::string& target) const {
    return m_replace || target.rfind(m_destination + ".", 0) == 0;
}

void AtomicFile::publish() {
    if (!m_private) return;
    auto paths = made();
    if (std::find(paths.begin(), paths.end(), m_path) == paths.end())
        throw Error("cannot write '" + m_destination + "': the file is missing after writing");
    // Some formats write their own path into their labels, so the path of the private folder is replaced
    // there.
    for (const std::string& path : paths)
        rename_inside(path, m_private->made_folder() + "/", join_path(m_folder, ""));
    // Side files get their names first, so that programs that see the new destination also see its side
    // files.
    std::stable_partition(paths.begin(), paths.end(),
                          [&](const std::string& path) { return path != m_path; });
    try {
        for (const std::string& from : paths)
            give_name(from, join_path(m_folder, name_of(from)), *m_private);
        std::vector<std::string> named;
        for (const Move& move : m_moves)
            named.push_back(move.to);
        link_beside();
        remove_stale();
        m_named = std::move(named);
    } catch (...) {
        withdraw();
        throw;
    }
}

void AtomicFile::give_name(const std::string& from, const std::string& to, PrivateFolder& keeper) {
    const auto failure = [](const std::string& old_name_of_it, const std::string& wanted) {
        return Error("cannot rename '" + old_name_of_it + "' to '" + wanted + "': " + std::strerror(errno));
    };
    Move move{from, to, {}, false, false};
    if (m_watched) move.file = KnownFile(from);
    for (int i = 0;; ++i) { // other programs may create or remove a file with the name between two steps
        const Renamed result = rename_to_free_name(move.from, move.to);
        if (result == Renamed::done) break;
        if (result != Renamed::taken) throw failure(move.from, move.to);
        if (!may_replace(move.to)) throw already_exists(move.to, ": another program made it during this run");
        const Renamed swapped =
            is_local(move.to) ? system::exchange(move.from.c_str(), move.to.c_str()) : Renamed::unsupported;
        if (swapped == Renamed::done) {
            move.exchanged = true;
            break;
        }
        if (swapped == Renamed::failed && errno != ENOENT) throw failure(move.from, move.to);
        if (swapped == Renamed::unsupported) {
            move.kept = keeper.name_for_old();
            if (!plain_rename(move.to, move.kept)) throw failure(move.to, move.kept);
            if (plain_rename(move.from, move.to)) break;
            const Error error = failure(move.from, move.to);
            if (!surely_rename(move.kept, move.to)) keeper.keep();
            throw error;
        }
        if (i >= tries) throw failure(move.from, move.to);
    }
    m_moves.push_back(std::move(move));
}

AtomicFile::PrivateFolder& AtomicFile::keeper_of(const std::string& path) {
    const std::string folder = folder_of(path);
    if (same_file(folder, m_folder)) return *m_private;
    for (const auto& [known, keeper] : m_keepers)
        if (known == folder) return *keeper;
    m_keepers.emplace_back(folder, std::make_unique<PrivateFolder>(path));
    return *m_keepers.back().second;
}

namespace {

/// Returns the name of a side file of `main` as a side file of `other`: "x.hdr" and "x.dat.ovr" of "x.dat"
/// become "l.hdr" and "l.dat.ovr" of "l.dat". Empty if the side file is not named after `main`.
std::string side_name_of(const std::string& other, const std::string& main, const std::string& side) {
    if (side.rfind(main + ".", 0) == 0) return other + side.substr(main.size());
    const auto stem = [](const std::string& name) {
        const size_t dot = name.rfind('.');
        return dot == std::string::npos || dot == 0 ? name : name.substr(0, dot);
    };
    return side.rfind(stem(main), 0) == 0 ? stem(other) + side.substr(stem(main).size()) : std::string();
}

} // namespace

std::vector<std::pair<std::string, std::string>> AtomicFile::names_beside_links() const {
    std::vector<std::pair<std::string, std::string>> out;
    if (!m_private || m_links.empty()) return out;
    const std::string main = name_of(m_destination);
    for (const std::string& path : made()) {
        if (path == m_path) continue;
        const std::string target = join_path(m_folder, name_of(path));
        for (const std::string& link : m_links)
            if (const std::string name = side_name_of(name_of(link), main, name_of(path)); !name.empty())
                if (const std::string beside = join_path(folder_of(link), name); !same_file(beside, target))
                    out.emplace_back(beside, link);
    }
    return out;
}

/// Next to each link to the destination, makes links to the destination's side files. They are relative or
/// absolute like the link.
void AtomicFile::link_beside() {
    if (m_links.empty()) return;
    const std::string main = name_of(m_destination);
    std::vector<std::string> sides; // side files of the destination
    for (const Move& move : m_moves)
        sides.push_back(move.to);
    for (const std::string& side : sides) {
        const std::string name = name_of(side);
        if (name == main) continue;
        for (size_t k = 0; k < m_links.size(); ++k) {
            const std::string& link = m_links[k];
            const std::string next = k + 1 < m_links.size() ? name_of(m_links[k + 1]) : main;
            const std::string own = side_name_of(name_of(link), main, name);
            const std::string leads_to = side_name_of(next, main, name);
            const std::string beside = join_path(folder_of(link), own);
            std::error_code ec;
            const fs::path target = fs::read_symlink(link, ec);
            if (own.empty() || leads_to.empty() || ec || same_file(beside, side)) continue;
            PrivateFolder* keeper = nullptr;
            std::string made;
            try {
                keeper = &keeper_of(link);
                made = keeper->name_for_old();
                fs::create_symlink(target.parent_path() / leads_to, made, ec);
            } catch (const Error&) { // the folder is not writable
                ec = std::make_error_code(std::errc::permission_denied);
            }
            if (ec)
                m_missing.push_back(beside);
            else
                give_name(made, beside, *keeper);
        }
    }
}

void AtomicFile::remove_stale() {
    for (const std::string& old : m_stale) {
        // Files are compared by identity, because names may differ in form (x.hdr, ./x.hdr).
        if (!exists(old) || std::any_of(m_moves.begin(), m_moves.end(),
                                        [&](const Move& move) { return same_file(move.to, old); }))
            continue;
        PrivateFolder* keeper = nullptr;
        try {
            keeper = &keeper_of(old);
        } catch (const Error&) { // the folder is not writable
            m_missing.push_back(old);
            continue;
        }
        Move move{{}, old, keeper->name_for_old(), false, true};
        if (!plain_rename(old, move.kept))
            throw Error("cannot rename '" + old + "' to '" + move.kept + "': " + std::strerror(errno));
        m_moves.push_back(std::move(move));
    }
}

bool AtomicFile::undo(const Move& move) {
    const auto found = move.file.find(move.to);
    const bool ours = found == KnownFile::Found::itself && !move.removal;
    if (move.exchanged) {
        if (!ours) return give_back(move.from, move.to);
        for (int i = 0; i < tries; ++i)
            if (system::exchange(move.from.c_str(), move.to.c_str()) == Renamed::done) return true;
        return false;
    }
    if (ours && !surely_rename(move.to, move.from)) return false;
    return move.kept.empty() || give_back(move.kept, move.to);
}

AtomicFile::Move& AtomicFile::move_to(const std::string& target) {
    const auto move = std::find_if(m_moves.begin(), m_moves.end(), [&](const Move& one) {
        return !one.removal && name_of(one.to) == name_of(target);
    });
    if (move == m_moves.end()) throw std::logic_error("'" + target + "' has not been published");
    return *move;
}

void AtomicFile::check_name(const std::string& target) {
    const Move& move = move_to(target);
    const auto found = move.file.find(move.to);
    if (found == KnownFile::Found::itself) return;
    throw Error("'" + target + "' has been " +
                    (found == KnownFile::Found::none ? "removed or renamed" : "replaced by another file") +
                    " during this run",
                "Run it again.");
}

void AtomicFile::renew(const std::string& made, const std::string& target) {
    check_name(target);
    Move& move = move_to(target);
    KnownFile file(made);
    if (!plain_rename(made, move.to)) throw Error("cannot replace '" + target + "': " + std::strerror(errno));
    move.file = std::move(file);
}

bool AtomicFile::withdraw() noexcept {
    bool good = true;
    const auto keep_all = [this] { // any private folder may contain files that could not be restored
        if (m_private) m_private->keep();
        for (const auto& keeper : m_keepers)
            keeper.second->keep();
    };
    try {
        for (auto move = m_moves.rbegin(); move != m_moves.rend(); ++move) {
            const bool undone = undo(*move);
            if (!undone) keep_all();
            good &= undone;
        }
        m_moves.clear();
        m_named.clear();
    } catch (...) {
        keep_all();
        good = false;
    }
    return good;
}

void AtomicFile::conclude() noexcept {
    m_done = true;
    m_moves.clear();
    m_private.reset();
    m_keepers.clear();
}

void AtomicFile::commit(const std::vector<std::string>& stale) {
    set_stale(stale);
    publish();
    conclude();
}

} // namespace hsi::raster
