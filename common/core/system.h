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

/// Returns the page size in bytes (4, 16 or 64 KB). Mappings of a file begin at a multiple of the page size.
/// HSI_PAGE_SIZE, a multiple of the system's size, simulates a system with larger pages.
uint64_t page_size() noexcept;
/// Returns the memory of the machine in bytes.
uint64_t physical_memory() noexcept;
/// Returns the most memory in bytes that the process has used. The portable version includes the memory that
/// the parent process had used before the fork.
uint64_t peak_resident();
/// Returns true if all pages of this mapping of a file are in memory. The portable version returns false.
bool in_memory(void* at, size_t bytes);
/// The next three functions give the system hints for a mapping; systems without support ignore them.
/// want_huge_pages() requests huge pages for memory that has not been accessed yet. make_pages() provides all
/// pages of this part now, for writing, which costs less than a page fault for each page. join_pages()
/// requests that pages which are already present are replaced by huge pages.
void want_huge_pages(void* at, size_t bytes) noexcept;
void make_pages(void* at, size_t bytes) noexcept;
void join_pages(void* at, size_t bytes) noexcept;
/// Makes malloc() allocate blocks of at least `own` bytes as separate mappings, and return free memory at the
/// end of the heap to the system if it exceeds `trim` bytes. The portable versions of set_heap() and
/// share_heap() do nothing.
void set_heap(int own, int trim) noexcept;
/// Makes all threads share one heap.
void share_heap() noexcept;

// Files

/// Creates and opens a file of `bytes` zero bytes that no folder lists. The file is in memory and has the
/// name `name` in /proc. The portable version creates it on disk, in the folder for temporary files. Returns
/// -1 with errno on failure.
int file_in_memory(const char* name, uint64_t bytes) noexcept;
/// Opens the file_in_memory() of another process by its file descriptor in that process. Returns -1 if the
/// descriptor is not a file in memory with this name, or if the file cannot be accessed. The portable version
/// always returns -1.
int file_in_memory_of(int process, int file, const char* name) noexcept;
/// Creates and opens a file that no folder lists, on the file system of `folder`. Returns -1 with errno on
/// failure.
int nameless_file(const std::string& folder) noexcept;
/// Extends a file to `bytes` bytes and reserves its space on disk. Returns 0 on success, else an errno.
/// EOPNOTSUPP means that space cannot be reserved; the portable version always returns it.
int claim(int file, int64_t bytes) noexcept;
/// Allows the system to free the disk space of the bytes [begin, end) of a file. These bytes are then zero or
/// unchanged. The portable version does nothing.
void give_back(int file, uint64_t begin, uint64_t end) noexcept;
/// Announces that this part of a file will be read soon. The portable version does nothing.
void read_ahead(int file, int64_t begin, int64_t end) noexcept;

/// Returns the entries of a folder that are neither regular files nor folders: pipes, devices, sockets and
/// links. Returns an empty list if the folder cannot be listed. If the folder lists the types of its entries,
/// a folder of 100,000 files takes about 20 ms; otherwise, and in the portable version, each entry is
/// examined.
std::vector<std::string> odd_entries(const std::string& folder);

/// Returns the current path of an open file, by its file descriptor. Another process may have opened the
/// file. Returns an empty text if the path is unknown; the portable version always does.
std::string path_of(int file);

enum class Renamed { done, taken, unsupported, failed };
/// Renames a file in one step. Returns Renamed::taken if the new name exists already. The portable versions
/// of rename_to_free() and exchange() return Renamed::unsupported.
Renamed rename_to_free(const char* from, const char* to) noexcept;
/// Exchanges the names of two files in one step.
Renamed exchange(const char* a, const char* b) noexcept;

// Processes, threads, processors

/// Returns the path of the executable of this process; empty if unknown. The portable version returns the
/// path of the file with this code, and an empty text if this file is a library.
std::string executable();
/// Replaces this program by a new run of its executable, in the same process, with the arguments `argv`.
/// Returns only on failure.
void restart(char** argv) noexcept;
/// Returns the number of threads of this process; nullopt if unknown. The portable version returns nullopt.
std::optional<int> threads();
/// Redirects standard error of this thread to `file`, and closes all other files of this thread except
/// standard input and standard output. Other threads keep their files. Use it on a thread that only computes,
/// ends soon and calls libraries that print. Returns false if the system does not allow it or if standard
/// error is buffered. The portable version returns false and does nothing.
bool redirect_own_errors(int file) noexcept;
/// Returns the processors on which this process may run, as a text with one character per processor: '1' for
/// allowed, '0' for not allowed. The text ends with the last allowed processor. It is empty if the processors
/// are unknown, and always in the portable version.
std::string processor_set();
/// Returns whether the system has control groups (/proc/self/cgroup).
bool has_control_groups() noexcept;
/// Waits until wake() is called for `word`, which other processes may share. Returns at once if `word`
/// differs from `value`, and after the time `most` at the latest. May return earlier; the caller then checks
/// `word` and waits again.
void wait(const std::atomic<uint32_t>& word, uint32_t value, std::chrono::milliseconds most) noexcept;
/// Wakes all threads that wait for `word`, also those of other processes. The portable version does nothing;
/// its wait() returns after a millisecond.
void wake(std::atomic<uint32_t>& word) noexcept;

} // namespace hsi::system
