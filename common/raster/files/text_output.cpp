// SPDX-License-Identifier: MIT
#include "raster/text_output.h"

#include "core/error.h"
#include "core/file_path.h"
#include "parallel/group.h"
#include "raster/files/already_exists.h"
#include "raster/files/file_register.h"
#include "raster/regular_file.h"

#include <cpl_vsi.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hsi::raster {
namespace {

Error cannot_write(const TextOutput& output, int reason) {
    return Error("cannot write '" + output.path + "' (" + output.role + "): " + std::strerror(reason),
                 reason == ENOSPC || reason == EDQUOT ? "Free disk space there, or name a file elsewhere."
                                                      : "Name a file in an existing, writable folder.");
}

/// Returns true for a path that must be written directly: a pipe, a device, or a path such as /dev/stdout,
/// which may lead to a regular file that other programs also write. /dev/shm is an ordinary folder.
bool is_stream(const std::string& path) {
    if (!is_local(path)) return false;
    for (const char* streams : {"/dev/std", "/dev/fd/", "/proc/"})
        if (path.rfind(streams, 0) == 0) return true;
    return kind_of_path(path) == PathKind::pipe;
}

void write_virtual_file(const TextOutput& output, const std::string& path, const std::string& text) {
    VSILFILE* const file = VSIFOpenL(path.c_str(), "wb");
    if (file == nullptr) throw cannot_write(output, errno);
    const bool written = VSIFWriteL(text.data(), 1, text.size(), file) == text.size();
    const int reason = errno;
    if (VSIFCloseL(file) != 0 || !written) throw cannot_write(output, reason);
}

void write_local_file(const TextOutput& output, const std::string& path, const std::string& text) {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) throw cannot_write(output, errno);
    int reason = 0;
    for (size_t done = 0; done < text.size() && reason == 0;) {
        const ssize_t n = ::write(file, text.data() + done, text.size() - done);
        if (n >= 0)
            done += static_cast<size_t>(n);
        else if (errno != EINTR)
            reason = errno;
    }
    while (reason == 0 && ::fsync(file) != 0)
        if (errno == EINVAL || errno == ENOTSUP)
            break; // the file system does not support fsync; the text itself is written
        else if (errno != EINTR)
            reason = errno;
    if (::close(file) != 0 && errno != EINTR && reason == 0) reason = errno;
    if (reason != 0) throw cannot_write(output, reason);
}

} // namespace

void check_text_output(const TextOutput& output) {
    if (output.path.empty()) return;
    if (output.run) output.run->writes(output.role, output.path, {});
    if (!parallel::group().root()) return; // only the root rank writes the file
    if (!is_local(output.path)) {
        if (!output.overwrite && is_there(output.path)) throw already_exists(output.path);
        return;
    }
    const std::string path = follow_links(output.path);
    struct stat info {};
    if (is_stream(output.path)) {
        if (::access(output.path.c_str(), W_OK) != 0) throw cannot_write(output, errno);
        return;
    }
    if (::stat(path.c_str(), &info) == 0) {
        if (S_ISDIR(info.st_mode)) throw cannot_write(output, EISDIR);
        if (!output.overwrite) throw already_exists(output.path);
    }
    const std::string folder = folder_of(path);
    if (::stat(folder.c_str(), &info) != 0 || ::access(folder.c_str(), W_OK | X_OK) != 0)
        throw cannot_write(output, errno);
    const AtomicFile probe(path); // shows that files can be created there; the destructor removes them
}

void write_file(const TextOutput& output, const std::string& at, const std::string& bytes) {
    if (is_local(at))
        write_local_file(output, at, bytes);
    else
        write_virtual_file(output, at, bytes);
}

void write_text_output(const TextOutput& output, const std::string& text) {
    if (output.path.empty() || !parallel::group().root()) return;
    if (is_stream(output.path)) {
        FileRegister alone;
        FileRegister& files = output.run ? register_of(*output.run) : alone;
        files.add_stream(output.path, text);
        if (!output.run) alone.commit(nullptr);
        return;
    }
    auto file = std::make_unique<AtomicFile>(output.path, output.overwrite);
    write_file(output, file->path(), text);
    struct stat old {}; // The new file gets the permissions of the old file.
    if (is_local(output.path) && ::stat(output.path.c_str(), &old) == 0 && S_ISREG(old.st_mode))
        ::chmod(file->path().c_str(), old.st_mode & 0777);
    if (output.run)
        register_of(*output.run).add(std::move(file));
    else
        file->commit();
}

} // namespace hsi::raster
