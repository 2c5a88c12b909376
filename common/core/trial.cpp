// SPDX-License-Identifier: MIT
#include "core/trial.h"

#include "core/process_owner.h"
#include "core/system.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace hsi {
namespace {

using namespace std::chrono_literals;

bool g_in_trial = false;

bool is_alone() { return system::threads() == 1; }

/// Never returns. The child's messages and a core dump would not help the user.
[[noreturn]] void run_in_child(const std::function<void()>& work) {
    g_in_trial = true;
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
        ::signal(number, SIG_DFL);
    if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
        ::dup2(nowhere, STDOUT_FILENO);
        ::dup2(nowhere, STDERR_FILENO);
    }
    try {
        work();
    } catch (...) { // the parent repeats the work and gets the same exception
    }
    ::_exit(0); // skips the exit handlers of the parent
}

std::string called(int status) {
    if (!WIFSIGNALED(status)) return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "early end";
    switch (WTERMSIG(status)) {
    case SIGSEGV:
        return "segmentation fault";
    case SIGBUS:
        return "bus error";
    case SIGFPE:
        return "arithmetic exception";
    case SIGABRT:
        return "abort";
    case SIGILL:
        return "illegal instruction";
    default:
        return ""; // not a crash: another process has ended the child
    }
}

} // namespace

std::string death_in_trial(const std::function<void()>& work) {
    if (g_in_trial || !process_is_ours() || !is_alone()) return {};
    const pid_t child = ::fork();
    if (child < 0) return {};
    if (child == 0) run_in_child(work);
    const auto patience = std::chrono::steady_clock::now() + 60s;
    for (auto pause = 100us;; pause = std::min<std::chrono::microseconds>(2 * pause, 5ms)) {
        int status = 0;
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child) return called(status);
        if (ended < 0 && errno != EINTR) return {}; // SIGCHLD is ignored, so the end is not reported
        if (std::chrono::steady_clock::now() > patience) {
            ::kill(child, SIGKILL);
            ::waitpid(child, &status, 0);
            return {};
        }
        std::this_thread::sleep_for(pause);
    }
}

} // namespace hsi
