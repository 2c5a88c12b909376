// SPDX-License-Identifier: MIT
#include "core/process_limits.h"

#include "core/fork.h"
#include "core/system.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

namespace hsi {
namespace {

/// Returns the first text line of a small file; empty if it cannot be read.
std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// Returns a number above 0. Returns nullopt for all other texts, which mean no limit: "max", -1, 0, an empty
/// text or garbage.
std::optional<uint64_t> natural(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
    return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);)
        parts.push_back(part);
    return parts;
}

bool contains(const std::string& list, const std::string& word) {
    const auto words = split(list, ',');
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// Replaces \040, which /proc/self/mountinfo writes for a space in a name.
std::string unescaped(const std::string& text) {
    const auto octal = [](char c) { return c >= '0' && c <= '7'; };
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
            octal(text[i + 3])) {
            out +=
                static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

/// A mounted hierarchy of control groups. Its group `top` is mounted at `folder`.
struct Mount {
    bool second = false;     ///< true: version 2 of control groups; false: version 1
    std::string controllers; ///< Controllers in version 1, such as "cpu,cpuacct"; empty in version 2.
    std::string top, folder;
};

std::vector<Mount> mounts(const std::string& root) {
    std::vector<Mount> all;
    if (root.empty() && !system::has_control_groups()) return all;
    std::ifstream file(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        // The format of a line is: 36 35 98:0 /top /folder options [optional fields] - type source
        // super-options
        const auto words = split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 6 || words.end() - dash < 4) continue;
        if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
        all.push_back({dash[1] == "cgroup2", dash[3], unescaped(words[3]), unescaped(words[4])});
    }
    if (all.empty()) { // the usual mount points of distributions
        all.push_back({true, "", "/", "/sys/fs/cgroup"});
        all.push_back({true, "", "/", "/sys/fs/cgroup/unified"});
        for (const char* controllers : {"memory", "cpu,cpuacct", "cpu"})
            all.push_back({false, controllers, "/", std::string("/sys/fs/cgroup/") + controllers});
    }
    return all;
}

struct Folder {
    bool second;
    std::string path;
};

/// Returns the folders of the process's groups that have the controller, each followed by its parents.
std::vector<Folder> folders(const std::string& root, const std::string& controller) {
    struct Group {
        bool second;
        std::string controllers, path;
    };
    std::vector<Group> groups;
    std::ifstream file(root + "/proc/self/cgroup");
    // A line is 4:cpu,cpuacct:/job in version 1, and 0::/job in version 2.
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        groups.push_back({controllers.empty(), controllers, line.substr(second + 1)});
    }
    std::vector<Folder> all;
    for (const Mount& mount : mounts(root)) {
        if (!mount.second && !contains(mount.controllers, controller)) continue;
        // A container may get its group's path as the host sees it, although only a part of the tree is
        // mounted.
        std::string path;
        for (const Group& group : groups) {
            if (group.second != mount.second) continue;
            if (!group.second && !contains(group.controllers, controller)) continue;
            path = group.path;
        }
        const std::string top = mount.top == "/" ? "" : mount.top;
        if (path.compare(0, top.size(), top) == 0 && (path.size() == top.size() || path[top.size()] == '/'))
            path.erase(0, top.size());
        // For a group outside of the mounted tree ("/../other"), only the top can be read.
        if (path.empty() || path[0] != '/' || (path + "/").find("/../") != std::string::npos) path = "/";
        while (path.size() > 1) {
            all.push_back({mount.second, root + mount.folder + path});
            path.erase(path.rfind('/'));
        }
        all.push_back({mount.second, root + mount.folder});
    }
    return all;
}

template <class T>
void lower(std::optional<T>& limit, const std::optional<T>& other) {
    if (other && (!limit || *other < *limit)) limit = other;
}

