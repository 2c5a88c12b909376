// SPDX-License-Identifier: MIT
// The inner loops of class probabilities, compiled for several instruction sets (Highway).
#pragma once

#include <cstdint>
#include <vector>

namespace hsi::sahic {

inline constexpr int group_size = 4; ///< anchors that are evaluated together

/// The regressors as the kernel reads them: anchors in groups of four, the last group filled up with anchors
/// whose weights are zero.
struct MlrPanels {
    int features = 0, outputs = 0; ///< outputs: classes - 1
    double gamma = 1;
    int64_t groups = 0;
    std::vector<double> anchors;  ///< [group][feature][4], scaled
    std::vector<double> squares;  ///< [group][4], |a|^2
    std::vector<double> weights;  ///< [group][output][4]
    std::vector<double> constant; ///< an output each
};

struct MlrKernels {
    int width; ///< pixels that are evaluated together
    /// x: [feature][width] scaled, x2: [width] |x|^2; logits: [output][width], overwritten.
    void (*logits)(const MlrPanels& panels, const double* x, const double* x2, double* logits);
    /// logits [output][width] to probabilities [output + 1][width]; the last class has logit 0.
    void (*softmax)(int outputs, const double* logits, double* probabilities);
    const char* target;
};

const MlrKernels& mlr_kernels();

} // namespace hsi::sahic
