// SPDX-License-Identifier: MIT
// A thread can end in the middle of its work, because a caller's hook may call pthread_exit(). Python does so
// on its threads when the interpreter ends. The frames are then unwound by an exception that must be
// rethrown; otherwise the process is aborted. Therefore, each catch (...) around a call of a hook is preceded
// by a catch (ForcedUnwind&) that rethrows, and no function that calls hooks is noexcept.
#pragma once

#include "core/error.h"

#include <cxxabi.h>

#include <exception>

namespace hsi {

#ifdef __GLIBCXX__
using ForcedUnwind = abi::__forced_unwind;
#else
/// libc++ has no name for this exception. Nothing throws this class.
class ForcedUnwind {
    ForcedUnwind() = default;
};
#endif

/// Returns the exception that is thrown on the other threads after a hook has ended one thread.
inline std::exception_ptr thread_was_ended() {
    return std::make_exception_ptr(
        Error("a hook ended a thread of the library", "A hook in a thread of the library must return."));
}

} // namespace hsi
