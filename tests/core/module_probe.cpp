// SPDX-License-Identifier: MIT
// A library with the code that looks for CUDA modules inside, as GDAL's plugin has it.
#include "core/cuda_module.h"
#include "core/error.h"

#include <cstdio>

extern "C" {
__attribute__((visibility("default"))) int hsi_probe_present(const char* algorithm) {
    return hsi::cuda_module_present(algorithm) ? 1 : 0;
}
/// Where a module that is not there was looked for.
__attribute__((visibility("default"))) void hsi_probe_places(char* text, size_t size) {
    try {
        hsi::cuda_module_symbol("absent", "none");
        std::snprintf(text, size, "found");
    } catch (const hsi::Error& e) {
        std::snprintf(text, size, "%s", e.what());
    }
}
}
