// SPDX-License-Identifier: MIT
#include "core/text_file.h"

#include "core/byte_size.h"
#include "core/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace hsi {
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
