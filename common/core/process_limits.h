// SPDX-License-Identifier: MIT
// The limits of this process by the machine and its control groups (a job of Slurm, a container, a systemd
// unit). Control groups of version 1, of version 2, or both are read; a group's parents limit it as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

/// The least memory limit in bytes among the process's own control group and all its parents (version 2:
/// memory.max and memory.high; version 1: memory.limit_in_bytes); nullopt without a limit. Files that are
/// missing or hold no number do not count. `root` is put before /proc and /sys: "" for this machine, a folder
/// in tests.
std::optional<uint64_t> cgroup_memory_limit(const std::string& root = {});

/// The least limit of processor time, found likewise, in processors: 2.5 for 250 of every 100 ms; nullopt
/// without a limit. Version 2: cpu.max; version 1: cpu.cfs_quota_us by cpu.cfs_period_us.
std::optional<double> cgroup_processor_limit(const std::string& root = {});

/// Memory of this machine in bytes, or the control groups' limit or the Slurm job's (SLURM_MEM_PER_NODE,
/// SLURM_MEM_PER_CPU with SLURM_CPUS_ON_NODE) when that is lower; of this process, when it shares the
/// machine.
uint64_t usable_ram();

/// Processors that this process may keep busy: those that it may run on (sched_getaffinity), or the control
/// groups' share of time, rounded up, when that is lower; of this process, when it shares them, and no more
/// than SLURM_CPUS_PER_TASK. At least 1.
int usable_processors();

/// Whether this process can have so many further bytes of addresses, under its limits (ulimit -v, ulimit -d):
/// takes them for a moment. True when it has no limit.
bool has_addresses_for(uint64_t bytes);

/// The most memory that OpenBLAS takes for each thread that calls it.
inline constexpr uint64_t blas_buffer_bytes = uint64_t{130} << 20;

/// From now on usable_ram() is a part of `memory` processes, and usable_processors() of `processors`, which
/// share this machine in one job. Call it once, before either is used.
void share_machine(int memory, int processors);

} // namespace hsi
