// SPDX-License-Identifier: MIT
// Where a tool computes when nobody says it: closed forms of the estimate.
#include "tool/devices.h"

#include <gtest/gtest.h>

namespace hsi::tool {
namespace {

/// Reading, computing and writing of about a second each on 16 cores.
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
    EXPECT_NEAR(e.cpu - process.cpu, 2.0, 1e-9); // reading and computing take turns, writing goes beside them
    EXPECT_NEAR(e.device - process.device, 1.0, 1e-9); // the largest of the three
    EXPECT_GT(process.device, process.cpu);            // its start
}

TEST(Estimate, FewerThreadsReadAndComputeMoreSlowly) {
    const Work work = some_work();
    EXPECT_NEAR(estimate(work, 2).cpu - estimate({}, 2).cpu, 8.0 + 8.0, 1e-9);
    EXPECT_NEAR(estimate(work, 2).device - estimate({}, 2).device, 5.0, 1e-9); // it must be read all the same
    double before = estimate(work, 1).cpu;
    for (int threads : {2, 4, 8, 16}) {
        EXPECT_LT(estimate(work, threads).cpu, before);
        before = estimate(work, threads).cpu;
    }
}

TEST(Estimate, TakesTheDeviceOnlyWhereItEndsSooner) {
    const auto sooner = [](const Work& work) { return estimate(work, 16).device < estimate(work, 16).cpu; };
    EXPECT_FALSE(sooner({}));
    Work writing; // one file sets the pace for both
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
