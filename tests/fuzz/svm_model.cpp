// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "svm/svm.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size,
        [](const std::string& text) {
            svm::Model model = svm::from_json(text, "model");
            fuzz::expect(!svm::to_libsvm(model).empty(), "a model that is read can be written for LIBSVM");
            return model;
        },
        [](const svm::Model& model) { return svm::to_json(model); });
    return 0;
}
