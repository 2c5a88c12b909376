// SPDX-License-Identifier: MIT
// The limits of control groups, read below a folder that represents the whole machine.
#include "core/process_limits.h"
#include "core/system.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hsi::test {
namespace {

class Limits : public testing::Test {
  protected:
    Limits() {
        const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
        root = testing::TempDir() + "hsi_limits_" + std::to_string(getpid()) + test->name();
        std::filesystem::remove_all(root);
    }
    ~Limits() override { std::filesystem::remove_all(root); }
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
        std::ofstream(root + path) << text;
    }
    void mount_second() const {
        write("/proc/self/mountinfo",
              "22 1 0:21 / /proc rw - proc proc rw\n"
              "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    }
    std::string root;
};

constexpr uint64_t MB = uint64_t{1} << 20;

TEST_F(Limits, NothingMeansNoLimit) {
    EXPECT_FALSE(cgroup_memory_limit(root));
    EXPECT_FALSE(cgroup_processor_limit(root));
    mount_second();
    write("/proc/self/cgroup", "0::/user.slice\n");
    write("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    write("/sys/fs/cgroup/user.slice/memory.high", "max\n");
    write("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    EXPECT_FALSE(cgroup_memory_limit(root));
    EXPECT_FALSE(cgroup_processor_limit(root));
}

TEST_F(Limits, VersionTwoCountsTheGroupAndAllItsParents) {
    mount_second();
    write("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
    const std::string job = "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7";
    write(job + "/step_0/memory.max", "max\n");
    write(job + "/memory.max", std::to_string(4096 * MB) + "\n");
    write("/sys/fs/cgroup/system.slice/memory.max", std::to_string(9000 * MB) + "\n");
    EXPECT_EQ(cgroup_memory_limit(root), 4096 * MB);
    write(job + "/step_0/memory.high",
          std::to_string(3000 * MB) + "\n"); // beyond this, the kernel reclaims memory
    EXPECT_EQ(cgroup_memory_limit(root), 3000 * MB);
    write("/sys/fs/cgroup/memory.max",
          std::to_string(2000 * MB) + "\n"); // in a container: the top group that it sees
    EXPECT_EQ(cgroup_memory_limit(root), 2000 * MB);

    write(job + "/step_0/cpu.max", "max 100000\n");
    write(job + "/cpu.max", "250000 100000\n");
    EXPECT_EQ(cgroup_processor_limit(root), 2.5);
    write("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    EXPECT_EQ(cgroup_processor_limit(root), 0.5);
}

TEST_F(Limits, VersionOneHasAHierarchyForEveryController) {
    write("/proc/self/mountinfo",
          "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
          "32 30 0:28 / /sys/fs/cgroup/memory rw shared:15 master:2 - cgroup cgroup rw,memory\n"
          "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write("/proc/self/cgroup", "9:memory:/slurm/uid_5/job_7/step_batch\n"
                               "4:cpu,cpuacct:/slurm/uid_5/job_7\n"
                               "1:name=systemd:/elsewhere\n0::/elsewhere\n");
    const std::string memory = "/sys/fs/cgroup/memory/slurm/uid_5/job_7";
    write(memory + "/step_batch/memory.limit_in_bytes",
          "9223372036854771712\n"); // the kernel's value for no limit
    write(memory + "/memory.limit_in_bytes", std::to_string(512 * MB) + "\n");
    EXPECT_EQ(cgroup_memory_limit(root), 512 * MB);
    const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_5";
    write(cpu + "/job_7/cpu.cfs_quota_us", "-1\n");
    write(cpu + "/job_7/cpu.cfs_period_us", "100000\n");
    EXPECT_FALSE(cgroup_processor_limit(root));
    write(cpu + "/cpu.cfs_quota_us", "300000\n");
    write(cpu + "/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_processor_limit(root), 3.0);
}

TEST_F(Limits, AContainerMayTellTheGroupAsItsHostSeesIt) {
    write("/proc/self/mountinfo",
          "32 30 0:28 /docker/0a1b /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    write("/proc/self/cgroup", "9:memory:/docker/0a1b/inner\n");
    write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", std::to_string(300 * MB));
    EXPECT_EQ(cgroup_memory_limit(root), 300 * MB);
    // A process that was moved into the group from outside can read only the top group.
    mount_second();
    write("/proc/self/cgroup", "0::/../../outside\n");
    write("/outside/memory.max", "1000\n");
    write("/sys/fs/cgroup/memory.max", std::to_string(700 * MB));
    EXPECT_EQ(cgroup_memory_limit(root), 700 * MB);
}

TEST_F(Limits, WithoutAListOfMountsTheUsualPlacesAreAsked) {
    write("/proc/self/cgroup", "0::/a/b\n");
    write("/sys/fs/cgroup/a/memory.max", "123456789\n");
    EXPECT_EQ(cgroup_memory_limit(root), 123456789U);
    write("/proc/self/cgroup", "2:memory:/a/b\n3:cpu,cpuacct:/c\n");
    write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1234567\n");
    write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_memory_limit(root), 1234567U);
    EXPECT_EQ(cgroup_processor_limit(root), 1.5);
}

TEST_F(Limits, NamesWithSpacesAreFound) {
    write("/proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
    write("/proc/self/cgroup", "0::/a job\n");
    write("/my groups/a job/memory.max", "77777\n");
    EXPECT_EQ(cgroup_memory_limit(root), 77777U);
}

TEST_F(Limits, GarbageIsNoLimit) {
    mount_second();
    for (const char* text : {"", "\n", "0\n", "-1\n", "12x\n", " \n", "99999999999999999999999\n", "1e9\n"}) {
        write("/proc/self/cgroup", "0::/a\nno colons\n::::\n\n1:\n");
        write("/sys/fs/cgroup/a/memory.max", text);
        write("/sys/fs/cgroup/a/cpu.max", text);
        EXPECT_FALSE(cgroup_memory_limit(root)) << text;
        EXPECT_FALSE(cgroup_processor_limit(root)) << text;
    }
    for (const char* text : {"0 100000\n", "100000 0\n", "a b\n", "100000\n", "1 2 3\n"}) {
        write("/sys/fs/cgroup/a/cpu.max", text);
        EXPECT_FALSE(cgroup_processor_limit(root)) << text;
    }
    write("/proc/self/mountinfo", "garbage\n1 2 3 4 5 6 -\n - - - - - - - cgroup2\n");
    write("/proc/self/cgroup", std::string("\0\xff:::", 5) + "\n");
    EXPECT_FALSE(cgroup_memory_limit(root));
}

class Slurm : public testing::Test {
  protected:
    ~Slurm() override {
        for (const char* name :
             {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK"})
            unsetenv(name);
        share_machine(1, 1);
    }
    static void say(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(Slurm, ItsMemoryCountsWhereItIsLess) {
    const uint64_t machine = usable_ram();
    say("SLURM_MEM_PER_NODE", "100");
    EXPECT_EQ(usable_ram(), 100 * MB);
    say("SLURM_MEM_PER_NODE", "0"); // all memory of the node
    EXPECT_EQ(usable_ram(), machine);
    say("SLURM_MEM_PER_NODE", "100000000");
    EXPECT_EQ(usable_ram(), machine);
    unsetenv("SLURM_MEM_PER_NODE");
    say("SLURM_MEM_PER_CPU", "30");
    EXPECT_EQ(usable_ram(), machine); // the number of ranks is unknown
    say("SLURM_CPUS_ON_NODE", "3");
    EXPECT_EQ(usable_ram(), 90 * MB);
}

TEST_F(Slurm, ItsProcessorsCountWhereTheyAreFewer) {
    const int machine = usable_processors();
    say("SLURM_CPUS_PER_TASK", "1");
    EXPECT_EQ(usable_processors(), 1);
    say("SLURM_CPUS_PER_TASK", "100000");
    EXPECT_EQ(usable_processors(), machine);
    say("SLURM_CPUS_PER_TASK", "many");
    EXPECT_EQ(usable_processors(), machine);
}

TEST_F(Slurm, RanksShareTheMachine) {
    const uint64_t memory = usable_ram();
    const int processors = usable_processors();
    share_machine(4, 1);
    EXPECT_EQ(usable_ram(), memory / 4);
    share_machine(4, 2);
    EXPECT_LE(usable_processors(), std::max(1, processors / 2));
    share_machine(4, 1000000);
    EXPECT_EQ(usable_processors(), 1);
}

TEST(ThisMachine, GrantsSomething) {
    EXPECT_TRUE(system::portable() || system::processor_set().back() == '1');
    EXPECT_GT(usable_ram(), MB);
    EXPECT_GE(usable_processors(), 1);
}

} // namespace
} // namespace hsi::test
