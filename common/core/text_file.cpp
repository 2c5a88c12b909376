// SPDX-License-Identifier: MIT
#include "core/text_file.h"

#include "core/byte_size.h"
#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace hsi {
namespace {

std::string temporary_name(const std::string& path) {
    return path + ".tmp-" + std::to_string(static_cast<long>(getpid()));
}

Error cannot_write(const std::string& path, int reason) {
    return Error("cannot write '" + path + "': " + std::strerror(reason),
                 "Name a file in a folder that exists and that you may write to.");
}

} // namespace

void check_text_file(const std::string& path, bool overwrite) {
    struct stat facts {};
    if (stat(path.c_str(), &facts) == 0) {
        if (S_ISDIR(facts.st_mode)) throw cannot_write(path, EISDIR);
        if (!overwrite)
            throw Error("'" + path + "' exists already",
                        "Use -overwrite to replace it, or name another file.");
    }
    const std::string probe = temporary_name(path);
    const int file = open(probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) throw cannot_write(path, errno);
    close(file);
    unlink(probe.c_str());
}

void write_text_file(const std::string& path, const std::string& text) {
    const std::string temporary = temporary_name(path);
    std::FILE* file = std::fopen(temporary.c_str(), "we");
    if (!file) throw cannot_write(path, errno);
    bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    int reason = errno;
    if (std::fclose(file) != 0) {
        if (good) reason = errno;
        good = false;
    }
    if (good && std::rename(temporary.c_str(), path.c_str()) != 0) {
        reason = errno;
        good = false;
    }
    if (good) return;
    unlink(temporary.c_str());
    throw cannot_write(path, reason);
}

std::string read_text_file(const std::string& path, uint64_t limit) {
    std::FILE* file = std::fopen(path.c_str(), "re");
    if (!file) throw Error("cannot open '" + path + "': " + std::strerror(errno));
    std::string text;
    char block[65536];
    size_t n = 0;
    while ((n = std::fread(block, 1, sizeof block, file)) > 0 && text.size() <= limit)
        text.append(block, n);
    const bool failed = std::ferror(file) != 0;
    const int reason = errno;
    std::fclose(file);
    if (failed) throw Error("cannot read '" + path + "': " + std::strerror(reason));
    if (text.size() > limit) throw Error("'" + path + "' is larger than " + format_byte_size(limit));
    return text;
}

} // namespace hsi
