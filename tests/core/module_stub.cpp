// SPDX-License-Identifier: MIT
// A module as its loader sees it: a function with a name. With HSI_STUB_INTERFACE it claims that other
// headers were used to build it.

extern "C" {
__attribute__((visibility("default"))) void none();
void none() {}
#ifdef HSI_STUB_INTERFACE
__attribute__((visibility("default"))) const char* hsi_module_interface();
const char* hsi_module_interface() { return HSI_STUB_INTERFACE; }
#endif
}
