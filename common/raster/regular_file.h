// SPDX-License-Identifier: MIT
// Facts from GDAL's file systems about a path before it is opened.
#pragma once

#include <cstddef>
#include <string>

namespace hsi::raster {

/// Returns true for a regular file: not a pipe, a device or a folder. Code that only checks the format of a
/// file must not open pipes, because a pipe can be read only once, and opening a pipe waits for the other
/// end.
bool is_regular_file(const std::string& path);

/// Returns whether the name exists.
bool is_there(const std::string& path);

/// Returns whether the name exists and is neither a regular file nor a folder.
bool is_pipe_or_device(const std::string& path);

/// Returns the path of the ENVI header (.hdr) of `path` if the header exists but the user may not read it;
/// otherwise empty. Without that permission, GDAL does not recognise the file and gives no reason.
std::string unreadable_header(const std::string& path);

/// Returns the file part of a subdataset name such as HDF5:"a.h5"://cube, or the name itself if it is a file.
std::string file_of_subdataset(const std::string& name);
/// Returns the array part of a subdataset name (//cube in HDF5:"a.h5"://cube); empty if the name has no such
/// part.
std::string array_of_subdataset(const std::string& name);
/// Returns true if `name`, the array part of a subdataset name, means the array `full_name`. Drivers write
/// "_" for blanks, and may put slashes in front.
bool names_array(const std::string& name, const std::string& full_name);

/// Returns true if the path means an HDF5 file (or netCDF-4 file) or a part of it. Either the name has the
/// form HDF5:"a.h5"://cube, or HDF5 data begin at byte 0 of the file. Bytes of another program may precede
/// the data, which then begin at byte 512, 1024, 2048 ...
bool leads_to_hdf5(const std::string& path);

/// Returns false if a path certainly does not lead to a MATLAB file (matlab/matlab_file.h). Files of version
/// 4 are recognised by the extension .mat, files of later versions by their first bytes. If no file has this
/// name, the function returns true for a path with a colon, which may mean a variable in a file.
bool may_lead_to_matlab(const std::string& path);

/// Returns the first bytes of a regular file, up to the requested number; empty for other files.
std::string beginning_of_file(const std::string& path, size_t bytes);

} // namespace hsi::raster
