// SPDX-License-Identifier: MIT
#include "core/text_file.h"

#include "core/byte_size.h"
#include "core/error.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace hsi {
namespace {

[[noreturn]] void refuse_size(const std::string& path, const std::string& size, uint64_t limit) {
    throw Error("'" + path + "' has " + size + "; such a file is read up to " + format_byte_size(limit),
                "Look whether this is the file that was meant.");
}

} // namespace

std::string read_whole(const std::string& path, uint64_t limit, FileHolds holds, uint64_t size,
                       const std::function<size_t(char* buffer, size_t bytes)>& read) {
    if (size > limit) refuse_size(path, format_byte_size(size), limit);
    std::string text;
    text.reserve(static_cast<size_t>(size));
    std::vector<char> block(size_t{1} << 16);
    while (const size_t n = read(block.data(), block.size())) {
        if (holds == FileHolds::text && std::memchr(block.data(), 0, n) != nullptr)
            throw Error("'" + path + "' is no text: it holds zero bytes",
                        "Look whether this is the file that was meant.");
        if (text.size() + n > limit) refuse_size(path, "more than " + format_byte_size(limit), limit);
        text.append(block.data(), n);
    }
    return text;
}

std::string read_text_file(const std::string& path, uint64_t limit) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (!file) throw Error("cannot open '" + path + "': " + std::strerror(errno));
    struct stat status {};
    const bool plain = fstat(fileno(file.get()), &status) == 0 && S_ISREG(status.st_mode);
    return read_whole(path, limit, FileHolds::text, plain ? static_cast<uint64_t>(status.st_size) : 0,
                      [&](char* buffer, size_t bytes) {
                          const size_t n = std::fread(buffer, 1, bytes, file.get());
                          if (n == 0 && std::ferror(file.get()) != 0)
                              throw Error("cannot read '" + path + "': " + std::strerror(errno));
                          return n;
                      });
}

} // namespace hsi
