// SPDX-License-Identifier: MIT
// Facts from GDAL's file systems about a path before it is opened.
#pragma once

#include <cstddef>
#include <string>

namespace hsi::raster {

/// Returns true for a file with a length. Pipes, devices and folders are not regular. Code that only checks
/// for a format must not open them, because a pipe can be read only once, and opening a pipe waits for the
/// other end.
bool is_regular_file(const std::string& path);

/// Returns whether the name exists.
bool is_there(const std::string& path);

/// Returns whether the name exists and is neither a regular file nor a folder.
bool is_pipe_or_device(const std::string& path);

/// Returns the ENVI header (.hdr) of `path` if the header exists but may not be read; otherwise empty.
/// Without that permission, GDAL does not recognise the file and gives no reason.
std::string unreadable_header(const std::string& path);

/// Returns the file part of a subdataset name such as HDF5:"a.h5"://cube, or the name itself if it is a file.
std::string file_of_subdataset(const std::string& name);
/// Returns the array part of a subdataset name (//cube in HDF5:"a.h5"://cube); empty if there is none.
std::string array_of_subdataset(const std::string& name);
/// Returns true if `name`, the array part of a subdataset name, means the array `full_name`. Drivers write
/// "_" for blanks, and may put slashes in front.
bool names_array(const std::string& name, const std::string& full_name);

/// Returns true if the path leads into an HDF5 file, including netCDF-4. Either the name has the form
/// HDF5:"a.h5"://cube, or HDF5 data begin at byte 0 or, after bytes of another program, at byte 512, 1024,
/// 2048 ...
bool leads_to_hdf5(const std::string& path);

/// Returns false if a path certainly does not lead to a MATLAB file (matlab/matlab_file.h). Files of version
/// 4 are recognised by the extension .mat, files of later versions by their first bytes. A path that is not a
/// file may lead to a variable in a file if the path contains a colon.
bool may_lead_to_matlab(const std::string& path);

/// Returns the first bytes of a regular file, up to the requested number; empty for other files.
std::string beginning_of_file(const std::string& path, size_t bytes);

} // namespace hsi::raster
