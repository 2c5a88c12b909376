// SPDX-License-Identifier: MIT
// A class of a classification: what a label file, a training set, a model, a map and its accuracy mean by
// one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace hsi {

using Colour = std::array<uint8_t, 4>; ///< red, green, blue, alpha

struct LabelClass {
    int value = 0;                     ///< 0..65535, what the pixels hold
    std::string name;                  ///< empty: none
    int64_t pixels = 0;                ///< with this label: counted in a file, or trained with
    std::optional<Colour> colour = {}; ///< empty: none
    double weight = 1;                 ///< of its training pixels' errors, where the classifier weighs them
};

} // namespace hsi
