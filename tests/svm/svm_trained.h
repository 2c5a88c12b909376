// SPDX-License-Identifier: MIT
// Models trained on synthetic scenes.
#pragma once

#include "svm/svm_scene.h"
#include "svm/svm_train.h"

namespace hsi::test {

/// Returns every `step`-th pixel.
inline svm::TrainingSet training_set(const ClassScene& scene, int step) {
    svm::TrainingSet set;
    set.features = scene.cube.shape.bands;
    const int64_t samples = scene.cube.shape.samples;
    std::vector<bool> seen(65536, false);
    for (size_t i = 0; i < scene.truth.size(); i += static_cast<size_t>(step)) {
        for (int b = 0; b < set.features; ++b)
            set.values.push_back(
                scene.cube.at(b, static_cast<int64_t>(i) / samples, static_cast<int64_t>(i) % samples));
        set.label.push_back(scene.truth[i]);
        seen[scene.truth[i]] = true;
    }
    for (int v = 1; v < 65536; ++v)
        if (seen[static_cast<size_t>(v)]) {
            svm::ModelClass c;
            c.value = v;
            c.name = "class, \"" + std::to_string(v) + "\" \xC3\xA4";
            set.classes.push_back(c);
        }
    return set;
}

inline svm::TrainResult trained(const ClassScene& scene, int step, double c, double gamma, bool probability) {
    svm::TrainOptions options;
    options.c = {c};
    options.gamma = {gamma};
    options.probability = probability;
    return svm::train(training_set(scene, step), options);
}

} // namespace hsi::test
