// SPDX-License-Identifier: MIT
// States whether this process is ours. A tool in its own process may set up what the whole process shares
// (the kernels of a BLAS, say); inside another program it takes the process as it is. Each library and module
// has its own answer.
#pragma once

#include <atomic>

namespace hsi {

inline std::atomic<bool> g_process_is_ours{true};

/// True until share_process().
inline bool process_is_ours() noexcept { return g_process_is_ours.load(); }
/// Declares that this code runs in a program that is not ours: called once, by the library that the program
/// has loaded, before any work.
inline void share_process() noexcept { g_process_is_ours.store(false); }

} // namespace hsi
