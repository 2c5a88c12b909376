// SPDX-License-Identifier: MIT
// The threads that a BLAS starts when it is loaded, before anything here runs.
#pragma once

namespace hsi::host {

/// OpenBLAS starts a thread for every processor but one, and each looks for work for some 27 ms before it
/// sleeps: processor time that short runs want, and that ranks of one host take from one another. Ends them,
/// by the function that OpenBLAS itself calls before a fork; the first product that is to be divided starts
/// them again. With another BLAS nothing happens. For a process that is ours, before it has threads.
void end_idle_blas_threads() noexcept;

/// Each thread of OpenBLAS takes a buffer when it starts, and tries for ever when there are no addresses left
/// (ulimit -v): nobody can wait for its end. Where that may have happened the process begins anew, as its
/// first act, with OpenBLAS told to start none (OPENBLAS_NUM_THREADS=1). Returns where there is no need, or
/// no way.
void restart_without_stuck_blas_threads(char** argv) noexcept;

} // namespace hsi::host
