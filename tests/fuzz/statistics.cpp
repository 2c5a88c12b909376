// SPDX-License-Identifier: MIT
#include "statistics/statistics.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::check_model(
        data, size, [](const std::string& text) { return statistics::from_json(text, "statistics"); },
        [](const statistics::Statistics& read) { return statistics::to_json(read, "fuzz"); });
    return 0;
}
