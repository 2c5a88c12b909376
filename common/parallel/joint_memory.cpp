// SPDX-License-Identifier: MIT
#include "parallel/joint_memory.h"

#include "core/byte_pack.h"
#include "core/byte_size.h"
#include "core/error.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <ctime>
#include <random>
#include <thread>

namespace hsi::parallel {
namespace {

constexpr uint64_t page = 4096;
constexpr char name[] = "hsi_joint";

uint64_t round_up(uint64_t bytes) { return (bytes + page - 1) / page * page; }

/// What the root has made, for those that look for it.
struct Offer {
    pid_t process = 0; ///< 0: there is none
    int file = -1;
    uint64_t size = 0, sign = 0;
};

/// A file without a name in the memory of the system: no limit of a mounted file system applies to it, and it
/// stays behind nobody.
int make_file(uint64_t size) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < size) return -1; // else a signal
    const int file = memfd_create(name, MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0) return file;
    if (file >= 0) close(file);
    return -1;
}

void* map_file(int file, uint64_t size, bool at_once) {
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return nullptr;
#ifdef MADV_POPULATE_WRITE
    // One fault a page and process would take three times as long. Older systems refuse it.
    if (at_once) madvise(memory, size, MADV_POPULATE_WRITE);
#else
    (void)at_once;
#endif
    return memory;
}

/// The root's file. In another container its number may be that of another process.
void* map_offered(const Offer& offer, bool at_once) {
    const std::string path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.file);
    char link[64] = {};
    const std::string wanted = std::string("/memfd:") + name;
    if (readlink(path.c_str(), link, sizeof link - 1) < 0 || std::string(link).rfind(wanted, 0) != 0)
        return nullptr;
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    struct stat status {};
    const bool same = fstat(file, &status) == 0 && static_cast<uint64_t>(status.st_size) == offer.size;
    void* const memory = same ? map_file(file, offer.size, at_once) : nullptr;
    close(file);
    return memory;
}

} // namespace

/// On the first page; all zero at first.
struct JointMemory::Head {
    uint64_t sign;
    alignas(64) std::atomic<int64_t> next; ///< unit of the round
    alignas(64) std::atomic<int> arrived;  ///< processes, at its end
    alignas(64) std::atomic<uint32_t> round;
};

JointMemory::JointMemory(void* memory, uint64_t size, const CancelFlag* cancel)
    : m_head(static_cast<Head*>(memory)), m_size(size), m_used(page), m_cancel(cancel) {
    static_assert(sizeof(Head) <= page && std::atomic<int64_t>::is_always_lock_free);
}

JointMemory::~JointMemory() { munmap(m_head, m_size); }

std::shared_ptr<JointMemory> JointMemory::make(Ranks& ranks, const std::string& what, uint64_t bytes,
                                               bool at_once) {
    if (!ranks.several()) return nullptr;
    Offer offer;
    std::shared_ptr<JointMemory> made;
    int file = -1;
    const auto hold = [&](void* memory) {
        if (memory != nullptr) made.reset(new JointMemory(memory, offer.size, ranks.cancel()));
    };
    if (ranks.root()) {
        offer.size = page + round_up(bytes);
        file = make_file(offer.size);
        if (file >= 0) hold(map_file(file, offer.size, at_once));
        if (made) {
            offer.process = getpid();
            offer.file = file;
            offer.sign = std::random_device()();
            made->m_head->sign = offer.sign;
        }
    }
    ByteUnpacker(ranks.broadcast(what + ", memory", BytePacker().put(offer).take())).get(offer);
    if (!ranks.root() && offer.process != 0 && ranks.host(ranks.rank()) == ranks.host(0)) {
        hold(map_offered(offer, at_once));
        if (made && made->m_head->sign != offer.sign) made.reset();
    }
    const auto processes = static_cast<int>(ranks.sum(what + ", processes", made ? 1 : 0));
    if (file >= 0) close(file); // all who wanted it have it
    if (!made || processes < 2) return nullptr;
    made->m_processes = processes;
    return made;
}

void* JointMemory::allocate(size_t bytes) {
    const uint64_t size = round_up(bytes);
    if (size > m_size - m_used)
        throw Error("internal: " + format_byte_size(bytes) + " more than was planned for all ranks");
    void* const at = reinterpret_cast<char*>(m_head) + m_used;
    m_used += size;
    return at;
}

int64_t JointMemory::take() { return m_head->next.fetch_add(1, std::memory_order_relaxed); }

void JointMemory::meet() {
    using namespace std::chrono_literals;
    const uint32_t round = m_head->round.load(std::memory_order_acquire);
    auto* const word = reinterpret_cast<uint32_t*>(&m_head->round);
    if (m_head->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_processes) {
        m_head->arrived.store(0, std::memory_order_relaxed);
        m_head->next.store(0, std::memory_order_relaxed);
        m_head->round.store(round + 1, std::memory_order_release);
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        return;
    }
    // The others are about to come: their last units are no longer than the one that was done here.
    const auto changed = [&] { return m_head->round.load(std::memory_order_acquire) != round; };
    for (const auto begin = std::chrono::steady_clock::now();
         !changed() && std::chrono::steady_clock::now() - begin < 20us;)
        std::this_thread::yield();
    while (!changed()) {
        if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
        const timespec most{0, 5'000'000}; // between two looks at the flag
        syscall(SYS_futex, word, FUTEX_WAIT, round, &most, nullptr, 0);
    }
}

} // namespace hsi::parallel
