// SPDX-License-Identifier: MIT
// The functions of system.h, by the system's method and by the portable method: ctest runs all tests again
// with HSI_PORTABLE=1.
#include "core/process_limits.h"
#include "core/system.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace hsi {
namespace {

namespace fs = std::filesystem;
using system::Renamed;

class System : public ::testing::Test {
  protected:
    System() {
        m_folder = fs::path(testing::TempDir()) / ("hsi_system_" + std::to_string(::getpid()));
        fs::create_directories(m_folder);
    }
    ~System() override { fs::remove_all(m_folder); }
    std::string file(const std::string& name, const std::string& text = {}) const {
        const fs::path path = m_folder / name;
        if (!text.empty()) std::ofstream(path) << text;
        return path.string();
    }
    static std::string text_of(const std::string& path) {
        std::ifstream in(path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    fs::path m_folder;
    const bool m_portable = system::portable();
};

TEST_F(System, TheSwitchIsTheEnvironments) {
    const char* const wish = std::getenv("HSI_PORTABLE");
    EXPECT_EQ(m_portable, wish != nullptr && std::string(wish) == "1");
}

TEST_F(System, FilesInMemoryAreZeroAndShared) {
    const int made = system::file_in_memory("hsi_test", 100000);
    ASSERT_GE(made, 0);
    struct stat info {};
    ASSERT_EQ(::fstat(made, &info), 0);
    EXPECT_EQ(info.st_size, 100000);
    EXPECT_EQ(info.st_nlink, 0u);
    EXPECT_NE(::fcntl(made, F_GETFD) & FD_CLOEXEC, 0);
    void* const at = ::mmap(nullptr, 100000, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    ASSERT_NE(at, MAP_FAILED);
    EXPECT_EQ(static_cast<char*>(at)[99999], 0);
    static_cast<char*>(at)[99999] = 7;
    const int other = system::file_in_memory_of(::getpid(), made, "hsi_test");
    EXPECT_EQ(other >= 0, !m_portable);
    if (other >= 0) {
        char seen = 0;
        EXPECT_EQ(::pread(other, &seen, 1, 99999), 1);
        EXPECT_EQ(seen, 7);
        ::close(other);
    }
    EXPECT_EQ(system::file_in_memory_of(::getpid(), made, "another"), -1);
    EXPECT_EQ(system::file_in_memory_of(::getpid(), 0, "hsi_test"), -1);
    system::want_huge_pages(at, 100000);
    system::make_pages(at, 100000);
    system::join_pages(at, 100000);
    EXPECT_EQ(static_cast<char*>(at)[99999], 7);
    ::munmap(at, 100000);
    ::close(made);
}

TEST_F(System, PagesOfAPartAreMadeWhereverItBegins) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    auto* const at = static_cast<char*>(
        ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(at, MAP_FAILED);
    at[page] = 5;
    system::make_pages(at + page + page / 2, page); // ends in the third page
#ifdef MADV_POPULATE_WRITE
    // Requires Linux 5.14 or newer; an emulator accepts the advice but does not populate pages.
    unsigned char made = 0;
    if (::madvise(at, 1, MADV_POPULATE_WRITE) == 0 && ::mincore(at, 1, &made) == 0 && (made & 1) != 0) {
        EXPECT_EQ(system::in_memory(at + page, 2 * page), !m_portable);
        EXPECT_FALSE(system::in_memory(at + 3 * page, page));
    }
#endif
    EXPECT_EQ(at[page], 5);
    EXPECT_EQ(at[page + page / 2], 0);
    ::munmap(at, 4 * page);
}

TEST_F(System, NamelessFilesLeaveNothing) {
    const int made = system::nameless_file(m_folder.string());
    ASSERT_GE(made, 0);
    EXPECT_TRUE(fs::is_empty(m_folder));
    EXPECT_EQ(::pwrite(made, "abc", 3, 5), 3);
    std::array<char, 3> seen{};
    EXPECT_EQ(::pread(made, seen.data(), 3, 5), 3);
    EXPECT_EQ(std::memcmp(seen.data(), "abc", 3), 0);
    ::close(made);
    errno = 0;
    EXPECT_EQ(system::nameless_file(file("none/at/all")), -1);
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(System, SpaceIsClaimedAndGivenBack) {
    const int made = system::nameless_file(m_folder.string());
    ASSERT_GE(made, 0);
    const int reason = system::claim(made, 1 << 20);
    EXPECT_TRUE(reason == 0 || reason == EOPNOTSUPP) << reason;
    if (m_portable) {
        EXPECT_EQ(reason, EOPNOTSUPP);
    }
    struct stat info {};
    ASSERT_EQ(::fstat(made, &info), 0);
    EXPECT_EQ(info.st_size, reason == 0 ? 1 << 20 : 0);
    const std::string ones(1 << 18, '1');
    ASSERT_EQ(::pwrite(made, ones.data(), ones.size(), 0), 1 << 18);
    system::read_ahead(made, 0, 1 << 18);
    system::give_back(made, 1 << 16, 1 << 17);
    std::string seen(1 << 18, ' ');
    ASSERT_EQ(::pread(made, seen.data(), seen.size(), 0), 1 << 18);
    EXPECT_EQ(seen.substr(0, 1 << 16), ones.substr(0, 1 << 16));
    EXPECT_EQ(seen.substr(1 << 17), ones.substr(1 << 17));
    if (m_portable) {
        EXPECT_EQ(seen, ones);
    }
    EXPECT_EQ(system::claim(-1, 5), m_portable ? EOPNOTSUPP : EBADF);
    ::close(made);
}

TEST_F(System, NamesAreTakenOnceAndExchanged) {
    const std::string a = file("a", "first"), b = file("b", "second"), free = file("c");
    if (m_portable) {
        EXPECT_EQ(system::rename_to_free(a.c_str(), free.c_str()), Renamed::unsupported);
        EXPECT_EQ(system::exchange(a.c_str(), b.c_str()), Renamed::unsupported);
        EXPECT_EQ(text_of(a), "first");
        return;
    }
    const Renamed exchanged = system::exchange(a.c_str(), b.c_str());
    // This file system does not support it, and both names are unchanged
    if (exchanged == Renamed::unsupported) {
        EXPECT_EQ(text_of(a), "first");
        EXPECT_EQ(text_of(b), "second");
        return;
    }
    EXPECT_EQ(exchanged, Renamed::done);
    EXPECT_EQ(text_of(a), "second");
    EXPECT_EQ(system::rename_to_free(a.c_str(), b.c_str()), Renamed::taken);
    EXPECT_EQ(system::rename_to_free(a.c_str(), free.c_str()), Renamed::done);
    EXPECT_EQ(text_of(free), "second");
    EXPECT_EQ(system::exchange(a.c_str(), b.c_str()), Renamed::failed);
}

TEST_F(System, TheProgramIsFound) {
    EXPECT_EQ(fs::path(system::executable()), fs::canonical("/proc/self/exe"));
}

TEST_F(System, APageIsThatOfTheSystemOrAMultiple) {
    const auto own = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    EXPECT_EQ(system::page_size() % own, 0u);
    const char* const wish = std::getenv("HSI_PAGE_SIZE");
    EXPECT_EQ(system::page_size(), wish != nullptr ? std::strtoull(wish, nullptr, 10) : own);
}

TEST_F(System, ThreadsProcessorsMemory) {
    EXPECT_EQ(system::threads().has_value(), !m_portable);
    if (!m_portable) {
        const int before = *system::threads();
        std::atomic<bool> end{false};
        std::thread other([&] {
            while (!end)
                std::this_thread::yield();
        });
        EXPECT_EQ(*system::threads(), before + 1);
        end = true;
        other.join();
    }
    const std::string set = system::processor_set();
    EXPECT_EQ(set.empty(), m_portable);
    EXPECT_EQ(system::has_control_groups(), !m_portable);
    EXPECT_GE(usable_processors(), 1);
    EXPECT_LE(static_cast<unsigned>(usable_processors()), std::thread::hardware_concurrency());
    EXPECT_GT(usable_ram(), uint64_t{1} << 24);
    EXPECT_LE(usable_ram(), system::physical_memory());
    EXPECT_GT(system::peak_resident(), uint64_t{1} << 20);
    EXPECT_LT(system::peak_resident(), system::physical_memory());
}

TEST_F(System, WhoWaitsForAWordIsWoken) {
    std::atomic<uint32_t> word{1};
    std::atomic<bool> seen{false};
    std::thread other([&] {
        while (word.load() == 1)
            system::wait(word, 1, std::chrono::milliseconds(60000));
        seen = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    word = 2;
    system::wake(word);
    other.join();
    EXPECT_TRUE(seen);
    system::wait(word, 1, std::chrono::milliseconds(60000)); // the value differs already, so it does not wait
    system::wait(word, 2, std::chrono::milliseconds(1));
}

} // namespace
} // namespace hsi
