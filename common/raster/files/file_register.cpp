// SPDX-License-Identifier: MIT
#include "raster/files/file_register.h"

#include "core/error.h"
#include "core/file_path.h"
#include "raster/regular_file.h"
#include "raster/side_files.h"

#include <cpl_conv.h>
#include <cpl_port.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>
#include <utility>

namespace hsi::raster {
namespace {

using namespace std::chrono_literals;

/// Locks the folders of all outputs while the object exists, so that no other run of these tools renames
/// files in them. So files of two runs with the same destination are not mixed. If folders cannot be locked,
/// each rename is still atomic.
///
/// For a file that is appended to, its folder and the file itself must be locked. Over NFS, only locks of
/// files apply to other computers.
class FolderLocks {
  public:
    FolderLocks(const std::vector<std::unique_ptr<AtomicFile>>& files,
                const std::vector<const RunFiles::Addition*>& additions, const CancelFlag* cancel,
                std::function<void(const std::string&)> note)
        : m_cancel(cancel), m_note(std::move(note)) {
        using Id = std::pair<dev_t, ino_t>;
        std::map<Id, std::string> folders; // sorted, so that all processes lock in the same order
        const auto add = [&folders](const std::string& destination) -> std::optional<Id> {
            const std::string folder = folder_of(destination);
            struct stat info {};
            if (!is_local(destination) || ::stat(folder.c_str(), &info) != 0) return std::nullopt;
            folders[{info.st_dev, info.st_ino}] = folder;
            return Id{info.st_dev, info.st_ino};
        };
        for (const auto& file : files)
            add(file->destination());
        std::map<std::string, Id> shared; // files that are appended to, and their folders, also sorted
        for (const auto* const addition : additions) {
            const std::string path = is_local(addition->path) ? follow_links(addition->path) : addition->path;
            m_unlocked[path] = 0;
            if (const auto id = add(path)) shared[path] = *id;
        }
        try {
            for (const auto& [id, folder] : folders) {
                const auto of = std::find_if(shared.begin(), shared.end(), [&wanted = id](const auto& file) {
                    return file.second == wanted;
                });
                const bool sure = of != shared.end();
                const int handle = open_to_lock(folder, O_RDONLY | O_DIRECTORY);
                if (handle >= 0 && lock(handle, sure ? of->first : "")) continue;
                for (const auto& file : shared)
                    if (file.second == id) m_unlocked[file.first] = errno;
            }
            for (const auto& file : shared)
                lock_file(file.first);
        } catch (...) {
            release();
            throw;
        }
    }
    FolderLocks(const FolderLocks&) = delete;
    FolderLocks& operator=(const FolderLocks&) = delete;
    ~FolderLocks() { release(); }

    /// Returns the error (errno) for each file that is appended to and could not be locked; 0 if it is
    /// locked.
    const std::map<std::string, int>& unlocked() const { return m_unlocked; }

  private:
    /// Maximum number of waits of 20 ms; a lock of another program must not block the run forever.
    static constexpr int most = 100;

    int open_to_lock(const std::string& path, int how) {
        const int handle = ::open(path.c_str(), how | O_CLOEXEC | O_NONBLOCK);
        if (handle >= 0) m_handles.push_back(handle);
        return handle;
    }

    /// Returns false if the file cannot be locked. If the lock is for the file `added`, which is appended to,
    /// waits for the lock until the user interrupts. Otherwise `added` is empty, and the wait is short.
    bool lock(int handle, const std::string& added) {
        const bool sure = !added.empty();
        for (int i = 0; ::flock(handle, LOCK_EX | LOCK_NB) != 0; ++i) {
            if (errno == EINTR) continue;
            if (errno != EWOULDBLOCK) return false;
            if (sure && m_cancel && m_cancel->requested()) throw Cancelled();
            if (i >= most && !sure) return false;
            if (i >= most && !m_cancel)
                throw Error("cannot append to '" + added + "': another program has locked it");
            if (i == most)
                m_note("Waiting for another program that has locked '" + added + "' or its folder");
            std::this_thread::sleep_for(20ms);
        }
        return true;
    }

