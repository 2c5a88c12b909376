// SPDX-License-Identifier: MIT
// Whose process this is. A tool in a process of its own may set up what all of the process shares (the
// kernels of a BLAS, say); inside another program it works with what it finds.
#pragma once

namespace hsi {

/// True until share_process().
bool process_is_ours() noexcept;
/// This code runs in a program that is not ours: said once, by the library that the program has loaded,
/// before any work.
void share_process() noexcept;

} // namespace hsi
