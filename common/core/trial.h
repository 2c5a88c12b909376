// SPDX-License-Identifier: MIT
// Tries work that can crash a library in a copy of this process first.
#pragma once

#include <functional>
#include <string>

namespace hsi {

/// Runs `work` in a child process and waits for it. Returns how the child crashed ("segmentation fault");
/// empty if it ended normally or by an exception. Also returns an empty text if the trial was not made: in
/// another program, while other threads exist (the copy would wait for their locks forever), within a trial,
/// if the system cannot create a process, or if the child has not ended after a minute.
std::string death_in_trial(const std::function<void()>& work);

} // namespace hsi
