// SPDX-License-Identifier: MIT
// Where modules lie that are loaded at run time: those of CUDA, and that of MPI.
#pragma once

#include <string>

namespace hsi {

/// The module of this file name ("hsi_mpi.so"); empty when it is nowhere. It is looked for in
/// $HSI_MODULE_PATH; where this code is part of a library, beside that library and in ../hsi from there; in
/// lib/hsi beside the executable's folder; in the installed place.
std::string module_file(const std::string& name);

/// A module that is loaded shares classes with the program, whose headers must have been the same. handle: of
/// dlopen(). \throws Error when the module is from other ones.
void check_module(void* handle, const std::string& file);

/// dlopen() of a module. Null where it does not load, and `why` tells more than the loader: of a file for
/// another processor it says "No such file", and of one that was copied in part the process dies.
void* open_module(const std::string& file, int flags, std::string& why);

/// The folders in which module_file() looks, for messages: "a, b".
std::string module_places();

} // namespace hsi
