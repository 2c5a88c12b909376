// SPDX-License-Identifier: MIT
// Work that a library may die of, tried in a copy of this process first.
#pragma once

#include <functional>
#include <string>

namespace hsi {

/// Runs `work` in a child and waits for it. Returns how the child died ("segmentation fault"); empty when it
/// came to its end, by an exception too, and when no trial was made: in a program that is not ours, while
/// there are other threads, whose locks a copy would wait for without end, in a trial itself, where the
/// system has no process left, or when the child has not ended after a minute.
std::string death_in_trial(const std::function<void()>& work);

} // namespace hsi
