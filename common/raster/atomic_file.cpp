// SPDX-License-Identifier: MIT
#include "raster/atomic_file.h"

#include "core/error.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>

namespace hsi::raster {
namespace {

bool exists(const std::string& path) {
    VSIStatBufL info;
    return VSIStatExL(path.c_str(), &info, VSI_STAT_EXISTS_FLAG) == 0;
}

bool is_folder(const std::string& path) {
    VSIStatBufL info;
    return VSIStatL(path.c_str(), &info) == 0 && VSI_ISDIR(info.st_mode);
}

void remove_any(const std::string& path) {
    if (is_folder(path))
        VSIRmdirRecursive(path.c_str());
    else
        VSIUnlink(path.c_str());
}

std::string join(const std::string& folder, const std::string& name) {
    if (!folder.empty() && folder.back() == '/') return folder + name;
    return folder + "/" + name;
}

/// No other process, and no other file of this one, has this name.
std::string unique_tag() {
    static std::atomic<unsigned> count{0};
    static const unsigned seed = std::random_device{}();
    return CPLSPrintf("hsi-%d-%08x%u", static_cast<int>(getpid()), seed, count.fetch_add(1));
}

/// Replaces `from` by `to` in a small text file; leaves binary and large ones alone.
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

} // namespace

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

bool same_file(const std::string& a, const std::string& b) {
    struct stat of_a {
    }, of_b{};
    if (is_local(a) && is_local(b) && ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0)
        return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
    return a == b;
}

bool is_local(const std::string& path) { return path.rfind("/vsi", 0) != 0; }

AtomicFile::AtomicFile(std::string destination) : m_destination(std::move(destination)) {
    m_folder = folder_of(m_destination);
    const size_t slash = m_destination.rfind('/');
    const std::string name = slash == std::string::npos ? m_destination : m_destination.substr(slash + 1);
    const size_t dot = name.rfind('.');
    const bool has_extension = dot != std::string::npos && dot > 0;
    m_final_stem = has_extension ? name.substr(0, dot) : name;
    m_in_place = !is_local(m_destination) && m_destination.rfind("/vsimem/", 0) != 0;
    if (m_in_place) {
        m_stem = m_final_stem;
        m_path = m_destination;
    } else {
        // File names end at 255 bytes.
        m_stem = std::string(".").append(m_final_stem, 0, 150).append(".").append(unique_tag());
        m_path = join(m_folder, m_stem + (has_extension ? name.substr(dot) : std::string()));
    }
}

AtomicFile::~AtomicFile() {
    if (m_done) return;
    for (const std::string& path : made())
        remove_any(path);
}

std::string AtomicFile::scratch_path(const std::string& extension) const {
    if (!m_in_place) return join(m_folder, m_stem + ".stage." + extension);
    return std::string(CPLGenerateTempFilename(unique_tag().c_str())) + "." + extension;
}

std::vector<std::string> AtomicFile::made() const {
    if (m_in_place) return {m_destination};
    std::vector<std::string> out;
    const CPLStringList names(VSIReadDir(m_folder.c_str()));
    for (int i = 0; i < names.size(); ++i) {
        const std::string name = names[i];
        const bool backup = name.size() > 4 && name.compare(name.size() - 4, 4, ".old") == 0;
        if (name.compare(0, m_stem.size(), m_stem) == 0 && !backup) out.push_back(join(m_folder, name));
    }
    return out;
}

void AtomicFile::commit(const std::vector<std::string>& stale) {
    if (m_in_place) {
        m_done = true;
        return;
    }
    struct Move {
        std::string from, to, backup;
        bool done = false;
    };
    std::vector<Move> moves;
    for (const std::string& path : made()) {
        rename_inside(path, m_stem, m_final_stem);
        const std::string name = path.substr(path.rfind('/') + 1);
        moves.push_back({path, join(m_folder, m_final_stem + name.substr(m_stem.size())), {}});
    }
    // Side files first: who sees the new destination then sees all of it.
    std::stable_partition(moves.begin(), moves.end(), [&](const Move& move) { return move.from != m_path; });
    try {
        for (Move& move : moves) {
            const bool replaces = exists(move.to);
            if (replaces && is_folder(move.to)) {
                // A folder does not give way to a rename.
                move.backup = move.from + ".old";
                if (VSIRename(move.to.c_str(), move.backup.c_str()) != 0) move.backup.clear();
            } else if (replaces && is_local(move.to)) {
                // A second name keeps the old file while the first one passes to the new file in one step.
                move.backup = move.from + ".old";
                if (::link(move.to.c_str(), move.backup.c_str()) != 0) move.backup.clear();
            } else if (replaces) {
                VSIUnlink(move.to.c_str());
            }
            if (VSIRename(move.from.c_str(), move.to.c_str()) != 0)
                throw Error("cannot rename '" + move.from + "' to '" + move.to +
                            "': " + std::strerror(errno));
            move.done = true;
        }
    } catch (...) {
        for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
            if (!move->backup.empty()) {
                if (is_folder(move->to)) VSIRmdirRecursive(move->to.c_str());
                VSIRename(move->backup.c_str(), move->to.c_str());
            } else if (move->done) {
                remove_any(move->to);
            }
        }
        throw;
    }
    m_done = true;
    for (const Move& move : moves)
        if (!move.backup.empty()) remove_any(move.backup);
    for (const std::string& old : stale)
        // By identity: the same file may be spelled x.hdr here and ./x.hdr there.
        if (exists(old) && std::none_of(moves.begin(), moves.end(),
                                        [&](const Move& move) { return same_file(move.to, old); }))
            VSIUnlink(old.c_str());
}

} // namespace hsi::raster
