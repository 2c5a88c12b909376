// SPDX-License-Identifier: MIT
// Contains the halo that the Markov random field needs. The halo was measured, and is tested for every
// penalty and number of iterations for which it is defined (tests/sahic/mrf_test.cpp).
#include "sahic/sahic.h"

namespace hsi::sahic {

std::optional<int64_t> mrf_halo(const MrfOptions& options) {
    if (options.mu > 0.05 || options.iterations > 200) return std::nullopt;
    return 24;
}

} // namespace hsi::sahic
