// SPDX-License-Identifier: MIT
// Where to compute, as the user asked for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hsi {

struct DeviceChoice {
    enum class Kind { automatic, cpu, cuda };
    Kind kind = Kind::automatic;
    std::vector<int> devices; ///< CUDA ordinals; empty: the first one
};

/// Parses auto, cpu, cuda, cuda:I or cuda:I,J. Throws UsageError naming the allowed values.
DeviceChoice parse_device(std::string_view text);

} // namespace hsi
