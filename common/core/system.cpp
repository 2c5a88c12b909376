// SPDX-License-Identifier: MIT
#include "core/system.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <linux/mman.h>
#include <sched.h>
#include <sys/syscall.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#include <stdio_ext.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace hsi::system {
namespace {

#ifdef __linux__
constexpr bool is_linux = true;
#else
constexpr bool is_linux = false;
#endif

/// Opens a file in `folder` and removes its name at once.
int unlinked_file(const std::string& folder) noexcept {
    try {
        std::string name = folder + "/.gdal_hsi_XXXXXX";
        const int file = ::mkstemp(name.data());
        if (file < 0) return -1;
        ::unlink(name.c_str());
        ::fcntl(file, F_SETFD, FD_CLOEXEC);
        return file;
    } catch (...) { // no memory for the name
        errno = ENOMEM;
        return -1;
    }
}

/// Repeats a call that a signal may have interrupted.
template <class Call>
auto again(const Call& call) {
    auto result = call();
    while (result < 0 && errno == EINTR)
        result = call();
    return result;
}

#ifdef __linux__
Renamed renamed(const char* from, const char* to, unsigned flags) noexcept {
    if (again([&] { return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, flags); }) == 0) return Renamed::done;
    if (errno == EEXIST || errno == ENOTEMPTY) return Renamed::taken;
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return Renamed::unsupported;
    return Renamed::failed;
}
#endif

/// Returns the file of this code, by the name under which it was loaded.
std::string own_file() {
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&own_file), &here) == 0 || here.dli_fname == nullptr) return {};
    const std::string named = here.dli_fname;
    std::error_code ec;
    if (named.find('/') != std::string::npos) return std::filesystem::canonical(named, ec).string();
    const char* const path = std::getenv("PATH"); // the shell has found this program in PATH
    for (std::string rest = path != nullptr ? path : ""; !rest.empty();) {
        const size_t colon = std::min(rest.find(':'), rest.size());
        const auto file = std::filesystem::path(rest.substr(0, colon)) / named;
        if (::access(file.c_str(), X_OK) == 0) return std::filesystem::canonical(file, ec).string();
        rest.erase(0, colon + 1);
    }
    return {};
}

} // namespace

bool portable() noexcept {
    static const bool answer = [] {
        const char* const wish = std::getenv("HSI_PORTABLE");
        return !is_linux || (wish != nullptr && std::strcmp(wish, "1") == 0);
    }();
    return answer;
}

// Memory

uint64_t page_size() noexcept {
    static const uint64_t answer = [] {
        const auto own = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
        const char* const wish = std::getenv("HSI_PAGE_SIZE");
        const uint64_t wanted = wish != nullptr ? std::strtoull(wish, nullptr, 10) : 0;
        return wanted >= own && wanted <= (uint64_t{1} << 20) && wanted % own == 0 ? wanted : own;
    }();
    return answer;
}

uint64_t physical_memory() noexcept {
    return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t peak_resident() {
    if (!portable()) {
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);)
            if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    constexpr uint64_t unit = is_linux ? 1024 : 1;
    return static_cast<uint64_t>(usage.ru_maxrss) * unit;
}

bool in_memory([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
    if (!portable()) {
        const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
        std::vector<unsigned char> held((bytes + page - 1) / page);
        return ::mincore(at, bytes, held.data()) == 0 &&
               std::all_of(held.begin(), held.end(), [](unsigned char p) { return (p & 1) != 0; });
    }
#endif
    return false;
}

void want_huge_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
    if (!portable()) ::madvise(at, bytes, MADV_HUGEPAGE);
#endif
}

void make_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
    if (portable()) return;
    static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto before = static_cast<size_t>(reinterpret_cast<uintptr_t>(at) % page);
    ::madvise(static_cast<char*>(at) - before, bytes + before, MADV_POPULATE_WRITE);
#endif
}

void join_pages([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) noexcept {
#ifdef MADV_COLLAPSE
    if (!portable()) ::madvise(at, bytes, MADV_COLLAPSE);
#endif
}

void set_heap([[maybe_unused]] int own, [[maybe_unused]] int trim) noexcept {
#ifdef __GLIBC__
    if (portable()) return;
    ::mallopt(M_MMAP_THRESHOLD, own);
    ::mallopt(M_TRIM_THRESHOLD, trim);
#endif
}

void share_heap() noexcept {
#ifdef __GLIBC__
    if (!portable()) ::mallopt(M_ARENA_MAX, 1);
#endif
}

// Files

int file_in_memory([[maybe_unused]] const char* name, uint64_t bytes) noexcept {
    int file = -1;
#ifdef __linux__
    if (!portable())
        file = ::memfd_create(name, MFD_CLOEXEC);
    else
#endif
    {
        const char* const folder = std::getenv("TMPDIR");
        file = unlinked_file(folder != nullptr && *folder != 0 ? folder : "/tmp");
    }
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
    const int reason = errno;
    ::close(file);
    errno = reason;
    return -1;
}

int file_in_memory_of([[maybe_unused]] int process, [[maybe_unused]] int file,
                      [[maybe_unused]] const char* name) noexcept {
#ifdef __linux__
    if (portable()) return -1;
    std::array<char, 64> path{}, link{}, wanted{};
    std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", process, file);
    std::snprintf(wanted.data(), wanted.size(), "/memfd:%s", name);
    if (::readlink(path.data(), link.data(), link.size() - 1) < 0 ||
        std::strncmp(link.data(), wanted.data(), std::strlen(wanted.data())) != 0)
        return -1;
    return ::open(path.data(), O_RDWR | O_CLOEXEC);
#else
    return -1;
#endif
}

int nameless_file(const std::string& folder) noexcept {
#ifdef O_TMPFILE
    if (!portable()) // some file systems do not support O_TMPFILE
        if (const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); file >= 0)
            return file;
#endif
    return unlinked_file(folder);
}

