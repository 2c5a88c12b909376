// SPDX-License-Identifier: MIT
// Fork and join within a process: the work of several threads ends together, even if one of them throws. For
// many short rounds of work without errors there is Team (parallel/team.h), whose threads stay. In a process
// that is not ours the threads stay here, too, for its next call: starting some takes as long as a small
// scene.
#pragma once

#include "core/cancel.h"

#include <cstdint>
#include <functional>

namespace hsi::parallel {

enum class Members {
    all,
    /// One that has not begun when member 0 is through is left out: nothing is left for it to take.
    who_are_free
};

/// Calls work(member) for the members 0 .. members - 1, each on its own thread, member 0 on the caller's, and
/// returns when all have ended. If the system has no more threads, there are fewer members; so `work` must
/// let free members take the units. When one throws, failed() is called at once on its thread (under a lock),
/// to stop the others; the first exception is thrown again at the end.
void on_threads(
    int members, const std::function<void(int member)>& work, const std::function<void()>& failed = [] {},
    Members wanted = Members::all);

/// Calls work(unit, member) for every unit of 0 .. units - 1, each once, in rising order as members become
/// free. After an exception no further unit begins; it is thrown again when all members have ended. Cancelled
/// is thrown likewise, when `cancel` (may be null) was requested before the last unit began.
void for_each(int64_t units, int members, const CancelFlag* cancel,
              const std::function<void(int64_t unit, int member)>& work);

} // namespace hsi::parallel