    /// Locks the file at `path`. If another file has replaced it before the lock was held, the new file is
    /// locked.
    void lock_file(const std::string& path) {
        for (;;) {
            int handle = open_to_lock(path, O_RDWR);
            if (handle < 0 && (errno == EACCES || errno == EROFS)) handle = open_to_lock(path, O_RDONLY);
            // The file does not exist or cannot be opened, so the lock of its folder must suffice.
            if (handle < 0) return;
            if (!lock(handle, path)) {
                m_unlocked[path] = errno;
                return;
            }
            struct stat held {
            }, there{};
            if (::fstat(handle, &held) != 0 || ::stat(path.c_str(), &there) != 0 ||
                (held.st_dev == there.st_dev && held.st_ino == there.st_ino))
                return;
            ::close(handle);
            m_handles.pop_back();
        }
    }

    void release() {
        for (const int handle : m_handles)
            ::close(handle);
        m_handles.clear();
    }

    const CancelFlag* m_cancel;
    std::function<void(const std::string&)> m_note;
    std::vector<int> m_handles;
    std::map<std::string, int> m_unlocked;
};

void write_stream(const std::string& path, const std::string& text, const CancelFlag* cancel) {
    const auto failure = [&](int reason) {
        return Error("cannot write '" + path + "': " + std::strerror(reason));
    };
    // The descriptor is duplicated. If standard output is a file and is opened again by name, it would be
    // written from its beginning.
    const int standard = path == "/dev/stdout" ? 1 : path == "/dev/stderr" ? 2 : -1;
    int file = standard >= 0 ? ::fcntl(standard, F_DUPFD_CLOEXEC, 3) : -1;
    while (standard < 0) {
        // A FIFO can be opened for writing only after a reader has opened it. Until then, a signal must be
        // able to end the run.
        file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_APPEND);
        if (file >= 0 || (errno != ENXIO && errno != EINTR)) break;
        if (cancel && cancel->requested()) throw Cancelled();
        if (errno == ENXIO) std::this_thread::sleep_for(20ms);
    }
    if (file < 0) throw failure(errno);
    int reason = 0;
    for (size_t done = 0; done < text.size() && reason == 0;) {
        const ssize_t n = ::write(file, text.data() + done, text.size() - done);
        if (n >= 0) {
            done += static_cast<size_t>(n);
        } else if (errno == EAGAIN) {
            if (cancel && cancel->requested()) reason = ECANCELED;
            std::this_thread::sleep_for(5ms);
        } else if (errno != EINTR) {
            reason = errno;
        }
    }
    if (::close(file) != 0 && errno != EINTR && reason == 0) reason = errno;
    if (reason == ECANCELED) throw Cancelled();
    if (reason != 0) throw failure(reason);
}

/// Returns the canonical path of a local file, which need not exist; empty if the path cannot be determined.
std::string place_of(const std::string& path) {
    if (!is_local(path)) return {};
    std::error_code ec;
    const auto place = std::filesystem::weakly_canonical(path, ec);
    return ec ? std::string() : place.string();
}

/// Returns true if `file` is in `folder` or in a folder below it.
bool is_within(const std::string& file, const std::string& folder) {
    std::error_code ec;
    if (!is_local(folder) || !std::filesystem::is_directory(folder, ec)) return false;
    const std::string inner = place_of(file), outer = place_of(folder);
    return !inner.empty() && !outer.empty() && inner.rfind(outer + "/", 0) == 0;
}

/// Returns true if an output would replace a folder that is read as one dataset (Zarr), or a file in such a
/// folder.
bool falls_into(const std::string& output, const std::string& read) {
    if (is_within(read, output)) return true;
    if (!is_within(output, read)) return false;
    const auto holds = [&](const char* name) { return is_there(join_path(read, name)); };
    return is_there(output) || holds(".zarray") || holds(".zgroup") || holds("zarr.json");
}

/// Returns GDAL's virtual file system in a name that means a part of a local file, or a file in converted
/// form; empty for other names. Writing under such a name would change a file in a way that no check detects
/// and that cannot be undone completely.
std::string part_of_a_file(const std::string& path) {
    for (const char* place : {"/vsizip", "/vsigzip", "/vsitar", "/vsi7z", "/vsirar", "/vsisubfile",
                              "/vsisparse", "/vsicached", "/vsicrypt"})
        if (const std::string begin = place;
            path.rfind(begin + "/", 0) == 0 || path.rfind(begin + "?", 0) == 0)
            return begin + "/";
    return {};
}

/// Returns true for a device, such as /dev/null. Two outputs may have the same device.
bool is_device(const std::string& path) {
    struct stat info {};
    return is_local(path) && ::stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
}

/// Returns the text by which messages call a file of an entry: "dst", or "'a.hdr', which belongs to dst".
std::string called(const std::string& role, const std::string& path, const std::string& file) {
    if (file == path || same_file(file, path)) return role;
    return "'" + file + "', which belongs to " + role;
}

} // namespace

