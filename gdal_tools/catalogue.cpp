// SPDX-License-Identifier: MIT
#include "catalogue.h"

namespace hsi::tools {

const std::vector<const tool::Definition*>& catalogue() {
    static const std::vector<const tool::Definition*> all{
        &accuracy, &atdca,        &compare,      &detect,    &eadp,       &endmembers, &info,
        &mnf,      &orthorectify, &pca,          &profile,   &regularize, &sahic,      &sample,
        &spectra,  &spp,          &svm_classify, &svm_train, &synth,      &unmix,      &vd};
    return all;
}

} // namespace hsi::tools
