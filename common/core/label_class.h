// SPDX-License-Identifier: MIT
// A class of a classification, as used by label files, training sets, models, maps and accuracies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

using Colour = std::array<uint8_t, 4>; ///< red, green, blue, alpha

struct LabelClass {
    int value = 0;      ///< value of the class in label rasters, 0..65535
    std::string name;   ///< empty: the class has no name
    int64_t pixels = 0; ///< Number of pixels with this label in a file, or number of training pixels.
    std::optional<Colour> colour = {}; ///< empty: the class has no colour
    /// Weight of the errors of the class's training pixels, for classifiers that use weights.
    double weight = 1;
};

} // namespace hsi
