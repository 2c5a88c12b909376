// SPDX-License-Identifier: MIT
// What every trained classifier says about its classes and the features that it wants.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsi::model {

struct ModelClass {
    int value = 0; ///< 1..65535, what the map holds
    std::string name;
    std::optional<std::array<uint8_t, 4>> colour;
    int64_t samples = 0; ///< training pixels
    double weight = 1;   ///< of its training pixels' errors, where the classifier weighs them
};

/// The scene's bands behind the features.
struct ModelBands {
    std::vector<int> bands;              ///< file bands (1-based)
    std::vector<std::string> band_names; ///< empty, or one a band
    std::vector<double> wavelengths_nm;  ///< empty, or one a band (NaN where unknown)
};

} // namespace hsi::model
