// SPDX-License-Identifier: MIT
#include "host/blas_threads.h"

#include "core/process_limits.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace hsi::host {
namespace {

template <class Function>
Function blas_function(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

constexpr const char* threads_variable = "OPENBLAS_NUM_THREADS";

} // namespace

void end_idle_blas_threads() noexcept {
    // GDAL and libraries beside it are linked to a BLAS whether a tool uses one or not. Which one it is an
    // alternative of the system decides.
    if (const auto end = blas_function<int (*)()>("blas_thread_shutdown_")) end();
}

void restart_without_stuck_blas_threads(char** argv) noexcept {
    const auto count = blas_function<int (*)()>("openblas_get_num_threads");
    if (count == nullptr || count() < 2) return;
    if (const char* const given = std::getenv(threads_variable);
        given != nullptr && std::string_view(given) == "1")
        return;
    // What they have taken already is asked for once more: who has so little left is better off with one.
    if (has_addresses_for(static_cast<uint64_t>(count() - 1) * blas_buffer_bytes)) return;
    setenv(threads_variable, "1", 1);
    execv("/proc/self/exe", argv);
}

} // namespace hsi::host
