// SPDX-License-Identifier: MIT
#include "host/blas_threads.h"

#include <dlfcn.h>

namespace hsi::host {

void end_idle_blas_threads() noexcept {
    // GDAL and libraries beside it are linked to a BLAS whether a tool uses one or not. Which one it is an
    // alternative of the system decides.
    if (const auto end = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "blas_thread_shutdown_"))) end();
}

} // namespace hsi::host
