// SPDX-License-Identifier: MIT
// Functions of Linux and glibc beyond POSIX: they are called only here, so a port to another system is made
// in system.cpp. Each has a portable way, which may be slower or do less, but gives the same results. The
// environment variable HSI_PORTABLE=1 selects the portable ways on Linux, too, for tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::system {

/// True if all functions here use the portable way. Decided once, for the whole process.
bool portable() noexcept;

// Memory

/// The place of a mapping in a file is a multiple of this size in bytes: 4, 16 or 64 KB. HSI_PAGE_SIZE, a
/// multiple of the system's size, simulates a system with larger pages.
uint64_t page_size() noexcept;
/// Memory of the machine in bytes.
uint64_t physical_memory() noexcept;
/// The most memory that the process has used; portably including the memory of its parent at the fork.
uint64_t peak_resident();
/// True if all pages of this mapping of a file are in the system's memory. Portably false.
bool in_memory(void* at, size_t bytes);
/// Hints for a mapping, without an effect where they are unknown: huge pages on the first touch; all pages of
/// this part now, for writing, which costs less than a fault for each; huge pages for present pages.
void want_huge_pages(void* at, size_t bytes) noexcept;
void make_pages(void* at, size_t bytes) noexcept;
void join_pages(void* at, size_t bytes) noexcept;
/// Makes blocks of at least `own` bytes separate mappings, and gives free memory at the heap's end back to
/// the system when it is more than `trim`. Portably without an effect, as the next function.
void set_heap(int own, int trim) noexcept;
/// All threads share one heap.
void share_heap() noexcept;

// Files

/// Opens a file of `bytes` zeros that no folder lists: in the system's memory, portably in its folder for
/// temporary files. People who look at the process see `name`. Returns -1 with errno on failure.
int file_in_memory(const char* name, uint64_t bytes) noexcept;
/// Another process's file_in_memory(), by its number there. -1 where it is not that or cannot be reached;
/// portably always.
int file_in_memory_of(int process, int file, const char* name) noexcept;
/// Opens a file that no folder lists, on the file system of `folder`. Returns -1 with errno on failure.
int nameless_file(const std::string& folder) noexcept;
/// Makes a file so long and claims its space. Returns an errno: EOPNOTSUPP, portably always, where space
/// cannot be claimed.
int claim(int file, int64_t bytes) noexcept;
/// The system may drop this part of a file, which then is zero or unchanged. Portably without an effect.
void give_back(int file, uint64_t begin, uint64_t end) noexcept;
/// This part of a file will be read soon. Portably without an effect.
void read_ahead(int file, int64_t begin, int64_t end) noexcept;

/// The entries of a folder that are neither regular files nor folders: pipes, devices, sockets and links.
/// Empty if the folder cannot be listed. Where the folder states the kinds of its entries, no entry is
/// examined, so a folder of 100,000 files takes some 20 ms; portably each entry is examined.
std::vector<std::string> odd_entries(const std::string& folder);

/// The present name of an open file, which may have been opened by another. Portably empty, for unknown.
std::string path_of(int file);

enum class Renamed { done, taken, unsupported, failed };
/// Gives a file a name that is free, in one step. Portably unsupported, as the next.
Renamed rename_to_free(const char* from, const char* to) noexcept;
/// Each gets the other's name, in one step.
Renamed exchange(const char* a, const char* b) noexcept;

// Processes, threads, processors

/// The file that this process runs; empty when it is unknown. Portably the file of this code, if that is not
/// a library.
std::string executable();
/// Runs the executable again, in this process. Returns only when that fails.
void restart(char** argv) noexcept;
/// Threads of this process; nullopt if unknown, portably always.
std::optional<int> threads();
/// From now on, standard error of this thread goes to `file`, and the thread has no files but that, standard
/// input and standard output; other threads keep all of theirs. It is for a thread that computes and ends
/// soon, and calls libraries that print. Portably false, and without an effect.
bool redirect_own_errors(int file) noexcept;
/// The processors that this process may run on, as a '0' or '1' each; portably empty, for unknown.
std::string processor_set();
/// Control groups are known here (/proc/self/cgroup).
bool has_control_groups() noexcept;
/// Waits until `word`, which other processes may share, differs from `value`, at most for the given time; may
/// return earlier.
void wait(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) noexcept;
/// Wakes all threads that wait for it.
void wake(std::atomic<uint32_t>& word) noexcept;

} // namespace hsi::system