std::shared_ptr<RunFiles> make_run_files() { return std::make_shared<FileRegister>(); }

FileRegister::~FileRegister() {
    for (auto file = m_shown.rbegin(); file != m_shown.rend(); ++file)
        (*file)->withdraw();
}

void FileRegister::check(const Entry& a, const Entry& b) {
    if (!a.written && !b.written) return;
    const Entry &out = a.written ? a : b, &other = a.written ? b : a;
    for (const std::string& x : out.files)
        for (const std::string& y : other.files) {
            if (!other.written && falls_into(x, y))
                throw UsageError(out.role + " '" + out.path + "' would overwrite files of " + other.role +
                                     " '" + other.path + "'",
                                 "Name another file: a run never replaces its inputs.");
            if (!same_file(x, y) || is_device(x)) continue;
            if (other.written) {
                if (x == out.path && y == other.path)
                    throw UsageError(out.role + " and " + other.role + " name the same file, '" + y + "'",
                                     "Give each output a different file.");
                throw UsageError(out.role + " '" + out.path + "' and " + other.role + " '" + other.path +
                                     "' would share the file '" + y + "'",
                                 "Give them names that differ before the extension.");
            }
            throw UsageError(out.role + " '" + out.path + "' would overwrite " +
                                 called(other.role, other.path, y) + (x == out.path ? "" : " ('" + x + "')"),
                             "Name another file: a run never replaces its inputs.");
        }
}

void FileRegister::reads(const std::string& role, const std::string& path,
                         const std::vector<std::string>& files) {
    Entry entry{role, path, files, false};
    if (std::find(entry.files.begin(), entry.files.end(), path) == entry.files.end())
        entry.files.push_back(path);
    // GDAL reads these files with a raster as soon as they exist.
    for (const char* suffix : {".aux.xml", ".ovr", ".msk"})
        entry.files.push_back(path + suffix);
    for (const std::string& file : entry.files)
        if (auto seen = look_at(file)) m_seen.push_back(std::move(*seen));
    m_entries.push_back(std::move(entry)); // added before the checks, because clashes() must find it
    for (size_t i = 0; i + 1 < m_entries.size(); ++i)
        check(m_entries.back(), m_entries[i]);
}

std::optional<FileRegister::Seen> FileRegister::look_at(const std::string& path) const {
    if (std::find(m_growing.begin(), m_growing.end(), path) != m_growing.end()) return std::nullopt;
    // GDAL recreates the index of a shapefile (.shx) if SHAPE_RESTORE_SHX is set, so a change of the index is
    // not an error.
    if (path.size() > 4 && EQUAL(path.c_str() + path.size() - 4, ".shx")) return std::nullopt;
    const auto state = FileState::of(path);
    return state && !state->folder ? std::optional(Seen{path, *state}) : std::nullopt;
}

