// SPDX-License-Identifier: MIT
// States whether this process runs one of our programs. A tool may then change settings of the whole process,
// such as the kernels of a BLAS. Inside another program, this code changes no settings of the process. Each
// library and module has its own copy of this state.
#pragma once

#include <atomic>

namespace hsi {

inline std::atomic<bool> g_process_is_ours{true};

/// Returns true until share_process() is called.
inline bool process_is_ours() noexcept { return g_process_is_ours.load(); }
/// Declares that this code runs in another program. The library that the program has loaded calls this
/// function once, before any work.
inline void share_process() noexcept { g_process_is_ours.store(false); }

} // namespace hsi
