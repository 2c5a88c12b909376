// SPDX-License-Identifier: MIT
// A library with the code that looks for CUDA modules inside, as GDAL's plugin has it.
#include "core/cuda_module.h"
#include "core/error.h"

#include <cstdio>

extern "C" {
__attribute__((visibility("default"))) int hsi_probe_present(const char* algorithm) {
    return hsi::cuda_module_present(algorithm) ? 1 : 0;
}
/// The error for a module that is not there, or is none, and below it the advice.
__attribute__((visibility("default"))) void hsi_probe_error(const char* algorithm, char* text, size_t size) {
    try {
        hsi::cuda_module_symbol(algorithm, "none");
        std::snprintf(text, size, "found");
    } catch (const hsi::Error& e) {
        std::snprintf(text, size, "%s\n%s", e.what(), e.advice().c_str());
    }
}
}
