// SPDX-License-Identifier: MIT
#include "fuzz/fuzz.h"
#include "sahic/sahic.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size, [](const std::string& text) { return sahic::from_json(text, "model"); },
        [](const sahic::MlrModel& model) { return sahic::to_json(model); });
    return 0;
}
