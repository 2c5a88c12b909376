// SPDX-License-Identifier: MIT
/// What GDAL's file systems know of a path before it is opened.
#pragma once

#include <cstddef>
#include <string>

namespace hsi::raster {

/// Whether there is a file with a length. Pipes, devices and folders are none: what only looks whether it
/// knows a format must not open them, for a pipe can be read but once, and opening one waits for the other
/// end.
bool is_regular_file(const std::string& path);

/// Whether there is anything with that name.
bool is_there(const std::string& path);

/// Whether there is something with that name that is neither a regular file nor a folder.
bool is_pipe_or_device(const std::string& path);

/// The header beside `path` that would say what the samples in it are, where it is there and may not be read;
/// empty: there is none. GDAL then knows nothing of the file, and does not say why.
std::string unreadable_header(const std::string& path);

/// The file of a name like HDF5:"a.h5"://cube; the name itself where it is one.
std::string file_of_subdataset(const std::string& name);
/// The array of such a name (//cube); empty when it names none.
std::string array_of_subdataset(const std::string& name);
/// Whether such an array is the one of this full name: drivers write "_" for blanks, and any slashes before.
bool names_array(const std::string& name, const std::string& full_name);

/// Whether the path leads into a file of HDF5, netCDF-4's among them: by the form of the name
/// (HDF5:"a.h5"://cube), or because one begins at its first byte or, behind bytes of another program's, at
/// 512, 1024, 2048 ...
bool leads_to_hdf5(const std::string& path);

/// False where a path is sure to lead to no file of MATLAB's (matlab/matlab_file.h): its file's name does
/// not end in .mat, as those of version 4 do, nor does it begin as later ones; or it is no file, and names
/// none with a variable behind a colon.
bool may_lead_to_matlab(const std::string& path);

/// The first bytes of a regular file, as many as there are of those asked for; empty for anything else.
std::string beginning_of_file(const std::string& path, size_t bytes);

} // namespace hsi::raster
