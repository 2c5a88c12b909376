// SPDX-License-Identifier: MIT
// Whose process this is. A tool in a process of its own may set up what all of the process shares (the
// kernels of a BLAS, say); inside another program it works with what it finds. Each library and module has
// its own answer.
#pragma once

#include <atomic>

namespace hsi {

inline std::atomic<bool> g_process_is_ours{true};

/// True until share_process().
inline bool process_is_ours() noexcept { return g_process_is_ours.load(); }
/// This code runs in a program that is not ours: said once, by the library that the program has loaded,
/// before any work.
inline void share_process() noexcept { g_process_is_ours.store(false); }

} // namespace hsi