/// Throws Error if a file that was read has changed. A file that no longer exists is not an error: it cannot
/// have been opened again after a change.
void FileRegister::check_unchanged() const {
    for (const Seen& seen : m_seen)
        if (const auto now = look_at(seen.path); now && !now->state.has_contents_of(seen.state))
            throw Error("'" + seen.path + "' was changed while this run read it",
                        "Run it again when no other program writes the file.");
}

void FileRegister::expect_growth(const std::vector<std::string>& files) {
    m_growing.insert(m_growing.end(), files.begin(), files.end());
}

std::vector<std::pair<std::string, std::string>> FileRegister::written() const {
    std::vector<std::pair<std::string, std::string>> list;
    for (const Entry& entry : m_entries)
        if (entry.written) list.emplace_back(entry.role, entry.path);
    return list;
}

bool FileRegister::clashes(const std::string& role, const std::string& path) const {
    return std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& entry) {
        return entry.role != role &&
               std::any_of(entry.files.begin(), entry.files.end(),
                           [&](const std::string& file) { return same_file(file, path); });
    });
}

void FileRegister::writes(const std::string& role, const std::string& path,
                          const std::vector<std::string>& sides) {
    if (const std::string place = part_of_a_file(path); !place.empty())
        throw UsageError(role + " '" + path + "' is inside another file (" + place +
                             "), where results cannot be written",
                         "Write a separate file, then pack it with zip, gzip or tar.");
    // The name of a folder; only Zarr outputs are folders.
    if (!path.empty() && path.back() == '/' && is_local(path) &&
        !EQUAL(CPLGetExtension(name_of(path).c_str()), "zarr"))
        throw UsageError(role + " '" + path + "' is the name of a folder",
                         "Name a file in it: " + path + "NAME.");
    // A name that is too long is detected here, before any computations.
    if (struct stat info{}; is_local(path) && ::lstat(path.c_str(), &info) != 0 && errno == ENAMETOOLONG)
        throw Error("cannot write '" + path + "' (" + role + "): " + std::strerror(ENAMETOOLONG),
                    "Use a shorter file name.");
    Entry entry{role, path, sides, true};
    entry.files.insert(entry.files.begin(), path);
    const auto known = std::find_if(m_entries.begin(), m_entries.end(), [&](const Entry& e) {
        return e.written && e.role == role && e.path == path;
    });
    if (known != m_entries.end()) m_entries.erase(known);
    m_entries.push_back(std::move(entry)); // added before the checks, because clashes() must find it
    for (size_t i = 0; i + 1 < m_entries.size(); ++i)
        check(m_entries.back(), m_entries[i]);
}

std::vector<std::string> FileRegister::read() const {
    std::vector<std::string> all;
    for (const Entry& entry : m_entries)
        if (!entry.written) all.insert(all.end(), entry.files.begin(), entry.files.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

void FileRegister::add(std::unique_ptr<AtomicFile> file) { m_pending.push_back(std::move(file)); }

void FileRegister::add_stream(const std::string& path, std::string text) {
    m_streams.emplace_back(path, std::move(text));
}

std::string FileRegister::pending_path(const std::string& destination) const {
    for (const auto& file : m_pending)
        if (same_file(file->destination(), destination)) return file->path();
    return destination;
}

bool FileRegister::is_read(const std::string& file) const {
    return std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& entry) {
        return !entry.written && std::any_of(entry.files.begin(), entry.files.end(),
                                             [&](const std::string& read) { return same_file(file, read); });
    });
}

bool FileRegister::lies_on_read(const std::string& target) const {
    return std::any_of(m_entries.begin(), m_entries.end(), [&](const Entry& entry) {
        return !entry.written &&
               std::any_of(entry.files.begin(), entry.files.end(),
                           [&](const std::string& read) { return falls_into(target, read); });
    });
}

