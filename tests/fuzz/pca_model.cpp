// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "pca/pca.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size, [](const std::string& text) { return pca::from_json(text, "model"); },
        [](const pca::Model& model) { return pca::to_json(model); });
    return 0;
}
