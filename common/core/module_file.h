// SPDX-License-Identifier: MIT
// Places of the modules that are loaded at run time: the CUDA modules, and the MPI module.
#pragma once

#include <string>

namespace hsi {

/// The path of the module with this file name ("hsi_mpi.so"); empty if it is not found. Looks in
/// $HSI_MODULE_PATH; where this code is part of a library, in the library's folder and in ../hsi from there;
/// in lib/hsi next to the executable's folder; and in the installed place.
std::string module_file(const std::string& name);

/// A module that is loaded shares classes with the program, whose headers must have been the same. handle: of
/// dlopen(). \throws Error when the module is from other ones.
void check_module(void* handle, const std::string& file);

/// dlopen() of a module. Null if it does not load; `why` then explains more than the loader, which says "No
/// such file" for another processor's file, and crashes on a truncated one.
void* open_module(const std::string& file, int flags, std::string& why);

/// The folders in which module_file() looks, for messages: "a, b".
std::string module_places();

} // namespace hsi
