// SPDX-License-Identifier: MIT
#include "raster/output/grown_lines.h"

#include "core/counted.h"
#include "core/error.h"

#include <libdeflate.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace hsi::raster {

namespace {

const char* const advice = "Run it again while no other program writes the output.";

} // namespace

std::vector<uint32_t> GrownLines::sums_of(const std::string& path, int64_t first, int64_t last) const {
    const auto close = [](std::FILE* open) { std::fclose(open); };
    const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rbe"), close);
    if (!file || ::fseeko(file.get(), first * m_line_bytes, SEEK_SET) != 0)
        throw Error("cannot read '" + path + "': " + std::strerror(errno));
    constexpr int64_t piece_bytes = int64_t{1} << 20;
    const int64_t at_once = std::max<int64_t>(1, piece_bytes / m_line_bytes);
    std::vector<char> bytes(static_cast<size_t>(at_once * m_line_bytes));
    std::vector<uint32_t> sums;
    for (int64_t line = first; line < last; line += at_once) {
        const auto wanted = static_cast<size_t>(std::min(at_once, last - line)),
                   size = static_cast<size_t>(m_line_bytes);
        const size_t got = std::fread(bytes.data(), size, wanted, file.get());
        for (size_t k = 0; k < got; ++k)
            sums.push_back(libdeflate_crc32(0, bytes.data() + k * size, size));
        if (got < wanted) break;
    }
    return sums;
}

void GrownLines::check(const std::string& path, int64_t first, int64_t last) const {
    const std::vector<uint32_t> now = sums_of(path, first, last);
    for (int64_t line = first; line < last; ++line) {
        const auto k = static_cast<size_t>(line - first);
        if (k >= now.size())
            throw Error("'" + path + "' has been truncated while the run wrote it: line " +
                            std::to_string(line) + " (counted from 0) is missing",
                        advice);
        if (now[k] != m_sums[static_cast<size_t>(line)])
            throw Error("another process changed '" + path + "' during this run: line " +
                            std::to_string(line) + " (counted from 0) is different",
                        advice);
    }
}

void GrownLines::add(const std::string& path, int64_t lines) {
    const auto before = static_cast<int64_t>(m_sums.size());
    if (before > 0) {
        check(path, 0, 1);
        check(path, before - 1, before);
    }
    for (const uint32_t sum : sums_of(path, before, lines))
        m_sums.push_back(sum);
    if (static_cast<int64_t>(m_sums.size()) < lines)
        throw Error("'" + path + "' was truncated during this run", advice);
}

void GrownLines::check(const std::string& path) const {
    const auto lines = static_cast<int64_t>(m_sums.size());
    check(path, 0, lines);
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && info.st_size > lines * m_line_bytes)
        throw Error("another process appended " + counted(info.st_size - lines * m_line_bytes, "byte") +
                        " to '" + path + "' during this run",
                    advice);
}

} // namespace hsi::raster
