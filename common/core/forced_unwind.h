// SPDX-License-Identifier: MIT
// The end of a thread in the midst of its work: a caller's hook may call pthread_exit(), as Python does on
// its threads when the interpreter ends. Frames are then left as by an exception, which has to be thrown on:
// the process is aborted where it is not. So a catch (...) below which hooks are called stands behind catch
// (ForcedUnwind&), and no function that calls them is noexcept.
#pragma once

#include "core/error.h"

#include <cxxabi.h>

#include <exception>

namespace hsi {

#ifdef __GLIBCXX__
using ForcedUnwind = abi::__forced_unwind;
#else
/// libc++ has no name for it: nothing throws this.
class ForcedUnwind {
    ForcedUnwind() = default;
};
#endif

/// What the other threads are told of it.
inline std::exception_ptr thread_was_ended() {
    return std::make_exception_ptr(
        Error("a thread was ended in the midst of its work", "Hooks must return: they may not end threads."));
}

} // namespace hsi
