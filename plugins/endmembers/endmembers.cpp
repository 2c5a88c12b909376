// SPDX-License-Identifier: MIT
#include "endmembers/endmembers.h"

#include "core/counted.h"
#include "core/error.h"
#include "endmembers/search.h"

#include <algorithm>

namespace hsi::endmembers {

void check_count(const Options& options, int bands, int64_t valid_pixels) {
    int64_t most = options.method == Method::nfindr ? bands + 1 : bands;
    std::string of = counted(bands, "band");
    if (valid_pixels >= 0 && valid_pixels < most) {
        most = valid_pixels;
        of = counted(valid_pixels, "valid pixel");
    }
    if (options.count >= 2 && options.count <= most) return;
    throw UsageError("-t: " + counted(options.count, "endmember") + " cannot be found in a scene of " + of,
                     most < 2 ? "Endmembers need at least two valid pixels."
                              : "Use a number from 2 to " + std::to_string(most) + ".");
}

Extraction extract(const stream::CubeSource& source, const stream::SceneStatistics& moments,
                   const Options& options, const MakePass& make_pass) {
    check_count(options, moments.bands, moments.valid_pixels);
    Extraction found;
    const auto find = options.method == Method::vca ? find_by_vca
                      : options.nested              ? find_by_growing
                                                    : find_by_nfindr;
    find(source, moments, options, make_pass, found);
    return found;
}

} // namespace hsi::endmembers
