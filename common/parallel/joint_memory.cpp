// SPDX-License-Identifier: MIT
#include "parallel/joint_memory.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/system.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

namespace hsi::parallel {
namespace {

constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr char name[] = "hsi_joint";

uint64_t round_up(uint64_t bytes, uint64_t unit = system::page_size()) {
    return (bytes + unit - 1) / unit * unit;
}

/// The root's memory, as offered to the other ranks.
struct Offer {
    pid_t process = 0; ///< process number of the root; 0: no offer
    int file = -1;
    uint64_t size = 0, sign = 0;
};

/// Creates an unnamed file in memory: limits of mounted file systems do not apply to it, and it disappears
/// with the processes.
int make_file(uint64_t size) {
    rlimit limit{};
    // A file beyond this limit would end the process with a signal.
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < size) return -1;
    return system::file_in_memory(name, size);
}

/// Maps the file, aligned to a huge page if it contains huge pages.
void* map_file(int file, uint64_t size) {
    const uint64_t border =
        size >= huge_page ? std::max(huge_page, system::page_size()) : system::page_size();
    void* const room = mmap(nullptr, size + border, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return nullptr;
    const auto begin = reinterpret_cast<uintptr_t>(room);
    // The bytes of `border` before the aligned part. The rest of `border` follows the aligned part.
    const uint64_t before = round_up(begin, border) - begin;
    char* const at = static_cast<char*>(room) + before;
    void* const memory = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (memory == MAP_FAILED) {
        munmap(room, size + border);
        return nullptr;
    }
    if (before > 0) munmap(room, before);
    munmap(at + size, border - before);
    return memory;
}

/// Maps all pages into this process at once, because one fault per page would take three times as long. Older
/// systems refuse; pages are then mapped when they are touched.
void map_pages(char* memory, uint64_t size) { system::make_pages(memory, size); }

/// Provides the pages of a file in memory, as huge pages if the system supports them. The system makes a huge
/// page from one existing page and holes, so one page of each is touched first. Other systems provide pages
/// when they are touched.
void make_pages(char* memory, uint64_t size) {
    const uint64_t whole = size / huge_page * huge_page;
    for (uint64_t at = 0; at < whole; at += huge_page)
        reinterpret_cast<std::atomic<char>*>(memory + at)->fetch_or(0, std::memory_order_relaxed);
    if (whole > 0) system::join_pages(memory, whole);
    map_pages(memory, size);
}

/// Maps the root's file. In another container, the root's process number may belong to another process.
void* map_offered(const Offer& offer) {
    const int file = system::file_in_memory_of(offer.process, offer.file, name);
    if (file < 0) return nullptr;
    struct stat status {};
    const bool same = fstat(file, &status) == 0 && static_cast<uint64_t>(status.st_size) == offer.size;
    void* const memory = same ? map_file(file, offer.size) : nullptr;
    close(file);
    return memory;
}

} // namespace

/// The data on the first page; all zero at first.
struct JointMemory::Head {
    uint64_t sign;
    alignas(64) std::atomic<int64_t> next; ///< next unit of the round
    alignas(64) std::atomic<int> arrived;  ///< processes that have reached the end of the round
    alignas(64) std::atomic<uint32_t> round;
};

JointMemory::JointMemory(void* memory, uint64_t size, const CancelFlag* cancel)
    : m_head(static_cast<Head*>(memory)), m_size(size), m_used(system::page_size()), m_cancel(cancel) {
    static_assert(sizeof(Head) <= 4096 && std::atomic<int64_t>::is_always_lock_free);
}

JointMemory::~JointMemory() { munmap(m_head, m_size); }

std::shared_ptr<JointMemory> JointMemory::make(Group& ranks, const std::string& what, uint64_t bytes,
                                               bool at_once) {
    if (!ranks.several()) return nullptr;
    Offer offer;
    std::shared_ptr<JointMemory> made;
    int file = -1;
    const auto hold = [&](void* memory) {
        if (memory != nullptr) made.reset(new JointMemory(memory, offer.size, ranks.cancel()));
    };
    if (ranks.root()) {
        offer.size = system::page_size() + round_up(bytes);
        file = make_file(offer.size);
        if (file >= 0) hold(map_file(file, offer.size));
        if (made) {
            offer.process = getpid();
            offer.file = file;
            offer.sign = std::random_device()();
            made->m_head->sign = offer.sign;
        }
    }
    ByteUnpacker(ranks.broadcast(what + ", memory", BytePacker().put(offer).take())).get(offer);
    if (!ranks.root() && offer.process != 0 && ranks.host(ranks.rank()) == ranks.host(0)) {
        hold(map_offered(offer));
        if (made && made->m_head->sign != offer.sign) made.reset();
    }
    const auto processes = static_cast<int>(ranks.sum(what + ", processes", made ? 1 : 0));
    if (file >= 0) close(file); // all ranks have mapped the file
    if (!made || processes < 2) return nullptr;
    made->m_processes = processes;
    if (at_once) made->make_all_pages();
    return made;
}

void JointMemory::make_all_pages() {
    auto* const memory = reinterpret_cast<char*>(m_head);
    constexpr uint64_t unit = 8 * huge_page; // a few units per process
    if (m_size >= huge_page) {
        for (auto at = static_cast<uint64_t>(take()) * unit; at < m_size;
             at = static_cast<uint64_t>(take()) * unit)
            make_pages(memory + at, std::min(unit, m_size - at));
        meet();
    }
    map_pages(memory, m_size); // pages that other processes have created
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
    if (m_head->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == m_processes) {
        m_head->arrived.store(0, std::memory_order_relaxed);
        m_head->next.store(0, std::memory_order_relaxed);
        m_head->round.store(round + 1, std::memory_order_release);
        system::wake(m_head->round);
        return;
    }
    // The other processes will arrive soon: their last units take no longer than the last unit of this
    // process.
    const auto changed = [&] { return m_head->round.load(std::memory_order_acquire) != round; };
    for (const auto begin = std::chrono::steady_clock::now();
         !changed() && std::chrono::steady_clock::now() - begin < 20us;)
        std::this_thread::yield();
    while (!changed()) {
        if (m_cancel != nullptr && m_cancel->requested()) throw Cancelled();
        system::wait(m_head->round, round, 5ms); // the flag is checked between two waits
    }
}

} // namespace hsi::parallel
