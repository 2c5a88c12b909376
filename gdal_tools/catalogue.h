// SPDX-License-Identifier: MIT
// All tools of the suite.
#pragma once

#include "tool/definition.h"

#include <vector>

namespace hsi::tools {

extern const tool::Definition accuracy, atdca, compare, detect, eadp, endmembers, info, mnf, orthorectify,
    pca, profile, regularize, sahic, sample, spectra, spp, svm_classify, svm_train, synth, unmix, vd;

/// In alphabetical order.
const std::vector<const tool::Definition*>& catalogue();

} // namespace hsi::tools
