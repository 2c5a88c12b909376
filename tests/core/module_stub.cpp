// SPDX-License-Identifier: MIT
// What a module of an algorithm is to its loader: a function by name. With HSI_STUB_INTERFACE it says that it
// was built from other headers.

extern "C" {
__attribute__((visibility("default"))) void none();
void none() {}
#ifdef HSI_STUB_INTERFACE
__attribute__((visibility("default"))) const char* hsi_module_interface();
const char* hsi_module_interface() { return HSI_STUB_INTERFACE; }
#endif
}
