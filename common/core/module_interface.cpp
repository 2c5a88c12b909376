// SPDX-License-Identifier: MIT
// Part of every module: what check_module() asks of it.

extern "C" const char* hsi_interface_id(); // made from all headers, see cmake/HsiInterface.cmake

extern "C" __attribute__((visibility("default"))) const char* hsi_module_interface();
extern "C" const char* hsi_module_interface() { return hsi_interface_id(); }