/// Checks the final names of outputs, some of which a driver has chosen, against all files that are read and
/// written.
void FileRegister::check_targets(const Pending& pending,
                                 const std::vector<const Addition*>& additions) const {
    std::vector<std::string> all;
    for (const auto& file : pending)
        for (const auto& [name, link] : file->names_beside_links()) {
            check_side_is_free(name, link);
            if (is_read(name) || lies_on_read(name))
                throw Error("'" + name + "', next to the link '" + link +
                                "', would lead to the new file, but this run reads it",
                            "Name another file: a run never replaces its inputs.");
        }
    for (const auto& file : pending)
        for (const std::string& target : file->targets()) {
            if (!same_file(target, file->destination())) check_side_is_free(target, file->destination());
            // A file to which the run appends may also be read: its new version contains everything that was
            // read from the old version.
            const bool added = std::any_of(additions.begin(), additions.end(), [&](const auto* addition) {
                return same_file(addition->path, target);
            });
            if (!added && (is_read(target) || lies_on_read(target)))
                throw Error("'" + target + "' would overwrite a file that this run reads",
                            "Name another file: a run never replaces its inputs.");
            for (const std::string& other : all)
                if (same_file(target, other))
                    throw Error("two outputs would share the file '" + target + "'",
                                "Give them names that differ before the extension.");
            all.push_back(target);
        }
}

void FileRegister::keep_what_is_read(AtomicFile& file) const {
    auto stale = file.stale();
    stale.erase(std::remove_if(stale.begin(), stale.end(), [&](const auto& old) { return is_read(old); }),
                stale.end());
    file.set_stale(std::move(stale));
}

void FileRegister::publish(const Pending& pending) {
    size_t published = 0;
    try {
        for (; published < pending.size(); ++published)
            pending[published]->publish();
    } catch (...) {
        while (published > 0)
            pending[--published]->withdraw();
        throw;
    }
}

AtomicFile& FileRegister::show(std::unique_ptr<AtomicFile> file) {
    Pending one;
    one.push_back(std::move(file));
    const FolderLocks locks(one, {}, nullptr, [this](const std::string& text) { note(text); });
    check_targets(one, {});
    keep_what_is_read(*one.front());
    publish(one);
    m_shown.push_back(std::move(one.front()));
    return *m_shown.back();
}

void FileRegister::commit(const CancelFlag* cancel, const Addition* addition) {
    // The outputs leave the register now, so that a later commit() does not see them even if this one fails.
    Pending pending = std::exchange(m_pending, {});
    const auto streams = std::exchange(m_streams, {});
    if (cancel && cancel->requested()) throw Cancelled();
    check_unchanged();
    const auto own = std::exchange(m_additions, {});
    std::vector<const Addition*> additions;
    for (const Addition& one : own)
        additions.push_back(&one);
    if (addition) additions.push_back(addition);
    const FolderLocks locks(pending, additions, cancel, [this](const std::string& text) { note(text); });
    for (const auto& [path, reason] : locks.unlocked())
        if (reason != 0)
            warn("'" + path + "' cannot be locked (" + std::strerror(reason) +
                 "): records that other runs append at the same time may be lost");
    for (const Addition* const one : additions) {
        one->make();
        for (auto& file : std::exchange(m_pending, {}))
            pending.push_back(std::move(file));
    }
    check_targets(pending, additions);
    for (const auto& file : pending)
        keep_what_is_read(*file);
    for (const auto& [path, text] : streams)
        write_stream(path, text, cancel);
    publish(pending);
    for (auto& file : std::exchange(m_shown, {}))
        pending.push_back(std::move(file));
    for (const auto& file : pending)
        file->conclude();
    for (const auto& file : pending) {
        for (const std::string& name : file->missing_beside_links())
            warn("'" + name +
                 "' was not replaced, since its folder is not writable: it does not belong to the new '" +
                 file->destination() + "', to which '" + file->links().front() + "' links");
        for (const std::string& other : foreign_side_files(file->destination(), file->targets()))
            warn("'" + other + "' does not belong to '" + file->destination() +
                 "', but GDAL reads both together: delete it, or choose another name");
    }
}

} // namespace hsi::raster
