// SPDX-License-Identifier: MIT
// The softmax of class probabilities, compiled for several instruction sets (Highway).
#pragma once

namespace hsi::sahic {

/// logits [output][width] to probabilities [output + 1][width]; the last class has logit 0. width: that of
/// math::RbfKernels, or another multiple of a vector's lanes.
void softmax(int outputs, int width, const double* logits, double* probabilities);

} // namespace hsi::sahic
