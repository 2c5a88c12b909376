// SPDX-License-Identifier: MIT
// The training data of a classifier: spectra of labelled pixels.
#pragma once

#include "core/label_class.h"

#include <cstdint>
#include <vector>

namespace hsi::model {

struct TrainingSet {
    int features = 0;
    std::vector<float> values;   ///< [pixel][feature], as read from the scene
    std::vector<uint16_t> label; ///< the class value of each pixel
    /// The classes that occur, in the order of their values. The training counts their pixels.
    std::vector<LabelClass> classes;
    /// The greatest absolute value of the scene, above 0, for classifiers that divide values by it.
    double scale = 1;
    int64_t samples() const { return static_cast<int64_t>(label.size()); }
};

} // namespace hsi::model
