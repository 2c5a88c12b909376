// SPDX-License-Identifier: MIT
// The division of -memory, the number of lanes that feed a device, and the default device of a tool: closed
// forms of the estimate.

#include "stream/copy_operation.h"
#include "tool/devices.h"

#include <gtest/gtest.h>

#include <limits>

namespace hsi::tool {
namespace {

constexpr uint64_t mb = uint64_t{1} << 20;

TEST(Memory, TheBlockCacheGetsWhatIsWantedUpToAQuarter) {
    MemoryPlan plan(1024 * mb, 4);
    EXPECT_EQ(plan.cache(), 16 * mb); // the minimum
    plan.reserve_cache(100 * mb);
    EXPECT_EQ(plan.cache(), 100 * mb);
    plan.reserve_cache(500 * mb);
    EXPECT_EQ(plan.cache(), 256 * mb);
    EXPECT_EQ(MemoryPlan(32 * mb, 4).cache(), 8 * mb);
}

TEST(Memory, TheBlockCacheHoldsBlocksThatBandsShareOfAllLanesOrOfNone) {
    MemoryPlan plan(1024 * mb, 4);
    plan.reserve_cache(100 * mb);
    plan.expect_shared_block(30 * mb); // five of them do not fit
    EXPECT_EQ(plan.cache(), 30 * mb - 1);
    plan.reserve_cache(50 * mb);
    EXPECT_EQ(plan.cache(), 150 * mb);
}

TEST(Memory, BuffersGetWhatIsLeftAndNeverLessThanHalfForASinkAlone) {
    MemoryPlan plan(1024 * mb, 4);
    EXPECT_EQ(plan.buffers(0), 1008 * mb);
    EXPECT_EQ(plan.buffers(200 * mb), 808 * mb);
    plan.reserve_cache(2000 * mb);
    EXPECT_EQ(plan.buffers(0), 512 * mb);
    EXPECT_THROW(plan.buffers(512 * mb), Error);
}

TEST(Memory, ASceneIsKeptWhereHalfHoldsItAndAPassFitsBesideIt) {
    EXPECT_TRUE(MemoryPlan::may_keep(50 * mb, 100 * mb, 0, 50 * mb));
    EXPECT_FALSE(MemoryPlan::may_keep(51 * mb, 100 * mb, 0, 0));
    EXPECT_FALSE(MemoryPlan::may_keep(50 * mb, 100 * mb, 0, 51 * mb));
    EXPECT_FALSE(MemoryPlan::may_keep(50 * mb, 100 * mb, 50 * mb, 0));
}

TEST(Memory, WhatIsHeldBesideAPassLeavesHalfOfIt) {
    stream::PassOptions pass;
    pass.memory = 100 * mb;
    leave_room(pass, 30 * mb);
    EXPECT_EQ(pass.memory, 70 * mb);
    leave_room(pass, 1000 * mb);
    EXPECT_EQ(pass.memory, 35 * mb);
}

/// A raw scene of 1024 bands whose lines are a megabyte long; it is never read.
struct Megabytes final : stream::CubeSource {
    explicit Megabytes(int64_t count) : megabytes(count) {}
    stream::CubeShape shape() const override { return {256, megabytes, 1024}; }
    stream::BlockLayout layout() const override { return {}; }
    std::unique_ptr<stream::CubeReader> open_reader() const override { return nullptr; }
    int64_t megabytes;
};

TEST(Lanes, AreNoMoreThanTheAlgorithmAllows) {
    struct Case {
        int wanted;
        uint64_t bytes;
        stream::WorkerLimit limit;
        int count;
    };
    constexpr int any = std::numeric_limits<int>::max();
    for (const Case& c :
         {Case{16, 640 * mb, {}, 16}, Case{16, 640 * mb, {0, 1, 3}, 3},
          Case{16, 640 * mb, {64 * mb, 4, any}, 10}, Case{16, 0, {64 * mb, 4, any}, 16},
          Case{16, 64 * mb, {64 * mb, 4, any}, 4}, Case{2, 64 * mb, {64 * mb, 4, any}, 2},
          Case{16, 640 * mb, {64 * mb, 4, 7}, 7}, Case{16, uint64_t{1} << 60, {1, 1, any}, 16}})
        EXPECT_EQ(stream::worker_count(c.wanted, c.bytes, c.limit), c.count) << c.wanted << " " << c.bytes;
}

TEST(Lanes, OfADeviceAreOneForEach64MBOfARawScene) {
    const auto lanes = [](int64_t megabytes, uint64_t device_memory) {
        const Megabytes scene(megabytes);
        stream::CopyOperation operation(1024, true);
        stream::PassOptions pass;
        pass.lanes = 16;
        pass.memory = uint64_t{8} << 30;
        set_device_memory(pass, device_memory);
        return stream::plan_pass(scene, operation, pass).lanes();
    };
    EXPECT_EQ(lanes(640, 0), 16);
    EXPECT_EQ(lanes(640, uint64_t{8} << 30), 10);
    EXPECT_EQ(lanes(64, uint64_t{8} << 30), least_device_lanes);
    EXPECT_EQ(lanes(6400, uint64_t{8} << 30), 16);
}

/// Returns work with about a second each of reading, computing and writing on 16 cores.
Work some_work() {
    Work work;
    work.cpu_reads = 40e9;
    work.device_reads = 25e9;
    work.writes = 4.2e9;
    work.core_seconds = 16;
    work.device_seconds = 0.01;
    return work;
}

TEST(Estimate, AddsReadingAndComputingOnTheCpuAndOverlapsThemOnADevice) {
    const Work work = some_work();
    const Estimate e = estimate(work, 16), process = estimate({}, 16);
    EXPECT_NEAR(e.cpu - process.cpu, 2.0, 1e-9); // reading and computing alternate, writing runs in parallel
    EXPECT_NEAR(e.device - process.device, 1.0, 1e-9); // the largest of the three
    EXPECT_GT(process.device, process.cpu);            // includes its start
}

TEST(Estimate, FewerThreadsReadAndComputeMoreSlowly) {
    const Work work = some_work();
    EXPECT_NEAR(estimate(work, 2).cpu - estimate({}, 2).cpu, 8.0 + 8.0, 1e-9);
    EXPECT_NEAR(estimate(work, 2).device - estimate({}, 2).device, 5.0, 1e-9); // it must be read in any case
    double before = estimate(work, 1).cpu;
    for (int threads : {2, 4, 8, 16}) {
        EXPECT_LT(estimate(work, threads).cpu, before);
        before = estimate(work, threads).cpu;
    }
}

TEST(Estimate, TakesTheDeviceOnlyWhereItEndsSooner) {
    const auto sooner = [](const Work& work) { return estimate(work, 16).device < estimate(work, 16).cpu; };
    EXPECT_FALSE(sooner({}));
    Work writing; // one file limits both
    writing.writes = 100e9;
    EXPECT_FALSE(sooner(writing));
    Work computing;
    computing.core_seconds = 1000;
    computing.device_seconds = 1;
    EXPECT_TRUE(sooner(computing));
}

TEST(Estimate, AddsWhatIsWrittenInTheEnd) {
    Work work = some_work();
    const Estimate before = estimate(work, 16);
    work.writes_after = 8.4e9;
    EXPECT_NEAR(estimate(work, 16).cpu - before.cpu, 2.0, 1e-9);
    EXPECT_NEAR(estimate(work, 16).device - before.device, 2.0, 1e-9);
}

TEST(Estimate, ACpuMayWriteBesideAPartOfItsWork) {
    Work work = some_work();
    work.writes_after = 8.4e9; // two seconds
    const Estimate after = estimate(work, 16);
    work.seconds_beside = 16 * 0.5;
    EXPECT_NEAR(after.cpu - estimate(work, 16).cpu, 0.5, 1e-9);
    EXPECT_NEAR(after.device - estimate(work, 16).device, 0, 1e-9);
    work.seconds_beside = 16 * 50.0;
    EXPECT_NEAR(after.cpu - estimate(work, 16).cpu, 2.0, 1e-9);
}

TEST(Estimate, IsToldInOneLine) {
    EXPECT_EQ(describe(Estimate{1.234, 23.4}, true), "CPU, about 1.2 s; CUDA, about 23 s");
    EXPECT_EQ(describe(Estimate{0.04, 2.4}, false), "CPU, about 0.0 s");
}

} // namespace
} // namespace hsi::tool