int claim([[maybe_unused]] int file, [[maybe_unused]] int64_t bytes) noexcept {
#ifdef __linux__
    if (!portable()) {
        if (again([&] { return ::fallocate(file, 0, 0, bytes); }) == 0) return 0;
        return errno == ENOSYS ? EOPNOTSUPP : errno;
    }
#endif
    return EOPNOTSUPP;
}

void give_back([[maybe_unused]] int file, [[maybe_unused]] uint64_t begin,
               [[maybe_unused]] uint64_t end) noexcept {
#ifdef __linux__
    if (!portable())
        (void)::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                          static_cast<off_t>(end - begin));
#endif
}

void read_ahead([[maybe_unused]] int file, [[maybe_unused]] int64_t begin,
                [[maybe_unused]] int64_t end) noexcept {
#ifdef POSIX_FADV_WILLNEED
    if (!portable()) (void)::posix_fadvise(file, begin, end - begin, POSIX_FADV_WILLNEED);
#endif
}

Renamed rename_to_free([[maybe_unused]] const char* from, [[maybe_unused]] const char* to) noexcept {
#ifdef __linux__
    if (!portable()) return renamed(from, to, RENAME_NOREPLACE);
#endif
    return Renamed::unsupported;
}

Renamed exchange([[maybe_unused]] const char* a, [[maybe_unused]] const char* b) noexcept {
#ifdef __linux__
    if (!portable()) return renamed(a, b, RENAME_EXCHANGE);
#endif
    return Renamed::unsupported;
}

// Processes, threads, processors

std::string executable() {
    if (portable()) {
        const std::string file = own_file();
        return file.find(".so") == std::string::npos ? file : std::string();
    }
    std::error_code ec;
    const auto file = std::filesystem::read_symlink("/proc/self/exe", ec);
    return ec ? std::string() : file.string();
}

std::vector<std::string> odd_entries(const std::string& folder) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), ::closedir);
    while (const dirent* const entry = all ? ::readdir(all.get()) : nullptr) {
#ifdef __linux__
        if (!portable() && (entry->d_type == DT_REG || entry->d_type == DT_DIR)) continue;
        const bool known = !portable() && entry->d_type != DT_UNKNOWN;
#else
        const bool known = false;
#endif
        struct stat facts {};
        if (!known && (::fstatat(::dirfd(all.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
                       S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)))
            continue;
        names.emplace_back(entry->d_name);
    }
    return names;
}

std::string path_of(int file) {
    if (portable()) return {};
    std::error_code ec;
    const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), ec);
    return ec ? std::string() : name.string();
}

void restart(char** argv) noexcept {
    if (!portable()) {
        ::execv("/proc/self/exe", argv);
        return;
    }
    try {
        ::execv(executable().c_str(), argv);
    } catch (...) { // treated as a failure
    }
}

std::optional<int> threads() {
#ifdef __linux__
    if (portable()) return std::nullopt;
    DIR* const all = ::opendir("/proc/self/task");
    if (all == nullptr) return std::nullopt;
    int count = 0;
    while (const dirent* const entry = ::readdir(all))
        count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(all);
    return count;
#else
    return std::nullopt;
#endif
}

bool redirect_own_errors([[maybe_unused]] int file) noexcept {
#if defined(__linux__) && defined(SYS_close_range)
    // If stderr has a buffer, this thread may write the text of other threads.
    if (portable() || __fbufsize(stderr) > 1) return false;
    constexpr unsigned unshare_files = 1U << 1; // CLOSE_RANGE_UNSHARE
    // Containers may forbid unshare() and allow close_range(), which closes no file with this range.
    if (::unshare(CLONE_FILES) != 0 && ::syscall(SYS_close_range, ~0U, ~0U, unshare_files) != 0) return false;
    if (::dup2(file, STDERR_FILENO) < 0) return false;
    // Closes the copies of all other files. A pipe that another thread closes meanwhile would otherwise
    // remain open.
    (void)::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
    return true;
#else
    return false;
#endif
}

std::string processor_set() {
    std::string text;
#ifdef __linux__
    if (portable()) return text;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return text;
    for (size_t i = 0; i < CPU_SETSIZE; ++i)
        text += CPU_ISSET(i, &set) ? '1' : '0';
    text.erase(text.find_last_of('1') + 1);
#endif
    return text;
}

bool has_control_groups() noexcept { return !portable(); }

void wait(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) noexcept {
#ifdef __linux__
    if (!portable()) {
        const timespec time{static_cast<time_t>(most.count() / 1000),
                            static_cast<long>(most.count() % 1000) * 1'000'000};
        ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT, value, &time, nullptr, 0);
        return;
    }
#endif
    constexpr std::chrono::milliseconds look{1};
    if (word.load(std::memory_order_acquire) == value) std::this_thread::sleep_for(std::min(most, look));
}

void wake([[maybe_unused]] std::atomic<uint32_t>& word) noexcept {
#ifdef __linux__
    if (!portable())
        ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
#endif
}

} // namespace hsi::system
