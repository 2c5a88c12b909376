// SPDX-License-Identifier: MIT
// Work that a library may die of, tried in a copy of this process first.
#pragma once

#include <functional>
#include <string>

namespace hsi {

/// Runs `work` in a child and waits for it. Returns how the child died ("segmentation fault"); empty if it
/// ended, also by an exception. Also empty if no trial was made: in a program that is not ours, while there
/// are other threads (a copy would wait for their locks for ever), within a trial, if the system cannot make
/// a process, or if the child has not ended after a minute.
std::string death_in_trial(const std::function<void()>& work);

} // namespace hsi
