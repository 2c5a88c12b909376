// SPDX-License-Identifier: MIT
// Runs work on several threads of this process, and ends when all of them have ended, even if a thread
// throws. Use Team (parallel/team.h) for many short rounds of work without errors; its threads remain between
// rounds. Inside another program, the threads here also remain for the next call, because starting them takes
// as long as a small scene.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>

namespace hsi::parallel {

enum class Members {
    all,
    /// A member that has not begun when member 0 is done may be left out, because no work remains for it.
    who_are_free
};

/// Calls work(member) for the members 0 .. members - 1, and returns when all have ended. Member 0 runs on the
/// caller's thread, and each other member on its own thread. If the system has no more threads, there are
/// fewer members, so `work` must let free members take the units. If a member throws, failed() is called at
/// once on its thread (under a lock) to stop the others. The first exception is rethrown at the end.
void on_threads(
    int members, const std::function<void(int member)>& work, const std::function<void()>& failed = [] {},
    Members wanted = Members::all);

/// Calls work(unit, member) once for every unit of 0 .. units - 1. Members take the units in rising order as
/// they become free. After an exception no further unit begins, and the exception is rethrown when all
/// members have ended. Likewise throws Cancelled if `cancel` (may be null) was requested before the last unit
/// began.
void for_each(int64_t units, int members, const CancelFlag* cancel,
              const std::function<void(int64_t unit, int member)>& work);

} // namespace hsi::parallel
