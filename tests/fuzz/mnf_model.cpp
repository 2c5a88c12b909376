// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "mnf/mnf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size, [](const std::string& text) { return mnf::from_json(text, "model"); },
        [](const mnf::Model& model) { return mnf::to_json(model); });
    return 0;
}
