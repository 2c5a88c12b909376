// SPDX-License-Identifier: MIT
// A library that contains the code that finds CUDA modules, as GDAL's plugin does.
#include "core/cuda_module.h"
#include "core/error.h"

#include <cstdio>

extern "C" {
__attribute__((visibility("default"))) int hsi_probe_present(const char* algorithm) {
    return hsi::cuda_module_present(algorithm) ? 1 : 0;
}
/// Writes the error and the advice for a module that is missing or invalid.
__attribute__((visibility("default"))) void hsi_probe_error(const char* algorithm, char* text, size_t size) {
    try {
        hsi::cuda_module_symbol(algorithm, "none");
        std::snprintf(text, size, "found");
    } catch (const hsi::Error& e) {
        std::snprintf(text, size, "%s\n%s", e.what(), e.advice().c_str());
    }
}
}
