// SPDX-License-Identifier: MIT
// Finds the modules that are loaded at run time: the CUDA modules and the MPI module.
#pragma once

#include <string>

namespace hsi {

/// Returns the path of the module with this file name ("hsi_mpi.so"); empty if it is not found. Searches
/// $HSI_MODULE_PATH first. If this code is part of a library, then searches the library's folder, the folder
/// hsi in it, and the folder hsi next to it. Then searches lib/hsi next to the executable's folder, lib/hsi
/// in it, and the installed folder.
std::string module_file(const std::string& name);

/// Checks that a module was built from the same headers as the program, since they share classes. `handle` is
/// the result of dlopen(). If this process runs another program, also calls share_process() in the module.
/// \throws Error if the headers differ.
void check_module(void* handle, const std::string& file);

/// Opens a module with dlopen(). Returns null if it does not load. `why` then explains the failure better
/// than the loader, which reports "No such file" for a file of another architecture and crashes on a
/// truncated file.
void* open_module(const std::string& file, int flags, std::string& why);

/// Returns the folders that module_file() searches, for messages: "a, b".
std::string module_places();

} // namespace hsi
