// SPDX-License-Identifier: MIT
#include "core/process_owner.h"

#include <atomic>

namespace hsi {
namespace {
std::atomic<bool> g_ours{true};
}

bool process_is_ours() noexcept { return g_ours.load(); }
void share_process() noexcept { g_ours.store(false); }

} // namespace hsi
