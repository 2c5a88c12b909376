// SPDX-License-Identifier: MIT
#include "endmembers/endmembers.h"

#include "core/error.h"
#include "endmembers/search.h"

#include <algorithm>

namespace hsi::endmembers {

void check_count(const Options& options, int bands, int64_t valid_pixels) {
    int64_t most = options.method == Method::nfindr ? bands + 1 : bands;
    std::string of = std::to_string(bands) + (bands == 1 ? " band" : " bands");
    if (valid_pixels >= 0 && valid_pixels < most) {
        most = valid_pixels;
        of = std::to_string(valid_pixels) + (valid_pixels == 1 ? " valid pixel" : " valid pixels");
    }
    if (options.count >= 2 && options.count <= most) return;
    throw UsageError("-t: " + std::to_string(options.count) + " endmembers cannot be found in a scene of " +
                         of,
                     most < 2 ? "Endmembers need at least two pixels with values."
                              : "Use a number from 2 to " + std::to_string(most) + ".");
}

Extraction extract(const stream::CubeSource& source, const stream::SceneMoments& moments,
                   const Options& options, const MakePass& make_pass) {
    check_count(options, moments.bands, moments.valid_pixels);
    Extraction found;
    if (options.method == Method::nfindr)
        find_by_nfindr(source, moments, options, make_pass, found);
    else
        find_by_vca(source, moments, options, make_pass, found);
    return found;
}

} // namespace hsi::endmembers