std::optional<double> share(const std::optional<uint64_t>& quota, const std::optional<uint64_t>& period) {
    if (!quota || !period) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::atomic<int> g_memory_sharers{1}, g_processor_sharers{1}; ///< see share_machine()

std::optional<uint64_t> from_environment(const char* name) {
    const char* const text = std::getenv(name);
    return text != nullptr ? natural(text) : std::nullopt;
}

/// Returns the memory that Slurm has given the job on this node, in bytes. Slurm's variables are in
/// megabytes; 0 means all memory.
std::optional<uint64_t> slurm_memory() {
    constexpr uint64_t megabyte = uint64_t{1} << 20;
    if (const auto node = from_environment("SLURM_MEM_PER_NODE")) return *node * megabyte;
    const auto each = from_environment("SLURM_MEM_PER_CPU"), cpus = from_environment("SLURM_CPUS_ON_NODE");
    if (each && cpus) return *each * *cpus * megabyte;
    return std::nullopt;
}

} // namespace

std::optional<uint64_t> cgroup_memory_limit(const std::string& root) {
    std::optional<uint64_t> limit;
    for (const auto& [second, folder] : folders(root, "memory")) {
        if (second) {
            lower(limit, natural(first_line(folder + "/memory.max")));
            lower(limit, natural(first_line(folder + "/memory.high")));
        } else {
            lower(limit, natural(first_line(folder + "/memory.limit_in_bytes")));
        }
    }
    return limit;
}

std::optional<double> cgroup_processor_limit(const std::string& root) {
    std::optional<double> limit;
    for (const auto& [second, folder] : folders(root, "cpu")) {
        if (second) {
            const auto words = split(first_line(folder + "/cpu.max"), ' ');
            if (words.size() == 2) lower(limit, share(natural(words[0]), natural(words[1])));
        } else {
            lower(limit, share(natural(first_line(folder + "/cpu.cfs_quota_us")),
                               natural(first_line(folder + "/cpu.cfs_period_us"))));
        }
    }
    return limit;
}

bool has_addresses_for(uint64_t bytes) {
    const auto limited = [](auto resource) {
        rlimit limit{};
        return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    };
    if (!limited(RLIMIT_AS) && !limited(RLIMIT_DATA)) return true;
    if (bytes == 0) return true;
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    munmap(at, bytes);
    return true;
}

void share_machine(int memory, int processors) {
    g_memory_sharers = std::max(1, memory);
    g_processor_sharers = std::max(1, processors);
}

namespace {

/// Calls `read` at most once a second, because it reads system files and a library may be called often.
template <class T>
class Recent {
  public:
    explicit Recent(T (*read)()) : m_read(read) {}
    T get() {
        const std::lock_guard lock(m_mutex);
        const auto now = std::chrono::steady_clock::now();
        if (!m_value || now - m_when > std::chrono::seconds(1)) {
            m_value = m_read();
            m_when = now;
        }
        return *m_value;
    }

  private:
    T (*const m_read)();
    ForkMutex m_mutex;
    std::optional<T> m_value;
    std::chrono::steady_clock::time_point m_when;
};

std::optional<uint64_t> recent_memory_limit() {
    static Recent<std::optional<uint64_t>> recent([] { return cgroup_memory_limit(); });
    return recent.get();
}
std::optional<double> recent_processor_limit() {
    static Recent<std::optional<double>> recent([] { return cgroup_processor_limit(); });
    return recent.get();
}

} // namespace

uint64_t usable_ram() {
    uint64_t ram = system::physical_memory();
    ram = std::min(ram, recent_memory_limit().value_or(ram));
    ram = std::min(ram, slurm_memory().value_or(ram));
    return ram / static_cast<uint64_t>(g_memory_sharers.load());
}

int usable_processors() {
    int count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const std::string set = system::processor_set();
    if (const auto allowed = std::count(set.begin(), set.end(), '1'); allowed > 0)
        count = static_cast<int>(allowed);
    count = std::max(1, count / g_processor_sharers.load());
    // A control group contains all processes of the job on this machine.
    if (const auto limit = recent_processor_limit()) {
        const double part = *limit / g_memory_sharers.load();
        if (part < count) count = std::max(1, static_cast<int>(std::ceil(part)));
    }
    if (const auto task = from_environment("SLURM_CPUS_PER_TASK"))
        count = static_cast<int>(std::min<uint64_t>(*task, static_cast<uint64_t>(count)));
    return count;
}

} // namespace hsi
