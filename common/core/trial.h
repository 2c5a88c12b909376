// SPDX-License-Identifier: MIT
// Tries work in a copy of this process before the process itself does it, for work that can crash a library.
#pragma once

#include <functional>
#include <string>

namespace hsi {

/// Runs `work` in a child process and waits for it. Returns how the child crashed ("segmentation fault").
/// Returns an empty text if the child ended normally or by an exception, was killed by another process, or
/// had to be stopped after a minute. Also returns an empty text if no trial is possible: inside another
/// program, while other threads exist (the copy would wait for their locks forever), within a trial, or if
/// the system cannot create a process.
std::string death_in_trial(const std::function<void()>& work);

} // namespace hsi
