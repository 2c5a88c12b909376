// SPDX-License-Identifier: MIT
// Part of every module: the functions that check_module() calls.
#include "core/process_owner.h"

extern "C" const char* hsi_interface_id(); // computed from all headers, see cmake/HsiInterface.cmake

extern "C" __attribute__((visibility("default"))) const char* hsi_module_interface();
extern "C" const char* hsi_module_interface() { return hsi_interface_id(); }

extern "C" __attribute__((visibility("default"))) void hsi_module_share_process();
extern "C" void hsi_module_share_process() { hsi::share_process(); }
