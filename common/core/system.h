// SPDX-License-Identifier: MIT
// Functions of Linux and glibc beyond POSIX. No other code calls functions beyond POSIX, so a port to another
// system changes only system.cpp. Each function also has a portable version, which may be slower or do less,
// but gives the same results. HSI_PORTABLE=1 in the environment selects the portable versions on Linux, for
// tests.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::system {

/// Returns true if all functions here use the portable version. Decided once for the whole process.
bool portable() noexcept;

// Memory

/// Returns the size in bytes (4, 16 or 64 KB) to whose multiples mappings of a file are aligned.
/// HSI_PAGE_SIZE, a multiple of the system's size, simulates a system with larger pages.
uint64_t page_size() noexcept;
/// Returns the memory of the machine in bytes.
uint64_t physical_memory() noexcept;
/// Returns the most memory that the process has used. The portable version includes the memory of the parent
/// at the fork.
uint64_t peak_resident();
/// Returns true if all pages of this mapping of a file are in memory. The portable version returns false.
bool in_memory(void* at, size_t bytes);
/// Hints for a mapping, which systems without support ignore. want_huge_pages() requests huge pages for the
/// first access. make_pages() provides all pages of this part now, for writing, which costs less than a fault
/// per page. join_pages() requests huge pages for pages that are already present.
void want_huge_pages(void* at, size_t bytes) noexcept;
void make_pages(void* at, size_t bytes) noexcept;
void join_pages(void* at, size_t bytes) noexcept;
/// Allocates blocks of at least `own` bytes as separate mappings, and returns free memory at the end of the
/// heap to the system if it exceeds `trim`. The portable versions of this function and the next one do
/// nothing.
void set_heap(int own, int trim) noexcept;
/// Makes all threads share one heap.
void share_heap() noexcept;

// Files

/// Opens a file of `bytes` zeros that is not listed in a folder. The file is in memory; in the portable
/// version it is in the folder for temporary files. Process listings show `name`. Returns -1 with errno on
/// failure.
int file_in_memory(const char* name, uint64_t bytes) noexcept;
/// Opens the file_in_memory() of another process by its file number in that process. Returns -1 if the number
/// is another file or cannot be accessed; the portable version always returns -1.
int file_in_memory_of(int process, int file, const char* name) noexcept;
/// Opens a file that is not listed in a folder, on the file system of `folder`. Returns -1 with errno on
/// failure.
int nameless_file(const std::string& folder) noexcept;
/// Extends a file to `bytes` bytes and reserves its space on disk. Returns an errno: EOPNOTSUPP if space
/// cannot be reserved; the portable version always returns EOPNOTSUPP.
int claim(int file, int64_t bytes) noexcept;
/// Allows the system to free this part of a file. The bytes are then zero or unchanged. The portable version
/// does nothing.
void give_back(int file, uint64_t begin, uint64_t end) noexcept;
/// Announces that this part of a file will be read soon. The portable version does nothing.
void read_ahead(int file, int64_t begin, int64_t end) noexcept;

/// Returns the entries of a folder that are neither regular files nor folders: pipes, devices, sockets and
/// links. Returns an empty list if the folder cannot be listed. If the folder lists the types of its entries,
/// a folder of 100,000 files takes about 20 ms; otherwise, and in the portable version, each entry is
/// examined.
std::vector<std::string> odd_entries(const std::string& folder);

/// Returns the current name of an open file, which another process may have opened. The portable version
/// returns an empty text.
std::string path_of(int file);

enum class Renamed { done, taken, unsupported, failed };
/// Renames a file in one step if the new name is free. The portable versions of this function and the next
/// one are unsupported.
Renamed rename_to_free(const char* from, const char* to) noexcept;
/// Exchanges the names of two files in one step.
Renamed exchange(const char* a, const char* b) noexcept;

// Processes, threads, processors

/// Returns the file that this process runs; empty if unknown. The portable version returns the file of this
/// code unless it is a library.
std::string executable();
/// Runs the executable again in this process. Returns only on failure.
void restart(char** argv) noexcept;
/// Returns the number of threads of this process; nullopt if unknown. The portable version returns nullopt.
std::optional<int> threads();
/// Redirects standard error of this thread to `file` and closes all other files of this thread except
/// standard input and standard output. Other threads keep their files. Use it on a thread that computes, ends
/// soon and calls libraries that print. The portable version returns false and does nothing.
bool redirect_own_errors(int file) noexcept;
/// Returns the processors that this process may run on as text, one '0' or '1' per processor; empty if
/// unknown. The portable version returns an empty text.
std::string processor_set();
/// Returns whether the system has control groups (/proc/self/cgroup).
bool has_control_groups() noexcept;
/// Waits until `word`, which other processes may share, differs from `value`, but at most for the given time.
/// May return earlier.
void wait(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) noexcept;
/// Wakes all threads that wait for `word`.
void wake(std::atomic<uint32_t>& word) noexcept;

} // namespace hsi::system
