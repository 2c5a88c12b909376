// SPDX-License-Identifier: MIT
/// Facts from GDAL's file systems about a path before it is opened.
#pragma once

#include <cstddef>
#include <string>

namespace hsi::raster {

/// True for a file with a length. Pipes, devices and folders are not regular: code that only checks for a
/// format must not open them, since a pipe can be read only once, and opening one waits for the other end.
bool is_regular_file(const std::string& path);

/// Whether the name exists.
bool is_there(const std::string& path);

/// Whether the name exists and is neither a regular file nor a folder.
bool is_pipe_or_device(const std::string& path);

/// The header next to `path` that would describe its samples, if it exists and cannot be read for lack of
/// permission; empty otherwise. GDAL then does not recognise the file, and does not say why.
std::string unreadable_header(const std::string& path);

/// The file of a name like HDF5:"a.h5"://cube; the name itself where it is one.
std::string file_of_subdataset(const std::string& name);
/// The array of such a name (//cube); empty without one.
std::string array_of_subdataset(const std::string& name);
/// Whether such an array is the one with this full name: drivers write "_" for blanks, and any slashes
/// before.
bool names_array(const std::string& name, const std::string& full_name);

/// Whether the path leads into an HDF5 file, including netCDF-4: by the form of the name
/// (HDF5:"a.h5"://cube), or because one begins at its first byte or, after bytes of another program, at 512,
/// 1024, 2048 ...
bool leads_to_hdf5(const std::string& path);

/// False if a path certainly does not lead to a MATLAB file (matlab/matlab_file.h): its name does not end in
/// .mat, as for version 4, and it does not begin as later versions; or it is not a file, and not a file's
/// name with a variable after a colon.
bool may_lead_to_matlab(const std::string& path);

/// The first bytes of a regular file, up to the requested count; empty for other files.
std::string beginning_of_file(const std::string& path, size_t bytes);

} // namespace hsi::raster
