// SPDX-License-Identifier: MIT
// A rule file is rejected, or all its parts satisfy the conditions in the header rules.h.
#include "identify/rules.h"
#include "core/error.h"

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const auto file = hsi::identify::read_rules(std::string(data, data + size), "rules");
        bool good = !file.rules.empty() && !file.groups.empty();
        for (const auto& rule : file.rules) {
            good = good && !rule.features.empty() && !rule.groups.empty();
            for (const auto& feature : rule.features) {
                const auto& w = feature.windows;
                good = good && w[0] > 0 && w[0] <= w[1] && w[1] < w[2] && w[2] <= w[3] &&
                       feature.weight.value_or(0) >= 0;
                for (const auto& limit : feature.limits)
                    good = good && limit.over <= rule.features.size();
            }
        }
        if (!good) std::abort();
    } catch (const hsi::Error&) {
    }
    return 0;
}
