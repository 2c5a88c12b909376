// SPDX-License-Identifier: MIT
// The limits of memory and processors that the machine and the control groups (a Slurm job, a container, a
// systemd unit) set for this process. Reads control groups of version 1, of version 2, or of both. The
// parents of a group also limit the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

/// Returns the lowest memory limit in bytes among the process's control group and all its parents (version 2:
/// memory.max and memory.high; version 1: memory.limit_in_bytes); nullopt without a limit. Ignores files that
/// are missing or do not contain a number. `root` is prepended to /proc and /sys: "" for this machine, a
/// folder in tests.
std::optional<uint64_t> cgroup_memory_limit(const std::string& root = {});

/// Returns the lowest limit of processor time as a number of processors: 2.5 if 250 ms of processor time are
/// allowed in every 100 ms; nullopt without a limit. Reads cpu.max (version 2), or cpu.cfs_quota_us and
/// cpu.cfs_period_us (version 1).
std::optional<double> cgroup_processor_limit(const std::string& root = {});

/// Returns the memory in bytes that this process may use: the smallest of the machine's memory, the limit of
/// the control groups and the limit of the Slurm job (SLURM_MEM_PER_NODE, or SLURM_MEM_PER_CPU with
/// SLURM_CPUS_ON_NODE). After share_machine(), returns the part of this process.
uint64_t usable_ram();

/// Returns the number of processors that this process may keep busy, at least 1. The number is the smallest
/// of the processors on which the process may run (sched_getaffinity), the control groups' share of time
/// (rounded up) and SLURM_CPUS_PER_TASK. After share_machine(), the first two are divided among the
/// processes.
int usable_processors();

/// Returns whether this process can get `bytes` further bytes of addresses under its limits (ulimit -v,
/// ulimit -d). Reserves the addresses for a moment to find out. Returns true without a limit.
bool has_addresses_for(uint64_t bytes);

/// The maximum memory that OpenBLAS allocates for each thread that calls it.
inline constexpr uint64_t blas_buffer_bytes = uint64_t{130} << 20;

/// Declares that several processes of one job run on this machine. usable_ram() then returns the part of one
/// of `memory` processes. `processors`: the number of processes that may run on the same processors as this
/// one; usable_processors() divides these processors by it. Call this function once, before usable_ram() and
/// usable_processors().
void share_machine(int memory, int processors);

} // namespace hsi
