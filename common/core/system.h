// SPDX-License-Identifier: MIT
// What Linux and glibc offer beyond POSIX: everything of that kind is called here and nowhere else, so a port
// to another system is made in system.cpp. Each has a portable way, which costs speed or leaves something out
// but no result. The environment variable HSI_PORTABLE=1 takes these on Linux, too, where they are tested.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::system {

/// Everything here goes the portable way. Asked once; the same for the whole process.
bool portable() noexcept;

// Memory

/// Bytes that a mapping's place in a file is a multiple of: 4, 16 or 64 KB. HSI_PAGE_SIZE, a multiple of the
/// system's, stands for a system with larger pages.
uint64_t page_size() noexcept;
/// Memory of the machine in bytes.
uint64_t physical_memory() noexcept;
/// The most that the process has had in memory; portably with what its parent held when it forked it.
uint64_t peak_resident();
/// Of a mapping of a file: all its pages are in the system's memory. Portably false.
bool in_memory(void* at, size_t bytes);
/// Wishes for a mapping, all of them without an effect where they are unknown: huge pages where it is
/// touched; all pages of this part, now, to be written to, which costs less than a fault for each; huge pages
/// of what is there.
void want_huge_pages(void* at, size_t bytes) noexcept;
void make_pages(void* at, size_t bytes) noexcept;
void join_pages(void* at, size_t bytes) noexcept;
/// Blocks of at least `own` bytes are mappings of their own, and what is free at the heap's end goes back to
/// the system when it is more than `trim`. Portably without an effect, as the next.
void set_heap(int own, int trim) noexcept;
/// All threads share one heap.
void share_heap() noexcept;

// Files

/// Of `bytes`, all zero, that no folder lists: in the memory of the system, portably in its folder for
/// temporary files. `name` is for who looks at the process. -1 and errno where there is none.
int file_in_memory(const char* name, uint64_t bytes) noexcept;
/// Another process's file_in_memory(), by its number there. -1 where it is not that or cannot be reached;
/// portably always.
int file_in_memory_of(int process, int file, const char* name) noexcept;
/// A file that no folder lists, on the file system of `folder`. -1 and errno where there is none.
int nameless_file(const std::string& folder) noexcept;
/// Makes a file so long and claims its space. Returns an errno: EOPNOTSUPP, portably always, where space
/// cannot be claimed.
int claim(int file, int64_t bytes) noexcept;
/// The system may drop this part of a file, which will be zero or what it was. Portably without an effect.
void give_back(int file, uint64_t begin, uint64_t end) noexcept;
/// This part of a file will be read soon. Portably without an effect.
void read_ahead(int file, int64_t begin, int64_t end) noexcept;

/// The entries of a folder that are neither regular files nor folders: pipes, devices, sockets, and links
/// whatever they lead to. Empty if the folder cannot be listed. It asks for no entry's facts where the folder
/// states their kinds, so a folder of 100,000 files takes some 20 ms; portably it asks for each.
std::vector<std::string> odd_entries(const std::string& folder);

/// The name that an open file has now, whatever it was opened by. Portably empty, for unknown.
std::string path_of(int file);

enum class Renamed { done, taken, unsupported, failed };
/// Gives a file a name that is free, in one step. Portably unsupported, as the next.
Renamed rename_to_free(const char* from, const char* to) noexcept;
/// Each gets the other's name, in one step.
Renamed exchange(const char* a, const char* b) noexcept;

// Processes, threads, processors

/// The file that this process runs; empty when it is unknown. Portably the file that this code is in, where
/// that is no library.
std::string executable();
/// Runs it anew, in this process. Returns only when that fails.
void restart(char** argv) noexcept;
/// Threads of this process; nothing where nobody knows, portably always.
std::optional<int> threads();
/// From now on, what this thread writes to standard error goes to `file`, and it has no files but that,
/// standard input and standard output; other threads keep all of theirs. For a thread that computes and ends
/// soon, and calls libraries that print. Portably false, and without an effect.
bool redirect_own_errors(int file) noexcept;
/// The processors that this process may run on, as a '0' or '1' each; portably empty, for unknown.
std::string processor_set();
/// Control groups are known here (/proc/self/cgroup).
bool has_control_groups() noexcept;
/// Waits until `word`, which other processes may share, is no longer `value`, for so long at most; may return
/// earlier.
void wait(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) noexcept;
/// Wakes all who wait for it.
void wake(std::atomic<uint32_t>& word) noexcept;

} // namespace hsi::system
